"""UsedArcs: to which neighbours a host's nodes have arcs that are used now, as peers come and go."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Integers
from manela.agents.neighbourhood import Neighbourhood
from manela.agents.sessions import Link
from manela.engines.neighbours import Neighbours, sum_weights
from manela.kernels.arcs import Arcs
from manela.kernels.cpu import build_aliases
from manela.threads import Threads

Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]


class UsedArcs:
    """The arcs to own nodes, and to nodes of peers that have accepted them, that are seen and that are believed.

    Attributes
    ----------
    own, known : int
        Own nodes, which are the first rows, and all nodes that are known.
    seen : array of bool, shape (known,)
        The nodes whose vectors have come; own ones always.
    known_strengths, largest_weights : arrays, shape (known,)
        What this host's own edges with a node add up to, and the largest of them.
    strengths : array, shape (known,)
        What peers say that all edges of their nodes add up to.
    used : array of bool, shape (arcs,)
        The arcs that are used now; `neighbours` is made of them.
    is_stale : bool
        Whether something has changed since.
    """

    def __init__(self, near: Neighbourhood, own: int, known: int, weighted: bool) -> None:
        self._near, self._weighted, self._threads = near, weighted, Threads(1)
        self.own, self.known = own, known
        weights = near.weights if weighted else np.ones(len(near.indices))
        self.known_strengths, self.largest_weights = np.zeros(known), np.zeros(known)
        np.add.at(self.known_strengths, near.indices, weights)
        np.maximum.at(self.largest_weights, near.indices, weights)
        self.strengths = np.zeros(known)
        self.seen = np.zeros(known, bool)
        self.seen[:own] = True
        self.is_stale = False
        self.used = self.find({}, self.seen)
        self.neighbours = self.build(self.used)

    def see(self, rows: Integers, strengths: Doubles | None = None) -> None:
        """The vectors of these nodes have come, and where it is said, their strengths."""
        self.is_stale |= not self.seen[rows].all()
        self.seen[rows] = True
        if strengths is not None:
            self.is_stale |= not (self.strengths[rows] == strengths).all()
            self.strengths[rows] = strengths

    def forget(self, rows: Mask | slice) -> None:
        """The vectors of these nodes are of no use any more."""
        self.seen[rows], self.is_stale = False, True

    def update(self, links: Mapping[str, Link], distrusted: Container[str]) -> bool:
        """Use the arcs that can be used now; returns whether they are others than before."""
        if not self.is_stale:
            return False
        self.is_stale = False
        self.used = self.find(links, self.seen, distrusted)
        self.neighbours = self.build(self.used)
        return True

    def find(self, links: Mapping[str, Link], seen: Mask | None = None, distrusted: Container[str] = ()) -> Mask:
        """The arcs to own nodes, and to those of linked peers that are seen; all of them if `seen` is not given."""
        indices = self._near.indices
        found: Mask = indices < self.own
        for peer, link in list(links.items()):
            found[link.arcs] = peer not in distrusted
        return found if seen is None else found & seen[indices]

    def have_all(self, used: Mask) -> Mask:
        """Which own nodes have all their arcs among these."""
        counts = np.bincount(self._near.sources[used], minlength=self.own)
        mask: Mask = counts == np.diff(self._near.indptr)
        return mask

    def build(self, used: Mask) -> Neighbours:
        """Neighbours by these arcs."""
        near = self._near
        places = np.flatnonzero(used)
        counts = np.bincount(near.sources[places], minlength=self.known)
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        weights = thresholds = aliases = None
        sums = counts.astype(np.float64)
        if self._weighted:
            weights = near.weights[places]
            thresholds, aliases = np.empty(len(places), np.uint32), np.empty(len(places), np.int32)
            build_aliases(indptr, weights, thresholds, aliases)
            sums = sum_weights(indptr, weights)
        sums[self.own :] = self.strengths[self.own :]
        scales = np.divide(1.0, sums, out=np.zeros(self.known), where=sums > 0)[None]
        arcs = Arcs(indptr, near.indices[places], thresholds, aliases)
        return Neighbours(arcs, weights, scales, self._threads, np.array([0, self.own]), False)
