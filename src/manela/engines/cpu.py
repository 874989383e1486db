"""The CPU engine for rounds by walks: threads of this process."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import Arcs, prepare_arcs
from manela.engines.state import State
from manela.engines.threads import Integers, Threads
from manela.graph import Graph
from manela.kernels import cpu as kernels
from manela.kernels.layout import Table, allocate
from manela.randomness import ROUNDS, derive, derive_key
from manela.schedule import Schedule
from manela.settings import Settings

_LONGEST_TRIAL = 100
_PAIRS_OF_TRIAL = 200_000


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
        self._threads = Threads(settings.threads)
        self.name = "cpu"

    def __enter__(self) -> CpuEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def stop(self, *, keep: bool = True) -> None:  # noqa: ARG002
        """End the round that is being computed, within moments; nothing of it counts."""
        self._stopped[0] = 1

    def has_grown(self) -> bool:
        """Whether the learning rate may fall; by walks it always does."""
        return True

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

        self._threads.share(commit, pieces)
        self.updates[nodes] += made

    @property
    def pairs(self) -> int:
        """Update pairs made, with those that the state began with."""
        return self.state.pairs

    def collect(self) -> None:
        """Bring the state up to date; here it always is."""

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows of a table as they are now, shape (len(rows), m)."""
        return self.state.rows(table, rows)

    def is_finite(self) -> bool:
        """Whether all vectors are."""
        return self.state.is_finite()

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
        pieces = self._threads.cut(counts)

        def move(first: int, last: int) -> None:
            for own, room in enumerate(rows):
                kernels.advance(
                    nodes[first:last], counts[first:last], tables[own], tables[len(tables) - 1 - own],
                    room[first:last], made[first:last], self.arcs, key, np.float32(rate),
                    self._targets_by_hop, self._settings.negatives, self._stopped,
                )  # fmt: skip

        self._threads.share(move, pieces)
