"""Smoothing: a filter of the network over learned vectors, and the scale of their rows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from manela.engines.neighbours import Neighbours
from manela.kernels import rows
from manela.kernels.layout import LANES, Table, allocate
from manela.kernels.reference import FILTER, MIDDLE, POWER, SCALE

_ROOM = 1 << 25
"""Bytes beside the vectors for each of five tables that are filtered together; more take longer to run out of cache."""


def smooth(table: Table, neighbours: Neighbours, strengths: npt.NDArray[np.float64]) -> None:
    """Pass vectors through the filter and scale their rows, in place; nodes without neighbours keep theirs.

    The definition is `kernels.reference.smooth`.
    """
    joined, degrees = neighbours.joined, np.diff(neighbours.arcs.indptr)
    loops = np.divide(strengths, degrees, out=np.zeros(len(degrees)), where=joined)
    inverse = np.divide(1.0, strengths + loops, out=np.zeros(len(degrees)), where=joined)
    filter_columns = _Filter(neighbours, inverse, (loops * inverse).astype(np.float32)[:, None])
    width = max(1, _ROOM // (4 * LANES * len(table))) * LANES
    for first in range(0, table.shape[1], width):
        filter_columns(table[:, first : first + width])
    sizes = np.where(joined, degrees**POWER, 0.0)
    sizes *= SCALE / (math.fsum(sizes) / np.count_nonzero(joined))
    neighbours.threads.share(lambda first, last: rows.resize(table, sizes, first, last), neighbours.borders)


class _Filter:
    """Room for some columns on their way through the filter."""

    def __init__(self, neighbours: Neighbours, inverse: npt.NDArray[np.float64], own: npt.NDArray[np.float32]) -> None:
        self._neighbours, self._inverse, self._own = neighbours, inverse, own
        self._kept = np.float32(1.0 - MIDDLE) - own
        self._joined = neighbours.joined[:, None]
        self._room: list[Table] = []

    def __call__(self, columns: Table) -> None:
        """Filter columns, shape (n, a multiple of 16), in place."""
        if not self._room or self._room[0].shape != columns.shape:
            self._room = [allocate(*columns.shape) for _ in range(5)]
        source, now, before, product, filtered = self._room
        weights = [np.float32(weight) for weight in FILTER]
        source[:] = columns
        self._shift(source, product)
        self._shift(product, now)

        def begin(part: slice) -> None:
            now[part] = np.float32(0.5) * now[part] - source[part]
            filtered[part] = (weights[0] - np.float32(1.0)) * source[part] + weights[1] * now[part]
            before[part] = source[part]

        self._each(begin)
        for weight in weights[2:]:
            self._shift(now, product)
            self._shift(product, source)

            def go_on(part: slice, weight: np.float32 = weight) -> None:
                after = source[part] - np.float32(2.0) * now[part] - before[part]
                filtered[part] += weight * after
                before[part] = now[part]
                now[part] = after

            self._each(go_on)
        self._neighbours.average(filtered, product, self._inverse)

        def finish(part: slice) -> None:
            smoothed = product[part] + self._own[part] * filtered[part]
            columns[part] = np.where(self._joined[part], smoothed, columns[part])

        self._each(finish)

    def _shift(self, source: Table, target: Table) -> None:
        """target ← (L − μI)·source."""
        self._neighbours.average(source, target, self._inverse)

        def finish(part: slice) -> None:
            target[part] = self._kept[part] * source[part] - target[part]

        self._each(finish)

    def _each(self, work: Callable[[slice], None]) -> None:
        """Do work on all rows, shared out among the threads."""
        borders = self._neighbours.borders
        self._neighbours.threads.share(lambda first, last: work(slice(first, last)), borders)
