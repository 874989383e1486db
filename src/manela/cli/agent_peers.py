"""manela agent peer: the hosts that a host learns with."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import Annotated

import typer

from manela.cli.options import HOME, Home, say_seconds
from manela.cli.panels import Commands
from manela.errors import AgentError

peer = Commands("Manage the hosts to learn with.")


@peer.command("add")
def add_peer(
    name: Annotated[
        str,
        typer.Argument(metavar="LINE|NAME", help="The line that `agent invite` printed there, or the peer's name."),
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
                words = "expired on" if expiry < now else "expires on"
                print(f"    {words} {expiry:%Y-%m-%d}  {fingerprint(certificate)}")
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
    """Remove a peer and everything known about it.

    That is its certificates, the edges with its nodes, and its lines in the audit. The daemon refuses it within a
    second.
    """
    from manela.hosts.folder.identity import find_certificate, read_certificate
    from manela.hosts.folder.store import Store

    with Store(home) as store:
        if certificate is None and not fingerprint:
            edges, lines = store.remove_peer(name)
            print(f"removed {name}, with {edges:,} edges and {lines:,} lines of the audit")
            return
        if certificate is not None:
            removed = read_certificate(certificate)
        else:
            if name not in store.peers():
                raise AgentError(f"{name}: is not a peer; known peers: {', '.join(store.peers()) or 'none'}")
            removed = find_certificate(store.peers()[name][1], fingerprint)
        store.remove_certificate(name, removed)
        if not store.peers()[name][1]:
            print(f"{name} has no certificate left: it is refused until you add one")
