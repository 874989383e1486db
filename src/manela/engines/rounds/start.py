"""The first vectors of a run: random, or by sweeps over neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.neighbours import Neighbours, allocate_shown
from manela.engines.state import State, Sweeping, begin
from manela.kernels.cpu import messages, rows
from manela.kernels.layout import Table
from manela.kernels.moments import UNIT
from manela.kernels.randomness import VECTORS, draw_vectors
from manela.kernels.reference import SWEEPS
from manela.settings.settings import Settings

if TYPE_CHECKING:  # a host has no Graph, and should not pay for SciPy
    from manela.data.graph import Graph

_FULL_DEGREE = 64.0
"""Mean degree from which vectors start with norm 1, as a mean over so many is reliable; larger starts smaller."""
_LEAST_SIZE = 0.03
"""Norm of the first vectors on the sparsest networks; larger keeps the noise in them."""


def start(graph: Graph, settings: Settings, find_neighbours: Callable[[], Neighbours]) -> State:
    """Return the state before the first sweep or round, as the settings require."""
    state = begin(graph.number_of_nodes, settings.dimensions, settings.context, settings.seed, settings.threads)
    if settings.starts_by_sweeps:
        state.sweeping = Sweeping()
    if settings.starts_by_neighbours:
        start_by_neighbours(state.tables[0], find_neighbours(), settings.seed, settings.dimensions)
    return state


def choose_size(mean_degree: float) -> float:
    """Return the norm of the first vectors of a start by neighbours (ρ), given the mean degree of the network.

    Examples
    --------
    >>> choose_size(4), choose_size(32), choose_size(500)
    (0.03, 0.25, 1.0)
    """
    return min(1.0, max(_LEAST_SIZE, (mean_degree / _FULL_DEGREE) ** 2))


def start_by_neighbours(table: Table, neighbours: Neighbours, seed: int, dimensions: int) -> None:
    """Turn random vectors into first vectors by sweeps in which each node takes the mean of its neighbours.

    The definition is `kernels.reference.start_by_neighbours`.
    """
    sweeps, count = Sweeps(table, neighbours, dimensions), int(np.count_nonzero(neighbours.joined))
    for _ in range(SWEEPS):
        sweeps.show()
        sweeps.average()
        sweeps.center(sum_rows(table, neighbours)[0], count)
    sweeps.finish(choose_size(neighbours.mean_degree))
    isolated = np.flatnonzero(~neighbours.joined)
    if len(isolated):
        random = np.empty((len(isolated), dimensions), dtype=np.float32)
        draw_vectors(seed, isolated, random, VECTORS)
        table[isolated, :dimensions] = random


class Sweeps:
    """The steps of a start by neighbours; each sweep is `show`, `average` and `center`, and `finish` comes last.

    `neighbours` may be changed between two steps; `shown`, (n, padded m), is what nodes show to each other in a sweep.
    """

    def __init__(self, table: Table, neighbours: Neighbours, dimensions: int) -> None:
        self.neighbours, self._table = neighbours, table
        self.shown = allocate_shown(len(table), dimensions)

    def show(self, own: slice | None = None) -> None:
        """Copy the vectors of `own` nodes, all by default, to `shown`."""
        self.neighbours.show(self._table, self.shown, own)

    def average(self) -> None:
        """Set each vector to the mean of what its neighbours show, with norm 1."""
        neighbours, ones = self.neighbours, self.neighbours.joined.astype(np.float64)
        neighbours.average(self.shown, self._table, neighbours.scales[0])
        self._share(lambda first, last: rows.resize(self._table, ones, first, last))

    def center(self, total: npt.NDArray[np.int64], count: int) -> None:
        """Subtract the mean of all vectors, total/count with the total of `sum_rows`, and scale to norm 1."""
        scale, ones = self.neighbours.scales[0], self.neighbours.joined.astype(np.float64)
        mean = (total / count * UNIT).astype(np.float32)

        def center(first: int, last: int) -> None:
            rows.center(self._table, scale, mean, first, last)
            rows.resize(self._table, ones, first, last)

        self._share(center)

    def finish(self, size: float) -> None:
        """Add the vectors of the last two sweeps, and scale them to this norm."""
        sizes = self.neighbours.joined.astype(np.float64) * size

        def finish(first: int, last: int) -> None:
            messages.add_shown(self.shown, self._table, first, last)
            rows.resize(self._table, sizes, first, last)

        self._share(finish)

    def _share(self, work: Callable[[int, int], None]) -> None:
        self.neighbours.threads.share(work, self.neighbours.borders)


def measure_spread(table: Table, neighbours: Neighbours) -> float:
    """Return the root mean square distance of vectors from their mean, over nodes that have neighbours."""
    return find_spread(*sum_rows(table, neighbours), int(np.count_nonzero(neighbours.joined)))


def find_spread(totals: npt.NDArray[np.int64], squares: int, count: int) -> float:
    """Return the spread of `count` vectors, given the sums of `sum_rows`."""
    mean = totals / count
    return float(np.sqrt(max(0.0, squares / count - float((mean * mean).sum()))) * UNIT)


def sum_rows(table: Table, neighbours: Neighbours) -> tuple[np.ndarray, int]:
    """Return exact sums over nodes that have neighbours: of vectors in units of UNIT, and of squares in UNIT²."""
    parts: list[tuple[np.ndarray, int]] = []

    def add_up(first: int, last: int) -> None:
        totals = np.zeros(table.shape[1], dtype=np.int64)
        parts.append((totals, int(rows.add_up(table, neighbours.scales[0], first, last, totals))))

    neighbours.threads.share(add_up, neighbours.borders)
    return np.sum([totals for totals, _ in parts], axis=0), sum(squares for _, squares in parts)
