"""The CPU engine: rounds by messages, or with walks as in the paper, on threads of this process."""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.rounds.messages import MessageRounds
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.spectral import Views
from manela.engines.rounds.spread import measure_spread
from manela.engines.state import State, start
from manela.kernels.cpu import walks as kernels
from manela.kernels.layout import Arcs, Table, allocate
from manela.kernels.randomness import ROUNDS, derive, derive_key
from manela.settings.schedule import GROWN, Schedule
from manela.settings.settings import Settings
from manela.system.threads import Closable, Integers, Threads


class CpuEngine(Closable):
    """Runs rounds on a state, in the threads of this process; `stop` may be called from any thread.

    By messages, vectors are updated in place, so a round that has begun is finished before the engine stops, unless
    the result is discarded. With walks, the unfinished round is always discarded, and changes no vector.
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self.name, self._graph, self._stopped = "cpu", graph, False
        self._by_walks = settings.exchange == "walks"
        self._hops = 1 if self._by_walks else len(settings.targets_by_hop)
        self._threads = Threads(settings.threads)
        self.arcs = prepare_arcs(graph)
        self.state = state or start(graph.number_of_nodes, settings)
        self._views = Views(self.state, settings, lambda: self.neighbours)
        self.rounds: MessageRounds | WalkRounds
        if self._by_walks:
            self.rounds = WalkRounds(self.arcs, settings, self.state, self._threads)
        else:
            every_row = slice(0, graph.number_of_nodes)
            self.rounds = MessageRounds(self.neighbours, settings, self.state, every_row)

    @cached_property
    def neighbours(self) -> Neighbours:
        """The neighbours that vectors are started and smoothed with."""
        return Neighbours.of(self._graph, self.arcs, self._hops, self._threads)

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Update pairs that each node has made with this engine."""
        return self.rounds.updates

    @property
    def pairs(self) -> int:
        """Update pairs made, including those that the state began with."""
        return self.state.pairs

    def advance(self, schedule: Schedule) -> bool:
        """Run the next round; return False if the engine was stopped before it or abandoned it."""
        if self._stopped:
            return False
        self.rounds.show()
        pairs = self.rounds.advance(self.state.round, schedule)
        # a stop that comes once walks have committed is for the next round: this one has moved the vectors
        if pairs is None or (self.rounds.is_abandoned and not self._by_walks):
            return False
        self.state.round += 1
        self.state.pairs += pairs
        return True

    def stop(self, *, keep: bool = True) -> None:
        """Stop after the current round by messages; at once with walks, or if the result is not kept."""
        self._stopped = True
        if self._by_walks or not keep:
            self.rounds.abandon()

    def has_grown(self) -> bool:
        """Return whether the vectors are far enough apart for the learning rate to fall; with walks, always."""
        return self._by_walks or measure_spread(self.state.tables[0], self.neighbours) >= GROWN

    def settle(self) -> None:
        """Wait for rounds that are still running; threads of this process leave none."""

    @property
    def is_sweeping(self) -> bool:
        """Return whether sweeps are left to do before the rounds."""
        return self._views.is_due

    def sweep(self) -> int | None:
        """Do the next sweep and return how many are done, or None if the engine was stopped before it."""
        return None if self._stopped else self._views.sweep()

    def finish(self) -> None:
        """Smooth the vectors and join the views, as the settings require; no rounds may follow."""
        self.rounds.release()  # this needs the memory
        self._views.finish()

    def collect(self) -> None:
        """Bring the state up to date; in this process it always is."""

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Return some rows of a table as they are now, shape (len(rows), m)."""
        return self.state.rows(table, rows)

    def is_finite(self) -> bool:
        """Return whether every vector is finite."""
        return self.state.is_finite()

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Return update pairs a second, including dropped targets, tried for about this long; moves nothing."""
        return self.rounds.measure(schedule, seconds)


_LONGEST_TRIAL = 100
"""Most iterations of a node in a trial; more measure for longer than requested."""
_PAIRS_OF_TRIAL = 200_000
"""Update pairs between two looks at the clock in a trial; more measure for longer than requested."""


class WalkRounds:
    """Computes new vectors beside the tables of a state, and commits them; `updates` are the pairs of each node."""

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

    def advance(self, round: int, schedule: Schedule) -> int | None:
        """Move all nodes through a round and return the update pairs made, or None if it is abandoned before."""
        counts = schedule.counts(round)
        nodes = np.flatnonzero(counts)
        moved, pairs = self.reserve(len(nodes))
        self.move(nodes, counts[nodes], round, schedule.rate(round), moved, pairs)
        if self.is_abandoned:
            return None
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
        started, elapsed, pairs, round = time.perf_counter(), 0.0, 0, 0
        while elapsed < seconds and not self.is_abandoned:
            counts = np.minimum(schedule.counts(round % schedule.rounds), _LONGEST_TRIAL)
            nodes = np.flatnonzero(counts)
            step = max(1, len(nodes) * _PAIRS_OF_TRIAL // max(1, int(counts.sum()) * int(self._targets_by_hop.sum())))
            nodes = nodes[round * step % max(1, len(nodes)) :][:step]
            self.move(nodes, counts[nodes], round, 0.0, *self.reserve(len(nodes)))
            pairs += int(counts[nodes].sum() * self._targets_by_hop.sum())
            elapsed = time.perf_counter() - started
            round += 1
        return max(1.0, pairs / elapsed)

    def reserve(self, size: int) -> tuple[list[Table], Integers]:
        """Return work tables for `size` vectors, and an array for their update pairs."""
        if len(self._room[0]) < size:
            self._room = [allocate(0, self.state.dimensions) for _ in self.state.tables]
            self._room = [allocate(size, self.state.dimensions) for _ in self.state.tables]
            self._made = np.zeros(size, dtype=np.int64)
        return [room[:size] for room in self._room], self._made[:size]

    def move(
        self, nodes: Integers, counts: Integers, round: int, rate: float, rows: list[Table], made: Integers
    ) -> None:
        """Write the new vectors of nodes to `rows` and their update pairs to `made`; the tables are only read."""
        tables = self.state.tables
        key = np.uint64(derive(self._key, round))
        pieces = self._threads.cut(counts)

        def move(first: int, last: int) -> None:
            for own, room in enumerate(rows):
                kernels.advance(
                    nodes[first:last], counts[first:last], tables[own], tables[len(tables) - 1 - own],
                    room[first:last], made[first:last], self._arcs, key, np.float32(rate),
                    self._targets_by_hop, self._settings.negatives, self._stopped,
                )  # fmt: skip

        self._threads.share(move, pieces)
