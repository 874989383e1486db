"""How tables lie in memory: rows are padded with zeros to whole vector registers, and begin on cache lines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float32]

LANES = 16
"""Floats that a kernel takes at a time; partial sums of a dot product."""

_CACHE_LINE = 64


def pad(dimensions: int) -> int:
    """The number of columns of a table for vectors of this length."""
    return -(-dimensions // LANES) * LANES


def allocate(rows: int, dimensions: int) -> Table:
    """A table of zeros."""
    width = pad(dimensions)
    room = np.zeros(rows * width + _CACHE_LINE // 4, dtype=np.float32)
    first = -room.ctypes.data % _CACHE_LINE // 4
    return room[first : first + rows * width].reshape(rows, width)
