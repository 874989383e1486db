"""What a host does to the rows that a peer shows, compiled by Numba: one pass over them, while they are in cache."""

# mypy: ignore-errors

import numpy as np
from numba import njit

_QUICK = {"reassoc", "contract"}
"""Sums may be taken in any order; what is not finite must still be seen."""


@njit(cache=True, nogil=True, fastmath=_QUICK)
def clip_rows(rows, limits, before, lengths, moves):
    """Make rows, (k, parts, m), no longer than limits, (parts,), in place.

    Writes into lengths, (k, parts), how long they were, and into moves, (k,), how far the first part of each row is
    from before, (k, m), over the length of that; −1 where that is nothing.
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
