"""Checks and clips the rows that a host receives from a peer in one pass, compiled by Numba."""

# mypy: ignore-errors

import numpy as np
from numba import njit

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
