"""The memory layout of what kernels take: tables padded to whole vector registers, and the arcs of a network."""

from __future__ import annotations

from typing import NamedTuple

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


Integers = npt.NDArray[np.integer]


class Arcs(NamedTuple):
    """The arcs of a network in compressed sparse rows, with alias tables if edges have weights.

    Attributes
    ----------
    indptr : array of int64, shape (n + 1,)
        Where the arcs of each node begin in `indices`.
    indices : array of int32 or int64, shape (arcs,)
        The node to which each arc leads.
    thresholds : array of uint32, shape (arcs,), or None
        One of d arcs is drawn uniformly, and kept if a draw of 32 bits is below its threshold.
    aliases : array of int32, shape (arcs,), or None
        Otherwise the alias is taken, counted from the node's first arc. Both are None on a network without weights.
    """

    indptr: Integers
    indices: Integers
    thresholds: npt.NDArray[np.uint32] | None = None
    aliases: Integers | None = None
