"""Influence: bounds how much the nodes of one peer count for a node here, so that false nodes cannot decide for it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.hosts.state.messages import Integers
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.peers import Peers
from manela.kernels.randomness import derive

Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]

_MOST_INFLUENCE = 0.9
"""How much a peer's nodes may count for a node, over what its size lets one expect of its neighbours.

If larger, false nodes pull more; if smaller, honest peers lose edges of nodes that few here are tied to.
"""
_LONGEST = 0.7
"""Longest row of a node that may be false, over the median of own ones; if larger, false nodes pull more."""
_ROUNDING = 1e-9
"""By how much sums may be above a bound for rounding; larger lets in arcs that are beyond it."""
_MOST_KEPT = 4
"""Results that are kept, as the same arcs are asked for in every step; more take more memory."""
_FEW_DEAR = 2
"""How many neighbours of full cost a node may have at a peer before their rows are bounded.

If larger, a few false nodes pull more; if smaller, honest peers of other communities are unlike more often.
"""


class Influence:
    """Decides which arcs to nodes of peers are used, by how many own nodes each of them has edges with.

    A false node has an edge with its victim; each further edge takes another user here. So a peer's node with t edges
    here costs 1/t², or up to (g/t)² if g nodes of the peer have edges with the same t nodes here, but never more than
    1. The arcs of a node to a peer are used in order, cheap ones first, while they cost together no more than the
    peer's size allows. One arc is used in any case, and so are all of a node without other neighbours. Among equals a
    draw by the host's key decides.
    """

    def __init__(self, near: Neighbourhood, peers: Peers, weights: Doubles, key: int) -> None:
        self._near, self._peers, self._weights, self._key = near, peers, weights, key
        self._chosen: dict[tuple[object, ...], Mask] = {}

    def limit(self, usable: Mask) -> Mask:
        """Return those of the usable arcs that are used."""
        sizes = self._find_sizes()
        case = usable.tobytes(), *sizes.items()
        if case not in self._chosen:
            kept = list(self._chosen.items())[1 - _MOST_KEPT :]
            self._chosen = {**dict(kept), case: self._choose(usable, sizes)}
        return self._chosen[case].copy()

    def shorten(self, rows: Integers, vectors: Any, median: Any) -> Any:
        """Return the vectors of peers' nodes, (rows, …, m), with those of nodes that may be false bounded.

        These are nodes of full cost that are neighbours of a node with several such at the same peer. `median` is the
        median norm of own rows, (…).
        """
        doubtful = np.flatnonzero(self._doubtful[rows])
        lengths = np.linalg.norm(vectors[doubtful].astype(np.float64), axis=-1)
        factors = np.minimum(1.0, _LONGEST * median / np.maximum(lengths, 1e-30))
        vectors[doubtful] = vectors[doubtful] * factors[..., None]
        return vectors

    def _choose(self, usable: Mask, sizes: dict[str, int]) -> Mask:
        near, used = self._near, usable.copy()
        own = len(near.nodes)
        totals = np.bincount(near.sources, weights=self._weights * usable, minlength=own)
        counts = np.bincount(near.sources[usable], minlength=own)
        everyone = own + sum(sizes.values())
        for peer, ordered in self._ordered.items():
            arcs = ordered[usable[ordered]]
            rows = near.sources[arcs]
            inside = np.bincount(rows, weights=self._weights[arcs], minlength=own)
            others = totals - inside
            number = counts - np.bincount(rows, minlength=own)
            expected = sizes[peer] / max(1, everyone - sizes[peer]) * others
            most = np.maximum(others / np.maximum(number, 1), _MOST_INFLUENCE * expected)
            most[number == 0] = np.inf
            sums = np.cumsum(self._weights[arcs] * self._costs[near.indices[arcs]])
            firsts = np.searchsorted(rows, rows)  # the position of the first arc of the same node
            before = np.concatenate(([0.0], sums))[firsts]
            is_beyond = sums - before > most[rows] * (1.0 + _ROUNDING)
            used[arcs[is_beyond & (np.arange(len(arcs)) > firsts)]] = False
        return used

    def _find_sizes(self) -> dict[str, int]:
        """Return the number of each peer's nodes as the operator wrote it down, or as many as are known."""
        stated = {peer: self._peers[peer].size for peer in self._known if peer in self._peers}
        return self._known | {peer: size for peer, size in stated.items() if size is not None}

    @cached_property
    def _known(self) -> dict[str, int]:
        """The number of nodes of each peer that own nodes have edges with."""
        return {peer: len(np.unique(self._near.indices[arcs])) for peer, arcs in self._ordered.items()}

    @cached_property
    def _costs(self) -> Doubles:
        """(known,): what an arc to each node of a peer costs."""
        near, known = self._near, len(self._near.nodes) + len(self._near.remotes)
        ties = np.bincount(near.indices, minlength=known)
        sets = np.zeros(known, np.uint64)  # a number for the set of own nodes that each node has edges with
        np.add.at(sets, near.indices, derive(self._key, near.sources))
        costs = np.zeros(known)
        for peer in near.peers:
            nodes = np.unique(near.indices[near.arcs_to(peer)])
            _, groups, sizes = np.unique(sets[nodes], return_inverse=True, return_counts=True)
            costs[nodes] = np.minimum(1.0, sizes[groups] / ties[nodes]) ** 2
        return costs

    @cached_property
    def _doubtful(self) -> Mask:
        """(known,): which nodes of peers may be false: those of full cost where one node has several of a peer."""
        near, doubtful = self._near, np.zeros(len(self._costs), bool)
        for arcs in self._ordered.values():
            dear = arcs[self._costs[near.indices[arcs]] == 1.0]
            counts = np.bincount(near.sources[dear], minlength=len(near.nodes))
            doubtful[near.indices[dear[counts[near.sources[dear]] > _FEW_DEAR]]] = True
        return doubtful

    @cached_property
    def _ordered(self) -> dict[str, Integers]:
        """The arcs to each peer by own node, and those of one node in the order in which they are used."""
        near, ordered = self._near, {}
        draws = derive(self._key, np.arange(len(near.indices)))
        for peer in near.peers:
            arcs = near.arcs_to(peer)
            ordered[peer] = arcs[np.lexsort((draws[arcs], self._costs[near.indices[arcs]], near.sources[arcs]))]
        return ordered
