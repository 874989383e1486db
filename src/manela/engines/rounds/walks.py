"""Rounds with walks on processors, as in the paper."""

from __future__ import annotations

import time

import numpy as np

from manela.engines.state import State
from manela.kernels.cpu import walks as kernels
from manela.kernels.layout import Arcs, Table, allocate
from manela.kernels.randomness import ROUNDS, derive, derive_key
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings
from manela.system.threads import Integers, Threads

_LONGEST_TRIAL = 100
"""Most iterations of a node in a trial; more measure for longer than requested."""
_PAIRS_OF_TRIAL = 200_000
"""Update pairs between two looks at the clock in a trial; more measure for longer than requested."""


class WalkRounds:
    """Computes new vectors beside the tables of a state, and commits them.

    Attributes
    ----------
    state : State
    updates : array of int, shape (n,)
        Number of update pairs of each node.
    """

    def __init__(self, arcs: Arcs, settings: Settings, state: State, threads: Threads) -> None:
        self.state, self._arcs, self._settings, self._threads = state, arcs, settings, threads
        self._targets_by_hop = np.array(settings.targets_by_hop, dtype=np.int64)
        self._key = derive_key(settings.seed, ROUNDS)
        self._stopped = np.zeros(1, dtype=np.uint8)
        self._room = [allocate(0, state.dimensions) for _ in state.tables]
        self._made = np.zeros(0, dtype=np.int64)
        self.updates = np.zeros(len(state.tables[0]), dtype=np.int64)

    def abandon(self) -> None:
        """Stop a running `move` almost at once; no vector changes."""
        self._stopped[0] = 1

    @property
    def is_abandoned(self) -> bool:
        """Whether `abandon` was called, so that the last `move` may be incomplete."""
        return bool(self._stopped[0])

    def release(self) -> None:
        """Free the memory that only rounds need."""
        self._room = [allocate(0, self.state.dimensions) for _ in self.state.tables]

    def show(self) -> None:
        """Do nothing: walks read the tables."""

    def advance(self, number: int, schedule: Schedule) -> int:
        """Move all nodes through a round, unless it is abandoned, and return the update pairs made."""
        counts = schedule.counts(number)
        nodes = np.flatnonzero(counts)
        moved, pairs = self.reserve(len(nodes))
        self.move(nodes, counts[nodes], number, schedule.rate(number), moved, pairs)
        if self.is_abandoned:
            return 0
        self.commit(nodes, pairs, moved)
        return int(pairs.sum())

    def commit(self, nodes: Integers, made: Integers, rows: list[Table]) -> None:
        """Copy the new vectors of these nodes to the tables, and count their update pairs."""
        pieces = np.linspace(0, len(nodes), self._settings.threads + 1).astype(np.int64)

        def commit(first: int, last: int) -> None:
            for table, moved in zip(self.state.tables, rows, strict=True):
                kernels.commit(nodes[first:last], moved[first:last], table)

        self._threads.share(commit, pieces)
        self.updates[nodes] += made

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure update pairs per second, including dropped targets, for about `seconds`; changes no vector."""
        self.move(np.arange(1), np.ones(1, dtype=np.int64), 0, 0.0, *self.reserve(1))
        started, elapsed, pairs, number = time.perf_counter(), 0.0, 0, 0
        while elapsed < seconds and not self.is_abandoned:
            counts = np.minimum(schedule.counts(number % schedule.rounds), _LONGEST_TRIAL)
            nodes = np.flatnonzero(counts)
            step = max(1, len(nodes) * _PAIRS_OF_TRIAL // max(1, int(counts.sum()) * int(self._targets_by_hop.sum())))
            nodes = nodes[number * step % max(1, len(nodes)) :][:step]
            self.move(nodes, counts[nodes], number, 0.0, *self.reserve(len(nodes)))
            pairs += int(counts[nodes].sum() * self._targets_by_hop.sum())
            elapsed = time.perf_counter() - started
            number += 1
        return max(1.0, pairs / elapsed)

    def reserve(self, size: int) -> tuple[list[Table], Integers]:
        """Return work tables for `size` vectors, and an array for their update pairs."""
        if len(self._room[0]) < size:
            self._room = [allocate(0, self.state.dimensions) for _ in self.state.tables]
            self._room = [allocate(size, self.state.dimensions) for _ in self.state.tables]
            self._made = np.zeros(size, dtype=np.int64)
        return [room[:size] for room in self._room], self._made[:size]

    def move(
        self, nodes: Integers, counts: Integers, number: int, rate: float, rows: list[Table], made: Integers
    ) -> None:
        """Write the new vectors of nodes to `rows` and their update pairs to `made`; the tables are only read."""
        tables = self.state.tables
        key = np.uint64(derive(self._key, number))
        pieces = self._threads.cut(counts)

        def move(first: int, last: int) -> None:
            for own, room in enumerate(rows):
                kernels.advance(
                    nodes[first:last], counts[first:last], tables[own], tables[len(tables) - 1 - own],
                    room[first:last], made[first:last], self._arcs, key, np.float32(rate),
                    self._targets_by_hop, self._settings.negatives, self._stopped,
                )  # fmt: skip

        self._threads.share(move, pieces)
