"""manela agent peer and edges: what is in a host's store."""

from __future__ import annotations

import datetime
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from manela.cli.import_ import add_sources
from manela.cli.options import HOME, Home, say_seconds
from manela.cli.panels import Commands
from manela.errors import AgentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manela.hosts.folder.store import Store
    from manela.hosts.state.neighbourhood import Edge
    from manela.sources.source import Source

edges = Commands("Manage the edges of this host's nodes.")

Own = Annotated[str, typer.Argument(metavar="OWN", help="A node of this host.")]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="node@host, or another node of this host.")]


@edges.command("add")
def add_edge(
    own: Own, other: Other = "", weight: Annotated[float, typer.Argument(metavar="WEIGHT")] = 1.0, home: Home = HOME
) -> None:
    """Add an edge.

    Without OTHER it adds a node without edges. The operator of the other host must add the edge too. A running daemon
    applies changes at its next round.
    """
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.config import FILE, read_config
    from manela.hosts.folder.edges import check_own_name, is_loop, parse_edge
    from manela.hosts.folder.store import Store

    host = read_config(home / FILE).name
    edge = parse_edge([own, other, repr(weight)], host, "edge")
    if is_loop(edge, host):
        raise AgentError(f"an edge must have two different ends, got {own} twice; leave out OTHER to add only the node")
    with Store(home) as store:
        check_own_name(own, host, store.peers(), "edge")
        if store.add_edges([edge]).erased:
            raise AgentError("a node of this edge was erased; allow it first with `manela agent node allow`")
        record(store, "edge added", _name_kind(edge))


def _name_kind(edge: Edge) -> str:
    """Return what an edge is, without the names of its nodes."""
    return "a node without edges" if edge.other is None else f"between nodes of this host and of {edge.other[1]}"


@edges.command("remove")
def remove_edge(own: Own, other: Other = "", home: Home = HOME) -> None:
    """Remove an edge, or all edges of a node.

    Without OTHER it removes all edges of the node. The node stays: `manela agent node remove` removes it.
    """
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.config import FILE, read_config
    from manela.hosts.folder.edges import parse_edge
    from manela.hosts.folder.store import Store

    edge = parse_edge([own, other], read_config(home / FILE).name, "edge")
    with Store(home) as store:
        edges = store.remove_edge(edge)
        if edges == 0:
            raise AgentError(f"no such edge: {own} - {other}" if other else f"{own} has no edges")
        record(store, "edges removed", f"{edges:,} edges")


class _FilesByDefault(TyperGroup):
    """Treats an argument that is not a source as a file of edges."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of `import` without a command as those of `import file`."""
        if args and args[0] not in {*self.commands, "--help", "-h"}:
            args = ["file", *args]
        return super().parse_args(ctx, args)


imports = Commands("Add edges from a file, mail, the fediverse or a database.", cls=_FilesByDefault)
edges.add_typer(imports, name="import")


@imports.command("file")
def import_file(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="CSV: own node, other node@host, weight.")],
    home: Home = HOME,
) -> None:
    """Add all edges of a file, or none if a line is wrong.

    The word `file` may be left out. A header `source,target,weight` is skipped. A line with one name is a node without
    edges.
    """
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.config import FILE, read_config
    from manela.hosts.folder.edges import is_loop, read_edges
    from manela.hosts.folder.store import Store, is_erased

    host = read_config(home / FILE).name
    with Store(home) as store:
        lines = read_edges(path, host, store.peers())
        taken = [edge for edge in lines if not is_loop(edge, host)]
        erased = store.tombstones()
        kept = [edge for edge in taken if not is_erased(edge, erased, host)]
        store.add_edges(taken)
        nodes, loops = sum(edge.other is None for edge in kept), len(lines) - len(taken)
        parts = [f"added {len(kept) - nodes:,} edges"]
        parts += [f"{nodes:,} nodes without edges"] * bool(nodes)
        parts += [f"{loops:,} self-loops left out"] * bool(loops)
        parts += [f"{len(taken) - len(kept):,} lines with erased nodes left out"] * (len(kept) < len(taken))
        record(store, "edges imported", f"from a file: {', '.join(parts)}")
    print(", ".join(parts))


def import_source(source: Source, home: Home = HOME) -> None:
    """Put the edges of a source into the host's store."""
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.edges import import_to_host
    from manela.hosts.folder.store import Store

    imported = import_to_host(home, source)
    with Store(home) as store:
        record(store, "edges imported", f"from a source: {imported}")
    print(f"{imported}; {source.describe()}")


def import_acts(
    source: Source,
    one_way: Annotated[
        bool,
        typer.Option(
            "--one-way", help="Also take edges with users of peers who wrote or followed, but were not answered."
        ),
    ] = False,
    home: Home = HOME,
) -> None:
    """Put the edges of a source in which users write or follow into the host's store."""
    from manela.hosts.folder.edges import import_to_host

    print(f"{import_to_host(home, source, one_way)}; {source.describe()}")


add_sources(imports, import_source, import_acts)


@edges.command("list")
def list_edges(
    peer: Annotated[str, typer.Option(metavar="NAME", help="Only edges with nodes of this peer.")] = "",
    home: Home = HOME,
) -> None:
    """Show the edges.

    The format is that of `manela agent edges import`. A node without edges has a separate line.
    """
    from manela.hosts.folder.edges import write_edges
    from manela.hosts.folder.store import HOST, Store

    with Store(home) as store:
        write_edges(_find_edges(store, peer), store.get(HOST) or "", sys.stdout)


def _find_edges(store: Store, peer: str) -> Iterator[Edge]:
    """Return the edges with a peer, or all if it is empty; refuse a host that is not a peer and has no edges."""
    if peer and peer not in store.peers() and next(store.edges(peer), None) is None:
        raise AgentError(f"{peer}: is not a peer; see `manela agent peer list`")
    return store.edges(peer or None)


@edges.command("export")
def export_edges(
    output: Annotated[Path, typer.Argument(metavar="FILE", help="CSV file to write; - for stdout.")],
    peer: Annotated[str, typer.Option(metavar="NAME", help="Only edges with nodes of this peer.")] = "",
    home: Home = HOME,
) -> None:
    """Write the edges to a file for `manela agent edges import`."""
    import io

    from manela.hosts.folder.edges import write_edges
    from manela.hosts.folder.store import HOST, Store
    from manela.system.files import replace_file

    with Store(home) as store:
        edges, host = _find_edges(store, peer), store.get(HOST) or ""
        if str(output) == "-":
            write_edges(edges, host, sys.stdout)
            return
        with replace_file(output) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
            lines = write_edges(edges, host, text)
            text.detach()
    print(f"{output}: {lines:,} lines")


peer = Commands("Manage the hosts to learn with.")


@peer.command("add")
def add_peer(
    name: Annotated[
        str, typer.Argument(metavar="LINE|NAME", help="The line that `agent invite` printed there, or the peer's name.")
    ],
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="With a name: host:port.")] = "",
    certificate: Annotated[
        Path | None, typer.Argument(metavar="CERT", help="With a name: its certificate, a .pem file.")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=2**31,
            help="Number of its nodes, the most it counts for; by default as many as are known.",
        ),
    ] = None,
    home: Home = HOME,
) -> None:
    """Add a peer, or change one.

    For a known peer this changes the address or the size, or adds a certificate.

    \b
    manela agent peer add manela:beta@beta.example.org:7446#9F86D081…
    manela agent peer add beta beta.example.org:7446 beta-certificate.pem
    manela agent peer add beta other.example.org:7446
    """
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.config import FILE, check_address, read_config
    from manela.hosts.folder.identity import (
        accept_invitation,
        expiry_of,
        fingerprint,
        name_of,
        read_certificate,
        read_invitation,
    )
    from manela.hosts.folder.store import Store

    if certificate is None and ":" not in name and (address or nodes is not None):
        with Store(home) as store:
            store.change_peer(name, check_address(address) if address else None, nodes)
            parts = [f"address {address}"] * bool(address) + [f"{nodes} nodes"] * (nodes is not None)
            record(store, "peer changed", f"{name}: {', '.join(parts)}")
        print(f"changed {name}")
        return
    if certificate is None:
        if address or ":" not in name:
            raise AgentError(
                "a peer must be given by the line that `manela agent invite` printed there, or by NAME ADDRESS CERT"
            )
        invitation = read_invitation(name)
        name, address, peer_certificate = invitation.name, invitation.address, accept_invitation(invitation)
    else:
        peer_certificate = read_certificate(certificate)
        if name_of(peer_certificate) != name:
            raise AgentError(f"{certificate}: is the certificate of {name_of(peer_certificate)!r}, not of {name!r}")
    if name == read_config(home / FILE).name:
        raise AgentError(f"{name} is this host itself")
    if expiry_of(peer_certificate) < datetime.datetime.now(datetime.UTC):
        print(f"warning: this certificate expired on {expiry_of(peer_certificate):%Y-%m-%d}; {name} must renew it")
    with Store(home) as store:
        store.add_peer(name, check_address(address), peer_certificate, nodes)
        record(store, "peer added", f"{name} at {address}, certificate {fingerprint(peer_certificate)}")
    if certificate is None:
        print(f"{name} at {address}, with the certificate of its invitation")
        return
    print(f"{name} at {address}; compare the fingerprint of its certificate with its operator:")
    print(fingerprint(peer_certificate))


@peer.command("list")
def list_peers(home: Home = HOME) -> None:
    """Show all peers, with their certificates.

    Also shows what the daemon knows of each.
    """
    from manela.hosts.folder.home import read_status
    from manela.hosts.folder.identity import expiry_of, fingerprint
    from manela.hosts.folder.store import Store

    status = read_status(home)
    now = datetime.datetime.now(datetime.UTC)
    with Store(home) as store:
        sizes = store.sizes()
        for name, (address, certificates) in store.peers().items():
            size = f", {sizes[name]:,} nodes by the operator" if name in sizes else ""
            print(f"{name}  {address}{size}")
            for certificate in certificates:
                expiry = expiry_of(certificate)
                message = "expired on" if expiry < now else "expires on"
                print(f"    {message} {expiry:%Y-%m-%d}  {fingerprint(certificate)}")
            known = status.get("peers", {}).get(name)
            if known:
                seen = "never" if known.get("seen") is None else f"{say_seconds(time.time() - known['seen'])} ago"
                program = f", manela {known['program']}" if known.get("program") else ""
                state = known["state"] if status["running"] else "the daemon here is not running"
                print(f"    {state}, seen {seen}{program}")
                agreed, disagreed = known.get("edges_agreed", 0), known.get("edges_disagreed", 0)
                print(f"    edges known to both hosts: {agreed:,}, to one only: {disagreed:,}")


@peer.command("remove")
def remove_peer(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The peer's name.")],
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="CERT", help="Remove only this certificate.")
    ] = None,
    fingerprint: Annotated[
        str, typer.Option(metavar="AB:CD…", help="Remove only the certificate whose fingerprint begins with this.")
    ] = "",
    home: Home = HOME,
) -> None:
    """Remove a peer with its certificates and the edges with its nodes.

    What the audit has of it stays. The daemon refuses the peer within a second.
    """
    from manela.hosts.folder import identity
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.identity import find_certificate, read_certificate
    from manela.hosts.folder.store import Store

    with Store(home) as store:
        if certificate is None and not fingerprint:
            edges = store.remove_peer(name)
            record(store, "peer removed", f"{name}, with {edges:,} edges")
            print(f"removed {name}, with {edges:,} edges")
            return
        if certificate is not None:
            removed = read_certificate(certificate)
        else:
            if name not in store.peers():
                raise AgentError(f"{name}: is not a peer; known peers: {', '.join(store.peers()) or 'none'}")
            removed = find_certificate(store.peers()[name][1], fingerprint)
        store.remove_certificate(name, removed)
        record(store, "certificate removed", f"{identity.fingerprint(removed)} of {name}")
        if not store.peers()[name][1]:
            print(f"{name} has no certificate left: it is refused until you add one")
