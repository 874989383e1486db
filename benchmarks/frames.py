"""Frames: hosts that meet in any order come to comparable vectors; real daemons, medians of three seeds.

"Across" is the share of the ten nearest nodes at other hosts that are of the node's own community.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.organisations import Organisations
from benchmarks.table import table
from manela import ManelaWarning
from manela.formats.datasets import planted_partition
from manela.hosts.daemon.reopening import request_rounds
from manela.hosts.federation import Federation, Member, assign
from manela.hosts.folder.home import read_status
from manela.hosts.folder.store import Store
from manela.hosts.state.neighbourhood import Edge

SEEDS = (0, 1, 2)
LONGEST = 300.0
"""Seconds after which hosts that have not settled are given up."""
QUIET = 5.0
"""Seconds without a change after which hosts have settled; they look for newer starts every two."""
CHANGES = 25
"""Changes of edges while a host is alone."""
LARGE = 10_000
"""Nodes of a host that gets one edge more."""


class Run:
    """Four daemons with a part each of a network of communities, and a fifth if there is a newcomer."""

    def __init__(
        self, folder: Path, seed: int, nodes: int = 400, groups: int = 8, by: str = "random", newcomer: int = 0
    ) -> None:
        self.graph, self.groups = planted_partition(nodes, groups, inside=8, outside=2, seed=seed)
        hosts = assign(self.graph, 4, by, seed)
        for row in np.random.default_rng(seed).permutation(nodes)[:newcomer]:
            hosts[row] = "host5"
        self.federation = Federation(self.graph, hosts, folder, {}, start=0.5, wait=0.5, finish=10.0)
        self.members = self.federation.members

    def begin(self, *members: Member) -> None:
        """Start the daemons of these members, all by default, and wait until they settle."""
        for member in members or self.members:
            self.federation.start(member)
        self.settle(*members)

    def settle(self, *members: Member) -> None:
        """Wait until these members are done and nothing has changed for a while."""
        ended, last, since = time.monotonic() + LONGEST, None, time.monotonic()
        while time.monotonic() - since < QUIET:
            found = [read_status(member.home) for member in members or self.members]
            now = [(status.get("state"), status.get("round"), status.get("frame")) for status in found]
            if now != last or any(state != "done" for state, *_ in now):
                last, since = now, time.monotonic()
            if time.monotonic() > ended:
                raise TimeoutError(now)
            self.federation.check()
            time.sleep(0.1)

    def kill(self, *members: Member) -> None:
        """Kill the daemons of these members."""
        for member in members:
            self.federation.kill(member)

    @property
    def vectors(self) -> Any:
        """What all members export, (nodes, m), with norm 1."""
        vectors = self.federation.gather().vectors
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    @property
    def across(self) -> float:
        """Of the ten nearest at other hosts, the share that is of the own community."""
        units, homes = self.vectors, np.empty(len(self.groups), object)
        for (_, home), row in self.federation.numbers.items():
            homes[row] = home
        cosines = np.where(homes[:, None] == homes, -2.0, units @ units.T)
        nearest = np.argsort(-cosines, axis=1)[:, :10]
        return float((self.groups[nearest] == self.groups[:, None]).mean())

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return len({read_status(member.home)["frame"] for member in self.members})


def together(run: Run) -> list[float]:
    run.begin()
    return [run.across]


def apart(run: Run) -> list[float]:
    """Each alone, then all; and after 400 rounds more."""
    for member in run.members:
        run.begin(member)
        run.kill(member)
    before = run.across
    run.begin()
    after = run.across
    for member in run.members:
        with Store(member.home) as store:
            request_rounds(store, 400)
    run.settle()
    return [before, after, run.across]


def three_and_one(run: Run) -> list[float]:
    *three, fourth = run.members
    run.begin(fourth)
    run.kill(fourth)
    run.begin(*three)
    before = run.across
    run.begin(fourth)
    run.settle()
    return [before, run.across]


def one_after_the_other(run: Run) -> list[float]:
    for member in run.members:
        run.federation.start(member)
        while read_status(member.home).get("round", 0) < 1:
            time.sleep(0.02)
    run.settle()
    return [run.across]


def alone_for(rounds: int) -> Callable[[Run], list[float]]:
    """One host alone for so many rounds, with changes of edges, and then back."""

    def work(run: Run) -> list[float]:
        run.begin()
        first, *others = run.members
        run.kill(*others)
        names = sorted(node for node, home in run.federation.numbers if home == first.name)
        random = np.random.default_rng(0)
        done = read_status(first.home)["round"]
        while read_status(first.home)["round"] < done + rounds:
            one, other = random.choice(names, 2, replace=False)
            with Store(first.home) as store:
                if random.random() < CHANGES / max(1, rounds):
                    store.add_edges([Edge(one, (other, first.name)), Edge(other, (one, first.name))])
                request_rounds(store, max(1, rounds // CHANGES))
            before = read_status(first.home)["round"]
            while read_status(first.home)["round"] == before:
                time.sleep(0.05)
        run.settle(first)
        alone = run.across
        for member in others:
            run.federation.start(member)
        run.settle()
        return [alone, run.across]

    return work


def newcomer(run: Run) -> list[float]:
    """A host of few nodes that learned alone meets four that are done, whose vectors should stay where they were."""
    *four, fifth = run.members
    run.begin(fifth)
    run.kill(fifth)
    run.begin(*four)
    before = run.vectors
    run.begin(fifth)
    run.settle()
    rows = [row for (_, home), row in run.federation.numbers.items() if home != fifth.name]
    return [run.across, float((before * run.vectors)[rows].sum(axis=1).mean())]


def joint_start(run: Run) -> list[float]:
    """Three hosts that are done meet a fourth that learned alone, and all start again together in the background."""
    *three, fourth = run.members
    run.begin(fourth)
    run.kill(fourth)
    run.begin(*three)
    before, frame = run.vectors, read_status(three[0].home)["frame"]
    run.begin(fourth)
    run.settle()
    if read_status(three[0].home)["frame"] == frame:
        raise RuntimeError("no new start, whose cosine could be measured")
    rows = [row for (_, home), row in run.federation.numbers.items() if home != fourth.name]
    cosines = (before * run.vectors)[rows].sum(axis=1)
    return [run.across, float(cosines.mean()), float(np.quantile(cosines, 0.05))]


def organisations(seed: int) -> list[float]:
    """Three organisations with mail, CSV and a Postfix log."""
    with tempfile.TemporaryDirectory() as folder:
        three = Organisations(Path(folder), seed)
        try:
            return list(three.learn_and_meet())
        finally:
            three.stop()


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    rows = (
        ("started together", together, {}),
        ("each alone first; then together; after 400 rounds more", apart, {}),
        ("three together, the fourth alone; then all", three_and_one, {}),
        ("one after the other, peers known before", one_after_the_other, {}),
        *((f"one alone for {rounds} rounds; then back", alone_for(rounds), {}) for rounds in (24, 120, 600)),
        ("hosts of 25 nodes, 4 communities: each alone; together; later", apart, {"nodes": 100, "groups": 4}),
        (
            "4 hosts of 490 nodes, met by one of 40 that learned alone: across; cosine of the four with before",
            newcomer, {"nodes": 2000, "groups": 20, "newcomer": 40},
        ),
        (
            "three of 400 nodes and one that learned alone: across; cosine of the three with before; of the lowest 5 %",
            joint_start, {},
        ),
        (
            "the same with 2,000 nodes, 20 communities",
            joint_start, {"nodes": 2000, "groups": 20},
        ),
    )  # fmt: skip
    with table("4 daemons, 400 nodes, 8 communities, default settings: across", "median of three", "frames") as shown:
        for name, work, options in rows:
            found, frames = [], []
            for seed in SEEDS:
                with tempfile.TemporaryDirectory() as folder:
                    run = Run(Path(folder), seed, **options)  # type: ignore[arg-type]
                    with run.federation.stopping():
                        found.append(work(run))
                        frames.append(run.frames)
            shown.row(name, "; ".join(f"{value:.3f}" for value in np.median(found, axis=0)), max(frames))
        found = [organisations(seed) for seed in SEEDS]
        shown.row(
            "3 organisations of 100 people: mail, CSV, a Postfix log: alone; invited and imported again",
            "; ".join(f"{value:.3f}" for value in np.median(found, axis=0)), "",
        )  # fmt: skip
    print()
    communities()
    print()
    one_edge()


def communities() -> None:
    """Hosts that are communities, all honest: whom they accuse."""
    with table("hosts that are communities, 12 pairs", "accused") as shown:
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as folder:
                run = Run(Path(folder), seed, by="community")
                with run.federation.stopping():
                    run.begin()
                    peers = [peer for status in run.federation.statuses() for peer in status["peers"].values()]
                    accused = sum(not peer["believed"] or "disagreeing" in peer["alarms"] for peer in peers)
                    shown.row(f"seed {seed}", accused)


def one_edge() -> None:
    """One edge more on a large host that is done."""
    graph, _ = planted_partition(2 * LARGE, 40, inside=8, outside=2, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        federation = Federation(graph, assign(graph, 2, "random", 0), Path(folder), {})
        with federation.running():
            for _ in federation.wait():
                pass
            member, before = federation.members[0], federation.statuses()[0]
            names = [node for node, home in federation.numbers if home == member.name][:2]
            with Store(member.home) as store:
                store.add_edges([Edge(names[0], (names[1], member.name)), Edge(names[1], (names[0], member.name))])
            after = before
            while after["round"] == before["round"] or after["state"] != "done":
                time.sleep(0.2)
                after = read_status(member.home)
    first, more = before["pairs"], after["pairs"] - before["pairs"]
    with table(f"one edge more on a host of {LARGE:,} nodes", "update pairs") as shown:
        shown.row("the first run", f"{first:,}")
        shown.row(f"{after['round'] - before['round']} rounds after the change", f"{more:,}, {more / first:.2%}")
