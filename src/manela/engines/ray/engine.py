"""The Ray engine: rounds by messages on workers that it starts, calls, and replaces when they are lost."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.estimate import count_store_bytes
from manela.engines.ray.connection import (
    bring_token,
    check_store,
    connect,
    count,
    is_client,
    last_line,
    machines,
    share_out,
)
from manela.engines.ray.worker import NodeRows, Topology, Worker, divide
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.spectral import Views
from manela.engines.rounds.spread import find_spread, measure_spread
from manela.engines.state import State, start
from manela.errors import ClusterError, ManelaWarning, import_extra
from manela.kernels import moments
from manela.kernels.layout import Table
from manela.settings.schedule import GROWN, Schedule
from manela.settings.settings import Settings
from manela.system.threads import Threads

Found = TypeVar("Found")

LARGE_PIECE = 1 << 23
"""Bytes that are sent at once; more take more of the object store, fewer take more calls."""
_PATIENCE = 300.0
"""Seconds within which a worker must start or answer; larger waits longer for a lost one."""
_MOST_LOSSES = 20
"""Losses of workers without a finished round after which a run fails; larger retries for longer."""
_NEARLY_ALL = 0.9
"""Share of a worker's nodes needed by others from which all are sent to all; larger sends less, but selects more."""
_BACKUP_EVERY = 30.0
"""Seconds between two backups of all vectors in case a worker is lost; larger loses more work, smaller sends more."""
_ASIDE, _CONTROL = "aside", "control"
"""Ray concurrency groups of the calls that run beside a computation."""


class RayEngine:
    """Runs rounds on a cluster; `stop` may be called from any thread, and a round that has begun is finished first.

    Every worker has only the vectors of its own nodes. A lost one is replaced, or its nodes go to the others, and all
    resume from the vectors that were fetched last. The round and pairs of the state are always up to date.
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self.is_client = is_client(settings.address)
        if self.is_client:
            bring_token()
        self._ray = import_extra("ray", "cluster", "engine 'ray'")
        self._settings, self._graph = settings, graph
        self._stopped = self._abandoned = False
        self._measured: list[moments.Moments] | None = None
        self._updates = np.zeros(graph.number_of_nodes, dtype=np.int64)
        self._schedule: Schedule | None = None
        self.workers: list[Any] = []
        self._is_whole: list[bool] = []
        self._backup_time = 0.0
        self._losses = self._attempt = 0
        self._started = connect(self._ray, settings.address)
        self._threads = Threads(settings.threads)
        try:
            available = machines(self._ray)
            self._wanted_workers, threads = share_out(available, settings.workers, settings.requested_threads)
            check_store(available, count_store_bytes(graph, settings))
            self._settings = replace(settings, threads=threads)
            self.arcs = prepare_arcs(graph)
            self.state = state or start(graph.number_of_nodes, settings)
            self._views = Views(self.state, self._settings, lambda: self._neighbours)
            self._backup = (self.state.round, self.state.pairs)
            self._topology = self._ray.put(self._describe())
            self._start_workers()
        except BaseException as error:
            self._shut_down()
            self._threads.close()
            self.translate(error)
            if isinstance(error, self._ray.exceptions.RayError):
                raise ClusterError(f"the Ray cluster does not take the network: {last_line(error)}") from error
            raise
        self.name = f"ray, {count(len(self.workers), 'worker')} with {count(threads, 'thread')} each"

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours.of(self._graph, self.arcs, len(self._settings.targets_by_hop), self._threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: object, /) -> None:
        self._shut_down()
        self._threads.close()
        self.translate(error)

    def translate(self, error: BaseException | None) -> None:
        """Raise ClusterError for a lost connection of Ray's client; a BrokenPipeError, a subclass, has other causes."""
        if self.is_client and type(error) in (ConnectionError, ConnectionAbortedError):
            raise ClusterError(
                "the connection to the Ray cluster is lost; a run with a checkpoint can be resumed"
            ) from error

    def _describe(self) -> Topology:
        neighbours = self._neighbours
        return Topology(self.arcs, neighbours.weights, neighbours.scales, neighbours.directed)

    def stop(self, *, keep: bool = True) -> None:
        """Stop after the current round, or almost at once if the state is not kept."""
        self._stopped = True
        if not keep:
            self._abandoned = True
            for worker in self.workers:
                worker.stop.remote()

    def has_grown(self) -> bool:
        """Whether vectors lie far enough apart for the learning rate to fall."""
        if self._schedule is None:
            return measure_spread(self.state.tables[0], self._neighbours) >= GROWN
        parts = self._ask(lambda: self._ray.get([worker.sum_rows.remote() for worker in self.workers]))
        totals, squares = zip(*parts, strict=True)
        return find_spread(np.sum(totals, axis=0), sum(squares), int(np.count_nonzero(self._graph.degrees))) >= GROWN

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; return False if it was stopped, in which case it does not count."""
        round = self.state.round
        while not self._stopped:
            try:
                if self._schedule is not schedule:
                    self._take(schedule)
                    if self.state.round != round:
                        return True
                    if self._stopped:
                        return False
                if not self._do(round):
                    return False
                if self.state.round > round:
                    self._losses = 0
                return True
            except self._ray.exceptions.RayError as error:
                self._recover(error)
                if self.state.round != round:
                    # the run resumes from the last backup
                    return True
        return False

    def _do(self, round: int) -> bool:
        """Do a round: send what the nodes of each worker show after it to the workers that need it, and commit."""
        computed = [
            worker.compute.options(num_returns=2 if is_whole else 1 + len(self.workers)).remote(round, self._measured)
            for worker, is_whole in zip(self.workers, self._is_whole, strict=True)
        ]
        # pass on only finished results: Ray starts the calls of a worker in order
        deliveries, waiting = [], {report: part for part, (report, *_) in enumerate(computed)}
        reports: dict[int, Any] = {}
        while waiting:
            (ready,), _ = self._ray.wait(list(waiting), num_returns=1)
            part = waiting.pop(ready)
            reports[part] = self._ray.get(ready)
            for other, worker in enumerate(self.workers):
                if other != part:
                    shown = computed[part][1 if self._is_whole[part] else 1 + other]
                    deliveries.append(worker.take.remote(self._attempt, part, shown))
        self._ray.get(deliveries)
        if self._abandoned:
            return False
        pairs = self.state.pairs + sum(report.pairs for report in reports.values())
        self._ray.get([worker.commit.remote(round) for worker in self.workers])
        self.state.round, self.state.pairs = round + 1, pairs
        if self._settings.negative_source == "moments":
            parts = [report.measured for report in reports.values()]
            self._measured = [moments.add(list(of_table)) for of_table in zip(*parts, strict=True)]
        if time.monotonic() - self._backup_time > _BACKUP_EVERY:
            self.collect()
            self._backup_time = time.monotonic()
        return True

    def _take(self, schedule: Schedule) -> None:
        """Give workers a schedule; they start again from the state, unless only the learning rate differs."""
        if self._schedule is not None and schedule.has_work_of(self._schedule):
            self._schedule, self._schedule_ref = schedule, self._ray.put(schedule)
            self._ray.get([worker.follow.remote(self._schedule_ref) for worker in self.workers])
            return
        self.collect()
        self._schedule, self._schedule_ref = schedule, self._ray.put(schedule)
        self._ask(lambda: self._begin(schedule))

    def _begin(self, schedule: Schedule) -> None:
        self._attempt += 1
        self._backup_time = time.monotonic()
        borders = divide(schedule.iterations, len(self.workers)).tolist()
        needed = self._ray.get([
            worker.begin.remote(self._attempt, self._topology, self._schedule_ref, borders, number, self.state.round)
            for number, worker in enumerate(self.workers)
        ])  # fmt: skip
        served = []
        self._is_whole = []
        for number, worker in enumerate(self.workers):
            needed_by = [needed_of_parts[number] for needed_of_parts in needed]
            least = min((len(rows) for part, rows in enumerate(needed_by) if part != number), default=0)
            # if nearly all are needed, sending all rows as they are is less work than selecting them
            self._is_whole.append(least > _NEARLY_ALL * (borders[number + 1] - borders[number]))
            served.append(worker.serve.remote(None if self._is_whole[number] else needed_by))
        self._ray.get([*served, *(worker.expect.remote(self._is_whole) for worker in self.workers)])
        self._hand_out(self._read_state)
        self._ray.get([worker.ready.remote() for worker in self.workers])
        self._measured = None
        if self._settings.negative_source == "moments":
            parts = self._ray.get([worker.measure_moments.remote() for worker in self.workers])
            self._measured = [moments.add(list(of_table)) for of_table in zip(*parts, strict=True)]

    def _hand_out(self, read: Callable[[int, int], Any]) -> None:
        """Send the rows that `read` returns to all workers, in pieces, as the object store may not hold all of them."""
        nodes = len(self._updates)
        step = max(1, LARGE_PIECE // sum(4 * table.shape[1] for table in self.state.tables))
        for first in range(0, nodes, step):
            rows = read(first, min(nodes, first + step))
            self._ray.get([worker.fill.remote(first, rows) for worker in self.workers])

    def _read_state(self, first: int, last: int) -> Any:
        rows: NodeRows = [table[first:last] for table in self.state.tables], self._updates[first:last]
        return self._ray.put(rows)

    @property
    def pairs(self) -> int:
        """Number of update pairs made, including those of the initial state."""
        return self.state.pairs

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Number of update pairs of each node with this engine."""
        self.collect()
        return self._updates

    @property
    def sent(self) -> int:
        """Bytes that workers have sent to each of the others."""
        return int(self._ask(lambda: sum(self._ray.get([worker.count_sent.remote() for worker in self.workers]))))

    def settle(self) -> None:
        """Fetch all vectors; if a worker is lost meanwhile, the state is the last backup."""
        if not self._abandoned:
            self.collect()

    @property
    def is_sweeping(self) -> bool:
        """Whether sweeps are left to do before the rounds."""
        return self._views.is_due

    def sweep(self) -> int | None:
        """Do the next sweep in this process and return how many are done; None if it was stopped before."""
        return None if self._stopped else self._views.sweep()

    def finish(self) -> None:
        """Smooth the vectors and join the views in this process, after the last round; the workers are stopped."""
        self.collect()
        self._shut_down()
        self._views.finish()

    def collect(self) -> None:
        """Bring the state's tables up to date; does nothing once the workers are stopped."""
        if self._schedule is None or not self.workers:
            return

        def collect() -> None:
            # fetch everything before changing anything
            for first, (tables, updates) in self._ray.get([worker.own.remote() for worker in self.workers]):
                for table, rows in zip(self.state.tables, tables, strict=True):
                    table[first : first + len(rows)] = rows
                self._updates[first : first + len(updates)] = updates

        self._ask(collect)
        self._backup = (self.state.round, self.state.pairs)

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Return the current vectors of some rows of a table, shape (len(rows), m)."""
        if self._schedule is None:
            return self.state.rows(table, rows)
        vectors = np.zeros((len(rows), self.state.dimensions), dtype=np.float32)
        answers = self._ask(lambda: self._ray.get([worker.rows.remote(table, rows) for worker in self.workers]))
        for positions, part in answers:
            vectors[positions] = part
        return vectors

    def is_finite(self) -> bool:
        """Whether all vectors are finite."""
        if self._schedule is None:
            return self.state.is_finite()
        return self._ask(lambda: all(self._ray.get([worker.is_finite.remote() for worker in self.workers])))

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure the update pairs per second of all workers for about `seconds`; changes no vector."""
        self._take(schedule)
        return self._ask(
            lambda: float(
                sum(self._ray.get([worker.measure.remote(self._schedule_ref, seconds) for worker in self.workers]))
            )
        )

    def _ask(self, question: Callable[[], Found]) -> Found:
        """Call workers and return the answer; after a loss, replace the lost workers and retry."""
        while True:
            try:
                return question()
            except self._ray.exceptions.RayError as error:
                self._recover(error)

    # workers

    def _start_workers(self) -> None:
        """Start workers up to the wanted number; those that do not start in time are dropped."""
        for name, group in (("take", _ASIDE), ("stop", _CONTROL), ("is_there", _CONTROL)):
            getattr(Worker, name).__ray_concurrency_group__ = group
        as_actor = self._ray.remote(
            num_cpus=self._settings.threads,
            scheduling_strategy="SPREAD",
            max_restarts=0,
            concurrency_groups={_ASIDE: 2, _CONTROL: 1},
        )
        actor = as_actor(Worker)
        new_workers = [actor.remote(self._settings) for _ in range(self._wanted_workers - len(self.workers))]
        trouble = f"none came within {_PATIENCE:.0f} seconds"
        try:
            worker_of = {worker.is_there.remote(): worker for worker in new_workers}
            ready, _ = (
                self._ray.wait(list(worker_of), num_returns=len(worker_of), timeout=_PATIENCE)
                if worker_of
                else ([], [])
            )
            for answer in ready:
                try:
                    self._ray.get(answer)
                    self.workers.append(worker_of[answer])
                except self._ray.exceptions.RayError as error:
                    trouble = last_line(error)
        finally:
            for worker in new_workers:
                if worker not in self.workers:
                    self._ray.kill(worker)
        if 0 < len(self.workers) < self._wanted_workers:
            warnings.warn(
                f"only {len(self.workers)} of {count(self._wanted_workers, 'worker')} started; the run uses these",
                ManelaWarning,
                stacklevel=2,
            )
        if not self.workers:
            raise ClusterError(f"no worker could be started on the cluster: {trouble}")

    def _recover(self, error: Exception) -> None:
        warnings.warn(f"a worker was lost and is replaced: {last_line(error)}", ManelaWarning, stacklevel=2)
        while True:
            self._losses += 1
            if self._losses > _MOST_LOSSES:
                raise ClusterError(f"workers are lost again and again: {last_line(error)}") from error
            try:
                self._restart()
                return
            except self._ray.exceptions.RayError as again:
                error = again

    def _restart(self) -> None:
        self._drop_lost_workers()
        self._start_workers()
        self.state.round, self.state.pairs = self._backup
        if self._schedule is not None:
            self._begin(self._schedule)

    def _drop_lost_workers(self) -> None:
        survivors = []
        for worker in self.workers:
            try:
                self._ray.get(worker.is_there.remote(), timeout=_PATIENCE)
                self._ray.get(worker.finish.remote())
                survivors.append(worker)
            except self._ray.exceptions.RayError:
                self._ray.kill(worker)
        self.workers = survivors

    def _shut_down(self) -> None:
        """Stop all workers, and disconnect if this engine connected."""
        try:
            # after a lost connection, a call would make Ray start on this machine
            for worker in self.workers if self._ray.is_initialized() else []:
                with contextlib.suppress(ConnectionError):
                    self._ray.kill(worker)
        finally:
            self.workers = []
            self._topology = self._schedule_ref = None
            if self._started:
                self._ray.shutdown()
            self._started = False
