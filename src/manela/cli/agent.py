"""manela agent: a host's daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from manela.agents.config import PARAMETERS_OF_HOSTS
from manela.cli import options as o
from manela.errors import AgentError
from manela.params import default

agent = typer.Typer(help="Run a host: one organisation's part of a network that many learn together.")
peer = typer.Typer(help="The hosts to learn with.")
edges = typer.Typer(help="The edges of this host's nodes; a daemon that runs takes changes at its next round.")
agent.add_typer(peer, name="peer")
agent.add_typer(edges, name="edges")

Home = Annotated[Path, typer.Option("--home", metavar="DIR", help="The host's folder.")]
_HOME = Path("manela-host")


@agent.command()
@o.expand_flags
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The host's name: a-z, 0-9, dot and hyphen.")],
    *,
    home: Home = _HOME,
    listen: Annotated[str, typer.Option(metavar="ADDRESS", help="Where peers reach this host.")] = "0.0.0.0:7446",
    watch: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where this machine sees a status page and metrics; none by default."),
    ] = "",
    paper: o.Paper = False,  # noqa: ARG001
    parameters: Annotated[o.Values, o.Flags(*PARAMETERS_OF_HOSTS)],
    weighted: Annotated[bool, typer.Option("--weighted", help="Steps and frequencies go by edge weight.")] = False,
) -> None:
    """Make a host: a folder with its key, certificate, store, and configuration with comments.

    \b
    manela agent init alpha --home alpha
    """
    from manela.agents.config import FILE, Config, check_address, check_watch
    from manela.agents.folder import CERTIFICATE
    from manela.agents.folder import init as make
    from manela.agents.identity import fingerprint, read_certificate

    given = {parameter: value for parameter, value in parameters.items() if value != default(parameter)}
    config = Config(name, check_address(listen), given, weighted=weighted, watch=check_watch(watch))
    config.terms(0)
    make(home, config)
    print(f"{home / FILE}: change it as you like before the first run")
    print(f"{home / CERTIFICATE}: give it to your peers; its fingerprint is")
    print(fingerprint(read_certificate(home / CERTIFICATE)))


@agent.command()
def run(
    home: Home = _HOME,
    trace: Annotated[bool, typer.Option("--trace", help="Write down all that peers disclose, in trace.jsonl.")] = False,
    while_stdin: Annotated[bool, typer.Option("--while-stdin", help="End when stdin is closed.")] = False,
) -> None:
    """Run the daemon until SIGTERM or Ctrl-C; it logs lines of JSON to stderr.

    SIGHUP makes it read its peers, key and certificate anew. A host that has done its rounds goes on answering.
    """
    from manela.cli.daemon import become

    become(home, trace, while_stdin)


@agent.command()
def status(
    home: Home = _HOME,
    as_json: Annotated[bool, typer.Option("--json", help="All of it, as JSON.")] = False,
) -> None:
    """Show what the daemon does: round, update pairs, peers, refusals, traffic."""
    from manela.agents.config import FILE
    from manela.agents.folder import read_status
    from manela.cli.display import print_facts

    if not (home / FILE).exists():
        raise AgentError(f"{home}: holds no host; make one with `manela agent init`")
    found = read_status(home)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    if "name" not in found:
        print("the daemon has not run yet")
        return
    facts: dict[str, Any] = {
        "host": found["name"],
        "state": found["state"] if found["running"] else "not running",
        "round": f"{found['round']:,} of {found['rounds']:,}",
        "update pairs": found["pairs"],
        "pairs a second": found["pairs_per_second"],
        "own nodes": found["nodes"],
        "sent, MB": round(found["sent"] / 1e6, 2),
        "received, MB": round(found["received"] / 1e6, 2),
    }
    if found["running"] and found.get("watch"):
        facts["page"] = found["watch"]
    if found["trouble"]:
        facts["trouble"] = found["trouble"]
    print_facts(facts)
    for name, one in found["peers"].items():
        words = f"{one['state']}, {one['sent'] / 1e6:.2f} MB sent, {one['received'] / 1e6:.2f} MB received"
        print(f"peer {name:<22}{words}{', ' + one['trouble'] if one['trouble'] else ''}")
        for kind, times in one.get("alarms", {}).items():
            print(f"alarm {name:<21}its vectors are {kind}: {times:,} times")
    for name, reasons in found["refusals"].items():
        for reason, times in reasons.items():
            print(f"refused {name:<19}{reason}: {times:,}")


@agent.command()
def export(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Where the vectors go: .npz .csv .txt and so on.")],
    home: Home = _HOME,
) -> None:
    """Write this host's own vectors, as they were kept last; nobody else's are there to write."""
    from manela.agents.folder import export as export_vectors
    from manela.formats.embeddings import check_output

    target = check_output(output)
    found = export_vectors(home)
    target.write(found)
    print(f"{output}: {len(found.nodes):,} vectors")


@agent.command()
def audit(
    home: Home = _HOME,
    most: Annotated[int, typer.Option(metavar="N", help="How many lines at most.")] = 50,
) -> None:
    """Show what was refused, the latest first."""
    from manela.agents.store import Store

    with Store(home) as store:
        for time, name, reason, detail in store.audited(most):
            print(f"{time}  {name}  {reason}: {detail}")


@agent.command()
def exposure(home: Home = _HOME) -> None:
    """Say how much of other hosts' edges this host could find out, by known attacks on its own trace.

    Run the daemon with --trace first. Each attack is tried on edges whose truth this host knows: those of its own nodes
    with nodes of others. What it finds of these, it would find of edges between nodes of others that it sees.
    """
    from manela.agents.config import FILE, read_config
    from manela.agents.exposure import attack, read_record, try_on_known_edges
    from manela.agents.folder import TRACE
    from manela.agents.neighbourhood import Neighbourhood
    from manela.agents.store import Store
    from manela.agents.trace import read_facts

    config = read_config(home / FILE)
    if not (home / TRACE).exists():
        raise AgentError(f"{home / TRACE}: is not there; run the daemon with --trace first")
    with Store(home) as store:
        near = Neighbourhood.build(config.name, store.edges())
    record = read_record(read_facts(home / TRACE), near)
    if not record.views:
        raise AgentError(f"{home / TRACE}: holds nothing that was shown by messages yet")
    print(f"{record.seen:,} nodes of others were seen; others are in no trace, and nothing can be said of their edges")
    chance = 0.0
    print(f"{'attack':<50}average precision on known edges")
    for name, scores in attack(record, near).items():
        precision, chance = try_on_known_edges(scores, near)
        print(f"{name:<50}{precision:.3f}")
    print(f"{'chance':<50}{chance:.3f}")


@agent.command()
def renew(
    home: Home = _HOME,
    use: Annotated[bool, typer.Option("--use", help="Begin to use the new key and certificate.")] = False,
) -> None:
    """Make a new key and certificate, and later begin to use them.

    First without --use: next-certificate.pem appears; peers add it beside the one they have. Then with --use, and
    SIGHUP to the daemon.
    """
    from manela.agents.config import FILE, read_config
    from manela.agents.folder import CERTIFICATE, KEY
    from manela.agents.identity import make_identity

    config = read_config(home / FILE)
    key, certificate = home / f"next-{KEY}", home / f"next-{CERTIFICATE}"
    if use:
        if not certificate.exists():
            raise AgentError(f"{certificate}: is not there; make it with `manela agent renew` first")
        if key.exists():  # otherwise it was in use before this was interrupted
            key.replace(home / KEY)
        certificate.replace(home / CERTIFICATE)
        print("in use from the daemon's next start or SIGHUP")
        return
    if certificate.exists():
        raise AgentError(f"{certificate}: is there already; use it with --use, or remove it")
    key.unlink(missing_ok=True)
    make_identity(config.name, key, certificate)
    print(f"{certificate}: give it to your peers; when all have added it, run `manela agent renew --use`")


@peer.command("add")
def add_peer(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The peer's name.")],
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="host:port.")],
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="Its certificate, a .pem file.")],
    nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="How many nodes it has; it never counts for more. By default as many as are known."
        ),
    ] = None,
    home: Home = _HOME,
) -> None:
    """Learn with a peer from now on; or give one that is known another address, size, or a further certificate."""
    from manela.agents.config import FILE, check_address, read_config
    from manela.agents.identity import fingerprint, name_of, read_certificate
    from manela.agents.store import Store

    found = read_certificate(certificate)
    if name_of(found) != name:
        raise AgentError(f"{certificate}: is the certificate of {name_of(found)!r}, not of {name!r}")
    if name == read_config(home / FILE).name:
        raise AgentError(f"{name} is this host itself")
    with Store(home) as store:
        store.add_peer(name, check_address(address), found, nodes)
    print(f"{name} at {address}; compare the fingerprint of its certificate with its operator:")
    print(fingerprint(found))


@peer.command("list")
def list_peers(home: Home = _HOME) -> None:
    """Show all peers with their addresses and certificates."""
    from manela.agents.identity import expiry_of, fingerprint
    from manela.agents.store import Store

    with Store(home) as store:
        for name, (address, certificates) in store.peers().items():
            print(f"{name}  {address}")
            for one in certificates:
                print(f"    until {expiry_of(one):%Y-%m-%d}  {fingerprint(one)}")


@peer.command("remove")
def remove_peer(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The peer's name.")],
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="CERT", help="Forget only this certificate of it.")
    ] = None,
    home: Home = _HOME,
) -> None:
    """Forget a peer: from the daemon's next look, within a second, it is refused."""
    from manela.agents.identity import read_certificate
    from manela.agents.store import Store

    with Store(home) as store:
        store.remove_peer(name, None if certificate is None else read_certificate(certificate))


@edges.command("add")
def add_edge(
    own: Annotated[str, typer.Argument(metavar="OWN", help="A node of this host.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="node@host, or another node of this host.")] = "",
    weight: Annotated[float, typer.Argument(metavar="WEIGHT")] = 1.0,
    home: Home = _HOME,
) -> None:
    """Add an edge, or a node that stands alone; the peer must add its end too."""
    from manela.agents.config import FILE, read_config
    from manela.agents.store import Store, parse_edge

    edge = parse_edge([own, other, repr(weight)], read_config(home / FILE).name, "edge")
    with Store(home) as store:
        store.add_edges([edge])


@edges.command("remove")
def remove_edge(
    own: Annotated[str, typer.Argument(metavar="OWN", help="A node of this host.")],
    other: Annotated[str, typer.Argument(metavar="OTHER", help="node@host, or another node of this host.")] = "",
    home: Home = _HOME,
) -> None:
    """Remove an edge; without OTHER the node and all its edges."""
    from manela.agents.config import FILE, read_config
    from manela.agents.store import Store, parse_edge

    name = read_config(home / FILE).name
    with Store(home) as store:
        if store.remove_edge(parse_edge([own, other], name, "edge"), name) == 0:
            raise AgentError(f"there is no edge {own} - {other}" if other else f"there is no node {own}")


@edges.command("import")
def import_edges(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="CSV: own node, other node@host, weight.")],
    home: Home = _HOME,
) -> None:
    """Add all edges of a file, or none if a line is wrong."""
    from manela.agents.config import FILE, read_config
    from manela.agents.store import Store, read_edges

    found = read_edges(path, read_config(home / FILE).name)
    with Store(home) as store:
        print(f"{store.add_edges(found):,} edges taken")
