"""The GPU engine: rounds on one card, by Triton's kernels."""

from __future__ import annotations

import time
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from subprocess import CalledProcessError
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import Arcs, prepare_arcs
from manela.engines.state import State
from manela.errors import DeviceError, ParameterError, import_extra
from manela.graph import Graph
from manela.kernels.layout import Table
from manela.params import MOST_GPU_DIMENSIONS
from manela.randomness import ROUNDS, derive, derive_key
from manela.schedule import Schedule, count_pairs, default_rounds
from manela.settings import Settings

_LONG = 3.0
"""Iterations a round from which a node's chain may be long enough for many warps."""
_SPREAD = 10_000
"""How many such chains as the shortest long one would be a round: one warp must not be at one when all else is done."""
_MOST_DRAWN = 1 << 26
"""Rows that are drawn ahead, unless one node has more in a round."""
_MOST_PLANNED = 1 << 24
"""Nodes times rounds that are planned ahead, unless one round has more."""
_BLOCK = 256


@dataclass(frozen=True)
class _Shape:
    """How a kernel cuts its work: rows that it has at once, and warps."""

    kernel: Any
    rows: int
    warps: int


@dataclass
class _Batch:
    """Some rounds, planned together.

    Attributes
    ----------
    first, last : int
        Rounds.
    nodes, rounds, counts : tensors, one item a slot
        A slot is a node in a round: which node, how many rounds after the first, its iterations.
    ends : tensor
        Where the iterations of each slot begin, and behind them where those of the last one end.
    keys : tensor
        The keys of rounds.
    borders : list of int
        Slots at which rounds begin.
    long : list of int
        Slots at which the short chains of each round begin.
    iterations : list of int
        Iterations at which rounds begin.
    """

    first: int
    last: int
    nodes: Any
    rounds: Any
    ends: Any
    counts: Any
    keys: Any
    borders: list[int]
    long: list[int]
    iterations: list[int]
    drawn: range = range(0)


class GpuEngine:
    """Moves a state through the rounds; `stop` may be called from any thread and ends between two rounds.

    Attributes
    ----------
    name : str
        With that of the card.
    state : State
        Its round is right at all times, its tables and pairs after `collect`.
    """

    def __init__(self, graph: Graph, settings: Settings, state: State) -> None:
        if settings.dimensions > MOST_GPU_DIMENSIONS:
            raise ParameterError(
                f"dimensions must be at most {MOST_GPU_DIMENSIONS} on a GPU, got {settings.dimensions}."
            )
        self._torch, self._device, self.name = open_device()
        from manela.kernels import gpu

        self._kernels = gpu
        torch, device = self._torch, self._device
        self._check_memory(graph, settings, state)
        self.state, self._settings = state, settings
        self._stopped = False
        self.arcs = prepare_arcs(graph)
        self._key = derive_key(settings.seed, ROUNDS)
        self._columns = state.tables[0].shape[1]
        hops = np.repeat(np.arange(1, len(settings.targets_by_hop) + 1), settings.targets_by_hop)
        self._width = len(hops) * (1 + settings.negatives)
        self._size = graph.number_of_nodes
        self._began = state.pairs
        self._arcs = Arcs(*(self._send(array) for array in self.arcs))
        self._hops = self._send(hops.astype(np.int32))
        self._tables = [self._send(table) for table in state.tables]
        self._narrow = settings.snapshot == "bfloat16"
        self._snapshots = [table.to(torch.bfloat16) for table in self._tables] if self._narrow else self._tables
        self._updates = torch.zeros(self._size, dtype=torch.int64, device=device)
        self._moved = [torch.empty((0, self._columns), device=device) for _ in self._tables]
        self._made = torch.empty(0, dtype=torch.int32, device=device)
        self._rows = torch.empty(0, dtype=torch.int32, device=device)
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._schedule: Schedule | None = None
        self._batch: _Batch | None = None
        self._drawn = 0
        self._padded = 1 << (self._columns - 1).bit_length()
        self._short, self._long = self._shapes()
        self._compiled: dict[Any, Any] = {}

    def _send(self, array: Any) -> Any:
        """An array on the card; None stays."""
        if array is None:
            return None
        if array.dtype == np.uint32:
            array = array.view(np.int32)
        with warnings.catch_warnings():
            # torch would warn of writing to a network's arrays, which nobody does
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return self._torch.from_numpy(array).to(self._device)

    def _check_memory(self, graph: Graph, settings: Settings, state: State) -> None:
        if self._device.type != "cuda":
            return
        torch = self._torch
        cached = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        free = torch.cuda.mem_get_info(self._device)[0] + cached
        check_room(count_bytes(graph, settings, state), free, self.name)

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped, and then nothing has moved."""
        if self._stopped:
            return False
        number = self.state.round
        with self._on_device():
            batch = self._find_batch(schedule, number)
            self._compute(batch, number, schedule.rate(number))
            self._commit(batch, number)
        self.state.round += 1
        return True

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        """In this thread too, the card is the one that was chosen."""
        if self._device.type != "cuda":
            yield
            return
        try:
            with self._torch.cuda.device(self._device):
                yield
        except self._torch.OutOfMemoryError as error:
            raise DeviceError(f"the memory of {self.name} is full: fewer dimensions, or engine 'cpu'") from error

    # planning

    def _find_batch(self, schedule: Schedule, number: int) -> _Batch:
        """The batch that holds a round."""
        if self._schedule is not schedule:
            self._take(schedule)
        if self._batch is None or not self._batch.first <= number < self._batch.last:
            self._batch = None
            self._batch = self._plan(schedule, number)
        return self._batch

    def _take(self, schedule: Schedule) -> None:
        """Sort the nodes, long chains first."""
        torch = self._torch
        iterations = self._send(schedule.iterations)
        order = torch.argsort(iterations, descending=True, stable=True)
        self._order, self._iterations = order.to(torch.int32), iterations[order]
        self._phases = self._send(schedule.phases)[order]
        self._rounds = torch.tensor(float(schedule.rounds), dtype=torch.float64, device=self._device)
        share = schedule.iterations / schedule.rounds
        self._long_nodes = int(np.count_nonzero(share >= max(_LONG, share.sum() / _SPREAD)))
        self._ahead = max(1, _MOST_PLANNED // self._size)
        self._schedule, self._batch = schedule, None

    def _plan(self, schedule: Schedule, first: int) -> _Batch:
        torch, device, size = self._torch, self._device, self._size
        last = min(schedule.rounds, first + self._ahead)
        rounds = last - first
        numbers = torch.arange(first, last + 1, dtype=torch.float64, device=device)[:, None]
        # the divisor is on the device: by a plain number torch multiplies with its inverse, which rounds otherwise
        begun = (self._iterations * numbers).div_(self._rounds).add_(self._phases).floor_()
        counts = (begun[1:] - begun[:-1]).reshape(-1)
        active = counts.nonzero().squeeze(1)
        counts = counts[active].to(torch.int32)
        ends = torch.cat((torch.zeros(1, dtype=torch.int64, device=device), torch.cumsum(counts, 0, dtype=torch.int64)))
        of = active // size
        begins = torch.arange(rounds + 1, device=device) * size
        borders = torch.searchsorted(active, torch.cat((begins, begins[:-1] + self._long_nodes)))
        found = torch.cat((borders, ends[borders[: rounds + 1]])).tolist()
        keys = derive(self._key, np.arange(first, last))
        return _Batch(
            first, last, self._order[active - of * size], of.to(torch.int32), ends, counts,
            self._send(keys.view(np.int64)), found[: rounds + 1], found[rounds + 1 : 2 * rounds + 1],
            found[2 * rounds + 1 :],
        )  # fmt: skip

    # computing

    def _shapes(self) -> tuple[_Shape, _Shape]:
        """For nodes with few iterations in a round, of which many run side by side, and for those with many."""
        padded, needed = self._padded, 1 << (self._width - 1).bit_length()
        short = _Shape(self._kernels.absorb, max(4, 512 // padded), max(1, padded // 256))
        if padded <= 256 and needed <= 128:
            return short, _Shape(self._kernels.absorb_long, needed, 4 * max(1, padded // 128))
        return short, _Shape(self._kernels.absorb, min(needed, max(4, 32768 // padded)), 16)

    def _compute(self, batch: _Batch, number: int, rate: float) -> None:
        """Write where the nodes go in a round beside the tables, and the update pairs they make."""
        torch, at = self._torch, number - batch.first
        first, last = batch.borders[at], batch.borders[at + 1]
        if len(self._made) < last - first:
            room = min(self._size, (last - first) * 9 // 8)
            self._moved = [torch.empty((0, self._columns), device=self._device) for _ in self._tables]
            self._moved = [torch.empty((room, self._columns), device=self._device) for _ in self._tables]
            self._made = torch.empty(room, dtype=torch.int32, device=self._device)
        for piece in self._pieces(batch, at):
            long = min(max(batch.long[at], piece.start), piece.stop)
            self._absorb(batch, first, piece.start, long, rate, self._long, self._side)
            self._absorb(batch, first, long, piece.stop, rate, self._short, None)
            if self._side is not None and long > piece.start:
                torch.cuda.current_stream().wait_stream(self._side)

    def _pieces(self, batch: _Batch, at: int) -> Iterator[range]:
        """The slots of a round, in pieces whose rows are drawn; if there is room, those of later rounds are too."""
        first, last = batch.borders[at], batch.borders[at + 1]
        if first in batch.drawn and last <= batch.drawn.stop:
            yield range(first, last)
            return
        most = max(1, _MOST_DRAWN // self._width)
        fits = bisect_right(batch.iterations, batch.iterations[at] + most) - 1
        if fits > at:
            self._draw(batch, first, batch.borders[fits], batch.iterations[at], batch.iterations[fits])
            yield range(first, last)
            return
        begin, end = batch.iterations[at], batch.iterations[at + 1]
        limits = self._torch.arange(begin + most, end, most, device=self._device)
        cuts = self._torch.searchsorted(batch.ends[first : last + 1], limits, right=True).add_(first - 1)
        borders = sorted({first, last, *cuts.tolist()})
        begins = batch.ends[self._torch.tensor(borders, device=self._device)].tolist()
        for (one, two), (start, stop) in zip(pairwise(borders), pairwise(begins), strict=True):
            self._draw(batch, one, two, start, stop)
            yield range(one, two)

    def _draw(self, batch: _Batch, first: int, last: int, begin: int, end: int) -> None:
        """Draw the rows of some slots, whose iterations these are."""
        torch, targets = self._torch, len(self._hops)
        if len(self._rows) < (end - begin) * self._width:
            self._rows = torch.empty(0, dtype=torch.int32, device=self._device)
            self._rows = torch.empty((end - begin) * self._width * 9 // 8, dtype=torch.int32, device=self._device)
        slots = torch.repeat_interleave(
            torch.arange(first, last, dtype=torch.int32, device=self._device), batch.counts[first:last],
            output_size=end - begin,
        )  # fmt: skip
        pairs = (end - begin) * targets
        self._launch(
            self._kernels.draw, -(-pairs // _BLOCK), None, 4,
            slots, batch.nodes, batch.rounds, batch.ends, batch.keys, self._hops, *self._arcs,
            self._rows, pairs, begin, self._size, targets, self._settings.negatives, len(self._settings.targets_by_hop),
            WEIGHTED=self._arcs.thresholds is not None, BLOCK=_BLOCK,
        )  # fmt: skip
        batch.drawn, self._drawn = range(first, last), begin

    def _absorb(
        self, batch: _Batch, round_first: int, first: int, last: int, rate: float, shape: _Shape, stream: Any
    ) -> None:
        """Move the nodes of some slots beside the tables."""
        if last <= first:
            return
        if stream is not None:
            stream.wait_stream(self._torch.cuda.current_stream())
        for own, moved in enumerate(self._moved):
            self._launch(
                shape.kernel, last - first, stream, shape.warps,
                batch.nodes, batch.ends, batch.counts, self._rows, self._tables[own],
                self._snapshots[len(self._moved) - 1 - own], moved, self._made, float(np.float32(rate)),
                first, first - round_first, self._drawn, self._width, self._columns,
                GROUP=1 + self._settings.negatives, COLUMNS=self._padded, ROWS=shape.rows,
                EVEN=self._padded == self._columns,
            )  # fmt: skip

    def _commit(self, batch: _Batch, number: int) -> None:
        at = number - batch.first
        first, last = batch.borders[at], batch.borders[at + 1]
        rows = max(1, 1024 // self._padded)
        for k, (table, snapshot, moved) in enumerate(zip(self._tables, self._snapshots, self._moved, strict=True)):
            self._launch(
                self._kernels.commit, -(-(last - first) // rows), None, 4,
                batch.nodes, moved, self._made, table, snapshot, self._updates, first, last - first, self._columns,
                COLUMNS=self._padded, ROWS=rows, NARROW=self._narrow, COUNT=k == 0,
            )  # fmt: skip

    def _launch(self, kernel: Any, programs: int, stream: Any, warps: int, *arguments: Any, **constants: Any) -> None:
        """Run a kernel; what was compiled once is called without a look at every argument's kind again."""
        if programs == 0:
            return
        key = (kernel, warps, *constants.values())
        compiled = self._compiled.get(key)
        if compiled is not None:
            compiled[programs, 1, 1](
                *arguments, *constants.values(), stream=None if stream is None else stream.cuda_stream
            )
            return
        with self._torch.cuda.stream(stream) if stream is not None else nullcontext():
            compiled = kernel[programs,](*arguments, **constants, num_warps=warps)
        if self._device.type == "cuda":
            self._compiled[key] = compiled

    # what others see

    def __enter__(self) -> GpuEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._wait()

    def stop(self, *, keep: bool = True) -> None:  # noqa: ARG002
        """End before the next round."""
        self._stopped = True

    def has_grown(self) -> bool:
        """Whether the learning rate may fall; by walks it always does."""
        return True

    def collect(self) -> None:
        """Bring the state's tables and pairs up to date."""
        for table, here in zip(self.state.tables, self._tables, strict=True):
            self._torch.from_numpy(table).copy_(here)
        self.state.pairs = self.pairs

    @property
    def pairs(self) -> int:
        """Update pairs made, with those that the state began with."""
        return self._began + int(self._updates.sum())

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Update pairs that each node has made with this engine."""
        found: npt.NDArray[np.int64] = self._updates.cpu().numpy()
        return found

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows of a table as they are now, shape (len(rows), m)."""
        found: Table = self._tables[table][self._send(rows)].cpu().numpy()
        return found[:, : self.state.dimensions]

    def is_finite(self) -> bool:
        """Whether all vectors are."""
        with self._on_device():
            return all(
                bool(self._torch.isfinite(self._torch.stack(self._torch.aminmax(table))).all())
                for table in self._tables
            )

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Update pairs a second, those with dropped targets too, tried for about this long; moves nothing."""
        number, pairs, begun = 0, 0, 0.0
        while number < 2 or (time.perf_counter() - begun < seconds and not self._stopped):
            with self._on_device():
                batch = self._find_batch(schedule, number % schedule.rounds)
                at = number % schedule.rounds - batch.first
                self._compute(batch, number % schedule.rounds, 0.0)
                self._wait()
            if number == 0:
                begun = time.perf_counter()  # kernels are there now
            else:
                pairs += (batch.iterations[at + 1] - batch.iterations[at]) * len(self._hops)
            number += 1
        return max(1.0, pairs / (time.perf_counter() - begun))

    def _wait(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)


def count_bytes(graph: Graph, settings: Settings, state: State) -> int:
    """The memory that a run needs on a GPU, roughly."""
    nodes, row, tables = graph.number_of_nodes, 4 * state.tables[0].shape[1], len(state.tables)
    rounds = settings.rounds or default_rounds(nodes)
    iterations = nodes if settings.max_seconds else count_pairs(graph, settings) / sum(settings.targets_by_hop) / rounds
    moved = int(min(nodes, iterations + 1))
    arcs = graph.indptr.nbytes + graph.indices.nbytes + (0 if graph.weights is None else 8 * len(graph.indices))
    width = sum(settings.targets_by_hop) * (1 + settings.negatives)
    planned = 8 * 6 * max(_MOST_PLANNED, 2 * nodes) if nodes * rounds > _MOST_PLANNED else 8 * 6 * nodes * rounds
    drawn = int(5 * min(_MOST_DRAWN, iterations * width * rounds))
    narrow = row // 2 if settings.snapshot == "bfloat16" else 0
    return int(tables * (row * (nodes + moved) + narrow * nodes) + arcs + 28 * nodes + planned + drawn)


def check_room(need: int, free: int, name: str) -> None:
    """Refuse a run that a card has no room for."""
    if need > free:
        raise DeviceError(
            f"the GPU needs {need / 1e9:.1f} GB for this, and of {name} {free / 1e9:.1f} GB are free: "
            "fewer dimensions, more rounds, or engine 'cpu'"
        )


def open_device() -> tuple[Any, Any, str]:
    """torch, the GPU and its name, or why there is none."""
    torch = import_extra("torch", "gpu", "engine 'gpu'")
    triton = import_extra("triton", "gpu", "engine 'gpu'")
    if torch.cuda.is_available():
        device = torch.device("cuda", torch.cuda.current_device())
        name = f"gpu, {torch.cuda.get_device_name(device)}"
        try:
            triton.runtime.driver.active.get_current_target()  # builds what all kernels are started by
        except (RuntimeError, OSError, CalledProcessError) as error:
            why = f"{error.cmd[0]} failed" if isinstance(error, CalledProcessError) else str(error).partition("\n")[0]
            raise DeviceError(f"Triton cannot build for {name}; it needs a C compiler, as gcc: {why}") from error
        return torch, device, name
    if triton.knobs.runtime.interpret:
        return torch, torch.device("cpu"), "gpu, interpreted"
    if torch.version.cuda is None:
        raise DeviceError(
            "engine 'gpu' needs a torch for NVIDIA GPUs, and the one installed is for processors only: "
            "reinstall torch, or use engine 'cpu'"
        )
    raise DeviceError("engine 'gpu' needs an NVIDIA GPU, and torch finds none: see `nvidia-smi`, or use engine 'cpu'")
