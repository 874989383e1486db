"""What false nodes at one host make of the ten nearest of a node at another, with four hosts that move by turns.

The node has an edge with each false node in the lists of both hosts. In every step these show the mean row of another
group at the hostile host, twice as long as usual. The attacker has chosen the false nodes, and all nodes of that group.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.table import table
from manela import Graph, ManelaWarning
from manela.formats.datasets import planted_partition
from manela.hosts.federation import assign, split_graph
from manela.hosts.folder.config import Config
from manela.hosts.state.driver import drive
from manela.hosts.state.host import Host
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.publishing import Published
from manela.hosts.state.terms import PeerOptions
from manela.hosts.walks.host import make_host
from manela.hosts.wire.calls import decode_reply, encode_reply

HOSTILE = "host4"
NEAREST = 10
GROUPS = 8
LENGTH = 2.0
"""Length of false rows, over the mean of the group's; longer ones are clipped."""


class Victim(NamedTuple):
    """A node that is attacked, and the group that the attacker wants it to be near."""

    row: int
    group: int


class Run:
    """Hosts that have learned while one of them showed false nodes to a node at each of the others."""

    def __init__(
        self,
        graph: Graph,
        groups: Any,
        where: Sequence[str],
        sybils: int,
        seed: int,
        victims: int = 1,
        **options: Any,
    ) -> None:
        self.graph, self.groups, self.where = graph, groups, np.array(where)
        self.victims = self._choose_victims(np.random.default_rng(seed), victims)
        self.false: dict[str, int] = {}  # the group that each false node is to pull to
        pieces, self.numbers = split_graph(graph, list(where))
        self.names = [name for name, _ in self.numbers]
        for victim in self.victims:
            name, host = self.names[victim.row], where[victim.row]
            for number in range(sybils):
                false = f"false {number} of {host}"
                self.false[false] = victim.group
                pieces[HOSTILE].append(Edge(false, (name, host)))
                pieces[host].append(Edge(name, (false, HOSTILE)))
        self.sybils = sybils
        sizes = {name: list(where).count(name) for name in pieces}
        self.hosts: dict[str, Any] = {}
        for number, (name, edges) in enumerate(pieces.items()):
            config = Config(name, "a:1", {}, peers=PeerOptions(**{"share": 1.0, **options}))
            self.hosts[name] = make_host(
                config.terms(10 * seed + number), Neighbourhood.build(name, edges), sizes=sizes
            )
        self._publish_lies(self.hosts[HOSTILE])
        drive(self.hosts, carry=_carry)

    def _choose_victims(self, random: np.random.Generator, each: int) -> list[Victim]:
        """Choose nodes of one group and about the mean degree at each honest host, and another group for them."""
        degrees = np.diff(self.graph.indptr)
        usual = np.abs(degrees - degrees.mean()) <= 2
        victims = []
        for host in sorted(set(self.where.tolist()) - {HOSTILE}):
            candidates = np.flatnonzero((self.where == host) & usual)
            row = int(random.choice(candidates))
            others = np.unique(self.groups[(self.where == HOSTILE) & (self.groups != self.groups[row])])
            alike = candidates[self.groups[candidates] == self.groups[row]]
            rows = [row, *random.permutation(alike[alike != row]).tolist()][:each]
            aim = int(random.choice(others))
            victims += [Victim(row, aim) for row in rows]
        return victims

    def _publish_lies(self, liar: Any) -> None:
        """Have a host show the rows of groups for its false nodes."""
        publish, nodes = liar.publisher.publish, [liar.neighbourhood.nodes[row] for row in liar.edge_rows.tolist()]
        groups = np.array([-1 if name in self.false else self.groups[self.names.index(name)] for name in nodes])

        def lie(published: Published) -> None:
            rows, means = (None if part is None else part.copy() for part in (published.rows, published.means))
            for position, name in enumerate(nodes):
                for part in (rows, means):
                    if name in self.false and part is not None:
                        mean = part[groups == self.false[name]].astype(np.float32).mean(axis=0)
                        length = np.linalg.norm(part[groups >= 0].astype(np.float32), axis=-1).mean(axis=0)
                        mean *= LENGTH * (length / np.maximum(np.linalg.norm(mean, axis=-1), 1e-9))[..., None]
                        part[position] = mean
            publish(replace(published, rows=rows, means=means))

        liar.publisher.publish = lie

    @property
    def chosen(self) -> list[float]:
        """Of the nearest of each victim, the share that the attacker has chosen."""
        vectors, shares = self._read(), []
        for victim in self.victims:
            aims = vectors[self._of(victim.group) & (self.where == HOSTILE)].mean(axis=0)
            false = [aims / np.linalg.norm(aims)] * self.sybils
            every = np.concatenate((vectors, np.reshape(false, (-1, vectors.shape[1]))))
            is_chosen = np.concatenate((self.groups == victim.group, np.ones(len(false), bool)))
            cosines = every @ vectors[victim.row]
            cosines[victim.row] = -2.0
            shares.append(float(is_chosen[np.argsort(-cosines)[:NEAREST]].mean()))
        return shares

    @property
    def right(self) -> float:
        """Of the nearest of all nodes that are not attacked, the share that is of their own group."""
        vectors = self._read()
        cosines = vectors @ vectors.T
        np.fill_diagonal(cosines, -2.0)
        nearest = np.argsort(-cosines, axis=1)[:, :NEAREST]
        alike = (self.groups[nearest] == self.groups[:, None]).mean(axis=1)
        return float(np.delete(alike, [victim.row for victim in self.victims]).mean())

    def _of(self, group: int) -> Any:
        return self.groups == group

    def _read(self) -> Any:
        """Return the vectors of all true nodes, with norm 1."""
        first = next(iter(self.hosts.values()))
        vectors = np.zeros((len(self.numbers), first.terms.settings.dimensions))
        for name, host in self.hosts.items():
            saved = host.save()
            for node, vector in zip(
                saved.names, saved.vectors[:, 0] if saved.smoothed is None else saved.smoothed, strict=True
            ):
                if node not in self.false:
                    vectors[self.numbers[node, name]] = vector
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)


def _carry(asker: Host, answerer: Host, request: Any, reply: Any) -> Any:
    """Return a reply as it comes out of the bytes that daemons send."""
    return decode_reply(asker, answerer.name, request, encode_reply(answerer, asker.name, reply))


NETWORKS = ((3, 2, "random"), (4, 4, "random"), (6, 3, "random"), (6, 3, "community"))
"""Edges that each node draws inside its group and to any node, and how the hosts are split."""
SEEDS = range(10)


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    heads = (
        "mean degree",
        "split",
        "false nodes",
        "edges of each",
        "ten nearest chosen",
        "most",
        "own group among others'",
    )
    with table(*heads) as rows:
        for inside, outside, split in NETWORKS:
            for sybils, victims in ((0, 1), (5, 1), (10, 1), (20, 1), (20, 2)):
                runs = [make_run(inside, outside, split, sybils, seed, victims) for seed in SEEDS]
                chosen = [share for run in runs for share in run.chosen]
                degree = np.mean([np.diff(run.graph.indptr).mean() for run in runs])
                rows.row(
                    f"{degree:.1f}", split, sybils, victims if sybils else "", f"{np.mean(chosen):.3f}", max(chosen),
                    f"{np.mean([run.right for run in runs]):.4f}",
                )  # fmt: skip


def make_run(inside: int, outside: int, split: str, sybils: int, seed: int, victims: int = 1) -> Run:
    """Attack nodes of a network of eight groups."""
    graph, groups = planted_partition(400, GROUPS, inside=inside, outside=outside, seed=seed)
    return Run(graph, groups, assign(graph, 4, split, seed), sybils, seed, victims)
