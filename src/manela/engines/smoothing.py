"""Smoothing: a filter of the network over learned vectors, and the scale of their rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.engines.neighbours import Neighbours
from manela.kernels import filters as kernels
from manela.kernels import rows
from manela.kernels.layout import LANES, Table, allocate
from manela.kernels.reference import FILTER, MIDDLE, POWER, SCALE

_ROOM = 1 << 25
"""Bytes beside the vectors for each of four tables that are filtered together; more take longer to run out of cache."""


def smooth(table: Table, neighbours: Neighbours) -> None:
    """Pass vectors through the filter and scale their rows, in place; nodes without neighbours keep theirs.

    The definition is `kernels.reference.smooth`.
    """
    network_filter = Filter(neighbours)
    alone = np.flatnonzero(~neighbours.joined)
    kept = table[alone]
    width = max(1, _ROOM // (4 * LANES * len(table))) * LANES
    for first in range(0, table.shape[1], width):
        for _ in network_filter.pass_through(table[:, first : first + width]):
            pass
    table[alone] = kept
    sizes = find_sizes(neighbours)
    resize(table, neighbours, sizes, math.fsum(sizes) / np.count_nonzero(neighbours.joined))


def find_sizes(neighbours: Neighbours) -> npt.NDArray[np.float64]:
    """What the norms of smoothed rows are proportional to."""
    return np.where(neighbours.joined, np.diff(neighbours.arcs.indptr) ** POWER, 0.0)


def resize(table: Table, neighbours: Neighbours, sizes: npt.NDArray[np.float64], mean: float) -> None:
    """Give rows norms proportional to `sizes`, of which this is the mean over all nodes that have neighbours."""
    scaled = sizes * (SCALE / mean)
    neighbours.threads.share(lambda first, last: rows.resize(table, scaled, first, last), neighbours.borders)


STEPS = 2 * (len(FILTER) - 1) + 1
"""How often nodes look at their neighbours on the way through the filter."""


class Filter:
    """The filter of a network, and room for some columns on their way through it."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._room: list[Table] = []
        self.change(neighbours)

    def change(self, neighbours: Neighbours) -> None:
        """From the next step on, take these neighbours."""
        joined, degrees, strengths = neighbours.joined, np.diff(neighbours.arcs.indptr), neighbours.strengths
        loops = np.divide(strengths, degrees, out=np.zeros(len(degrees)), where=joined)
        inverse = np.divide(1.0, strengths + loops, out=np.zeros(len(degrees)), where=joined)
        self._neighbours, self._inverse, self._own = neighbours, inverse, (loops * inverse).astype(np.float32)
        self._kept = np.float32(1.0 - MIDDLE) - self._own

    def pass_through(self, columns: Table) -> Iterator[Table]:
        """Filter columns, shape (n, a multiple of 16), in place.

        Yields, `STEPS` times, the table of which sums over neighbours are taken next.
        """
        if not self._room or self._room[0].shape != columns.shape:
            self._room = []
            self._room = [allocate(*columns.shape) for _ in range(4)]
        before, now, after, product = self._room
        weights = [np.float32(weight) for weight in FILTER]
        before[:] = columns
        columns *= weights[0] - np.float32(1.0)
        yield before
        self._shift(before, product)
        yield product
        self._step(product, 0.5, before, -1.0, before, 0.0, weights[1], now, columns)
        for weight in weights[2:]:
            yield now
            self._shift(now, product)
            yield product
            self._step(product, 1.0, now, -2.0, before, -1.0, weight, after, columns)
            before, now, after = now, after, before
        after[:] = columns
        yield after
        self._each(kernels.gather, after, self._own, columns)

    def _shift(self, source: Table, target: Table) -> None:
        """target ← (L − μI)·source."""
        self._each(kernels.shift, source, self._kept, target)

    def _step(
        self, source: Table, a: float, now: Table, b: float, before: Table, c: float, weight: np.float32,
        target: Table, filtered: Table,
    ) -> None:  # fmt: skip
        """target ← a·(L − μI)·source + b·now + c·before, and filtered += weight·target."""
        factors = [np.float32(factor) for factor in (a, b, c)]
        self._each(
            kernels.step, source, self._kept, factors[0], factors[1], now, factors[2], before, weight, target, filtered
        )

    def _each(self, kernel: Callable[..., None], source: Table, *arguments: Any) -> None:
        """Call a kernel for all rows, shared out among the threads."""
        neighbours = self._neighbours

        def work(first: int, last: int) -> None:
            kernel(source, neighbours.arcs, neighbours.weights, self._inverse, *arguments, first, last)

        neighbours.threads.share(work, neighbours.borders)
