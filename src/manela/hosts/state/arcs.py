"""UsedArcs: tracks which arcs of a host's nodes can be used as peers come and go; and rows in half precision."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.neighbours import Neighbours
from manela.hosts.state.influence import Influence
from manela.hosts.state.messages import Integers
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.peers import Link
from manela.kernels.cpu.half import from_half, to_half
from manela.kernels.cpu.walks import build_aliases
from manela.kernels.layout import Arcs, find_strengths
from manela.system.threads import Threads

Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]


class UsedArcs:
    """The arcs that can be used: to own nodes, and to nodes of trusted peers with known vectors.

    An `influence`, if there is one, bounds those to each peer.
    """

    def __init__(
        self, near: Neighbourhood, own: int, known: int, weighted: bool, influence: Influence | None = None
    ) -> None:
        self._near, self._weighted, self._threads, self._influence = near, weighted, Threads(1), influence
        # own, known: the number of own nodes, which have the first rows, and of all known nodes
        self.own, self.known = own, known
        weights = near.weights if weighted else np.ones(len(near.indices))
        # (known,): the sum of this host's own edges with a node, and the largest of
        # their weights
        self.known_strengths, self.largest_weights = np.zeros(known), np.zeros(known)
        np.add.at(self.known_strengths, near.indices, weights)
        np.maximum.at(self.largest_weights, near.indices, weights)
        self.strengths = np.zeros(known)  # (known,): the strengths that peers state for their nodes
        self.seen = np.zeros(known, bool)  # (known,): the nodes whose vectors have arrived; own nodes always
        self.seen[:own] = True
        self.is_stale = False  # whether something has changed since `neighbours` was built
        self.used = self.find({}, self.seen)  # (arcs,): the arcs that are used now; `neighbours` is built from them
        self.neighbours = self.build(self.used)

    def see(self, rows: Integers, strengths: Doubles | None = None) -> None:
        """Record that the vectors of these nodes have arrived, and their strengths if given."""
        self.is_stale |= not self.seen[rows].all()
        self.seen[rows] = True
        if strengths is not None:
            self.is_stale |= not (self.strengths[rows] == strengths).all()
            self.strengths[rows] = strengths

    def forget(self, rows: Mask | slice) -> None:
        """Stop using the vectors of these nodes."""
        self.seen[rows], self.is_stale = False, True

    def update(self, links: Mapping[str, Link], distrusted: Container[str]) -> bool:
        """Rebuild `neighbours` if something has changed; return whether it was rebuilt."""
        if not self.is_stale:
            return False
        self.is_stale = False
        self.used = self.find(links, self.seen, distrusted)
        self.neighbours = self.build(self.used)
        return True

    def find(self, links: Mapping[str, Link], seen: Mask | None = None, distrusted: Container[str] = ()) -> Mask:
        """Return a mask of the usable arcs: to own nodes, and to nodes of linked and trusted peers.

        If `seen` is given, only arcs to seen nodes count.
        """
        indices = self._near.indices
        usable: Mask = indices < self.own
        for peer, link in list(links.items()):
            usable[link.arcs] = peer not in distrusted
        if self._influence is not None:
            usable = self._influence.limit(usable)
        return usable if seen is None else usable & seen[indices]

    def have_all(self, used: Mask) -> Mask:
        """Return which own nodes have all their arcs, but for those that are never used, among the used ones."""
        mask: Mask = self._count(used) == self._count(self._find_every())
        return mask

    def have_most(self, used: Mask) -> Mask:
        """Return which own nodes have more than half of their arcs among the used ones."""
        mask: Mask = 2 * self._count(used) > self._count(self._find_every())
        return mask

    def _find_every(self) -> Mask:
        every = np.ones(len(self._near.indices), bool)
        return every if self._influence is None else self._influence.limit(every)

    def _count(self, used: Mask) -> npt.NDArray[np.int64]:
        return np.bincount(self._near.sources[used], minlength=self.own)

    def find_largest_shares(self) -> Doubles:
        """Return for each own node the largest share that one neighbour has in a mean over those that are used."""
        near, positions = self._near, np.flatnonzero(self.used)
        weights = near.weights[positions] if self._weighted else np.ones(len(positions))
        largest, sums = np.zeros(self.own), np.zeros(self.own)
        np.maximum.at(largest, near.sources[positions], weights)
        np.add.at(sums, near.sources[positions], weights)
        return np.divide(largest, sums, out=largest, where=sums > 0)

    def build(self, used: Mask) -> Neighbours:
        """Return the Neighbours along the used arcs."""
        near = self._near
        positions = np.flatnonzero(used)
        counts = np.bincount(near.sources[positions], minlength=self.known)
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        weights = thresholds = aliases = None
        sums = counts.astype(np.float64)
        if self._weighted:
            weights = near.weights[positions]
            thresholds, aliases = np.empty(len(positions), np.uint32), np.empty(len(positions), np.int32)
            build_aliases(indptr, weights, thresholds, aliases)
            sums = find_strengths(indptr, weights)
        sums[self.own :] = self.strengths[self.own :]
        scales = np.divide(1.0, sums, out=np.zeros(self.known), where=sums > 0)[None]
        arcs = Arcs(indptr, near.indices[positions], thresholds, aliases)
        return Neighbours(arcs, weights, scales, self._threads, np.array([0, self.own]), False)


def read_rows(shown: npt.NDArray[Any], rows: Integers, columns: int) -> npt.NDArray[np.float32]:
    """Return the first columns of the given rows, in single precision."""
    selected = shown[rows, :columns]
    if selected.dtype == np.uint16:
        widened: npt.NDArray[np.float32] = from_half(np.ascontiguousarray(selected).view(np.float16))
        return widened
    return selected.astype(np.float32)


def write_rows(shown: npt.NDArray[Any], rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
    """Write vectors to the first columns of the given rows, in half precision."""
    halves = to_half(vectors)
    shown[rows, : vectors.shape[1]] = halves.view(np.uint16) if shown.dtype == np.uint16 else halves
