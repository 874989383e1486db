"""Looks up the arc between two nodes, compiled by Numba."""

# mypy: ignore-errors

import numpy as np
from numba import njit


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
