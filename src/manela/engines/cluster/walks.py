"""The Ray engine for rounds by walks: every worker has all vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manela.engines.cluster.engine import LARGE_PIECE, RayEngine
from manela.engines.cluster.walk_worker import WalkWorker
from manela.engines.cluster.worker import divide
from manela.schedule import Schedule


class RayWalkEngine(RayEngine):
    """Moves a state through rounds by walks; `stop` ends a round unfinished, and nothing of it counts.

    Every worker has all vectors and moves those of its own nodes; after a round, what moved goes to all. If a worker is
    lost, a survivor's vectors go to who replaces it, and the round is done again.
    """

    _worker = WalkWorker
    _pieces = 1

    def stop(self, *, keep: bool = True) -> None:  # noqa: ARG002
        """End the round that is being computed, within moments; nothing of it counts."""
        self._stopped = True
        for worker in self._workers:
            worker.stop.remote()

    def has_grown(self) -> bool:
        """Whether the learning rate may fall; by walks it always does."""
        return True

    def _take(self, schedule: Schedule) -> None:
        iterations = np.minimum(schedule.iterations / schedule.rounds, 1.0).sum()
        moved = iterations * sum(table.shape[1] for table in self.state.tables) * 4 / len(self._workers)
        # one piece travels while the next is computed
        self._pieces = 1 + min(2, int(moved / LARGE_PIECE))
        super()._take(schedule)

    def _begin(self, schedule: Schedule, read: Callable[[int, int], Any] | None = None) -> None:
        """Have all workers begin where the state is, from rows that `read` refers to."""
        self._attempt += 1
        borders = divide(schedule.iterations, len(self._workers)).tolist()
        begun = [
            worker.begin.remote(self._attempt, self._network, self._sent, first, last)
            for worker, first, last in zip(self._workers, borders[:-1], borders[1:], strict=True)
        ]
        self._ray.get(begun)
        self._hand_out(read or self._read_state)
        self._ray.get([worker.ready.remote((self.state.round, self.state.pairs)) for worker in self._workers])

    def _begin_again(self) -> None:
        """With a survivor's vectors, or where there is none with those that were kept last."""
        found = self._find_survivors()
        self._hire()
        whole = {worker: at for worker, at in found.items() if at is not None}
        best = max(whole, key=lambda worker: whole[worker]) if whole else None
        self.state.round, self.state.pairs = whole[best] if best is not None else self._kept
        if self._schedule is not None:
            self._begin(self._schedule, best.read.remote if best is not None else None)

    def _do(self, number: int) -> bool:
        """A round: what each worker computes goes to the others piece by piece, and all commit together."""
        alone = len(self._workers) == 1
        computed = {
            worker.compute.remote(number, piece, self._pieces, alone): worker
            for piece in range(self._pieces)
            for worker in self._workers
        }
        # only what is there is given on: Ray has a worker begin its calls in order, so that one which waits for
        # another worker's piece would hold up its own next piece, and `stop`
        taken, waiting = [], [] if alone else list(computed)
        while waiting:
            ready, waiting = self._ray.wait(waiting, num_returns=1, fetch_local=False)
            taken += [
                other.take.remote(self._attempt, number, moved)
                for moved in ready
                for other in self._workers
                if other is not computed[moved]
            ]
        self._ray.get(taken if taken else list(computed))
        if self._stopped:
            return False
        pairs = self._ray.get([worker.commit.remote(number) for worker in self._workers])
        self.state.round, self.state.pairs = number + 1, pairs[0]
        return True
