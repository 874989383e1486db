"""The Ray engine for rounds with messages: a worker has its own vectors, and sees what is shown to its nodes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from manela.engines.ray.engine import RayEngine
from manela.engines.ray.message_worker import MessageWorker, Network
from manela.engines.ray.worker import divide
from manela.engines.rounds.start import find_spread, measure_spread
from manela.kernels import moments
from manela.settings.schedule import GROWN, Schedule

_NEARLY_ALL = 0.9
"""Share of a worker's nodes needed by others from which all are sent to all; larger sends less, but selects more."""
_BACKUP_EVERY = 30.0
"""Seconds between two backups of all vectors in case a worker is lost; larger loses more work, smaller sends more."""


class RayMessageEngine(RayEngine):
    """Runs rounds with messages; a round that has begun is finished before a stop takes effect.

    Every worker has only the vectors of its own nodes. If one is lost, all resume from the vectors that were fetched
    last.
    """

    _worker = MessageWorker
    _abandoned = False
    _measured: list[moments.Moments] | None = None

    def stop(self, *, keep: bool = True) -> None:
        """Stop after the current round, or almost at once if the state is not kept."""
        self._stopped = True
        if not keep:
            self._abandoned = True
            for worker in self._workers:
                worker.stop.remote()

    def _describe(self) -> Network:
        """Return the network as workers need it."""
        neighbours = self._neighbours
        return Network(self.arcs, neighbours.weights, neighbours.scales, neighbours.directed)

    def has_grown(self) -> bool:
        """Whether vectors lie far enough apart for the learning rate to fall."""
        if self._schedule is None:
            return measure_spread(self.state.tables[0], self._neighbours) >= GROWN
        parts = self._ask(lambda: self._ray.get([worker.sum_rows.remote() for worker in self._workers]))
        totals, squares = zip(*parts, strict=True)
        return find_spread(np.sum(totals, axis=0), sum(squares), int(np.count_nonzero(self._graph.degrees))) >= GROWN

    def _take(self, schedule: Schedule) -> None:
        """Give workers a schedule; if only the learning rate differs, they keep their plan."""
        if self._schedule is None or not schedule.has_work_of(self._schedule):
            super()._take(schedule)
            return
        # only the learning rate differs
        self._schedule, self._schedule_ref = schedule, self._ray.put(schedule)
        self._ray.get([worker.follow.remote(self._schedule_ref) for worker in self._workers])

    def _begin(self, schedule: Schedule) -> None:
        """Start all workers from the state."""
        self._attempt += 1
        self._backup_time = time.monotonic()
        borders = divide(schedule.iterations, len(self._workers)).tolist()
        needed = self._ray.get([
            worker.begin.remote(self._attempt, self._network, self._schedule_ref, borders, number, self.state.round)
            for number, worker in enumerate(self._workers)
        ])  # fmt: skip
        served = []
        self._is_whole = []
        for number, worker in enumerate(self._workers):
            needed_by = [needed_of_parts[number] for needed_of_parts in needed]
            least = min((len(rows) for part, rows in enumerate(needed_by) if part != number), default=0)
            # if nearly all are needed, sending all rows as they are is less work than selecting them
            self._is_whole.append(least > _NEARLY_ALL * (borders[number + 1] - borders[number]))
            served.append(worker.serve.remote(None if self._is_whole[number] else needed_by))
        self._ray.get([*served, *(worker.expect.remote(self._is_whole) for worker in self._workers)])
        self._hand_out(self._read_state)
        self._ray.get([worker.ready.remote((self.state.round, self.state.pairs)) for worker in self._workers])
        self._measured = None
        if self._settings.negative_source == "moments":
            parts = self._ray.get([worker.measure_moments.remote() for worker in self._workers])
            self._measured = [moments.add(list(of_table)) for of_table in zip(*parts, strict=True)]

    def _do(self, number: int) -> bool:
        """Do a round: send what the nodes of each worker show after it to the workers that need it, and commit."""
        computed = [
            worker.compute.options(num_returns=2 if is_whole else 1 + len(self._workers)).remote(number, self._measured)
            for worker, is_whole in zip(self._workers, self._is_whole, strict=True)
        ]
        # pass on only finished results: Ray starts the calls of a worker in order
        deliveries, waiting = [], {facts: part for part, (facts, *_) in enumerate(computed)}
        facts_of: dict[int, Any] = {}
        while waiting:
            (ready,), _ = self._ray.wait(list(waiting), num_returns=1)
            part = waiting.pop(ready)
            facts_of[part] = self._ray.get(ready)
            for other, worker in enumerate(self._workers):
                if other != part:
                    shown = computed[part][1 if self._is_whole[part] else 1 + other]
                    deliveries.append(worker.take.remote(self._attempt, part, shown))
        self._ray.get(deliveries)
        if self._abandoned:
            return False
        pairs = self.state.pairs + sum(facts.pairs for facts in facts_of.values())
        self._ray.get([worker.commit.remote(number, pairs) for worker in self._workers])
        self.state.round, self.state.pairs = number + 1, pairs
        if self._settings.negative_source == "moments":
            parts = [facts.measured for facts in facts_of.values()]
            self._measured = [moments.add(list(of_table)) for of_table in zip(*parts, strict=True)]
        if time.monotonic() - self._backup_time > _BACKUP_EVERY:
            self.collect()
            self._backup_time = time.monotonic()
        return True

    def settle(self) -> None:
        """Fetch all vectors; if a worker is lost meanwhile, the state is the last backup."""
        if not self._abandoned:
            super().settle()
