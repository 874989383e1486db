"""The GPU engine for rounds with walks, with Triton kernels."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from manela.data.graph import Graph
from manela.engines.estimate import MOST_DRAWN
from manela.engines.gpu.engine import GpuEngine
from manela.engines.gpu.planning import Batch, Plan
from manela.engines.state import State
from manela.kernels.layout import Arcs
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings

_BLOCK = 256


@dataclass(frozen=True)
class _Shape:
    """How the kernel is launched: rows processed at once, warps, and whether it prefetches for many iterations."""

    rows: int
    warps: int
    is_long: bool


class GpuWalkEngine(GpuEngine):
    """Runs rounds with walks: rows are drawn ahead, and new vectors are written beside the tables, then committed."""

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        super().__init__(graph, settings, state)
        from manela.kernels.gpu import walks as gpu_walks

        self._kernels = gpu_walks
        card, torch = self._card, self._card.torch
        hops = np.repeat(np.arange(1, len(settings.targets_by_hop) + 1), settings.targets_by_hop)
        self._width = len(hops) * (1 + settings.negatives)
        self._arcs = Arcs(*(card.send(array) for array in self.arcs))
        self._hops = card.send(hops.astype(np.int32))
        self._narrow = settings.snapshot == "bfloat16"
        self._snapshots = [table.to(torch.bfloat16) for table in self._tables] if self._narrow else self._tables
        self._moved = [card.empty(0, self._columns) for _ in self._tables]
        self._made = card.empty(0, kind="int32")
        self._rows = card.empty(0, kind="int32")
        self._side = torch.cuda.Stream(card.device) if card.is_real else None
        self._plan: Plan | None = None
        self._drawn = 0
        self._short, self._long = self._shapes()

    def has_grown(self) -> bool:
        """Whether the learning rate may fall; always True with walks."""
        return True

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; return False if the engine was stopped before."""
        if self._stopped:
            return False
        number = self.state.round
        with self._card.active():
            batch = self._find_batch(schedule, number)
            self._compute(batch, number, schedule.rate(number))
            self._commit(batch, number)
        self.state.round += 1
        return True

    def _find_batch(self, schedule: Schedule, number: int) -> Batch:
        """Return the batch that contains a round."""
        if self._plan is None or self._plan.schedule is not schedule:
            self._plan = Plan(self._card, schedule, self._settings.seed)
        return self._plan.find(number)

    def _shapes(self) -> tuple[_Shape, _Shape]:
        """Return launch shapes for nodes with few iterations per round, many in parallel, and for those with many."""
        padded, needed = self._padded, 1 << (self._width - 1).bit_length()
        short = _Shape(max(4, 512 // padded), max(1, padded // 256), is_long=False)
        if padded <= 256 and needed <= 128:
            return short, _Shape(needed, 4 * max(1, padded // 128), is_long=True)
        return short, _Shape(min(needed, max(4, 32768 // padded)), 16, is_long=False)

    def _compute(self, batch: Batch, number: int, rate: float) -> None:
        """Compute the new vectors of a round beside the tables, and the update pairs."""
        torch, at = self._card.torch, number - batch.first
        first, last = batch.borders[at], batch.borders[at + 1]
        if len(self._made) < last - first:
            room = min(self._size, (last - first) * 9 // 8)
            self._moved = [self._card.empty(0, self._columns) for _ in self._tables]
            self._moved = [self._card.empty(room, self._columns) for _ in self._tables]
            self._made = self._card.empty(room, kind="int32")
        for piece in self._pieces(batch, at):
            long = min(max(batch.long[at], piece.start), piece.stop)
            self._absorb(batch, first, piece.start, long, rate, self._long, self._side)
            self._absorb(batch, first, long, piece.stop, rate, self._short, None)
            if self._side is not None and long > piece.start:
                torch.cuda.current_stream().wait_stream(self._side)

    def _pieces(self, batch: Batch, at: int) -> Iterator[range]:
        """Yield the slots of a round in pieces, after drawing their rows, and those of later rounds if they fit."""
        first, last = batch.borders[at], batch.borders[at + 1]
        if first in batch.drawn and last <= batch.drawn.stop:
            yield range(first, last)
            return
        most = max(1, MOST_DRAWN // self._width)
        fits = bisect_right(batch.iterations, batch.iterations[at] + most) - 1
        if fits > at:
            self._draw(batch, first, batch.borders[fits], batch.iterations[at], batch.iterations[fits])
            yield range(first, last)
            return
        begin, end = batch.iterations[at], batch.iterations[at + 1]
        limits = self._card.torch.arange(begin + most, end, most, device=self._card.device)
        cuts = self._card.torch.searchsorted(batch.ends[first : last + 1], limits, right=True).add_(first - 1)
        borders = sorted({first, last, *cuts.tolist()})
        begins = batch.ends[self._card.torch.tensor(borders, device=self._card.device)].tolist()
        for (low, high), (start, stop) in zip(pairwise(borders), pairwise(begins), strict=True):
            self._draw(batch, low, high, start, stop)
            yield range(low, high)

    def _draw(self, batch: Batch, first: int, last: int, begin: int, end: int) -> None:
        """Draw the rows for the slots first … last − 1, which are the iterations begin … end − 1."""
        torch, targets = self._card.torch, len(self._hops)
        if len(self._rows) < (end - begin) * self._width:
            self._rows = self._card.empty(0, kind="int32")
            self._rows = self._card.empty((end - begin) * self._width * 9 // 8, kind="int32")
        slots = torch.repeat_interleave(
            torch.arange(first, last, dtype=torch.int32, device=self._card.device), batch.counts[first:last],
            output_size=end - begin,
        )  # fmt: skip
        pairs = (end - begin) * targets
        self._card.launch(
            self._kernels.draw, -(-pairs // _BLOCK),
            slots, batch.nodes, batch.rounds, batch.ends, batch.keys, self._hops, *self._arcs,
            self._rows, pairs, begin, self._size, targets, self._settings.negatives, len(self._settings.targets_by_hop),
            WEIGHTED=self._arcs.thresholds is not None, BLOCK=_BLOCK,
        )  # fmt: skip
        batch.drawn, self._drawn = range(first, last), begin

    def _absorb(
        self, batch: Batch, round_first: int, first: int, last: int, rate: float, shape: _Shape, stream: Any
    ) -> None:
        """Compute the new vectors of the nodes of some slots."""
        if last <= first:
            return
        if stream is not None:
            stream.wait_stream(self._card.torch.cuda.current_stream())
        for own, moved in enumerate(self._moved):
            self._card.launch(
                self._kernels.absorb, last - first,
                batch.nodes, batch.ends, batch.counts, self._rows, self._tables[own],
                self._snapshots[len(self._moved) - 1 - own], moved, self._made, float(np.float32(rate)),
                first, first - round_first, self._drawn, self._width, self._columns,
                GROUP=1 + self._settings.negatives, COLUMNS=self._padded, ROWS=shape.rows,
                EVEN=self._padded == self._columns, LONG=shape.is_long, warps=shape.warps, stream=stream,
            )  # fmt: skip

    def _commit(self, batch: Batch, number: int) -> None:
        """Copy the new vectors of a round to the tables and to what others read."""
        at = number - batch.first
        first, last = batch.borders[at], batch.borders[at + 1]
        rows = max(1, 1024 // self._padded)
        for k, (table, snapshot, moved) in enumerate(zip(self._tables, self._snapshots, self._moved, strict=True)):
            self._card.launch(
                self._kernels.commit, -(-(last - first) // rows),
                batch.nodes, moved, self._made, table, snapshot, self._updates, first, last - first, self._columns,
                COLUMNS=self._padded, ROWS=rows, NARROW=self._narrow, COUNT=k == 0,
            )  # fmt: skip

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure update pairs per second, including dropped targets, for about `seconds`; changes no vector."""
        number, pairs, started = 0, 0, 0.0
        while number < 2 or (time.perf_counter() - started < seconds and not self._stopped):
            with self._card.active():
                batch = self._find_batch(schedule, number % schedule.rounds)
                at = number % schedule.rounds - batch.first
                self._compute(batch, number % schedule.rounds, 0.0)
                self._card.wait()
            if number == 0:
                started = time.perf_counter()  # kernels are compiled now
            else:
                pairs += (batch.iterations[at + 1] - batch.iterations[at]) * len(self._hops)
            number += 1
        return max(1.0, pairs / (time.perf_counter() - started))
