"""manela agent: a host's daemon."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from manela.agents.config import PARAMETERS_OF_HOSTS
from manela.cli import options as o
from manela.cli.agent_edges import edges, node
from manela.cli.agent_peers import peer
from manela.cli.options import HOME, Home
from manela.errors import AgentError
from manela.params import default

agent = typer.Typer(help="Run a host: one organisation's part of a network that many learn together.")
agent.add_typer(peer, name="peer")
agent.add_typer(edges, name="edges")
agent.add_typer(node, name="node")
_LATE = 10.0
"""Seconds after which a status is old."""


@agent.command()
@o.expand_flags
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The host's name: a-z, 0-9, dot and hyphen.")],
    *,
    home: Home = HOME,
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
    from manela.agents.folder import init as make
    from manela.agents.identity import CERTIFICATE, fingerprint, read_certificate

    given = {parameter: value for parameter, value in parameters.items() if value != default(parameter)}
    config = Config(name, check_address(listen), given, weighted=weighted, watch=check_watch(watch))
    config.terms(0)
    make(home, config)
    print(f"{home / FILE}: change it as you like before the first run")
    print(f"{home / CERTIFICATE}: give it to your peers; its fingerprint is")
    print(fingerprint(read_certificate(home / CERTIFICATE)))


@agent.command()
def run(
    home: Home = HOME,
    trace: Annotated[bool, typer.Option("--trace", help="Write down all that peers disclose, in trace.jsonl.")] = False,
    while_stdin: Annotated[bool, typer.Option("--while-stdin", help="End when stdin is closed.")] = False,
) -> None:
    """Run the daemon until SIGTERM or Ctrl-C; it logs lines of JSON to stderr.

    SIGHUP makes it read its peers, key and certificate anew. A host that has done its rounds goes on answering.
    """
    from manela.agents.process import exec_daemon

    exec_daemon(home, trace=trace, while_stdin=while_stdin)


@agent.command()
def status(
    home: Home = HOME,
    as_json: Annotated[bool, typer.Option("--json", help="All of it, as JSON.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with status 2 unless the daemon runs, moves and can save.")
    ] = False,
) -> None:
    """Show what the daemon does: round, update pairs, peers, refusals, traffic."""
    from manela.agents.config import FILE
    from manela.agents.folder import read_status
    from manela.agents.status import warn_of_expiry
    from manela.cli.display import print_facts

    if not (home / FILE).exists():
        raise AgentError(f"{home}: holds no host; make one with `manela agent init`")
    found = read_status(home)
    if strict and not (found["running"] and time.time() - found.get("updated", 0) < _LATE and not found["trouble"]):
        raise AgentError(f"{home}: the daemon does not run, does not move, or cannot save")
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
        "noise": found.get("noise", 0.0),
        "sent, MB": round(found["sent"] / 1e6, 2),
        "received, MB": round(found["received"] / 1e6, 2),
    }
    if found["running"] and found.get("watch"):
        facts["page"] = found["watch"]
    if found["trouble"]:
        facts["trouble"] = found["trouble"]
    age = time.time() - found["updated"]
    if found["running"] and age > _LATE:
        facts["these numbers"] = f"are {o.say_seconds(age)} old: the daemon is stuck, or its disk is full"
    elif not found["running"]:
        facts["these numbers"] = f"are {o.say_seconds(age)} old"
    print_facts(facts)
    for line in warn_of_expiry(found):
        print(f"warning: {line}")
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
    home: Home = HOME,
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
    home: Home = HOME,
    most: Annotated[int, typer.Option(metavar="N", help="How many lines at most.")] = 50,
) -> None:
    """Show what was refused, the latest first."""
    from manela.agents.store import Store

    with Store(home) as store:
        for time, name, reason, detail in store.audited(most):
            print(f"{time}  {name}  {reason}: {detail}")


@agent.command()
def exposure(home: Home = HOME) -> None:
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
def learn(
    rounds: Annotated[int, typer.Option(metavar="N", min=1, max=10**6, help="How many rounds more.")],
    home: Home = HOME,
) -> None:
    """Ask for more rounds: a daemon that is done goes on, one that is not does so when it is."""
    import secrets

    from manela.agents.store import Store

    with Store(home) as store:
        number, _, waiting = (store.get("learn") or "").partition(" ")
        if waiting.isdecimal() and number != store.get("learned"):
            rounds += int(waiting)  # which were asked for before, and not begun
        store.put("learn", f"{secrets.token_hex(8)} {rounds}")
    print(f"{rounds:,} rounds more, from the daemon's next look on")


@agent.command()
def serve(
    home: Home = HOME,
    off: Annotated[bool, typer.Option("--off", help="End it.")] = False,
) -> None:
    """Have the daemon answer questions on its status page's address: who is near, whom to recommend, odd edges, groups.

    Asked for are own nodes. Found are own nodes and those of other hosts that are neighbours of own ones, never others.
    """
    from manela.agents.answering import ANSWERS, ON
    from manela.agents.config import FILE, read_config
    from manela.agents.folder import read_status
    from manela.agents.store import Store
    from manela.answers.questions import PAGE

    if not (home / FILE).exists():
        raise AgentError(f"{home}: holds no host; make one with `manela agent init`")
    if not read_config(home / FILE).watch:
        raise AgentError(f'{home / FILE}: set watch to an address of this machine, as in "127.0.0.1:7447", and restart')
    with Store(home) as store:
        store.put(ANSWERS, "" if off else ON)
    if off:
        print("the daemon answers no more")
        return
    found = read_status(home)
    where = f"{found['watch']}{PAGE[1:]}" if found["running"] and found.get("watch") else "when the daemon runs"
    print(f"the daemon answers: {where}")


@agent.command()
def invite(
    address: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="host:port by which peers reach this host; by default where it listens."),
    ] = "",
    home: Home = HOME,
) -> None:
    """Print one line by which others make this host a peer: `manela agent peer add LINE`.

    It holds the name, the address and the fingerprint of the certificate; nothing in it is secret. Whoever takes it
    asks the daemon at the address for the certificate itself, so run the daemon first.
    """
    from manela.agents.config import FILE, check_address, read_config
    from manela.agents.identity import CERTIFICATE, fingerprint, read_certificate
    from manela.agents.invitations import Invitation

    config = read_config(home / FILE)
    host = config.listen.rpartition(":")[0]
    if not address and host in ("0.0.0.0", "[::]"):
        raise AgentError(f"this host listens on every address, {config.listen}: say by --address which others reach")
    shown = fingerprint(read_certificate(home / CERTIFICATE))
    print(Invitation(config.name, check_address(address or config.listen), shown))


@agent.command()
def backup(
    output: Annotated[Path, typer.Argument(metavar="FILE", help="Where the backup goes, a .tar file.")],
    home: Home = HOME,
) -> None:
    """Write all that this host needs to go on elsewhere to one file; the daemon may run. The key is in it."""
    from manela.agents.backups import write_backup
    from manela.files import check_writable

    check_writable(output)
    write_backup(home, output)
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB; the key is in it, so keep it as safe")


@agent.command()
def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What `manela agent backup` wrote.")],
    home: Home = HOME,
) -> None:
    """Put a host back from a backup, once all of it is found to be good; what was there is kept beside it."""
    from manela.agents.backups import restore_backup

    print(f"{home}: {', '.join(restore_backup(path, home))} are back")


@agent.command()
def check(home: Home = HOME) -> None:
    """Look for what is wrong: configuration, permissions, certificate, clock, store, port, and peers both ways."""
    from manela.agents.doctor import BAD, examine

    worst = 0
    for level, what, words in examine(home):
        print(f"{level:<9}{what:<16}{words}")
        worst += level == BAD
    if worst:
        raise AgentError(f"{worst} of these must be set right")


@agent.command()
def renew(
    home: Home = HOME,
    use: Annotated[bool, typer.Option("--use", help="Begin to use the new key and certificate.")] = False,
) -> None:
    """Make a new key and certificate, and later begin to use them.

    First without --use: next-certificate.pem appears; peers add it beside the one they have. Then with --use, and
    SIGHUP to the daemon; the certificate before stays as old-certificate.pem, for peers to remove.
    """
    from manela.agents.config import FILE, read_config
    from manela.agents.identity import CERTIFICATE, KEY, make_identity
    from manela.files import replace_file

    config = read_config(home / FILE)
    key, certificate = home / f"next-{KEY}", home / f"next-{CERTIFICATE}"
    if use:
        if not certificate.exists():
            raise AgentError(f"{certificate}: is not there; make it with `manela agent renew` first")
        if key.exists():  # otherwise it was in use before this was interrupted
            with replace_file(home / f"old-{CERTIFICATE}", private=True) as file:
                file.write((home / CERTIFICATE).read_bytes())
            key.replace(home / KEY)
        certificate.replace(home / CERTIFICATE)
        print("in use from the daemon's next start or SIGHUP")
        return
    if certificate.exists():
        raise AgentError(f"{certificate}: is there already; use it with --use, or remove it")
    key.unlink(missing_ok=True)
    make_identity(config.name, key, certificate)
    print(f"{certificate}: give it to your peers; when all have added it, run `manela agent renew --use`")
