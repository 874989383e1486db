"""What the engines on a Ray cluster have in common: workers, who are hired, asked, lost and replaced."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import prepare_arcs
from manela.engines.cluster.connection import (
    bring_token,
    check_store,
    connect,
    count,
    is_client,
    last_line,
    machines,
    share_out,
)
from manela.engines.cluster.worker import NodeRows, Worker
from manela.engines.memory import count_store_bytes
from manela.engines.neighbours import Neighbours
from manela.engines.smoothing import smooth
from manela.engines.start import start
from manela.engines.state import State
from manela.errors import ClusterError, ManelaWarning, import_extra
from manela.graph import Graph
from manela.kernels.layout import Table
from manela.schedule import Schedule
from manela.settings import Settings
from manela.threads import Threads

Found = TypeVar("Found")

LARGE_PIECE = 1 << 23
"""Bytes that are sent at once; more fill the object store, fewer take more calls."""
_PATIENCE = 300.0
"""Seconds until a worker must have started."""
_MOST_LOSSES = 20
"""Times that workers may be lost without a round done in between."""
_ASIDE, _CONTROL = "aside", "control"
"""What Ray runs beside computing: see its `concurrency groups`."""


class RayEngine:
    """Moves a state through the rounds on a cluster; `stop` may be called from any thread.

    A worker that is lost is replaced, or its nodes go to the others.

    Attributes
    ----------
    name : str
        With the number of workers.
    state : State
        Its round and pairs are right at all times, its tables after `collect`.
    """

    _worker: type[Worker]

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self._is_client = is_client(settings.address)
        if self._is_client:
            bring_token()
        self._ray = import_extra("ray", "cluster", "engine 'ray'")
        self._settings, self._graph, self._stopped = settings, graph, False
        self._updates = np.zeros(graph.number_of_nodes, dtype=np.int64)
        self._schedule: Schedule | None = None
        self._workers: list[Any] = []
        self._losses = self._attempt = 0
        self._started = connect(self._ray, settings.address)
        self._threads = Threads(settings.threads)
        try:
            found = machines(self._ray)
            self._wanted, threads = share_out(found, settings.workers, settings.requested_threads)
            check_store(found, count_store_bytes(graph, settings))
            self._settings = replace(settings, threads=threads)
            self.arcs = prepare_arcs(graph)
            self.state = state or start(graph, settings, lambda: self._neighbours)
            self._kept = (self.state.round, self.state.pairs)
            self._network = self._ray.put(self._describe())
            self._hire()
        except BaseException as error:
            self._leave()
            self._threads.close()
            self._translate(error)
            if isinstance(error, self._ray.exceptions.RayError):
                raise ClusterError(f"the Ray cluster does not take the network: {last_line(error)}") from error
            raise
        self.name = f"ray, {count(len(self._workers), 'worker')} with {count(threads, 'thread')} each"

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours.of(self._graph, self.arcs, len(self._settings.targets_by_hop), self._threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: object, /) -> None:
        self._leave()
        self._threads.close()
        self._translate(error)

    def _translate(self, error: BaseException | None) -> None:
        """Raise what Ray's client means by an error; one of a closed terminal, say, is of a kind below these."""
        if self._is_client and type(error) in (ConnectionError, ConnectionAbortedError):
            raise ClusterError(
                "the connection to the Ray cluster is lost; a run with a checkpoint can be resumed"
            ) from error

    def _describe(self) -> Any:
        """The network as workers take it."""
        return self.arcs

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped, and then it does not count."""
        number = self.state.round
        while not self._stopped:
            try:
                if self._schedule is not schedule:
                    self._take(schedule)
                    if self.state.round != number:
                        return True
                    if self._stopped:
                        return False
                if not self._do(number):
                    return False
                if self.state.round > number:
                    self._losses = 0
                return True
            except self._ray.exceptions.RayError as error:
                self._recover(error)
                if self.state.round != number:
                    # a survivor had it already, or it goes on from what was kept
                    return True
        return False

    def _do(self, number: int) -> bool:
        """Compute a round and commit it; False if it was stopped before it was whole."""
        raise NotImplementedError

    def _take(self, schedule: Schedule) -> None:
        """Have all workers begin where the state is, by a schedule."""
        self.collect()
        self._schedule, self._sent = schedule, self._ray.put(schedule)
        self._ask(lambda: self._begin(schedule))

    def _begin(self, schedule: Schedule) -> None:
        """Have all workers begin where the state is, each with its share of the nodes."""
        raise NotImplementedError

    def _hand_out(self, read: Callable[[int, int], Any]) -> None:
        """Give workers the rows that `read` refers to, a few at a time: the object store need not hold them all."""
        nodes = len(self._updates)
        step = max(1, LARGE_PIECE // sum(4 * table.shape[1] for table in self.state.tables))
        for first in range(0, nodes, step):
            rows = read(first, min(nodes, first + step))
            self._ray.get([worker.fill.remote(first, rows) for worker in self._workers])

    def _read_state(self, first: int, last: int) -> Any:
        rows: NodeRows = [table[first:last] for table in self.state.tables], self._updates[first:last]
        return self._ray.put(rows)

    @property
    def pairs(self) -> int:
        """Update pairs made, with those that the state began with."""
        return self.state.pairs

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Update pairs that each node has made with this engine."""
        self.collect()
        return self._updates

    @property
    def sent(self) -> int:
        """Bytes that workers have given to each of the others."""
        return int(self._ask(lambda: sum(self._ray.get([worker.count_sent.remote() for worker in self._workers]))))

    def settle(self) -> None:
        """Fetch all vectors; if all workers are lost on the way, the state is that which was kept last."""
        self.collect()

    def smooth(self) -> None:
        """Pass the vectors through the filter of the network, here; no rounds follow, so workers leave."""
        self.collect()
        self._leave()
        smooth(self.state.tables[0], self._neighbours)

    def collect(self) -> None:
        """Bring the state's tables up to date; they are once workers have left."""
        if self._schedule is None or not self._workers:
            return

        def collect() -> None:
            # all of it is here before any of it counts
            for first, (tables, updates) in self._ray.get([worker.own.remote() for worker in self._workers]):
                for table, found in zip(self.state.tables, tables, strict=True):
                    table[first : first + len(found)] = found
                self._updates[first : first + len(updates)] = updates

        self._ask(collect)
        self._kept = (self.state.round, self.state.pairs)

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows of a table as they are now, shape (len(rows), m)."""
        if self._schedule is None:
            return self.state.rows(table, rows)
        found = np.zeros((len(rows), self.state.dimensions), dtype=np.float32)
        asked = self._ask(lambda: self._ray.get([worker.rows.remote(table, rows) for worker in self._workers]))
        for places, some in asked:
            found[places] = some
        return found

    def is_finite(self) -> bool:
        """Whether all vectors are."""
        if self._schedule is None:
            return self.state.is_finite()
        return self._ask(lambda: all(self._ray.get([worker.is_finite.remote() for worker in self._workers])))

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Update pairs a second of all workers, tried for about this long; moves nothing."""
        self._take(schedule)
        return self._ask(
            lambda: float(sum(self._ray.get([worker.measure.remote(self._sent, seconds) for worker in self._workers])))
        )

    def _ask(self, question: Callable[[], Found]) -> Found:
        """Ask workers; those that are lost are replaced first."""
        while True:
            try:
                return question()
            except self._ray.exceptions.RayError as error:
                self._recover(error)

    # workers

    def _hire(self) -> None:
        """Start workers until there are as many as wanted; those that do not start in time are left out."""
        for name, group in (("take", _ASIDE), ("stop", _CONTROL), ("is_there", _CONTROL)):
            getattr(self._worker, name).__ray_concurrency_group__ = group
        as_actor = self._ray.remote(
            num_cpus=self._settings.threads,
            scheduling_strategy="SPREAD",
            max_restarts=0,
            concurrency_groups={_ASIDE: 2, _CONTROL: 1},
        )
        actor = as_actor(self._worker)
        new = [actor.remote(self._settings) for _ in range(self._wanted - len(self._workers))]
        trouble = f"none came within {_PATIENCE:.0f} seconds"
        try:
            asked = {worker.is_there.remote(): worker for worker in new}
            ready, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=_PATIENCE) if asked else ([], [])
            for one in ready:
                try:
                    self._ray.get(one)
                    self._workers.append(asked[one])
                except self._ray.exceptions.RayError as error:
                    trouble = last_line(error)
        finally:
            for worker in new:
                if worker not in self._workers:
                    self._ray.kill(worker)
        if 0 < len(self._workers) < self._wanted:
            warnings.warn(
                f"goes on with {len(self._workers)} of {count(self._wanted, 'worker')}", ManelaWarning, stacklevel=2
            )
        if not self._workers:
            raise ClusterError(f"no worker could be started on the cluster: {trouble}")

    def _recover(self, error: Exception) -> None:
        """Go on after workers were lost: with a survivor's vectors, or with those that were kept last."""
        warnings.warn(f"a worker was lost and is replaced: {last_line(error)}", ManelaWarning, stacklevel=2)
        while True:
            self._losses += 1
            if self._losses > _MOST_LOSSES:
                raise ClusterError(f"workers are lost again and again: {last_line(error)}") from error
            try:
                self._begin_again()
                return
            except self._ray.exceptions.RayError as again:
                error = again

    def _begin_again(self) -> None:
        self._find_survivors()
        self._hire()
        self.state.round, self.state.pairs = self._kept
        if self._schedule is not None:
            self._begin(self._schedule)

    def _find_survivors(self) -> dict[Any, tuple[int, int] | None]:
        """Keep the workers that answer; returns where each of them is."""
        found = {}
        for worker in self._workers:
            try:
                self._ray.get(worker.is_there.remote(), timeout=_PATIENCE)
                # behind whatever it still computes or commits
                found[worker] = self._ray.get(worker.where.remote())
            except self._ray.exceptions.RayError:
                self._ray.kill(worker)
        self._workers = list(found)
        return found

    def _leave(self) -> None:
        """Leave nothing on the cluster."""
        try:
            # where the connection is lost, asking Ray would start one on this machine
            for worker in self._workers if self._ray.is_initialized() else []:
                with contextlib.suppress(ConnectionError):
                    self._ray.kill(worker)
        finally:
            self._workers = []
            self._network = self._sent = None
            if self._started:
                self._ray.shutdown()
            self._started = False
