"""Arcs: the arcs of a network, as one value that every kernel takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
