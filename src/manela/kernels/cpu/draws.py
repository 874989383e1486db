"""Counter-based draws for kernels, as in `manela.kernels.randomness`, the choice of an arc, and normal draws."""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.randomness import FIRST_FACTOR, GOLDEN, SECOND_FACTOR

_GOLDEN = np.uint64(GOLDEN)
_FIRST_FACTOR = np.uint64(FIRST_FACTOR)
_SECOND_FACTOR = np.uint64(SECOND_FACTOR)


@njit(inline="always")
def mix(z):
    """Scatter the bits of a word."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST_FACTOR
    z = (z ^ (z >> np.uint64(27))) * _SECOND_FACTOR
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def derive(key, number):
    """Return the draw with this number under this key."""
    return mix(key + _GOLDEN * (np.uint64(number) + np.uint64(1)))


@njit(nogil=True)
def follow_alias(thresholds, aliases, arc, first, remainder):
    """Return `arc` or its alias; a node's arcs begin at `first`, `remainder` is the low half of the draw's product."""
    if thresholds is not None:  # noqa: SIM102, Numba removes a separate branch on None
        if np.uint32(remainder >> np.uint64(32)) >= thresholds[arc]:
            arc = first + np.int64(aliases[arc])
    return arc


@njit(inline="always")
def find_arc(indptr, indices, source, target):
    """Return the arc from source to target, or −1 if there is none; the neighbours of a node are sorted."""
    low, end = indptr[source], indptr[source + 1]
    high = end
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low if low < end and indices[low] == target else np.int64(-1)


@njit(cache=True, nogil=True)
def factor(covariance, least, lower):
    """lower ← the Cholesky factor of covariance, (m, m), which is overwritten; columns of variance ≤ least stay 0.

    Every number is rounded as in `moments.factor`, and in `draw_normals` as in `moments.draw`, for the same bits.
    """
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
def draw_normals(mean, columns, keys, vectors):
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
