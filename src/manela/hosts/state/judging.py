"""Judge: decides which peers are believed. MomentPool: the moments of all hosts' vectors."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from manela.hosts.state.messages import Integers
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.sessions import Link
from manela.hosts.state.trust import FEWEST_NODES, Trust
from manela.kernels.moments import Moments

_FEWEST_ARCS = 8
"""Fewest arcs to judge a peer by; if larger, peers with few edges are never judged; if smaller, chance decides."""
_SAMPLE = 2000
"""Most arcs and vectors by which a peer is judged; more take longer, and are hardly more certain."""
_SAME = 0.9
"""Largest share of the mean in the mean square of a peer's vectors; if larger, near-constant vectors pass.

Constant vectors have 1, honest ones less than 0.6.
"""
_CERTAIN = 5
"""Exchanges without trust that raise an alarm; more delay it, fewer accuse honest peers that fail for a moment."""

Read = Callable[[Integers], npt.NDArray[np.float32]]
"""Returns the last shown vectors of the given rows."""


class Judge:
    """Judges peers by comparing a sample of the arcs to their nodes with a sample of the arcs between own nodes.

    Attributes
    ----------
    distrusted : dict of int
        Peers whose vectors are not used, and the number of exchanges since.
    clipped : dict of float
        The share of a peer's vectors that were too long in its last reply.
    """

    def __init__(self, near: Neighbourhood, trust: Trust, key: int) -> None:
        self._near, self._trust = near, trust
        self.distrusted: dict[str, int] = {}
        self.clipped: dict[str, float] = {}
        random = np.random.default_rng(key)
        # the key "" stands for arcs between own nodes
        arcs = {"": np.flatnonzero(near.indices < len(near.nodes)), **{peer: near.arcs_to(peer) for peer in near.peers}}
        self._samples: dict[str, Integers] = {
            peer: random.choice(candidates, min(len(candidates), _SAMPLE), replace=False)
            for peer, candidates in arcs.items()
            if len(candidates) or not peer
        }

    def judge(
        self, links: Mapping[str, Link], seen: npt.NDArray[np.bool_], read: Read, number: int
    ) -> tuple[bool, Iterable[str]]:
        """Judge all peers in round `number`; return whether trust in any has changed, and the peers to report."""
        own = self._measure_likeness(self._samples[""], read)
        changed, alarms = False, []
        for peer in list(links):
            sample = self._samples.get(peer)
            if sample is None:
                continue
            sample = sample[seen[self._near.indices[sample]]]
            if len(sample) < _FEWEST_ARCS:
                continue
            trusted = peer not in self.distrusted
            theirs = self._measure_likeness(sample, read)
            believed = self._trust.believes(own, theirs, self.clipped.get(peer, 0.0), number, trusted)
            rows = links[peer].neighbours
            believed = believed and not _are_constant(read(rows[seen[rows]][:_SAMPLE]))
            changed |= believed != trusted
            if believed:
                self.distrusted.pop(peer, None)
                continue
            self.distrusted[peer] = self.distrusted.get(peer, 0) + 1
            if self.distrusted[peer] == _CERTAIN:
                alarms.append(peer)
        return changed, alarms

    def _measure_likeness(self, arcs: Integers, read: Read) -> float:
        """Return the mean cosine between the two ends of the arcs, after subtracting the mean of each side.

        Common negatives shift the mean, at each host at a different time, so it says nothing about honesty.
        """
        if not len(arcs):
            return 0.0
        ends = [read(rows) for rows in (self._near.sources[arcs], self._near.indices[arcs])]
        ends = [rows - rows.mean(axis=0) for rows in ends]
        products = (ends[0] * ends[1]).sum(axis=1)
        lengths = np.linalg.norm(ends[0], axis=1) * np.linalg.norm(ends[1], axis=1)
        return float((products / np.maximum(lengths, 1e-12)).mean())


def _are_constant(vectors: npt.NDArray[np.float32]) -> bool:
    """Return whether the vectors are enough to judge, and nearly all the same."""
    if len(vectors) < FEWEST_NODES:
        return False
    wide = vectors.astype(np.float64)
    mean = wide.mean(axis=0)
    return float(mean @ mean) > _SAME * float((wide**2).sum(axis=1).mean())


class MomentPool:
    """The moments of own vectors and of those of peers, for each table.

    Attributes
    ----------
    own : list of Moments
        The moments of own vectors, as peers see them.
    """

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._of_peers: dict[str, list[Moments]] = {}
        self.own: list[Moments] = []

    def measure(self, tables: Iterable[npt.NDArray[np.float32]]) -> list[Moments]:
        """Measure and return the moments of own vectors, one array of rows for each table."""
        self.own = [self._trust.measure(rows) for rows in tables]
        return self.own

    def store(self, peer: str, moments: list[Moments]) -> None:
        """Keep what a peer shows; raises MalformedError if no honest vectors have such moments."""
        for of_table in moments:
            self._trust.check_moments(of_table)
        self._of_peers[peer] = moments

    def forget(self, peer: str) -> None:
        """Drop the moments of a peer."""
        self._of_peers.pop(peer, None)

    def pool(self, sizes: Mapping[str, int], distrusted: Container[str], width: int) -> list[Moments]:
        """Return the moments of own and trusted peers' vectors together, padded to the width of a table.

        `sizes` is for how many nodes each peer counts at most.
        """
        pooled = []
        for table, own in enumerate(self.own):
            others = {peer: theirs[table] for peer, theirs in self._of_peers.items() if peer not in distrusted}
            moments = self._trust.pool_moments(own, others, sizes)
            padding = width - len(moments.total)
            products = np.pad(moments.products, ((0, padding), (0, padding)))
            pooled.append(Moments(moments.size, np.pad(moments.total, (0, padding)), products))
        return pooled
