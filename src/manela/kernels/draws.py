"""Counter-based draws inside kernels: `manela.randomness` for one number at a time, compiled by Numba."""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.randomness import FIRST_FACTOR, GOLDEN, SECOND_FACTOR

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
    """The draw with this number under this key."""
    return mix(key + _GOLDEN * (np.uint64(number) + np.uint64(1)))


@njit(nogil=True)
def follow_alias(thresholds, aliases, arc, first, rest):
    """The arc to take where `arc` was drawn of a node's arcs, which begin at `first`; `rest` is the draw's low half."""
    if thresholds is not None:  # noqa: SIM102, a branch of its own is left out when compiling
        if np.uint32(rest >> np.uint64(32)) >= thresholds[arc]:
            arc = first + np.int64(aliases[arc])
    return arc
