"""The vectors that a run starts from: random, or by sweeps over neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.engines.neighbours import Neighbours, allocate_shown
from manela.engines.state import State, begin
from manela.kernels import messages, rows
from manela.kernels.layout import Table
from manela.kernels.moments import UNIT
from manela.kernels.reference import SWEEPS
from manela.randomness import VECTORS, draw_vectors
from manela.settings import Settings

if TYPE_CHECKING:  # a host has no Graph, and should not pay for SciPy
    from manela.graph import Graph

_FULL_DEGREE = 64.0
"""From this mean degree on, rows start with norm 1: a mean over so many says something; a larger one starts smaller."""
_LEAST_SIZE = 0.03
"""The norm that rows of the sparsest networks start with; what is noise in a larger one stays."""


def start(graph: Graph, settings: Settings, find_neighbours: Callable[[], Neighbours]) -> State:
    """The state before the first round, as the settings say."""
    state = begin(graph.number_of_nodes, settings.dimensions, settings.context, settings.seed, settings.threads)
    if settings.starts_by_neighbours:
        start_by_neighbours(state.tables[0], find_neighbours(), settings.seed, settings.dimensions)
    return state


def choose_size(mean_degree: float) -> float:
    """The norm of the rows of a start by neighbours (ρ), by the mean degree of the network.

    Examples
    --------
    >>> choose_size(4), choose_size(32), choose_size(500)
    (0.03, 0.25, 1.0)
    """
    return min(1.0, max(_LEAST_SIZE, (mean_degree / _FULL_DEGREE) ** 2))


def start_by_neighbours(table: Table, neighbours: Neighbours, seed: int, dimensions: int) -> None:
    """Turn random rows into a start by sweeps in which each node takes the mean of its neighbours.

    The definition is `kernels.reference.start_by_neighbours`.
    """
    sweeps, count = Sweeps(table, neighbours, dimensions), int(np.count_nonzero(neighbours.joined))
    for _ in range(SWEEPS):
        sweeps.show()
        sweeps.average()
        sweeps.center(sum_rows(table, neighbours)[0], count)
    sweeps.finish(choose_size(neighbours.mean_degree))
    alone = np.flatnonzero(~neighbours.joined)
    if len(alone):
        random = np.empty((len(alone), dimensions), dtype=np.float32)
        draw_vectors(seed, alone, random, VECTORS)
        table[alone, :dimensions] = random


class Sweeps:
    """The steps of a start by neighbours; each sweep is `show`, `average` and `center`, and `finish` comes last.

    Attributes
    ----------
    neighbours : Neighbours
        May be changed between two steps.
    shown : array, shape (n, padded m)
        What nodes show to each other in a sweep.
    """

    def __init__(self, table: Table, neighbours: Neighbours, dimensions: int) -> None:
        self.neighbours, self._table = neighbours, table
        self.shown = allocate_shown(len(table), dimensions)

    def show(self, own: slice | None = None) -> None:
        """Have all nodes, or the own ones, show their rows."""
        self.neighbours.show(self._table, self.shown, own)

    def average(self) -> None:
        """Give each node the mean of what its neighbours show, with norm 1."""
        neighbours, ones = self.neighbours, self.neighbours.joined.astype(np.float64)
        neighbours.average(self.shown, self._table, neighbours.scales[0])
        self._share(lambda first, last: rows.resize(self._table, ones, first, last))

    def center(self, total: npt.NDArray[np.int64], count: int) -> None:
        """Take the mean of all rows away, of which this is the sum that `sum_rows` finds, and make them of norm 1."""
        scale, ones = self.neighbours.scales[0], self.neighbours.joined.astype(np.float64)
        mean = (total / count * UNIT).astype(np.float32)

        def center(first: int, last: int) -> None:
            rows.center(self._table, scale, mean, first, last)
            rows.resize(self._table, ones, first, last)

        self._share(center)

    def finish(self, size: float) -> None:
        """Add the rows of the last two sweeps, with this norm."""
        sizes = self.neighbours.joined.astype(np.float64) * size

        def finish(first: int, last: int) -> None:
            messages.add_shown(self.shown, self._table, first, last)
            rows.resize(self._table, sizes, first, last)

        self._share(finish)

    def _share(self, work: Callable[[int, int], None]) -> None:
        self.neighbours.threads.share(work, self.neighbours.borders)


def measure_spread(table: Table, neighbours: Neighbours) -> float:
    """How far vectors lie from their mean: the root of the mean square, over nodes that have neighbours."""
    return find_spread(*sum_rows(table, neighbours), int(np.count_nonzero(neighbours.joined)))


def find_spread(totals: npt.NDArray[np.int64], squares: int, count: int) -> float:
    """The same from the sums of so many rows, and of their squares, that `sum_rows` finds."""
    mean = totals / count
    return float(np.sqrt(max(0.0, squares / count - float((mean * mean).sum()))) * UNIT)


def sum_rows(table: Table, neighbours: Neighbours) -> tuple[np.ndarray, int]:
    """The sum of the rows of nodes that have neighbours, in units of UNIT, and of their squares, in UNIT²; exact."""
    parts: list[tuple[np.ndarray, int]] = []

    def add_up(first: int, last: int) -> None:
        totals = np.zeros(table.shape[1], dtype=np.int64)
        parts.append((totals, int(rows.add_up(table, neighbours.scales[0], first, last, totals))))

    neighbours.threads.share(add_up, neighbours.borders)
    return np.sum([totals for totals, _ in parts], axis=0), sum(squares for _, squares in parts)
