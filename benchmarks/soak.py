"""Many daemons on one machine for ten minutes: killed, lied to and renewed, and what they have learned in the end."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.table import table
from manela import ManelaWarning
from manela.analysis.classification import classify
from manela.formats.datasets import planted_partition
from manela.hosts.daemon.daemon import run
from manela.hosts.federation import Federation, Member, assign
from manela.hosts.folder.home import export, read_status
from manela.hosts.folder.identity import CERTIFICATE, read_certificate
from manela.hosts.folder.store import Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.rounds import MessageHost

_MORE = 20
"""Rounds that every host is asked for when all are done, while they are disturbed."""
_FEWEST_KILLS = 5
_LONGEST = 1800.0


@dataclass
class Outcome:
    """What was seen of a run.

    Attributes
    ----------
    score : float
        Micro-F1 of the honest hosts' nodes.
    memory, files, sockets : list of (before, after)
        MB, open files and open connections of daemons that were never killed.
    """

    score: float
    seconds: float
    kills: int = 0
    damaged: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    files: list[tuple[int, int]] = field(default_factory=list)
    sockets: list[tuple[int, int]] = field(default_factory=list)


class _Usage(NamedTuple):
    """MB that a process has written to and shares with nobody, its open files and its open connections."""

    memory: float
    files: int
    sockets: int


class _Crowd(Federation):
    """Daemons of which one may lie."""

    liar = ""

    def start(self, member: Member) -> None:
        """Start a daemon: an honest one, or the one that lies."""
        if member.name != self.liar:
            super().start(member)
            return
        command = [sys.executable, "-m", "benchmarks.soak", str(member.home)]
        with (member.home / "log.jsonl").open("ab") as log:
            self._processes[member.name] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )


def soak(hosts: int, nodes: int, seconds: float, folder: Path, disturbed: bool, seed: int = 0) -> Outcome:
    """Run so many daemons; if they are disturbed, for so many seconds at least."""
    graph, communities = planted_partition(nodes, max(4, hosts // 2), 12, 3, seed)
    where = assign(graph, hosts, "community", seed)
    options = {"start": 600.0, "wait": 20.0, "finish": 120.0, "deadline": 60.0, "longest_pause": 5.0}
    crowd = _Crowd(graph, where, folder, {"dimensions": 32}, **options)
    names = [member.name for member in crowd.members]
    choose = random.Random(seed)
    crowd.liar = names[-1] if disturbed else ""
    honest = [member for member in crowd.members if member.name != crowd.liar]
    victims = choose.sample(honest, round(0.3 * hosts)) if disturbed else []
    steady = [member for member in honest if member not in victims]
    outcome = Outcome(0.0, 0.0)
    with crowd.running():
        begun = time.monotonic()
        _wait(crowd, honest, lambda status: status.get("state") == "done")
        before = [_measure(crowd.pid(member)) for member in steady]
        if disturbed:
            outcome.kills = _disturb(crowd, honest, victims, steady[0], seconds, choose)
            _wait(crowd, honest, lambda status: status.get("state") == "done" and status["updated"] > time.time() - 10)
        for early, member in zip(before, steady, strict=True):
            late = _measure(crowd.pid(member))
            outcome.memory.append((early.memory, late.memory))
            outcome.files.append((early.files, late.files))
            outcome.sockets.append((early.sockets, late.sockets))
        outcome.seconds = time.monotonic() - begun
    outcome.damaged = [words for member in crowd.members if (words := _find_damage(member))]
    vectors, rows = [], []
    for member in honest:
        found = export(member.home)
        vectors.append(found.vectors)
        rows += [crowd.numbers[node, member.name] for node in found.nodes.tolist()]
    labels = sp.csr_matrix(np.eye(communities.max() + 1)[communities[rows]])
    outcome.score = float(classify(np.concatenate(vectors), labels, jobs=2).micro.mean())
    return outcome


def _disturb(
    crowd: _Crowd, honest: list[Member], victims: list[Member], renewed: Member, seconds: float, choose: random.Random
) -> int:
    """Kill and restart some hosts at random, renew a certificate in the middle, and keep all of them learning."""
    begun, kills, has_new = time.monotonic(), 0, False
    pause = min(8.0, seconds / 8)
    _ask_for_more(honest, 0)
    while (passed := time.monotonic() - begun) < seconds or kills < _FEWEST_KILLS:
        member = choose.choice(victims)
        crowd.kill(member)
        time.sleep(choose.random())
        crowd.start(member)
        kills += 1
        if not has_new and passed > seconds / 2:
            _renew(crowd, renewed)
            has_new = True
        if all(read_status(one.home).get("state") == "done" for one in honest if one not in victims):
            _ask_for_more(honest, kills)
        time.sleep(pause * (0.5 + choose.random()))
    return kills


def _ask_for_more(members: list[Member], number: int) -> None:
    for member in members:
        with Store(member.home) as store:
            store.put("learn", f"{number} {_MORE}")


def _renew(crowd: _Crowd, member: Member) -> None:
    """A new certificate for a host, as its operator and those of all peers would do it."""
    command = [sys.executable, "-m", "manela", "agent", "renew", "--home", str(member.home)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    following = read_certificate(member.home / f"next-{CERTIFICATE}")
    for other in crowd.members:
        if other is not member:
            with Store(other.home) as store:
                store.add_peer(member.name, member.address, following)
    time.sleep(5.0)  # daemons look at their stores twice a second
    subprocess.run([*command, "--use"], check=True, stdout=subprocess.DEVNULL)
    os.kill(crowd.pid(member), signal.SIGHUP)


def _wait(crowd: _Crowd, members: list[Member], holds: Any) -> None:
    until = time.monotonic() + _LONGEST
    while True:
        waiting = {one.name: status for one in members if not holds(status := read_status(one.home))}
        if not waiting:
            return
        if time.monotonic() > until:
            raise TimeoutError(f"did not come to an end: {waiting}")
        crowd.check()
        time.sleep(0.2)


def _measure(pid: int) -> _Usage:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))
    files = sockets = 0
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            is_socket = str(one.readlink()).startswith("socket:")
        except OSError:
            continue
        sockets += is_socket
        files += not is_socket
    return _Usage(own / 1024, files, sockets)


def _find_damage(member: Member) -> str:
    """What is wrong with a host's files, if anything."""
    try:
        with Store(member.home) as store:
            store.check()
        VectorsFile(member.home).load()
    except Exception as error:
        return str(error)
    return ""


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    hosts, nodes, seconds = 64, 20_000, 600.0
    with table(
        f"{hosts} daemons, {nodes:,} nodes", "seconds", "kills", "micro-F1 of honest hosts", "files damaged",
        "memory of those never killed, MB: before, after (mean)", "growth at most", "files more, at most",
        "connections: before, after (mean)",
    ) as rows:  # fmt: skip
        for name, disturbed in (("undisturbed", False), ("30 % killed at random, one hostile, one renewed", True)):
            with tempfile.TemporaryDirectory() as folder:
                found = soak(hosts, nodes, seconds, Path(folder), disturbed)
            before, after = np.array(found.memory).T
            rows.row(
                name, f"{found.seconds:.0f}", found.kills, f"{found.score:.4f}", len(found.damaged),
                f"{before.mean():.0f}, {after.mean():.0f}", f"{(after / before).max() - 1:+.1%}",
                max(late - early for early, late in found.files),
                ", ".join(f"{count:.1f}" for count in np.mean(found.sockets, axis=0)),
            )  # fmt: skip


def _lie() -> None:
    """Be the hostile host: show random vectors of norm 10."""
    answer = MessageHost.answer

    def answer_falsely(host: MessageHost, peer: str, request: Any) -> Any:
        shown = answer(host, peer, request)
        drawn = np.random.default_rng(1).normal(size=shown.rows.shape)
        drawn *= 10.0 / np.maximum(np.linalg.norm(drawn, axis=-1, keepdims=True), 1e-9)
        return replace(shown, rows=drawn.astype(shown.rows.dtype))

    MessageHost.answer = answer_falsely  # type: ignore[method-assign]
    run(Path(sys.argv[1]), while_stdin=True)


if __name__ == "__main__":
    _lie()
