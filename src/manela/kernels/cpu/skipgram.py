"""Skip-gram with negative sampling over random walks, compiled by Numba: the arithmetic of DeepWalk and node2vec.

A walk has a key, under which its draws are numbered: first those of its steps; then, position by position, the width of
the window and the negatives of each pair.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.cpu.draws import derive, find_arc, follow_alias
from manela.kernels.cpu.simd import BLOCK, exchange_block, scale_to

_UNIT = 2.0**-53
_ENOUGH = 64
"""Rejected steps after which a node's only neighbour is taken; larger can make walks slower."""


@njit(cache=True, nogil=True)
def count_visits(starts, key, length, arcs, p, q, visits, stop):
    """Count the visits of the walks from starts to each node; return the number of steps.

    Stops early once stop[0] is not 0.
    """
    indptr, indices, thresholds, aliases = arcs
    walk = np.empty(length, np.int64)
    steps = 0
    for i in range(len(starts)):
        if stop[0] != 0:
            break
        size, _ = walk_from(starts[i], derive(key, starts[i]), indptr, indices, thresholds, aliases, p, q, walk)
        for place in range(size):
            visits[walk[place]] += 1
        steps += size - 1
    return steps


@njit(cache=True, nogil=True)
def train(
    starts, key, length, arcs, p, q, window, negatives, negative_thresholds, negative_aliases, first_rate, last_rate,
    vectors, contexts, updates, stop,
):  # fmt: skip
    """Move vectors and contexts, both (n, m), by one walk from each of starts.

    For each position of a walk, a width is drawn from 1 … window. The vector x of each node within this width moves
    towards the context vector of the node at the position, and away from those of the negatives:

        x ← x + α·Σ (label − σ(x·u))·u      u ← u + α·(label − σ(x·u))·x

    The learning rate goes from first_rate to last_rate. `updates` counts the updates of each x. Stops early once
    stop[0] is not 0. Returns the number of pairs.
    """
    indptr, indices, thresholds, aliases = arcs
    walk = np.empty(length, np.int64)
    change = np.empty(vectors.shape[1], np.float32)
    rows = np.zeros(1 + negatives + BLOCK, np.int64)
    labels = np.zeros(1 + negatives + BLOCK, np.float32)
    labels[0] = 1.0
    nodes = np.uint64(len(vectors))
    pairs = 0
    for i in range(len(starts)):
        if stop[0] != 0:
            break
        rate = np.float32(first_rate + (last_rate - first_rate) * i / len(starts))
        walk_key = derive(key, starts[i])
        size, number = walk_from(starts[i], walk_key, indptr, indices, thresholds, aliases, p, q, walk)
        for place in range(size):
            rows[:] = walk[place]
            reach = 1 + np.int64(scale_to(derive(walk_key, number), np.uint64(window)))
            number += 1
            for near in range(max(0, place - reach), min(size, place + reach + 1)):
                if near == place:
                    continue
                used = 1
                for _ in range(negatives):
                    drawn = derive(walk_key, number)
                    number += 1
                    other = np.int64(scale_to(drawn, nodes))
                    other = follow_alias(negative_thresholds, negative_aliases, other, 0, drawn * nodes)
                    if other != walk[place]:
                        rows[used] = other
                        used += 1
                x = vectors[walk[near]]
                change[:] = 0.0
                for first in range(0, used, BLOCK):
                    exchange_block(x, change, contexts, rows, labels, rate, first, used)
                for k in range(len(x)):
                    x[k] += change[k]
                updates[walk[near]] += 1
                pairs += 1
    return pairs


@njit(nogil=True)
def walk_from(start, key, indptr, indices, thresholds, aliases, p, q, walk):
    """Write a walk; return its number of nodes, which is smaller at a dead end, and the number of draws.

    With p or q other than 1, steps are drawn by rejection: drawn as if both were 1, and accepted with probability
    bias / largest bias. So nothing has to be precomputed for an edge.
    """
    walk[0] = start
    before, here, number = np.int64(-1), np.int64(start), 0
    most = max(1.0, 1.0 / p, 1.0 / q)
    for place in range(1, len(walk)):
        first = indptr[here]
        degree = indptr[here + 1] - first
        if degree == 0:
            return place, number
        tries = 0
        while True:
            tries += 1
            drawn = derive(key, number)
            number += 1
            arc = first + np.int64(scale_to(drawn, np.uint64(degree)))
            arc = follow_alias(thresholds, aliases, arc, first, drawn * np.uint64(degree))
            there = np.int64(indices[arc])
            if before < 0 or (most == 1.0 and p == 1.0 and q == 1.0):
                break
            bias = 1.0 / p
            if there != before:
                bias = 1.0 if find_arc(indptr, indices, before, there) >= 0 else 1.0 / q
            chance = np.float64(derive(key, number) >> np.uint64(11)) * _UNIT
            number += 1
            if chance * most < bias or (degree == 1 and tries > _ENOUGH):
                break
        before, here = here, there
        walk[place] = here
    return len(walk), number
