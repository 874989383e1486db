"""Judge: decides which peers are believed, by how similar their nodes are to their neighbours here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Integers
from manela.agents.neighbourhood import Neighbourhood
from manela.agents.sessions import Link
from manela.agents.trust import FEWEST_NODES, Trust

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
