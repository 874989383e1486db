"""Judge: decides which peers are believed, and pools the moments of those that are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from manela.hosts.state.messages import Integers
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.peers import Peers
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
    """Judges peers by comparing a sample of the arcs to their nodes with a sample of the arcs between own nodes."""

    def __init__(self, near: Neighbourhood, trust: Trust, key: int, most: int = _SAMPLE) -> None:
        self._near, self._trust, self._most = near, trust, most
        random = np.random.default_rng(key)
        # the key "" stands for arcs between own nodes
        arcs = {"": np.flatnonzero(near.indices < len(near.nodes)), **{peer: near.arcs_to(peer) for peer in near.peers}}
        self.samples: dict[str, Integers] = {
            peer: random.choice(candidates, min(len(candidates), most), replace=False)
            for peer, candidates in arcs.items()
            if len(candidates) or not peer
        }

    def judge(self, peers: Peers, seen: npt.NDArray[np.bool_], read: Read, round: int) -> tuple[bool, list[str]]:
        """Judge all peers in a round; return whether trust in any has changed, and the peers to report."""
        own = self._measure_likeness(self.samples[""], read)
        changed, alarms = False, []
        for peer in peers.values():
            sample = self.samples.get(peer.name)
            if sample is None or peer.link is None:
                continue
            sample = sample[seen[self._near.indices[sample]]]
            if len(sample) < _FEWEST_ARCS:
                continue
            trusted = not peer.distrust
            theirs = self._measure_likeness(sample, read)
            believed = self._trust.believes(own, theirs, peer.clipped, round, trusted)
            rows = peer.link.neighbours
            believed = believed and not _are_constant(read(rows[seen[rows]][: self._most]))
            changed |= believed != trusted
            peer.distrust = 0 if believed else peer.distrust + 1
            if peer.distrust == _CERTAIN:
                alarms.append(peer.name)
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


def pool_moments(trust: Trust, own: list[Moments], peers: Peers, sizes: Mapping[str, int], width: int) -> list[Moments]:
    """Return for each table the moments of own and trusted peers' vectors together, padded to the width of a table.

    `sizes` is for how many nodes each peer counts at most.
    """
    pooled = []
    for table, moments in enumerate(own):
        others = {name: peer.moments[table] for name, peer in peers.items() if peer.moments and not peer.distrust}
        together = trust.pool_moments(moments, others, sizes)
        padding = width - len(together.total)
        products = np.pad(together.products, ((0, padding), (0, padding)))
        pooled.append(Moments(together.size, np.pad(together.total, (0, padding)), products))
    return pooled
