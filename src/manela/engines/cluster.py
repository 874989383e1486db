"""The Ray engine: rounds on the machines of a Ray cluster, each worker with a part of the nodes."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import prepare_arcs
from manela.engines.memory import count_store_bytes
from manela.engines.neighbours import Neighbours
from manela.engines.part import ASIDE, CONTROL, Part, Rows, divide
from manela.engines.smoothing import smooth
from manela.engines.start import start
from manela.engines.state import State
from manela.engines.threads import Threads
from manela.errors import ClusterError, ManelaWarning, import_extra
from manela.graph import Graph
from manela.kernels.layout import Table
from manela.schedule import Schedule
from manela.settings import Settings

Found = TypeVar("Found")

_LARGE_PIECE = 1 << 23
"""Bytes from which on a worker's round is cut into pieces, of which one travels while the next is computed."""
_PATIENCE = 300.0
"""Seconds until a worker must have started."""
_KNOCK = 10.0
"""Seconds until something must listen at an address."""
_TOKEN_HINT = (
    "; if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (`ray get-auth-token` there prints it), "
    "before Ray is imported"
)
_MOST_LOSSES = 20
"""Times that workers may be lost without a round done in between."""


class RayEngine:
    """Moves a state through the rounds on a cluster; `stop` may be called from any thread and ends a round unfinished.

    Every worker has all vectors and moves those of its own nodes; after a round, what moved goes to all. A worker that
    is lost is replaced, or its nodes go to the others, and the round is done again.

    Attributes
    ----------
    name : str
        With the number of workers.
    state : State
        Its round and pairs are right at all times, its tables after `collect`.
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self._is_client = is_client(settings.address)
        if self._is_client:
            _bring_token()
        self._ray = import_extra("ray", "cluster", "engine 'ray'")
        self.arcs, self._graph, self._threads = prepare_arcs(graph), graph, Threads(settings.threads)
        self.state = state = state or start(graph, settings, lambda: self._neighbours)
        self._stopped = False
        self._kept = (state.round, state.pairs)
        self._updates = np.zeros(graph.number_of_nodes, dtype=np.int64)
        self._pieces = 1
        self._schedule: Schedule | None = None
        self._workers: list[Any] = []
        self._losses = self._attempt = 0
        self._started = connect(self._ray, settings.address)
        try:
            found = machines(self._ray)
            self._wanted, threads = share_out(found, settings.workers, settings.requested_threads)
            check_store(found, count_store_bytes(graph, settings))
            self._settings = replace(settings, threads=threads)
            self._arcs = self._ray.put(self.arcs)
            self._hire()
        except self._ray.exceptions.RayError as error:
            self._leave()
            raise ClusterError(f"the Ray cluster does not take the network: {_last_line(error)}") from error
        except BaseException as error:
            self._leave()
            self._threads.close()
            self._translate(error)
            raise
        self.name = f"ray, {_count(len(self._workers), 'worker')} with {_count(threads, 'thread')} each"

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours.of(self._graph, self.arcs, 1, self._threads)

    def __enter__(self) -> RayEngine:
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

    def stop(self, *, keep: bool = True) -> None:  # noqa: ARG002
        """End the round that is being computed, within moments; nothing of it counts."""
        self._stopped = True
        for worker in self._workers:
            worker.stop.remote()

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped, and then nothing has moved."""
        if self._schedule is not schedule:
            self._take(schedule)
        number = self.state.round
        while not self._stopped:
            try:
                if not self._do(number):
                    return False
                self._losses = 0
                return True
            except self._ray.exceptions.RayError as error:
                self._mend(error)
                if self.state.round != number:
                    # a survivor had it already, or all were lost and it goes on from what was kept
                    return True
        return False

    def _take(self, schedule: Schedule) -> None:
        """Have all workers begin where the state is, by a schedule."""
        self.collect()
        self._schedule, self._sent = schedule, self._ray.put(schedule)
        iterations = np.minimum(schedule.iterations / schedule.rounds, 1.0).sum()
        moved = iterations * sum(table.shape[1] for table in self.state.tables) * 4 / len(self._workers)
        self._pieces = 1 + min(2, int(moved / _LARGE_PIECE))
        self._ask(lambda: self._begin(self._read_state))

    def _read_state(self, first: int, last: int) -> Any:
        rows: Rows = [table[first:last] for table in self.state.tables], self._updates[first:last]
        return self._ray.put(rows)

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

    # what others see

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

    def has_grown(self) -> bool:
        """Whether the learning rate may fall; by walks it always does."""
        return True

    def settle(self) -> None:
        """Fetch all vectors; if all workers are lost on the way, the state is that which was kept last."""
        self.collect()

    def smooth(self) -> None:
        """Pass the vectors through the filter of the network, here; no rounds follow, so workers leave."""
        self.collect()
        self._leave()
        smooth(self.state.tables[0], self._neighbours, self._graph.strengths)

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
        found: Table = self._ask(lambda: self._ray.get(self._workers[0].rows.remote(table, rows)))
        return found

    def is_finite(self) -> bool:
        """Whether all vectors are."""
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
                self._mend(error)

    # workers

    def _hire(self) -> None:
        """Start workers until there are as many as wanted; those that do not start in time are left out."""
        as_actor = self._ray.remote(
            num_cpus=self._settings.threads,
            scheduling_strategy="SPREAD",
            max_restarts=0,
            concurrency_groups={ASIDE: 2, CONTROL: 1},
        )
        actor = as_actor(Part)
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
                    trouble = _last_line(error)
        finally:
            for worker in new:
                if worker not in self._workers:
                    self._ray.kill(worker)
        if 0 < len(self._workers) < self._wanted:
            warnings.warn(f"goes on with {len(self._workers)} of {self._wanted} workers", ManelaWarning, stacklevel=2)
        if not self._workers:
            raise ClusterError(f"no worker could be started on the cluster: {trouble}")

    def _begin(self, read: Callable[[int, int], Any]) -> None:
        """Have all workers begin where the state is, each with its share of the nodes, from rows that `read` refers to.

        Rows go a few at a time, so that the object store need not hold them all.
        """
        if self._schedule is None:
            return
        self._attempt += 1
        nodes = len(self._updates)
        borders = divide(self._schedule.iterations, len(self._workers)).tolist()
        begun = [
            worker.begin.remote(self._attempt, self._arcs, self._sent, first, last)
            for worker, first, last in zip(self._workers, borders[:-1], borders[1:], strict=True)
        ]
        self._ray.get(begun)
        step = max(1, _LARGE_PIECE // sum(4 * table.shape[1] for table in self.state.tables))
        for first in range(0, nodes, step):
            rows = read(first, min(nodes, first + step))
            self._ray.get([worker.fill.remote(first, rows) for worker in self._workers])
        self._ray.get([worker.ready.remote((self.state.round, self.state.pairs)) for worker in self._workers])

    def _mend(self, error: Exception) -> None:
        """Go on after workers were lost: with a survivor's vectors, or with those that were kept last."""
        warnings.warn(f"a worker was lost and is replaced: {_last_line(error)}", ManelaWarning, stacklevel=2)
        while True:
            self._losses += 1
            if self._losses > _MOST_LOSSES:
                raise ClusterError(f"workers are lost again and again: {_last_line(error)}") from error
            try:
                self._begin_again()
                return
            except self._ray.exceptions.RayError as again:
                error = again

    def _begin_again(self) -> None:
        found = {}
        for worker in self._workers:
            try:
                self._ray.get(worker.is_there.remote(), timeout=_PATIENCE)
                # behind whatever it still computes or commits
                found[worker] = self._ray.get(worker.where.remote())
            except self._ray.exceptions.RayError:
                self._ray.kill(worker)
        self._workers = list(found)
        self._hire()
        whole = {worker: at for worker, at in found.items() if at is not None}
        if whole:
            best = max(whole, key=lambda worker: whole[worker])
            self.state.round, self.state.pairs = whole[best]
            self._begin(best.read.remote)
        else:
            self.state.round, self.state.pairs = self._kept
            self._begin(self._read_state)

    def _leave(self) -> None:
        """Leave nothing on the cluster."""
        try:
            # where the connection is lost, asking Ray would start one on this machine
            for worker in self._workers if self._ray.is_initialized() else []:
                with contextlib.suppress(ConnectionError):
                    self._ray.kill(worker)
        finally:
            self._workers = []
            self._arcs = self._sent = None
            if self._started:
                self._ray.shutdown()
            self._started = False


def connect(ray: Any, address: str | None) -> bool:
    """Connect to a cluster, or start Ray on this machine; False where this process was connected before."""
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    _knock(address)
    main = threading.current_thread() is threading.main_thread()
    kept = signal.getsignal(signal.SIGTERM) if main else None
    try:
        if address is None:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        elif not is_client(address):
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        else:
            _connect_client(ray, address)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        where = f"at {address}" if address else "on this machine"
        hint = _TOKEN_HINT if is_client(address) else ""
        raise ClusterError(f"no Ray cluster answers {where}: {_last_line(error)}{hint}") from error
    finally:
        if kept is not None:
            signal.signal(signal.SIGTERM, kept)
    # Ray's client keeps the answer; to ask for it first when the connection is lost would fail
    return bool(ray.is_initialized())


def _connect_client(ray: Any, address: str) -> None:
    """Connect from outside a cluster; what Ray's client warns of and logs, its errors say too."""
    options = {"address": address, "log_to_driver": False, "logging_level": logging.CRITICAL}
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        try:
            ray.init(**options)
        except ConnectionAbortedError:
            # over there, the process that is to serve this client did not start, which happens at times
            ray.init(**options)


def is_client(address: str | None) -> bool:
    """Whether it is an address for machines outside the cluster."""
    return (address or "").startswith("ray://")


def _bring_token() -> None:
    """Have Ray show the token that it has, if any: inside a cluster it does so unasked, from outside it does not.

    Ray reads the mode when it is imported.
    """
    named = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    if named or Path("~/.ray/auth_token").expanduser().exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _knock(address: str | None) -> None:
    """Refuse an address where nobody listens; Ray would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if is_client(address) and not colon:
        raise ClusterError(f"the address must be ray://HOST:PORT, as in ray://10.0.0.1:10001, got {address}")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster answers at {address}: {error}") from error


def machines(ray: Any) -> list[dict[str, float]]:
    """What each machine of the cluster has: CPU, object_store_memory and more."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]


def share_out(found: list[dict[str, float]], workers: int | None, threads: int | None) -> tuple[int, int]:
    """How many workers, and threads of each: one worker a machine with all its cores by default."""
    if not found:
        raise ClusterError("the Ray cluster has no machine with a processor to give")
    cores = [int(machine["CPU"]) for machine in found]
    if workers is None:
        workers = len(cores) if threads is None else sum(core // threads for core in cores)
    if threads is None:
        threads = min(cores) if workers <= len(cores) else max(1, sum(cores) // workers)
        while threads > 1 and sum(core // threads for core in cores) < workers:
            threads -= 1
    room = sum(core // threads for core in cores)
    if not 1 <= workers <= room:
        raise ClusterError(
            f"{_count(workers, 'worker')} with {_count(threads, 'thread')} each do not fit: "
            f"the cluster's machines have {', '.join(map(str, cores))} cores, room for {room}"
        )
    return workers, threads


def check_store(found: list[dict[str, float]], need: int) -> None:
    """Refuse a run for which a machine's object store is too small."""
    least = min(machine.get("object_store_memory", 0) for machine in found)
    if need > least:
        raise ClusterError(
            f"Ray's object store must hold {need / 1e6:,.0f} MB on every machine, and one has {least / 1e6:,.0f} MB: "
            "start Ray with a larger --object-store-memory"
        )


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _last_line(error: BaseException) -> str:
    """What went wrong; Ray puts it behind traces."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip()[:200]
