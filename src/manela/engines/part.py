"""Part: some nodes of a network that one worker of a cluster moves, with a copy of everyone's vectors to read."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import Arcs
from manela.engines.state import State
from manela.engines.threads import Threads
from manela.engines.walk_rounds import WalkRounds
from manela.kernels.half import from_half, to_half
from manela.kernels.layout import Table, allocate
from manela.pages import drop_pages
from manela.schedule import Schedule
from manela.settings import Settings

Integers = npt.NDArray[np.int64]
Moved = tuple[Integers, Integers, list[Any]]
"""Nodes, the update pairs that each made, and where they went: their rows of each table."""


Rows = tuple[list[Table], Integers]
"""Some nodes' rows of each table, and their update pairs."""

_TIDY = 8
"""What part of the vectors may have been given and taken until pages of the object store are given back."""


class Part:
    """One worker: computes the rounds of its own nodes, and takes those of the others.

    A round is `compute` for each of its pieces, `take` for each piece of others, and `commit`; until that, what is read
    is the round before.

    Attributes
    ----------
    at : tuple of int, or None
        Rounds committed and the update pairs of all workers in them; None while the vectors are not whole.
    sent : int
        Bytes of what this worker gave to others.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.at: tuple[int, int] | None = None
        self.sent = 0
        self._lock = threading.Lock()
        self._taken: dict[int, list[Moved]] = defaultdict(list)
        self._rounds: Any = None
        self._attempt = self._touched = 0

    def begin(self, attempt: int, arcs: Arcs, schedule: Schedule, first: int, last: int) -> None:
        """Begin, or begin anew, with the nodes from `first` up to `last`; vectors come by `fill`, and then `ready`."""
        self.at = None
        nodes, m = len(schedule.iterations), self._settings.dimensions
        if self._rounds is None:
            state = State([allocate(nodes, m) for _ in range(1 + self._settings.context)], m)
            self._rounds = WalkRounds(arcs, self._settings, state, Threads(self._settings.threads))
        self._schedule, self._first, self._last = schedule, first, last
        self._part = Schedule(
            schedule.iterations[first:last], schedule.phases[first:last], schedule.rounds, schedule.learning_rate
        )
        self._planned = -1
        with self._lock:
            self._attempt = attempt
            self._taken.clear()

    def fill(self, first: int, rows: Rows) -> None:
        """Take the vectors, and the update pairs, of the nodes from `first` on."""
        tables, updates = rows
        for own, table in zip(self._rounds.state.tables, tables, strict=True):
            own[first : first + len(table)] = table
        self._rounds.updates[first : first + len(updates)] = updates
        self._touched += sum(table.nbytes for table in tables)

    def ready(self, at: tuple[int, int]) -> None:
        """All vectors are there; they are those after so many rounds and update pairs."""
        self.at = at

    def read(self, first: int, last: int) -> Rows:
        """The vectors, and the update pairs, of these nodes."""
        return [table[first:last] for table in self._rounds.state.tables], self._rounds.updates[first:last]

    def compute(self, number: int, piece: int, pieces: int, alone: bool = False) -> Moved | None:
        """Where the nodes of one of the pieces go in a round; told to nobody if the worker is alone."""
        if self._planned != number:
            counts = self._part.counts(number)
            self._nodes = self._first + np.flatnonzero(counts)
            self._counts = counts[counts > 0]
            self._room, self._made = self._rounds.reserve(len(self._nodes))
            self._planned = number
        # the first pieces are the largest: the last of all is what others wait for
        shares = 1.0 - 0.5 ** np.arange(pieces + 1)
        borders = np.searchsorted(np.cumsum(self._counts), self._counts.sum() * shares / shares[-1]).tolist()
        a, b = borders[piece], len(self._nodes) if piece == pieces - 1 else borders[piece + 1]
        rows, made = [room[a:b] for room in self._room], self._made[a:b]
        self._rounds.move(self._nodes[a:b], self._counts[a:b], number, self._schedule.rate(number), rows, made)
        if alone:
            return None
        if self._settings.snapshot == "float16":
            rows = [to_half(row[:, : self._settings.dimensions]) for row in rows]
        size = sum(array.nbytes for array in (self._nodes[a:b], made, *rows))
        self.sent += size
        self._touched += size
        return self._nodes[a:b], made, rows

    def take(self, attempt: int, number: int, moved: Moved) -> None:
        """Keep where nodes of another worker go, until the round is committed; what is of an attempt before is void."""
        with self._lock:
            if attempt == self._attempt:
                self._taken[number].append(moved)

    def commit(self, number: int) -> int:
        """End a round: all rows that moved, own and others', are now what is read; returns all update pairs so far."""
        pairs, self.at = (self.at or (0, 0))[1], None
        with self._lock:
            taken = self._taken.pop(number, [])
        self._rounds.commit(self._nodes, self._made, self._room)
        made = int(self._made.sum())
        for nodes, theirs, rows in taken:
            self._rounds.commit(nodes, theirs, [self._widen(row) for row in rows])
            made += int(theirs.sum())
            self._touched += sum(row.nbytes for row in rows)
        if self._touched > self._rounds.state.tables[0].nbytes // _TIDY:
            # pages of the object store count as this process's while they are mapped, whatever they hold by now
            drop_pages(lambda name: "plasma" in name, shared=True)
            self._touched = 0
        self.at = (number + 1, pairs + made)
        return pairs + made

    def stop(self) -> None:
        """End what is being computed, within moments; nothing of the round counts."""
        if self._rounds is not None:
            self._rounds.stop()

    # what is asked from outside

    def is_there(self) -> bool:
        """That the worker runs."""
        return True

    def where(self) -> tuple[int, int] | None:
        """Rounds committed, and the update pairs in them; None if the vectors are not whole."""
        return self.at

    def own(self) -> tuple[int, Rows]:
        """The first of the own nodes, and their vectors and update pairs."""
        return self._first, self.read(self._first, self._last)

    def rows(self, table: int, rows: Integers) -> Table:
        """Some rows of a table."""
        found: Table = self._rounds.state.rows(table, rows)
        return found

    def count_sent(self) -> int:
        """Bytes that this worker gave to others."""
        return self.sent

    def is_finite(self) -> bool:
        """Whether the own nodes' vectors are."""
        return all(bool(np.isfinite(table).all()) for table in self.read(self._first, self._last)[0])

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Update pairs a second of this worker."""
        return float(self._rounds.measure(schedule, seconds))

    def _widen(self, rows: Any) -> Table:
        if rows.dtype == np.float32:
            return rows  # type: ignore[no-any-return]
        found = allocate(len(rows), self._settings.dimensions)
        found[:, : self._settings.dimensions] = from_half(rows)
        return found


# what Ray runs beside computing: see `concurrency groups` there
ASIDE, CONTROL = "aside", "control"
Part.take.__ray_concurrency_group__ = ASIDE  # type: ignore[attr-defined]
Part.stop.__ray_concurrency_group__ = CONTROL  # type: ignore[attr-defined]
Part.is_there.__ray_concurrency_group__ = CONTROL  # type: ignore[attr-defined]


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
