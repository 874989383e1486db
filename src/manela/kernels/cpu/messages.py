"""Rounds with messages on processors, compiled by Numba: `advance` moves some nodes through one round.

The definition is `reference`; read that first. What other nodes show is read from one stacked table: row h·n + w holds
Φ(w) for h = 0 and the mean M^h(w) for h ≥ 1, in half precision if the processor can read it.
Numba's cache notices changes in this file only: after a change of `draws`, `simd` or `tiles`, which are compiled into
this one, delete the cached files.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.cpu.draws import derive, find_arc
from manela.kernels.cpu.simd import prefetch_row, scale_to
from manela.kernels.cpu.tiles import (
    GROUP,
    TILE,
    absorb_tile,
    add_rows,
    average_row,
    dot_rows,
    multiply_tile,
    narrow_row,
    prefetch_reads,
    push_away,
    weigh_targets,
)
from manela.kernels.reference import MOST_OWN


@njit(cache=True, nogil=True)
def advance(
    nodes, numbers, counts, own, shown, negatives, transposed, arcs, returns, scales, hops, amount, key, rate, made,
    stop,
):  # fmt: skip
    """Move each of nodes by its iterations of this round, in place.

    Reads and writes own[nodes], (n, m) with m a multiple of 16, and reads what others show, (s·n, m). `counts` are the
    iterations of each node, at least 1, largest first. The draws of node v are seeded by numbers[v], or by v if numbers
    is None. Target j of an iteration is hops[j] + 1 hops away. Iteration j moves away from the first `amount` rows of
    negatives[j mod blocks], (blocks, rows, m); transposed, (blocks, m, columns), is the same with columns padded to a
    multiple of 16.

    `returns` is the node's own share in a neighbour's mean, for each arc; None if that is scales[0] of the neighbour.
    scales[h − 1] are the factors of the sums for M^h, for each node. Writes the update pairs of each node to made.
    Stops early, with some nodes moved and others not, once stop[0] is not 0.
    """
    indptr, indices, thresholds, aliases = arcs
    n, m, targets = len(own), own.shape[1], len(hops)
    width = -(-(targets + 1) // GROUP) * GROUP
    rows = np.zeros((2, TILE, width), np.int64)
    shares = np.zeros((2, TILE, width), np.float32)
    used, chosen = np.zeros((2, TILE), np.int64), np.zeros(targets, np.int64)
    x, change = np.zeros((TILE, m), np.float32), np.zeros((TILE, m), np.float32)
    products = np.zeros((TILE, transposed.shape[2]), np.float32)
    values, rates = np.zeros(width, np.float32), np.zeros(TILE, np.float32)
    now = tile = iteration = 0
    if len(nodes) > 0:
        draw_tile(
            nodes, numbers, counts, 0, 0, n, shown, indptr, indices, thresholds, aliases, returns, scales, hops, key,
            chosen, rows[0], shares[0], used[0],
        )  # fmt: skip
    while tile < len(nodes) and stop[0] == 0:
        later, later_iteration = tile, iteration + 1
        if later_iteration == counts[tile]:
            later, later_iteration = tile + TILE, 0
        then = 1 - now
        if later < len(nodes):
            draw_tile(
                nodes, numbers, counts, later, later_iteration, n, shown, indptr, indices, thresholds, aliases, returns,
                scales, hops, key, chosen, rows[then], shares[then], used[then],
            )  # fmt: skip
        if later != tile:
            for i in range(later, min(later + TILE, len(nodes))):
                prefetch_row(own, nodes[i])
        size = min(TILE, len(nodes) - tile)
        if iteration == 0:
            for i in range(size):
                made[tile + i] = 0
                copy(own[nodes[tile + i]], x[i])
        for i in range(TILE):
            rates[i] = rate * np.float32(used[now, i]) / np.float32(targets)
            for k in range(m):
                change[i, k] = 0.0
            if used[now, i] > 0:
                attract(x, i, shown, rows[now, i], shares[now, i], used[now, i], rate, values, change)
        if amount > 0:
            block = iteration % len(negatives)
            multiply_tile(x, transposed, block, products)
            push_away(products, rates)
            absorb_tile(products, negatives, block, amount, change)
        for i in range(size):
            if iteration < counts[tile + i]:
                made[tile + i] += used[now, i]
                for k in range(m):
                    x[i, k] += change[i, k]
        if later != tile:
            for i in range(size):
                copy(x[i], own[nodes[tile + i]])
        tile, iteration, now = later, later_iteration, then


@njit(nogil=True)
def draw_tile(
    nodes, numbers, counts, tile, iteration, n, shown, indptr, indices, thresholds, aliases, returns, scales, hops, key,
    chosen, rows, shares, used,
):  # fmt: skip
    """Draw the targets of one iteration for each node of a tile, and prefetch their rows."""
    for i in range(TILE):
        used[i] = 0
        if tile + i < len(nodes) and iteration < counts[tile + i]:
            node = nodes[tile + i]
            number = node if numbers is None else numbers[node]
            iteration_key = derive(derive(key, number), iteration)
            used[i] = draw(
                node, iteration_key, n, shown, indptr, indices, thresholds, aliases, returns, scales, hops,
                chosen, rows[i], shares[i],
            )  # fmt: skip


@njit(nogil=True)
def draw(
    node, key, n, shown, indptr, indices, thresholds, aliases, returns, scales, hops, chosen, rows, shares
):  # fmt: skip
    """Write the row of the node and then those of its targets, and the node's own share in each row.

    Returns the number of targets. The remaining places are filled with the node's own row.
    """
    first = indptr[node]
    degree = np.uint64(indptr[node + 1] - first)
    targets = len(hops)
    rows[0] = node
    for j in range(targets):
        chosen[j] = choose(first, degree, derive(key, j), thresholds, aliases)
    for j in range(targets):
        rows[1 + j] = hops[j] * n + indices[chosen[j]]
    largest = np.float32(0.0)
    for j in range(targets):
        shares[1 + j] = np.float32(0.0)
        if hops[j] == 1:
            shares[1 + j] = read_own_share(returns, scales, chosen[j], indices[chosen[j]])
        largest = max(largest, shares[1 + j])
    used = targets
    if largest > MOST_OWN or hops[targets - 1] > 1:
        used = drop(n, scales, hops, rows, shares)
    for j in range(used + 1, len(rows)):
        rows[j] = node
        shares[j] = 0.0
    for j in range(used + 1):
        prefetch_reads(shown, rows[j])
    return used


@njit(nogil=True)
def read_own_share(returns, scales, arc, other):
    """Return the share of the reading node in the mean of `other`, to which an arc leads."""
    if returns is None:
        return np.float32(scales[0, other])
    return returns[arc]


@njit(nogil=True)
def drop(n, scales, hops, rows, shares):
    """Remove targets that are mostly the node itself or lead nowhere; return the number that is left."""
    used = 0
    for j in range(len(hops)):
        kept = shares[1 + j] <= MOST_OWN
        if hops[j] > 1:
            kept = scales[min(hops[j], len(scales)) - 1, rows[1 + j] - hops[j] * n] > 0.0
        if kept:
            used += 1
            rows[used] = rows[1 + j]
            shares[used] = shares[1 + j]
    return used


@njit(nogil=True)
def choose(first, degree, drawn, thresholds, aliases):
    """Return the arc that a draw selects from `degree` arcs from `first` on, with alias tables if arcs have weights."""
    arc = first + np.int64(scale_to(drawn, degree))
    if thresholds is not None:
        remainder = drawn * degree
        if np.uint32(remainder >> np.uint64(32)) >= thresholds[arc]:
            arc = first + np.int64(aliases[arc])
    return arc


@njit(nogil=True)
def attract(x, i, shown, rows, shares, used, rate, values, change):
    """change[i] += rate·Σ (1 − σ(x[i]·u))·u over the targets u = (row − share·own row)/(1 − share)."""
    for first in range(0, used + 1, GROUP):
        dot_rows(x, i, shown, rows, first, values)
    weigh_targets(values, shares, used, rate)
    add_rows(values, shown, rows, used + 1, change, i)


@njit(cache=True, nogil=True)
def show(own, shown, first, last):
    """shown[v] ← own[v] for v = first … last − 1, in the precision of `shown`."""
    for node in range(first, last):
        narrow_row(own, node, shown, node)


@njit(cache=True, nogil=True)
def add_shown(shown, table, first, last):
    """table[v] += shown[v] for v = first … last − 1."""
    weight, row = np.ones(1, np.float32), np.empty(1, np.int64)
    for node in range(first, last):
        row[0] = node
        add_rows(weight, shown, row, 1, table, node)


@njit(cache=True, nogil=True)
def average(source, offset, arcs, weights, scales, nodes, target, place, first, last):
    """target[place + v] ← scales[v]·Σ weights·source[offset + u] over the neighbours u of v.

    For v = first … last − 1, or for nodes[first … last − 1] if nodes are given.
    """
    indptr, indices, _, _ = arcs
    for i in range(first, last):
        node = i if nodes is None else nodes[i]
        average_row(
            source, offset, indices, weights, indptr[node], indptr[node + 1], scales[node], target, place + node
        )


@njit(nogil=True)
def copy(source, target):
    """target ← source."""
    for k in range(len(source)):
        target[k] = source[k]


@njit(cache=True, nogil=True)
def find_own_shares(indptr, indices, weights, scales, directed, shares, first, last):
    """Write for each arc from v = first … last − 1 to w the share of v in the mean of w.

    It is the weight of the reverse arc times scales[w]; 0 if there is none, and 1 if w has no neighbours. The
    neighbours of each node must be sorted.
    """
    for node in range(first, last):
        for arc in range(indptr[node], indptr[node + 1]):
            other = indices[arc]
            back = find_arc(indptr, indices, other, node) if directed else arc
            if scales[other] == 0.0:
                shares[arc] = 1.0
            elif back < 0:
                shares[arc] = 0.0
            elif weights is None:
                shares[arc] = scales[other]
            else:
                shares[arc] = weights[back] * scales[other]
