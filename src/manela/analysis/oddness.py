"""Oddness: how an edge compares with random pairs of nodes that have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manela.kernels.layout import RowNumbers, Vectors

_BLOCK = 1 << 18
"""Pairs that are compared at a time; more take more memory."""

Arcs = tuple[RowNumbers, RowNumbers]
"""Rows of the nodes that arcs leave, and of those that they lead to."""


def draw_unlinked(random: np.random.Generator, count: int, arcs: Arcs, nodes: Arcs) -> Arcs:
    """Draw up to `count` random pairs of different nodes without an edge between them.

    One end is that from which a random arc leaves, the other that to which another random arc leads, so that degrees
    are distributed as in edges. Without arcs, the ends are drawn uniformly from `nodes`: candidates for either end.

    Examples
    --------
    >>> path = np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1])
    >>> pairs = draw_unlinked(np.random.default_rng(0), 100, path, (np.arange(3), np.arange(3)))
    >>> sorted(set(zip(*map(np.ndarray.tolist, pairs))))
    [(0, 2), (2, 0)]
    """
    firsts, seconds = arcs if len(arcs[0]) else nodes
    own = firsts[random.integers(len(firsts), size=2 * count)].astype(np.int64)
    others = seconds[random.integers(len(seconds), size=2 * count)].astype(np.int64)
    size = 1 + max(int(ends.max(initial=0)) for ends in (*arcs, *nodes))
    edges = arcs[0].astype(np.int64) * size + arcs[1]
    unlinked = np.flatnonzero((own != others) & ~np.isin(own * size + others, edges))[:count]
    return own[unlinked], others[unlinked]


def compare(directions: Vectors, sources: Any, targets: Any) -> Vectors:
    """Return the cosine of each pair, given vectors of norm 1."""
    cosines = np.empty(len(sources), dtype=np.float32)
    for start in range(0, len(sources), _BLOCK):
        block = slice(start, start + _BLOCK)
        cosines[block] = np.einsum("ij,ij->i", directions[sources[block]], directions[targets[block]])
    return cosines


def measure_oddness(similarity: Any, of_random_pairs: Vectors) -> npt.NDArray[np.float64]:
    """Return the share of random pairs, whose similarities are sorted, that are at least as similar.

    Examples
    --------
    >>> measure_oddness(np.array([0.9, 0.5, -1.0]), np.array([0.1, 0.5], dtype=np.float32)).tolist()
    [0.0, 0.5, 1.0]
    """
    above = len(of_random_pairs) - np.searchsorted(of_random_pairs, similarity)
    shares: npt.NDArray[np.float64] = above / max(1, len(of_random_pairs))
    return shares
