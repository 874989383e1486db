"""Worker: a process of a cluster that moves some nodes of a network, and sees only what other nodes show to its own."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.messages import MessageRounds, measure_moments
from manela.engines.rounds.neighbours import Neighbours, read_shown, write_shown
from manela.engines.state import State
from manela.kernels.cpu import rows as kernels
from manela.kernels.layout import Arcs, Table, allocate
from manela.kernels.moments import Moments
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings
from manela.system.threads import Integers, Threads

NodeRows = tuple[list[Table], Integers]
"""The rows of some nodes in each table, and their update pairs."""

Given = list[npt.NDArray[np.float16]]
"""The vectors that some nodes show, an array for each table."""


class Report(NamedTuple):
    """A worker's report of a round: its update pairs, and the moments of what its nodes now show, for each table."""

    pairs: int
    measured: list[Moments] | None


class Topology(NamedTuple):
    """The arcs of a network in the form that workers need; `scales` as in `Neighbours`."""

    arcs: Arcs
    weights: npt.NDArray[np.float64] | None
    scales: npt.NDArray[np.float64]
    directed: bool


class Worker:
    """Computes the rounds of its own nodes, from `first` up to `last`, from what others show, in half precision.

    It stores the vectors that nodes within `hops` of its own nodes show, computes their means itself, and stores the
    common negatives of a round. A round is `compute`, `take` for each other worker, and `commit`; until then, vectors
    of others are those of the previous round. Own nodes move in place, so an incomplete round cannot be undone here:
    the run resumes from vectors that were collected before.
    """

    _threads: Threads | None = None
    rounds: Any = None
    """`MessageRounds`, once it has begun."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.sent = self._attempt = 0
        self._lock = threading.Lock()
        self._first = self._last = 0

    def begin(
        self, attempt: int, topology: Topology, schedule: Schedule, borders: list[int], number: int, first_round: int
    ) -> list[Integers]:
        """Start, or restart, with part `number` of the nodes; return the nodes that it needs of each part.

        `fill` then brings the vectors, and `ready` ends the start. `first_round` is the next round.
        """
        self._first, self._last, self._borders, self._number = borders[number], borders[number + 1], borders, number
        self._schedule, nodes = schedule, len(schedule.iterations)
        if self._threads is None:
            self._threads = Threads(self._settings.threads)
        own = slice(self._first, self._last)
        pieces = own.start + self._threads.cut(np.diff(topology.arcs.indptr[own.start : own.stop + 1]))
        arcs, weights, scales, directed = topology
        neighbours = Neighbours(arcs, weights, scales, self._threads, pieces, directed)
        near, far = _find_surroundings(arcs, own, nodes, len(self._settings.targets_by_hop))
        self._needed = [far[(far >= first) & (far < last)] for first, last in pairwise(borders)]
        self._needed[number] = far[:0]
        self._is_needed = np.zeros(nodes, dtype=bool)
        self._is_needed[far] = True
        self._negatives_of = -1
        if self.rounds is not None:
            self.rounds.release()
        dimensions = self._settings.dimensions
        # rows that are never written take no memory
        tables = [allocate(nodes, dimensions) for _ in range(1 + self._settings.context)]
        self.rounds = MessageRounds(neighbours, self._settings, State(tables, dimensions), own, near)
        for part in range(len(self._needed)):
            self._is_needed[self._find_negatives(first_round, part)] = True
        with self._lock:
            self._attempt, self._taken = attempt, dict[int, Given]()
        return self._needed

    def serve(self, needed: list[Integers] | None) -> None:
        """Set the own nodes that each part needs; None if all are shown to all."""
        self._served = needed

    def expect(self, whole: list[bool]) -> None:
        """Set which parts show all of their nodes."""
        self._is_whole = whole

    def fill(self, first: int, rows: NodeRows) -> None:
        """Store rows from `first` on: vectors and update pairs of own nodes, and shown vectors of the needed others."""
        tables, updates = rows
        last = first + len(updates)
        begin, end = max(first, self._first), min(last, self._last)
        seen = np.flatnonzero(self._is_needed[first:last])
        for table, shown, given in zip(self.rounds.state.tables, self.rounds.shown, tables, strict=True):
            if begin < end:
                table[begin:end] = given[begin - first : end - first]
            write_shown(shown, first + seen, given[seen].astype(np.float16))
        if begin < end:
            self.rounds.updates[begin:end] = updates[begin - first : end - first]

    def ready(self) -> None:
        """Show the vectors, which are complete now."""
        self.rounds.show_own()

    def follow(self, schedule: Schedule) -> None:
        """Continue with a schedule of the same work and another learning rate."""
        self._schedule = schedule

    def measure_moments(self) -> list[Moments]:
        """Return the moments of what the own nodes show, for each table."""
        return [measure_moments(shown[self._first : self._last]) for shown in self.rounds.shown]

    def sum_rows(self) -> tuple[Integers, int]:
        """Return `engines.rounds.spread.sum_rows` of the own nodes."""
        table, scales = self.rounds.state.tables[0], self.rounds.scales[0]
        totals = np.zeros(table.shape[1], dtype=np.int64)
        return totals, int(kernels.add_up(table, scales, self._first, self._last, totals))

    def compute(self, round: int, measured: list[Moments] | None) -> tuple[Any, ...]:
        """Move the own nodes through a round; return its report, and the vectors to show to others.

        These are all own nodes, or for each part the nodes that it needs and the negatives of the next round.
        `measured` are the moments of all shown vectors.
        """
        self.rounds.show_means()
        pairs = self.rounds.advance(round, self._schedule, measured)
        self.rounds.show_own()
        report = Report(pairs, self.measure_moments() if measured is not None else None)
        if self._served is None:
            return report, self._give(slice(self._first, self._last))
        negatives = self._find_negatives(round + 1, self._number)
        shown = [
            None if part == self._number else self._give(np.concatenate((served, negatives)))
            for part, served in enumerate(self._served)
        ]
        return report, *shown

    def _give(self, where: slice | Integers) -> Given:
        """Return what own nodes show, and count its bytes as sent."""
        rows = [read_shown(shown, where) for shown in self.rounds.shown]
        self.sent += sum(row.nbytes for row in rows)
        return rows

    def take(self, attempt: int, part: int, given: Given) -> None:
        """Keep what the nodes of a part show until the round is committed; ignore data of an earlier attempt."""
        with self._lock:
            if attempt == self._attempt:
                self._taken[part] = given

    def commit(self, round: int) -> None:
        """Finish a round: store what others now show."""
        with self._lock:
            received, self._taken = self._taken, {}
        for part, shown_by_part in received.items():
            where: slice | Integers = slice(*self._borders[part : part + 2])
            if not self._is_whole[part]:
                where = np.concatenate((self._needed[part], self._find_negatives(round + 1, part)))
            for shown, rows in zip(self.rounds.shown, shown_by_part, strict=True):
                write_shown(shown, where, rows)

    def stop(self) -> None:
        """Stop a running `compute` almost at once; the vectors then belong to no round."""
        if self.rounds is not None:
            self.rounds.abandon()

    def read(self, first: int, last: int) -> NodeRows:
        """Return the vectors and the update pairs of these nodes."""
        return [table[first:last] for table in self.rounds.state.tables], self.rounds.updates[first:last]

    def is_there(self) -> bool:
        """Return True, which shows that the worker runs."""
        return True

    def finish(self) -> None:
        """Do nothing: a call of this returns after all calls before it."""

    def own(self) -> tuple[int, NodeRows]:
        """Return the first of the own nodes, and the vectors and update pairs of all of them."""
        return self._first, self.read(self._first, self._last)

    def rows(self, table: int, rows: Integers) -> tuple[Integers, Table]:
        """Return the requested rows of a table that belong to own nodes: their positions in `rows`, and the vectors."""
        positions = np.flatnonzero((rows >= self._first) & (rows < self._last))
        return positions, self.rounds.state.rows(table, rows[positions])

    def count_sent(self) -> int:
        """Return the bytes that this worker sent to others."""
        return self.sent

    def is_finite(self) -> bool:
        """Whether the vectors of the own nodes are finite."""
        return all(bool(np.isfinite(table).all()) for table in self.read(self._first, self._last)[0])

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure the update pairs per second of this worker."""
        return float(self.rounds.measure(schedule, seconds))

    def _find_negatives(self, round: int, part: int) -> Integers:
        """Return the sorted nodes of a part that are common negatives of a round; none if moments are used."""
        if self._settings.negative_source != "nodes":
            return np.zeros(0, dtype=np.int64)
        if self._negatives_of != round:
            self._negatives_of = round
            self._negatives: Integers = np.unique(self.rounds.find_negative_nodes(round, self._schedule))
        first, last = np.searchsorted(self._negatives, self._borders[part : part + 2])
        return self._negatives[first:last]


def _find_surroundings(arcs: Arcs, own: slice, nodes: int, hops: int) -> tuple[Integers, Integers]:
    """Return the nodes within hops − 1 of own ones, whose means are needed, and the other nodes within `hops`."""
    near = reached = np.zeros(nodes, dtype=bool)
    reached[own] = True
    for _ in range(hops):
        near = reached.copy()
        sources = np.flatnonzero(reached)
        first, count = arcs.indptr[sources], arcs.indptr[sources + 1] - arcs.indptr[sources]
        positions = np.repeat(first - np.append(0, np.cumsum(count)[:-1]), count) + np.arange(count.sum())
        reached[arcs.indices[positions]] = True
    if hops == 1:
        near[:] = False
    reached[own] = False
    return np.flatnonzero(near), np.flatnonzero(reached)


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
