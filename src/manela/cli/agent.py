"""manela agent: sets up and runs a host."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from manela.cli import options as o
from manela.cli.agent_node import node
from manela.cli.agent_store import edges, peer
from manela.cli.options import HOME, Home
from manela.cli.panels import Commands
from manela.errors import AgentError, ParameterError
from manela.hosts.folder.config import PARAMETERS_OF_HOSTS
from manela.settings.parameters import default

agent = Commands("Run a host, which learns its part of a network.")
agent.add_typer(peer, name="peer")
agent.add_typer(edges, name="edges")
agent.add_typer(node, name="node")
_LATE = 10.0
"""Seconds after which a status is outdated; larger notices a stuck daemon later."""
_WIDTH = 52
"""Letters of the longest name of an attack; if smaller, the table is not in line."""


@agent.command()
@o.expand_flags
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The host's name: a-z, 0-9, dot and hyphen.")],
    *,
    home: Home = HOME,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address on which peers reach this host.")
    ] = "0.0.0.0:7446",
    watch: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Local address of a status page and metrics; none by default.")
    ] = "",
    paper: o.Paper = False,  # noqa: ARG001
    parameters: Annotated[o.Values, o.Flags(*PARAMETERS_OF_HOSTS)],
    weighted: Annotated[bool, typer.Option("--weighted", help="Use edge weights for steps and frequencies.")] = False,
) -> None:
    """Create the folder of a host.

    It holds its key, certificate, store, and a commented configuration.

    \b
    manela agent init alpha --home alpha
    """
    from manela.hosts.folder.config import FILE, Config, check_address, check_watch
    from manela.hosts.folder.home import init as make
    from manela.hosts.folder.identity import CERTIFICATE, fingerprint, read_certificate

    changed = {parameter: value for parameter, value in parameters.items() if value != default(parameter)}
    config = Config(name, check_address(listen), changed, weighted=weighted, watch=check_watch(watch))
    config.terms(0)
    make(home, config)
    print(f"{home / FILE}: edit it before the first run")
    print(f"{home / CERTIFICATE}: give it to your peers; its fingerprint is")
    print(fingerprint(read_certificate(home / CERTIFICATE)))


@agent.command()
def run(
    home: Home = HOME,
    trace: Annotated[bool, typer.Option("--trace", help="Log everything that peers disclose to trace.jsonl.")] = False,
    while_stdin: Annotated[bool, typer.Option("--while-stdin", help="Stop when stdin is closed.")] = False,
) -> None:
    """Run the daemon until SIGTERM or Ctrl-C.

    It logs lines of JSON to stderr. SIGHUP reloads peers, key and certificate. A host that has finished its rounds
    continues to answer peers.
    """
    from manela.hosts.daemon.process import exec_daemon

    exec_daemon(home, trace=trace, while_stdin=while_stdin)


@agent.command()
def status(
    home: Home = HOME,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with status 2 unless the daemon runs, makes progress and can save.")
    ] = False,
) -> None:
    """Show what the daemon does.

    Round, update pairs, peers, refusals and traffic.
    """
    from manela.cli.display import print_facts
    from manela.hosts.daemon.status import warn_of_expiry
    from manela.hosts.folder.config import FILE, describe_missing
    from manela.hosts.folder.home import read_status

    if not (home / FILE).exists():
        raise AgentError(describe_missing(home))
    report = read_status(home)
    if strict and not (report["running"] and time.time() - report.get("updated", 0) < _LATE and not report["trouble"]):
        raise AgentError(f"{home}: the daemon is not running, makes no progress, or cannot save")
    if as_json:
        print(json.dumps(report, indent=2))
        return
    if "name" not in report:
        print("the daemon has not run yet")
        return
    facts: dict[str, Any] = {
        "host": report["name"],
        "state": _describe_state(report),
        "round": f"{report['round']:,} of {report['rounds']:,}",
        "update pairs": report["pairs"],
        "pairs a second": report["pairs_per_second"],
        "own nodes": report["nodes"],
        "noise": report.get("noise", 0.0),
        "sent, MB": round(report["sent"] / 1e6, 2),
        "received, MB": round(report["received"] / 1e6, 2),
    }
    if report.get("epsilon"):
        facts["epsilon spent"] = _describe_epsilon(report["epsilon"])
    if report.get("frame", "none") != "none":
        facts["frame"] = report["frame"]
    if report.get("provisional"):
        facts["vectors"] = "provisional: no peer has accepted an edge yet, or hosts start again together"
    if report["running"] and report.get("watch"):
        facts["page"] = report["watch"]
    if report["trouble"]:
        facts["trouble"] = report["trouble"]
    age = time.time() - report["updated"]
    if report["running"] and age > _LATE:
        facts["these numbers"] = f"are {o.say_seconds(age)} old: the daemon is stuck, or its disk is full"
    elif not report["running"]:
        facts["these numbers"] = f"are {o.say_seconds(age)} old"
    print_facts(facts)
    for line in warn_of_expiry(report):
        print(f"warning: {line}")
    for name, known in report["peers"].items():
        state = known["state"] if report["running"] else "was " + known["state"]
        message = f"{state}, {known['sent'] / 1e6:.2f} MB sent, {known['received'] / 1e6:.2f} MB received"
        print(f"peer {name:<22}{message}{', ' + known['trouble'] if known['trouble'] else ''}")
        spent = (report.get("epsilon") or {}).get("peers", {}).get(name)
        if spent:
            print(f"epsilon {name:<19}{spent:g} shown to it")
        if comparison := _compare(known, report.get("frame", "none")):
            print(f"vectors {name:<19}{comparison}")
        for kind, times in known.get("alarms", {}).items():
            subject = _ALARMS.get(kind, f"its vectors are {kind}")
            print(f"alarm {name:<21}{subject}: {'once' if times == 1 else f'{times:,} times'}")
    for name, reasons in report["refusals"].items():
        for reason, times in reasons.items():
            print(f"refused {name:<19}{reason}: {times:,}")


_ALARMS = {
    "contradicting": "it shows other vectors while they are smoothed than in rounds",
    "sums": "the sums over its nodes are far from those over yours, and count for less",
    "share": "it introduces more nodes than `share` in agent.toml lets it see; raise that if it should",
}
"""What alarms say that are not about vectors."""


def _describe_epsilon(epsilon: dict[str, Any]) -> str:
    """Return what means and sums have disclosed so far, against the bound if there is one."""
    spent = "without bound, as noise = 0" if epsilon["spent"] is None else f"{epsilon['spent']:g}"
    limit = f" of {epsilon['limit']:g}" if epsilon["limit"] else ""
    return f"{spent}{limit}, by means and sums, in {epsilon['days']} days (delta {epsilon['delta']:g})"


def _describe_state(report: dict[str, Any]) -> str:
    """Return the state of a host; one whose vectors are provisional does not claim to be done."""
    if not report["running"]:
        return "not running"
    state: str = report["state"]
    return "waiting for peers" if state == "done" and report.get("provisional") else state


def _compare(known: dict[str, Any], frame: str) -> str:
    """Return what a status says of how a peer's vectors compare with those here; empty if nothing is known."""
    if not known.get("believed", True):
        return "not believed, and not used"
    if known.get("alike") is None:
        return ""
    if known.get("frame", "none") not in ("none", frame):
        return f"in another frame, {known['frame']}: not comparable"
    answer = "yes" if known["comparable"] else "no"
    return f"comparable: {answer}, {known['alike']:.2f}"


@agent.command()
def export(
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="File for the vectors: .npz, .csv, .txt, …; - for stdout.")
    ],
    home: Home = HOME,
) -> None:
    """Write the vectors of this host's nodes to a file.

    They are those last saved. A host has no vectors of other hosts' nodes.
    """
    import warnings
    from contextlib import suppress

    from manela.errors import ManelaWarning
    from manela.formats.embeddings import check_output
    from manela.hosts.folder.home import export as export_vectors
    from manela.hosts.folder.home import read_status

    target = check_output(output)
    report: dict[str, Any] = {}
    with suppress(AgentError):  # vectors can be exported without a status
        report = read_status(home)  # before the vectors, which may be saved meanwhile
    embedding = export_vectors(home)
    saved, learned = embedding.provenance["rounds_done"], report.get("round", 0)
    if saved < learned:
        why = f"; the last save failed: {report['trouble']}" if report.get("trouble") else ""
        warnings.warn(
            f"these vectors are of round {saved:,}, but the daemon is at round {learned:,}{why}",
            ManelaWarning,
            stacklevel=1,
        )
    target.write(embedding)
    if str(output) != "-":
        print(f"{output}: {len(embedding.nodes):,} vectors")


@agent.command()
def audit(
    home: Home = HOME,
    most: Annotated[int, typer.Option(metavar="N", min=1, help="Largest number of lines.")] = 50,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Only later lines: a date, or a time as in ISO 8601.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Show refusals and what operators did.

    The latest come first. Each line has the time, the peer or user, and what was refused or done.
    """
    from manela.hosts.folder.audit import check_since, read_audit
    from manela.hosts.folder.store import Store

    begins = check_since(since)
    with Store(home) as store:
        for entry in read_audit(store, most, begins):
            if as_json:
                print(json.dumps(entry, ensure_ascii=False))
                continue
            time, _, who, what, detail = entry.values()
            print(f"{time}  {who}  {what}: {detail}")


@agent.command()
def exposure(
    limit: Annotated[
        float | None,
        typer.Option(metavar="P", min=0.0, max=1.0, help="Exit with status 1 if an attack has a larger precision."),
    ] = None,
    home: Home = HOME,
) -> None:
    """Estimate how many edges of others this host can infer.

    Runs known attacks on the host's own trace; run the daemon with --trace first. Each attack is tested on edges that
    this host knows: those between its own nodes and nodes of other hosts. It would infer about as many of the edges
    between the nodes of others that it sees. All that was ever shown is used, so that attacks by repetition are among
    them. The last attack looks for single vectors in the changes of sums. A large host attacks a sample of its nodes.
    """
    from manela.hosts.exposure import read_record, run_attacks, take_sample, try_on_known_edges, try_sums
    from manela.hosts.folder.config import FILE, read_config
    from manela.hosts.folder.home import TRACE
    from manela.hosts.folder.store import Store
    from manela.hosts.folder.trace import read_disclosures
    from manela.hosts.state.neighbourhood import Neighbourhood

    config = read_config(home / FILE)
    if not (home / TRACE).exists():
        raise AgentError(f"{home / TRACE}: not found; run the daemon with --trace first")
    with Store(home) as store:
        near = Neighbourhood.build(config.name, store.edges(), private=store.private())
    sample = take_sample(near)
    record = read_record(read_disclosures(home / TRACE), sample.near)
    if not record.views:
        raise AgentError(f"{home / TRACE}: no messages of peers recorded yet")
    seen, own = len(near.remotes), len(near.nodes)
    print(f"{seen:,} nodes of other hosts were seen; nothing can be said about the edges of nodes that were not")
    if len(record.nodes) < seen + own:
        print(
            f"a sample is attacked: {record.seen:,} of these and {len(sample.near.nodes):,} of {own:,} own nodes; the "
            "numbers are estimates"
        )
    chance, found = 0.0, {}
    print(f"{'attack':<{_WIDTH}}  average precision on known edges", flush=True)
    for name, scores in run_attacks(record, sample.near):
        found[name], chance = try_on_known_edges(scores, sample.near, sample.weights)
        print(f"{name:<{_WIDTH}}  {found[name]:.3f}", flush=True)
    print(f"{'chance':<{_WIDTH}}  {chance:.3f}")
    sums = try_sums(read_disclosures(home / TRACE), record)
    if sums is not None:
        print(f"{'changes of sums: nearest vector, cosine':<{_WIDTH}}  {sums[0]:.3f} (chance {sums[1]:.3f})")
    _conclude(found, chance, limit)


def _conclude(found: dict[str, float], chance: float, limit: float | None) -> None:
    """Print a verdict in one sentence, and exit with status 1 if an attack is above the limit."""
    own = next(iter(found))  # what the host's own edges tell comes first
    best = max(list(found)[1:], key=lambda name: found[name], default=own)
    compared = "no more than its own edges tell" if found[best] <= found[own] else "more than its own edges tell"
    sentence = (
        f"this host can tell edges of others {found[best] / max(chance, 1e-12):.0f} times better than chance by {best}"
    )
    print(f"verdict: {sentence}, {compared}{'' if limit is None else ', and the limit is ' + format(limit, 'g')}")
    if limit is not None and found[best] > limit:
        raise typer.Exit(1)


@agent.command()
def learn(
    rounds: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=10**6, help="Number of additional rounds.")
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Start again together with all peers, from random vectors.")
    ] = False,
    home: Home = HOME,
) -> None:
    """Request more rounds, or a new start.

    The daemon does them after those that it already has. Until new vectors are ready, the old ones are exported.
    """
    from manela.hosts.daemon.reopening import request_rounds, request_start
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.config import FILE, read_config
    from manela.hosts.folder.store import Store

    if (rounds is None) != anew:
        raise ParameterError.of("rounds", "must be given, or --anew in its place", rounds)
    if anew and not read_config(home / FILE).has_frames:
        raise AgentError(f"{home / FILE}: a new start needs a start by spectral or neighbours, and no context vectors")
    with Store(home) as store:
        if rounds is None:
            request_start(store)
            record(store, "learn", "a new start")
            print("requested a new start")
            return
        rounds = request_rounds(store, rounds)
        record(store, "learn", f"{rounds:,} more rounds")
    print(f"requested {rounds:,} more rounds")


@agent.command()
def serve(home: Home = HOME, off: Annotated[bool, typer.Option("--off", help="Stop answering.")] = False) -> None:
    """Answer questions at the address of the status page.

    The daemon says which nodes are nearest, whom to recommend, which edges are odd, and groups. Questions are about
    own nodes. Answers contain own nodes and their neighbours on other hosts, never other nodes.
    """
    from manela.analysis.answers import PAGE
    from manela.hosts.daemon.status_server import ANSWERS, ON
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.config import FILE, read_config
    from manela.hosts.folder.home import read_status
    from manela.hosts.folder.store import Store

    if not read_config(home / FILE).watch:
        raise AgentError(
            f'{home / FILE}: watch must be an address of this machine, for example "127.0.0.1:7447"; set it and restart'
        )
    with Store(home) as store:
        store.put(ANSWERS, "" if off else ON)
        record(store, "answers", "turned off" if off else "turned on")
    if off:
        print("the daemon stops answering")
        return
    report = read_status(home)
    where = f"{report['watch']}{PAGE[1:]}" if report["running"] and report.get("watch") else "when the daemon runs"
    print(f"the daemon answers: {where}")


@agent.command()
def invite(
    address: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="host:port at which peers reach this host; by default where it listens."),
    ] = "",
    home: Home = HOME,
) -> None:
    """Print the line with which others add this host.

    They run `manela agent peer add LINE`. The line holds the name, the address and the fingerprint of the certificate;
    nothing in it is secret. `peer add` fetches the certificate itself from the daemon at that address, so run the
    daemon first.
    """
    from manela.hosts.folder.config import FILE, check_address, read_config
    from manela.hosts.folder.identity import CERTIFICATE, Invitation, fingerprint, read_certificate

    config = read_config(home / FILE)
    shown_address = check_address(address or config.listen)
    if shown_address.rpartition(":")[0] in ("0.0.0.0", "[::]"):
        problem = (
            "--address must be one that others can reach, got" if address else "this host listens on all addresses,"
        )
        advice = (
            "name this machine, for example" if address else "pass one that others can reach, for example --address"
        )
        raise AgentError(f"{problem} {shown_address}; {advice} mail.example.org:7446")
    shown = fingerprint(read_certificate(home / CERTIFICATE))
    print(Invitation(config.name, shown_address, shown))


@agent.command()
def backup(
    output: Annotated[Path, typer.Argument(metavar="FILE", help="Where the backup goes, a .tar file.")],
    home: Home = HOME,
) -> None:
    """Write all that this host needs to one file.

    With it the host can continue elsewhere. It includes the private key. The daemon may run meanwhile.
    """
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.backups import write_backup
    from manela.hosts.folder.store import Store
    from manela.system.files import check_writable

    if str(output) == "-":
        raise AgentError("a backup must be a file that only you can read, for example backup.tar")
    check_writable(output)
    write_backup(home, output)
    with Store(home) as store:
        record(store, "backup", f"to {output.resolve()}")
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB; it contains the private key, so keep it safe")


@agent.command()
def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What `manela agent backup` wrote.")], home: Home = HOME
) -> None:
    """Restore a host from a backup.

    All of the backup is checked first. The previous files are kept beside it.
    """
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.backups import restore_backup
    from manela.hosts.folder.store import Store

    names = restore_backup(path, home)
    with Store(home) as store:
        record(store, "restored", f"from {path.resolve()}")
    print(f"{home}: restored {', '.join(names)}")


@agent.command()
def check(home: Home = HOME) -> None:
    """Check configuration, certificate, store and peers.

    Also permissions, clock, port, and the connections to and from peers.
    """
    from manela.hosts.doctor import BAD, examine

    bad = 0
    for level, what, message in examine(home):
        print(f"{level:<9}{what:<16}{message}")
        bad += level == BAD
    if bad:
        raise AgentError(f"{bad} of these must be fixed")


@agent.command()
def renew(
    home: Home = HOME,
    use: Annotated[bool, typer.Option("--use", help="Start to use the new key and certificate.")] = False,
) -> None:
    """Replace the key and the certificate, in two steps.

    First run it without --use: it writes next-certificate.pem, which peers add beside the one they have. Then run it
    with --use, and send SIGHUP to the daemon. The previous certificate is kept as old-certificate.pem, for peers to
    remove.
    """
    from manela.hosts.folder.audit import record
    from manela.hosts.folder.config import FILE, read_config
    from manela.hosts.folder.identity import CERTIFICATE, KEY, check_key, fingerprint, make_identity, read_certificate
    from manela.hosts.folder.store import Store
    from manela.system.files import replace_file

    config = read_config(home / FILE)
    key, certificate = home / f"next-{KEY}", home / f"next-{CERTIFICATE}"
    if use:
        if not certificate.exists():
            raise AgentError(f"{certificate}: not found; make it with `manela agent renew` first")
        check_key(key if key.exists() else home / KEY, read_certificate(certificate))
        if key.exists():  # otherwise an interrupted run has already moved it
            key.chmod(0o600)
            with replace_file(home / f"old-{CERTIFICATE}", private=True) as file:
                file.write((home / CERTIFICATE).read_bytes())
            key.replace(home / KEY)
        certificate.replace(home / CERTIFICATE)
        with Store(home) as store:
            record(store, "certificate", f"uses {fingerprint(read_certificate(home / CERTIFICATE))}")
        print("the daemon uses them after its next start or SIGHUP")
        return
    if certificate.exists():
        raise AgentError(f"{certificate}: exists already; pass --use to use it, or remove it")
    key.unlink(missing_ok=True)
    make_identity(config.name, key, certificate)
    with Store(home) as store:
        record(store, "certificate", f"made {fingerprint(read_certificate(certificate))}")
    print(f"{certificate}: give it to your peers; when all have added it, run `manela agent renew --use`")
