"""Draws from a normal distribution on processors, compiled by Numba.

The definition is `moments.factor` and `moments.draw`: every number is rounded as there, so the bits are the same.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.cpu.draws import derive


@njit(cache=True, nogil=True)
def factor(covariance, least, lower):
    """lower ← the Cholesky factor of covariance, (m, m), which is overwritten; columns of variance ≤ least stay 0."""
    m = len(covariance)
    for k in range(m):
        if covariance[k, k] > least:
            root = np.sqrt(covariance[k, k])
            for i in range(k, m):
                lower[i, k] = covariance[i, k] / root
            for i in range(k, m):
                for j in range(k, m):
                    covariance[i, j] -= lower[i, k] * lower[j, k]


@njit(cache=True, nogil=True)
def draw(mean, columns, keys, vectors):
    """vectors[i] ← a draw by keys[i]: mean plus Σ z·columns[k], where columns[k], (m,), is column k of the factor."""
    m = len(mean)
    row = np.empty(m)
    for i in range(len(keys)):
        for c in range(m):
            row[c] = mean[c]
        for k in range(m):
            normal = (np.float64(count_ones(derive(keys[i], k))) - 32.0) / 4.0
            for c in range(m):
                row[c] += normal * columns[k, c]
        for c in range(m):
            vectors[i, c] = row[c]


@njit(nogil=True)
def count_ones(word):
    """Return the number of bits that are set in a 64-bit word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)
