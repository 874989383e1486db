"""The CPU engine: rounds on threads of this process."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import Arcs, prepare_arcs
from manela.engines.state import State
from manela.graph import Graph
from manela.kernels import cpu as kernels
from manela.kernels.layout import Table, allocate
from manela.params import Settings
from manela.randomness import ROUNDS, derive, derive_key
from manela.schedule import Schedule

Integers = npt.NDArray[np.int64]

_SHORTEST_PIECES = 32
"""How many of the shortest pieces of a round would make a thread's part of it."""
_LONGEST_TRIAL = 100
_PAIRS_OF_TRIAL = 200_000
_CHECKED = 65536
"""Rows that are looked at together."""


class CpuEngine:
    """Moves a state through the rounds; `stop` may be called from any thread and ends a round unfinished.

    Attributes
    ----------
    name : str
    state : State
    updates : array of int, shape (n,)
        Update pairs that each node has made with this engine.
    """

    def __init__(self, network: Graph | Arcs, settings: Settings, state: State) -> None:
        self.state = state
        self._stopped = np.zeros(1, dtype=np.uint8)
        self._settings = settings
        self._targets_by_hop = np.array(settings.targets_by_hop, dtype=np.int64)
        self.arcs = network if isinstance(network, Arcs) else prepare_arcs(network)
        self._key = derive_key(settings.seed, ROUNDS)
        self._room = [allocate(0, state.dimensions) for _ in state.tables]
        self._made = np.zeros(0, dtype=np.int64)
        self.updates = np.zeros(len(state.tables[0]), dtype=np.int64)
        self._threads = ThreadPoolExecutor(max(1, settings.threads - 1), thread_name_prefix="manela")
        self.name = "cpu"

    def __enter__(self) -> CpuEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def stop(self) -> None:
        """End the round that is being computed, within moments; nothing of it counts."""
        self._stopped[0] = 1

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped, and then nothing has moved."""
        number = self.state.round
        counts = schedule.counts(number)
        nodes = np.flatnonzero(counts)
        counts = counts[nodes]
        room, made = self.reserve(len(nodes))
        self.move(nodes, counts, number, schedule.rate(number), room, made)
        if self._stopped[0]:
            return False
        self.commit(nodes, made, room)
        self.state.round += 1
        self.state.pairs += int(made.sum())
        return True

    def commit(self, nodes: Integers, made: Integers, rows: list[Table]) -> None:
        """Take where these nodes went as what is read from now on."""
        pieces = np.linspace(0, len(nodes), self._settings.threads + 1).astype(np.int64)

        def commit(first: int, last: int) -> None:
            for table, moved in zip(self.state.tables, rows, strict=True):
                kernels.commit(nodes[first:last], moved[first:last], table)

        self._share(commit, pieces)
        self.updates[nodes] += made

    @property
    def pairs(self) -> int:
        """Update pairs made, with those that the state began with."""
        return self.state.pairs

    def collect(self) -> None:
        """Bring the state up to date; here it always is."""

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows of a table as they are now, shape (len(rows), m)."""
        found: Table = self.state.tables[table][rows, : self.state.dimensions]
        return found

    def is_finite(self) -> bool:
        """Whether all vectors are."""
        return all(
            bool(np.isfinite(table[first : first + _CHECKED]).all())
            for table in self.state.tables
            for first in range(0, len(table), _CHECKED)
        )

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Update pairs a second, those with dropped targets too, tried for about this long; moves nothing."""
        self.move(np.arange(1), np.ones(1, dtype=np.int64), 0, 0.0, *self.reserve(1))
        begun, elapsed, pairs, number = time.perf_counter(), 0.0, 0, 0
        while elapsed < seconds and not self._stopped[0]:
            counts = np.minimum(schedule.counts(number % schedule.rounds), _LONGEST_TRIAL)
            nodes = np.flatnonzero(counts)
            step = max(1, len(nodes) * _PAIRS_OF_TRIAL // max(1, int(counts.sum()) * int(self._targets_by_hop.sum())))
            nodes = nodes[number * step % max(1, len(nodes)) :][:step]
            self.move(nodes, counts[nodes], number, 0.0, *self.reserve(len(nodes)))
            pairs += int(counts[nodes].sum() * self._targets_by_hop.sum())
            elapsed = time.perf_counter() - begun
            number += 1
        return max(1.0, pairs / elapsed)

    def reserve(self, size: int) -> tuple[list[Table], Integers]:
        """Room beside the tables for as many rows, and for their update pairs."""
        if len(self._room[0]) < size:
            self._room = [allocate(0, self.state.dimensions) for _ in self.state.tables]
            self._room = [allocate(size, self.state.dimensions) for _ in self.state.tables]
            self._made = np.zeros(size, dtype=np.int64)
        return [room[:size] for room in self._room], self._made[:size]

    def move(
        self, nodes: Integers, counts: Integers, number: int, rate: float, rows: list[Table], made: Integers
    ) -> None:
        """Write where nodes go in a round, and the update pairs they make; reads the tables and leaves them be."""
        tables = self.state.tables
        key = np.uint64(derive(self._key, number))
        pieces = cut(counts, self._settings.threads)

        def move(first: int, last: int) -> None:
            for own, room in enumerate(rows):
                kernels.advance(
                    nodes[first:last], counts[first:last], tables[own], tables[len(tables) - 1 - own],
                    room[first:last], made[first:last], self.arcs, key, np.float32(rate),
                    self._targets_by_hop, self._settings.negatives, self._stopped,
                )  # fmt: skip

        self._share(move, pieces)

    def _share(self, work: Callable[[int, int], None], pieces: npt.NDArray[np.int64]) -> None:
        """Do all pieces, each thread taking the next one as it comes free."""
        ahead = itertools.count()

        def take() -> None:
            while (place := next(ahead)) < len(pieces) - 1:
                work(int(pieces[place]), int(pieces[place + 1]))

        helpers = [self._threads.submit(take) for _ in range(min(self._settings.threads, len(pieces) - 1) - 1)]
        take()
        for helper in helpers:
            helper.result()


def cut(work: Integers, threads: int) -> Integers:
    """Borders of pieces of work for threads to take one by one.

    Each piece is a share of what is left, so that the last ones are short and the threads end together.
    """
    done = np.cumsum(work)
    shares, left = [], 1.0
    while threads > 1 and left > 1 / (_SHORTEST_PIECES * threads):
        left -= max(left / (2 * threads), 1 / (_SHORTEST_PIECES * threads))
        shares.append(1.0 - left)
    borders = np.searchsorted(done, np.array(shares) * (done[-1] if len(done) else 0)) + 1
    return np.unique(np.concatenate(([0], np.minimum(borders, len(work)), [len(work)])))
