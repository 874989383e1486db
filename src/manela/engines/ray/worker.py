"""Worker: the base of the processes of a cluster, each of which moves some nodes of a network."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.engines.state import State
from manela.kernels.layout import Table, allocate
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings

Integers = npt.NDArray[np.int64]
NodeRows = tuple[list[Table], Integers]
"""The rows of some nodes in each table, and their update pairs."""


class Worker:
    """A process that owns the nodes from `first` up to `last`, and their vectors.

    Attributes
    ----------
    at : tuple of int, or None
        Rounds committed, and the update pairs of all workers in them; None while the vectors are incomplete.
    sent : int
        Bytes that this worker sent to others.
    """

    _rounds: Any = None
    """`WalkRounds` or `MessageRounds`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.at: tuple[int, int] | None = None
        self.sent = self._attempt = 0
        self._lock = threading.Lock()
        self._first = self._last = 0

    def _allocate(self, nodes: int) -> State:
        """Allocate tables for all nodes; rows that are never written take no memory."""
        m = self._settings.dimensions
        return State([allocate(nodes, m) for _ in range(1 + self._settings.context)], m)

    def ready(self, at: tuple[int, int]) -> None:
        """Mark the vectors as complete, after `at` = (rounds, update pairs)."""
        self.at = at

    def read(self, first: int, last: int) -> NodeRows:
        """Return the vectors and the update pairs of these nodes."""
        return [table[first:last] for table in self._rounds.state.tables], self._rounds.updates[first:last]

    def is_there(self) -> bool:
        """Return True, which shows that the worker runs."""
        return True

    def where(self) -> tuple[int, int] | None:
        """Return the rounds committed and the update pairs in them; None if the vectors are incomplete."""
        return self.at

    def own(self) -> tuple[int, NodeRows]:
        """Return the first of the own nodes, and the vectors and update pairs of all of them."""
        return self._first, self.read(self._first, self._last)

    def rows(self, table: int, rows: Integers) -> tuple[Integers, Table]:
        """Return the requested rows of a table that belong to own nodes: their positions in `rows`, and the vectors."""
        places = np.flatnonzero((rows >= self._first) & (rows < self._last))
        return places, self._rounds.state.rows(table, rows[places])

    def count_sent(self) -> int:
        """Return the bytes that this worker sent to others."""
        return self.sent

    def is_finite(self) -> bool:
        """Whether the vectors of the own nodes are finite."""
        return all(bool(np.isfinite(table).all()) for table in self.read(self._first, self._last)[0])

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure the update pairs per second of this worker."""
        return float(self._rounds.measure(schedule, seconds))


def divide(work: npt.NDArray[np.float64], parts: int) -> Integers:
    """Return the borders of parts of consecutive nodes with about the same work.

    A border lies before the node whose work reaches it. So a part is empty if one node has more work than the share of
    a part, and may be empty if there are hardly more nodes than parts.

    Examples
    --------
    >>> divide(np.array([2.0, 1.0, 1.0, 2.0, 1.0, 1.0]), 2).tolist()
    [0, 2, 6]
    >>> divide(np.array([10.0, 1.0, 1.0]), 3).tolist()
    [0, 0, 0, 3]
    """
    cumulative = np.cumsum(work)
    borders = np.searchsorted(cumulative, np.linspace(0, cumulative[-1], parts + 1))
    borders[0], borders[-1] = 0, len(work)
    return np.maximum.accumulate(borders).astype(np.int64)
