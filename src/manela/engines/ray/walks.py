"""The Ray engine for rounds with walks: every worker has all vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manela.engines.ray.engine import LARGE_PIECE, RayEngine
from manela.engines.ray.walk_worker import WalkWorker
from manela.engines.ray.worker import divide
from manela.settings.schedule import Schedule


class RayWalkEngine(RayEngine):
    """Runs rounds with walks; `stop` interrupts a round, which then does not count.

    Every worker has all vectors and moves its own nodes; after a round, the changes go to all workers. If a worker is
    lost, its replacement gets the vectors of a survivor, and the round is repeated.
    """

    _worker = WalkWorker
    _pieces = 1

    def stop(self, *, keep: bool = True) -> None:  # noqa: ARG002
        """Stop the current round almost at once; it does not count."""
        self._stopped = True
        for worker in self._workers:
            worker.stop.remote()

    def has_grown(self) -> bool:
        """Whether the learning rate may fall; always True with walks."""
        return True

    def _take(self, schedule: Schedule) -> None:
        """Give workers a schedule, and choose in how many pieces vectors travel."""
        iterations = np.minimum(schedule.iterations / schedule.rounds, 1.0).sum()
        moved = iterations * sum(table.shape[1] for table in self.state.tables) * 4 / len(self._workers)
        # one piece travels while the next is computed
        self._pieces = 1 + min(2, int(moved / LARGE_PIECE))
        super()._take(schedule)

    def _begin(self, schedule: Schedule, read: Callable[[int, int], Any] | None = None) -> None:
        """Start all workers from the state, with the rows that `read` returns."""
        self._attempt += 1
        borders = divide(schedule.iterations, len(self._workers)).tolist()
        begun = [
            worker.begin.remote(self._attempt, self._network, self._schedule_ref, first, last)
            for worker, first, last in zip(self._workers, borders[:-1], borders[1:], strict=True)
        ]
        self._ray.get(begun)
        self._hand_out(read or self._read_state)
        self._ray.get([worker.ready.remote((self.state.round, self.state.pairs)) for worker in self._workers])

    def _restart(self) -> None:
        """Resume with the vectors of a survivor, or with the last backup if there is none."""
        survivors = self._find_survivors()
        self._start_workers()
        complete = {worker: at for worker, at in survivors.items() if at is not None}
        best = max(complete, key=lambda worker: complete[worker]) if complete else None
        self.state.round, self.state.pairs = complete[best] if best is not None else self._backup
        if self._schedule is not None:
            self._begin(self._schedule, best.read.remote if best is not None else None)

    def _do(self, number: int) -> bool:
        """Do a round: send the results of each worker to the others piece by piece, and commit."""
        is_alone = len(self._workers) == 1
        computed = {
            worker.compute.remote(number, piece, self._pieces, is_alone): worker
            for piece in range(self._pieces)
            for worker in self._workers
        }
        # pass on only finished results: Ray starts the calls of a worker in order, so a call that waits for another
        # worker's piece would delay its own next piece, and `stop`
        deliveries, waiting = [], [] if is_alone else list(computed)
        while waiting:
            ready, waiting = self._ray.wait(waiting, num_returns=1, fetch_local=False)
            deliveries += [
                other.take.remote(self._attempt, number, moved)
                for moved in ready
                for other in self._workers
                if other is not computed[moved]
            ]
        self._ray.get(deliveries if deliveries else list(computed))
        if self._stopped:
            return False
        pairs = self._ray.get([worker.commit.remote(number) for worker in self._workers])
        self.state.round, self.state.pairs = number + 1, pairs[0]
        return True
