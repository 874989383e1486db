"""Rows of tables on processors, compiled by Numba: sums, norms, steps of the network filter, and what peers send.

Rows are summed as integers (fixed point), as in `moments`: any number of threads, in any order, gets the same result.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.cpu.tiles import average_row
from manela.kernels.moments import LARGEST, UNIT


@njit(cache=True, nogil=True)
def add_up(table, scales, first, last, totals):
    """Add rows v = first … last − 1 with scales[v] > 0 to totals, in units of UNIT; return Σ squares in UNIT²."""
    squares = np.int64(0)
    for row in range(first, last):
        if scales[row] > 0.0:
            for k in range(table.shape[1]):
                value = np.float64(min(max(table[row, k], -LARGEST), LARGEST)) / UNIT
                number = np.int64(np.rint(value))
                totals[k] += number
                squares += number * number
    return squares


@njit(cache=True, nogil=True)
def center(table, scales, mean, first, last):
    """Subtract the mean, (m,), from the rows v = first … last − 1 with scales[v] > 0."""
    for row in range(first, last):
        if scales[row] > 0.0:
            for k in range(table.shape[1]):
                table[row, k] -= mean[k]


@njit(cache=True, nogil=True)
def resize(table, sizes, first, last):
    """Scale rows v = first … last − 1 to norm sizes[v]; zero rows, and rows with sizes[v] = 0, are unchanged."""
    for row in range(first, last):
        if sizes[row] > 0.0:
            squares = 0.0
            for k in range(table.shape[1]):
                squares += np.float64(table[row, k]) * np.float64(table[row, k])
            if squares > 0.0:
                factor = sizes[row] / np.sqrt(squares)  # for a tiny row this exceeds float32
                for k in range(table.shape[1]):
                    table[row, k] = np.float32(np.float64(table[row, k]) * factor)


@njit(cache=True, nogil=True)
def shift(source, arcs, weights, inverse, kept, target, first, last):
    """target[v] ← kept[v]·source[v] − inverse[v]·Σ weights·source[u] over the neighbours u of v = first … last − 1."""
    indptr, indices, _, _ = arcs
    for node in range(first, last):
        average_row(source, 0, indices, weights, indptr[node], indptr[node + 1], inverse[node], target, node)
        for k in range(target.shape[1]):
            target[node, k] = kept[node] * source[node, k] - target[node, k]


@njit(cache=True, nogil=True)
def step(source, arcs, weights, inverse, kept, a, b, now, c, before, weight, target, filtered, first, last):
    """target[v] ← a·shifted source + b·now[v] + c·before[v], and filtered[v] += weight·target[v]."""
    indptr, indices, _, _ = arcs
    for node in range(first, last):
        average_row(source, 0, indices, weights, indptr[node], indptr[node + 1], inverse[node], target, node)
        for k in range(target.shape[1]):
            shifted = kept[node] * source[node, k] - target[node, k]
            target[node, k] = a * shifted + b * now[node, k] + c * before[node, k]
            filtered[node, k] += weight * target[node, k]


@njit(cache=True, nogil=True)
def gather(source, arcs, weights, inverse, own, target, first, last):
    """target[v] ← inverse[v]·Σ weights·source[u] + own[v]·source[v]; nodes without neighbours are unchanged."""
    indptr, indices, _, _ = arcs
    row = np.empty((1, source.shape[1]), np.float32)
    for node in range(first, last):
        if indptr[node + 1] > indptr[node]:
            average_row(source, 0, indices, weights, indptr[node], indptr[node + 1], inverse[node], row, 0)
            for k in range(source.shape[1]):
                target[node, k] = row[0, k] + own[node] * source[node, k]


_QUICK = {"reassoc", "contract"}
"""Fast-math flags: sums may be reordered, but NaN and infinity must be preserved."""


@njit(cache=True, nogil=True, fastmath=_QUICK)
def clip_rows(rows, limits, before, lengths, moves):
    """Clip the norms of rows, (k, parts, m), to limits, (parts,), in place.

    Writes the norms before clipping to lengths, (k, parts). Writes to moves, (k,), the distance of the first part of
    each row from before, (k, m), divided by the norm of before; −1 if that is 0.
    """
    m = rows.shape[2]
    for i in range(len(rows)):
        for part in range(rows.shape[1]):
            square = np.float32(0.0)
            for k in range(m):
                square += rows[i, part, k] * rows[i, part, k]
            length = np.sqrt(np.float64(square))
            lengths[i, part] = length
            if length > limits[part]:
                factor = np.float32(limits[part] / length)
                for k in range(m):
                    rows[i, part, k] *= factor
        size = distance = np.float32(0.0)
        for k in range(m):
            size += before[i, k] * before[i, k]
            distance += (rows[i, 0, k] - before[i, k]) * (rows[i, 0, k] - before[i, k])
        moves[i] = np.sqrt(np.float64(distance) / np.float64(size)) if size > 0.0 else -1.0


@njit(cache=True, nogil=True, fastmath=_QUICK)
def measure_lengths(rows, lengths):
    """lengths[i, part] ← the norm of rows[i, part], (n, parts, m)."""
    for i in range(len(rows)):
        for part in range(rows.shape[1]):
            square = np.float32(0.0)
            for k in range(rows.shape[2]):
                square += rows[i, part, k] * rows[i, part, k]
            lengths[i, part] = np.sqrt(np.float64(square))
