"""A worker of a cluster for rounds by walks, with a copy of everyone's vectors to read."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from manela.engines.arcs import Arcs
from manela.engines.cluster.worker import Integers, NodeRows, Worker
from manela.engines.walk_rounds import WalkRounds
from manela.kernels.half import from_half, to_half
from manela.kernels.layout import Table, allocate
from manela.resident_pages import drop_pages
from manela.schedule import Schedule
from manela.settings import Settings
from manela.threads import Threads

Moved = tuple[Integers, Integers, list[Any]]
"""Nodes, the update pairs that each made, and where they went: their rows of each table."""

_TIDY = 8
"""What part of the vectors may have been given and taken until pages of the object store are given back."""


class WalkWorker(Worker):
    """Computes the rounds of its own nodes, and takes those of the others.

    A round is `compute` for each of its pieces, `take` for each piece of others, and `commit`; until that, what is read
    is the round before.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._taken: dict[int, list[Moved]] = defaultdict(list)
        self._touched = 0

    def begin(self, attempt: int, arcs: Arcs, schedule: Schedule, first: int, last: int) -> None:
        """Begin, or begin anew, with the nodes from `first` up to `last`; vectors come by `fill`, and then `ready`."""
        self.at = None
        if self._rounds is None:
            state = self._allocate(len(schedule.iterations))
            self._rounds = WalkRounds(arcs, self._settings, state, Threads(self._settings.threads))
        self._schedule, self._first, self._last = schedule, first, last
        self._planned = -1
        with self._lock:
            self._attempt = attempt
            self._taken.clear()

    def fill(self, first: int, rows: NodeRows) -> None:
        """Take the vectors, and the update pairs, of the nodes from `first` on."""
        tables, updates = rows
        for own, table in zip(self._rounds.state.tables, tables, strict=True):
            own[first : first + len(table)] = table
        self._rounds.updates[first : first + len(updates)] = updates
        self._touched += sum(table.nbytes for table in tables)

    def compute(self, number: int, piece: int, pieces: int, alone: bool = False) -> Moved | None:
        """Where the nodes of one of the pieces go in a round; told to nobody if the worker is alone."""
        if self._planned != number:
            counts = self._schedule.counts(number, slice(self._first, self._last))
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

    def _widen(self, rows: Any) -> Table:
        if rows.dtype == np.float32:
            return rows  # type: ignore[no-any-return]
        found = allocate(len(rows), self._settings.dimensions)
        found[:, : self._settings.dimensions] = from_half(rows)
        return found
