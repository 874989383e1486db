"""Worker: some nodes of a network that one process of a cluster moves, and what is asked of it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.engines.state import State
from manela.kernels.layout import Table, allocate
from manela.schedule import Schedule
from manela.settings import Settings

Integers = npt.NDArray[np.int64]
NodeRows = tuple[list[Table], Integers]
"""Some nodes' rows of each table, and their update pairs."""


class Worker:
    """What all workers have: the nodes from `first` up to `last`, and their vectors.

    Attributes
    ----------
    at : tuple of int, or None
        Rounds committed and the update pairs of all workers in them; None while the vectors are not whole.
    sent : int
        Bytes of what this worker gave to others.
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
        """Tables for all nodes; rows that nobody writes to take no memory."""
        m = self._settings.dimensions
        return State([allocate(nodes, m) for _ in range(1 + self._settings.context)], m)

    def ready(self, at: tuple[int, int]) -> None:
        """All vectors are there; they are those after so many rounds and update pairs."""
        self.at = at

    def read(self, first: int, last: int) -> NodeRows:
        """The vectors, and the update pairs, of these nodes."""
        return [table[first:last] for table in self._rounds.state.tables], self._rounds.updates[first:last]

    def is_there(self) -> bool:
        """That the worker runs."""
        return True

    def where(self) -> tuple[int, int] | None:
        """Rounds committed, and the update pairs in them; None if the vectors are not whole."""
        return self.at

    def own(self) -> tuple[int, NodeRows]:
        """The first of the own nodes, and their vectors and update pairs."""
        return self._first, self.read(self._first, self._last)

    def rows(self, table: int, rows: Integers) -> tuple[Integers, Table]:
        """Those of some rows of a table that are of own nodes: their places among all, and they themselves."""
        places = np.flatnonzero((rows >= self._first) & (rows < self._last))
        return places, self._rounds.state.rows(table, rows[places])

    def count_sent(self) -> int:
        """Bytes that this worker gave to others."""
        return self.sent

    def is_finite(self) -> bool:
        """Whether the own nodes' vectors are."""
        return all(bool(np.isfinite(table).all()) for table in self.read(self._first, self._last)[0])

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Update pairs a second of this worker."""
        return float(self._rounds.measure(schedule, seconds))


def divide(work: npt.NDArray[np.float64], parts: int) -> Integers:
    """Borders of parts of consecutive nodes with about the same work.

    A border lies before the node with whose work it is reached. So a part has no node where one node has more work than
    a part's share, and it can have none where there are hardly more nodes than parts.

    Examples
    --------
    >>> divide(np.array([2.0, 1.0, 1.0, 2.0, 1.0, 1.0]), 2).tolist()
    [0, 2, 6]
    >>> divide(np.array([10.0, 1.0, 1.0]), 3).tolist()
    [0, 0, 0, 3]
    """
    done = np.cumsum(work)
    borders = np.searchsorted(done, np.linspace(0, done[-1], parts + 1))
    borders[0], borders[-1] = 0, len(work)
    return np.maximum.accumulate(borders).astype(np.int64)
