"""Judge: whether peers are believed, by how like their nodes are to ours that they are neighbours of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Integers
from manela.agents.neighbourhood import Neighbourhood
from manela.agents.sessions import Link
from manela.agents.trust import FEWEST_NODES, Trust

_FEWEST_ARCS = 8
"""Arcs that are needed to judge a peer by; with fewer, chance would."""
_SAMPLE = 2000
"""Arcs by which a peer is judged; more take longer, and are hardly more certain."""
_SAME = 0.9
"""How much of the size of a peer's vectors may be in their mean; a constant vector has 1, honest ones less than 0.6."""
_CERTAIN = 5
"""Exchanges in which a peer must not be believed for an alarm; honest ones may not be for a moment."""

Read = Callable[[Integers], npt.NDArray[np.float32]]
"""The vectors of some nodes, as they were shown last."""


class Judge:
    """Judges peers by a sample of the arcs to their nodes, beside one of the arcs between own nodes.

    Attributes
    ----------
    distrusted : dict of int
        Peers whose vectors are not used, and for how many exchanges now.
    clipped : dict of float
        The share of a peer's vectors that were too long in its last answer.
    """

    def __init__(self, near: Neighbourhood, trust: Trust, key: int) -> None:
        self._near, self._trust = near, trust
        self.distrusted: dict[str, int] = {}
        self.clipped: dict[str, float] = {}
        random = np.random.default_rng(key)
        # under "" those between own nodes
        arcs = {"": np.flatnonzero(near.indices < len(near.nodes)), **{peer: near.arcs_to(peer) for peer in near.peers}}
        self._samples: dict[str, Integers] = {
            peer: random.choice(these, min(len(these), _SAMPLE), replace=False)
            for peer, these in arcs.items()
            if len(these) or not peer
        }

    def judge(
        self, links: Mapping[str, Link], seen: npt.NDArray[np.bool_], read: Read, number: int
    ) -> tuple[bool, Iterable[str]]:
        """Judge all peers in a round; returns whether others are believed now, and of whom an alarm is raised."""
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
        """The mean cosine of the vectors at both ends of some arcs, less what those of each side have in common.

        That is pushed to and fro by common negatives, at each host in its own time.
        """
        if not len(arcs):
            return 0.0
        ends = [read(rows) for rows in (self._near.sources[arcs], self._near.indices[arcs])]
        ends = [rows - rows.mean(axis=0) for rows in ends]
        products = (ends[0] * ends[1]).sum(axis=1)
        lengths = np.linalg.norm(ends[0], axis=1) * np.linalg.norm(ends[1], axis=1)
        return float((products / np.maximum(lengths, 1e-12)).mean())


def _are_constant(vectors: npt.NDArray[np.float32]) -> bool:
    """Whether many vectors are nearly the same."""
    if len(vectors) < FEWEST_NODES:
        return False
    wide = vectors.astype(np.float64)
    mean = wide.mean(axis=0)
    return float(mean @ mean) > _SAME * float((wide**2).sum(axis=1).mean())
