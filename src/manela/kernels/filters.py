"""Steps of a polynomial filter over a network on processors, compiled by Numba, one row at a time."""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.tiles import average_row


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
