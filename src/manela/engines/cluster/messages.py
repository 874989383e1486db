"""The Ray engine for rounds by messages: a worker has its own vectors, and sees what is shown to its nodes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from manela.engines.cluster.engine import RayEngine
from manela.engines.cluster.message_worker import MessageWorker, Network
from manela.engines.cluster.worker import divide
from manela.engines.start import find_spread, measure_spread
from manela.kernels import moments
from manela.schedule import GROWN, Schedule

_WHOLE = 0.9
"""Share of a worker's nodes that others must need for all of them to be shown to all."""
_KEEP_EVERY = 30.0
"""Seconds between two times that vectors are fetched, to go on from if a worker is lost; fewer cost more traffic."""


class RayMessageEngine(RayEngine):
    """Moves a state through rounds by messages; a round that has begun is finished before a stop counts.

    Every worker has the vectors of its own nodes alone. If one is lost, all go on from the vectors that were fetched
    last.
    """

    _worker = MessageWorker
    _abandoned = False
    _measured: list[moments.Moments] | None = None

    def stop(self, *, keep: bool = True) -> None:
        """End after the round that is being computed; or within moments, if what it has moved is not kept."""
        self._stopped = True
        if not keep:
            self._abandoned = True
            for worker in self._workers:
                worker.stop.remote()

    def _describe(self) -> Network:
        neighbours = self._neighbours
        return Network(self.arcs, neighbours.weights, neighbours.scales, neighbours.directed)

    def has_grown(self) -> bool:
        """Whether the vectors lie far enough apart for the learning rate to fall."""
        if self._schedule is None:
            return measure_spread(self.state.tables[0], self._neighbours) >= GROWN
        parts = self._ask(lambda: self._ray.get([worker.sum_rows.remote() for worker in self._workers]))
        totals, squares = zip(*parts, strict=True)
        return find_spread(np.sum(totals, axis=0), sum(squares), int(np.count_nonzero(self._graph.degrees))) >= GROWN

    def _take(self, schedule: Schedule) -> None:
        if self._schedule is None or not schedule.has_work_of(self._schedule):
            super()._take(schedule)
            return
        # only the learning rate is another
        self._schedule, self._sent = schedule, self._ray.put(schedule)
        self._ray.get([worker.follow.remote(self._sent) for worker in self._workers])

    def _begin(self, schedule: Schedule) -> None:
        """Have all workers begin where the state is."""
        self._attempt += 1
        self._kept_at = time.monotonic()
        borders = divide(schedule.iterations, len(self._workers)).tolist()
        needed = self._ray.get([
            worker.begin.remote(self._attempt, self._network, self._sent, borders, number, self.state.round)
            for number, worker in enumerate(self._workers)
        ])  # fmt: skip
        served = []
        self._is_whole = []
        for number, worker in enumerate(self._workers):
            wanted = [of_part[number] for of_part in needed]
            least = min((len(one) for part, one in enumerate(wanted) if part != number), default=0)
            # where nearly all are needed, all rows as they lie are less work than those that are
            self._is_whole.append(least > _WHOLE * (borders[number + 1] - borders[number]))
            served.append(worker.serve.remote(None if self._is_whole[number] else wanted))
        self._ray.get([*served, *(worker.expect.remote(self._is_whole) for worker in self._workers)])
        self._hand_out(self._read_state)
        self._ray.get([worker.ready.remote((self.state.round, self.state.pairs)) for worker in self._workers])
        self._measured = None
        if self._settings.negative_source == "moments":
            parts = self._ray.get([worker.measure_moments.remote() for worker in self._workers])
            self._measured = [moments.add(list(of_table)) for of_table in zip(*parts, strict=True)]

    def _do(self, number: int) -> bool:
        """A round: what the nodes of each worker show after it goes to those that need it, and all commit together."""
        computed = [
            worker.compute.options(num_returns=2 if whole else 1 + len(self._workers)).remote(number, self._measured)
            for worker, whole in zip(self._workers, self._is_whole, strict=True)
        ]
        # only what is there is given on: Ray has a worker begin its calls in order
        taken, waiting = [], {facts: part for part, (facts, *_) in enumerate(computed)}
        made: dict[int, Any] = {}
        while waiting:
            (ready,), _ = self._ray.wait(list(waiting), num_returns=1)
            part = waiting.pop(ready)
            made[part] = self._ray.get(ready)
            for other, worker in enumerate(self._workers):
                if other != part:
                    given = computed[part][1 if self._is_whole[part] else 1 + other]
                    taken.append(worker.take.remote(self._attempt, part, given))
        self._ray.get(taken)
        if self._abandoned:
            return False
        pairs = self.state.pairs + sum(facts.pairs for facts in made.values())
        self._ray.get([worker.commit.remote(number, pairs) for worker in self._workers])
        self.state.round, self.state.pairs = number + 1, pairs
        if self._settings.negative_source == "moments":
            parts = [facts.measured for facts in made.values()]
            self._measured = [moments.add(list(of_table)) for of_table in zip(*parts, strict=True)]
        if time.monotonic() - self._kept_at > _KEEP_EVERY:
            self.collect()
            self._kept_at = time.monotonic()
        return True

    def settle(self) -> None:
        """Fetch all vectors; if a worker is lost on the way, the state is that which was kept last."""
        if not self._abandoned:
            super().settle()
