"""The memory layout of tables: rows are padded to whole vector registers, and aligned to cache lines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float32]

LANES = 16
"""Floats that a kernel processes at a time, and partial sums of a dot product; larger pads rows more."""

_CACHE_LINE = 64


def pad(dimensions: int) -> int:
    """Return the number of columns of a table for vectors of this length."""
    return -(-dimensions // LANES) * LANES


def allocate(rows: int, dimensions: int) -> Table:
    """Return a table of zeros."""
    width = pad(dimensions)
    room = np.zeros(rows * width + _CACHE_LINE // 4, dtype=np.float32)
    first = -room.ctypes.data % _CACHE_LINE // 4
    return room[first : first + rows * width].reshape(rows, width)
