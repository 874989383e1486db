"""Arrays: the names of their types, tables padded to whole vector registers, the arcs of a network, and norms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float32]
"""Vectors in rows that are padded with zeros."""
Vectors = npt.NDArray[np.float32]
"""A vector in each row."""
Shown = npt.NDArray[np.generic]
"""Vectors that nodes show: half precision as uint16, or float32 on a processor that cannot read halves."""
RowNumbers = npt.NDArray[np.int64]

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
    """The arcs of a network in compressed sparse rows, with alias tables if edges have weights."""

    indptr: Integers  # (n + 1,): where the arcs of each node begin in `indices`
    indices: Integers  # (arcs,): the node to which each arc leads
    # (arcs,): one of d arcs is drawn uniformly, and kept if a draw of 32 bits is below its threshold
    thresholds: npt.NDArray[np.uint32] | None = None
    # (arcs,): otherwise the alias is taken, counted from the node's first arc. Both are None on a network without
    # weights
    aliases: Integers | None = None


def normalise_rows(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return vectors scaled to norm 1, in their precision; a zero vector stays zero.

    Examples
    --------
    >>> normalise_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    rows: npt.NDArray[Any] = vectors / np.where(lengths > 0, lengths, 1.0)[:, None].astype(vectors.dtype)
    return rows


def find_strengths(indptr: npt.NDArray[np.integer], weights: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
    """Return the sum of the weights of each node's arcs, added in their order; its degree without weights."""
    degrees = np.diff(indptr)
    if weights is None:
        return degrees.astype(np.float64)
    sums, joined = np.zeros(len(degrees)), degrees > 0
    sums[joined] = np.add.reduceat(weights, indptr[:-1][joined]) if joined.any() else 0.0
    return sums
