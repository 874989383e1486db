"""Smoothing: filters learned vectors over the network, and scales their norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.neighbours import Neighbours
from manela.kernels.cpu import rows as kernels
from manela.kernels.layout import LANES, Table, allocate
from manela.kernels.reference import FILTER, MIDDLE, POWER, SCALE

_ROOM = 1 << 25
"""Bytes of each of four work tables; larger filters more columns at once, but no longer fits the cache."""


def smooth(table: Table, neighbours: Neighbours, room: int = _ROOM) -> None:
    """Filter vectors and scale their norms, in place; nodes without neighbours keep theirs.

    The definition is `kernels.reference.smooth`.
    """
    filter_columns(table, neighbours, MIDDLE, room)
    give_final_norms(table, neighbours)


def filter_columns(table: Table, neighbours: Neighbours, middle: float, room: int = _ROOM) -> None:
    """Filter vectors in place, some columns at a time; nodes without neighbours keep theirs."""
    network_filter = Filter(neighbours, middle)
    isolated = np.flatnonzero(~neighbours.joined)
    isolated_rows = table[isolated]
    width = max(1, room // (4 * LANES * len(table))) * LANES
    for first in range(0, table.shape[1], width):
        for _ in network_filter.pass_through(table[:, first : first + width]):
            pass
    table[isolated] = isolated_rows


def give_final_norms(table: Table, neighbours: Neighbours) -> None:
    """Scale vectors to norms proportional to a power of the degree; nodes without neighbours keep theirs."""
    sizes = find_sizes(neighbours)
    resize(table, neighbours, scale_sizes(sizes, math.fsum(sizes) / max(1, int(np.count_nonzero(neighbours.joined)))))


def find_sizes(neighbours: Neighbours) -> npt.NDArray[np.float64]:
    """Return degree^power of each node, to which the norm of its final vector is proportional."""
    return np.where(neighbours.joined, np.diff(neighbours.arcs.indptr) ** POWER, 0.0)


def scale_sizes(sizes: npt.NDArray[np.float64], mean: float) -> npt.NDArray[np.float64]:
    """Return final norms proportional to `sizes`; `mean` is the mean of sizes over all nodes with neighbours."""
    return sizes * (SCALE / (mean or 1.0))


def resize(table: Table, neighbours: Neighbours, sizes: npt.NDArray[np.float64]) -> None:
    """Scale vectors to these norms; those of size 0 stay."""
    neighbours.threads.share(lambda first, last: kernels.resize(table, sizes, first, last), neighbours.borders)


STEPS = 2 * (len(FILTER) - 1) + 1
"""Number of times that the filter reads the neighbours of each node."""


class Filter:
    """The filter of a network, with work tables for some columns."""

    def __init__(self, neighbours: Neighbours, middle: float = MIDDLE) -> None:
        self._room: list[Table] = []
        self._middle = middle
        self.change(neighbours)

    def change(self, neighbours: Neighbours) -> None:
        """Use these neighbours from the next step on."""
        joined, degrees, strengths = neighbours.joined, np.diff(neighbours.arcs.indptr), neighbours.strengths
        loops = np.divide(strengths, degrees, out=np.zeros(len(degrees)), where=joined)
        inverse = np.divide(1.0, strengths + loops, out=np.zeros(len(degrees)), where=joined)
        self._neighbours, self._inverse, self._own = neighbours, inverse, (loops * inverse).astype(np.float32)
        self._kept = np.float32(1.0 - self._middle) - self._own

    def pass_through(self, columns: Table) -> Iterator[Table]:
        """Filter columns, shape (n, a multiple of 16), in place.

        Before each of the `STEPS` sums over neighbours, yields the table that is summed next.
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
        neighbours = self._neighbours

        def work(first: int, last: int) -> None:
            kernel(source, neighbours.arcs, neighbours.weights, self._inverse, *arguments, first, last)

        neighbours.threads.share(work, neighbours.borders)
