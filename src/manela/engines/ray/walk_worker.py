"""A worker of a cluster for rounds with walks, which has a copy of all vectors."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from manela.engines.ray.worker import Integers, NodeRows, Worker
from manela.engines.rounds.walks import WalkRounds
from manela.kernels.cpu.half import from_half, to_half
from manela.kernels.layout import Arcs, Table, allocate
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings
from manela.system.memory import drop_pages
from manela.system.threads import Threads

Moved = tuple[Integers, Integers, list[Any]]
"""Nodes, the update pairs of each, and their new vectors in each table."""

_TIDY = 8
"""Pages of the object store are released after 1/_TIDY of the vectors have moved; larger does so more often."""


class WalkWorker(Worker):
    """Computes the rounds of its own nodes, and receives those of the others.

    A round is `compute` for each of its pieces, `take` for each piece of others, and `commit`; until then, vectors are
    those of the previous round.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._taken: dict[int, list[Moved]] = defaultdict(list)
        self._touched = 0

    def begin(self, attempt: int, arcs: Arcs, schedule: Schedule, first: int, last: int) -> None:
        """Start, or restart, with the nodes from `first` up to `last`; `fill` and `ready` follow with the vectors."""
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
        """Store the vectors and the update pairs of the nodes from `first` on."""
        tables, updates = rows
        for own, table in zip(self._rounds.state.tables, tables, strict=True):
            own[first : first + len(table)] = table
        self._rounds.updates[first : first + len(updates)] = updates
        self._touched += sum(table.nbytes for table in tables)

    def compute(self, number: int, piece: int, pieces: int, alone: bool = False) -> Moved | None:
        """Compute one piece of a round and return the new vectors; None if there are no other workers."""
        if self._planned != number:
            counts = self._schedule.counts(number, slice(self._first, self._last))
            self._nodes = self._first + np.flatnonzero(counts)
            self._counts = counts[counts > 0]
            self._room, self._made = self._rounds.reserve(len(self._nodes))
            self._planned = number
        # the first pieces are the largest, as the others wait for the last one
        shares = 1.0 - 0.5 ** np.arange(pieces + 1)
        borders = np.searchsorted(np.cumsum(self._counts), self._counts.sum() * shares / shares[-1]).tolist()
        begin, end = borders[piece], len(self._nodes) if piece == pieces - 1 else borders[piece + 1]
        rows, made = [room[begin:end] for room in self._room], self._made[begin:end]
        self._rounds.move(
            self._nodes[begin:end], self._counts[begin:end], number, self._schedule.rate(number), rows, made
        )
        if alone:
            return None
        if self._settings.snapshot == "float16":
            rows = [to_half(row[:, : self._settings.dimensions]) for row in rows]
        size = sum(array.nbytes for array in (self._nodes[begin:end], made, *rows))
        self.sent += size
        self._touched += size
        return self._nodes[begin:end], made, rows

    def take(self, attempt: int, number: int, moved: Moved) -> None:
        """Keep the new vectors of another worker until the round is committed; ignore data of an earlier attempt."""
        with self._lock:
            if attempt == self._attempt:
                self._taken[number].append(moved)

    def commit(self, number: int) -> int:
        """Finish a round: copy all new vectors, own and others', to the tables; return all update pairs so far."""
        pairs, self.at = (self.at or (0, 0))[1], None
        with self._lock:
            received = self._taken.pop(number, [])
        self._rounds.commit(self._nodes, self._made, self._room)
        made = int(self._made.sum())
        for nodes, their_pairs, rows in received:
            self._rounds.commit(nodes, their_pairs, [self._widen(row) for row in rows])
            made += int(their_pairs.sum())
            self._touched += sum(row.nbytes for row in rows)
        if self._touched > self._rounds.state.tables[0].nbytes // _TIDY:
            # mapped pages of the object store count as memory of this process, even if they are no longer used
            drop_pages(lambda name: "plasma" in name, shared=True)
            self._touched = 0
        self.at = (number + 1, pairs + made)
        return pairs + made

    def stop(self) -> None:
        """Stop a running `compute` almost at once; the round does not count."""
        if self._rounds is not None:
            self._rounds.stop()

    def _widen(self, rows: Any) -> Table:
        """Return rows in single precision."""
        if rows.dtype == np.float32:
            return rows  # type: ignore[no-any-return]
        widened = allocate(len(rows), self._settings.dimensions)
        widened[:, : self._settings.dimensions] = from_half(rows)
        return widened
