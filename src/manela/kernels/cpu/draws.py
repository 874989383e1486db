"""Counter-based draws for kernels, as in `manela.kernels.randomness`, and the choice and look-up of an arc."""

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
