"""The GPU engine: rounds by messages, with Triton kernels."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.estimate import MOST_PLANNED, count_gpu_bytes
from manela.engines.gpu.card import Card
from manela.engines.gpu.neighbours import CardNeighbours, draw_first_vectors
from manela.engines.gpu.spectral import CardViews
from manela.engines.rounds.neighbours import prepare_arcs
from manela.engines.state import State, Sweeping
from manela.kernels import moments
from manela.kernels.layout import Table, allocate
from manela.kernels.randomness import CONTEXTS, NEGATIVES, ROUNDS, VECTORS, derive, derive_key, scale_to
from manela.kernels.reference import BLOCKS
from manela.settings.budget import Sizes, count_negatives
from manela.settings.schedule import GROWN, Schedule
from manela.settings.settings import Settings

PRECISION = "float16"
"""Precision in which nodes and negatives are multiplied; a key of _OPERANDS."""
_OPERANDS = {
    "float16": ("float16", "tf32"),
    "bfloat16": ("bfloat16", "tf32"),
    "tf32": ("float32", "tf32"),
    "tf32x3": ("float32", "tf32x3"),
}
"""The dtype of the operands and Triton's input precision, for each precision."""
_LARGE_TILE = 32768
"""Numbers in a tile of negatives; more do not fit into a multiprocessor's memory."""
_BLOCK = 256
TILE, WARPS = 64, 4
"""Nodes in a tile, for up to 128 dimensions, and the warps that multiply it."""
_NEGATIVES = 32
"""Negatives that are multiplied at once; more do not fit into registers."""
_MOST_CHOSEN = 1 << 20
"""Negatives drawn ahead; more take more memory on small networks with many rounds."""
PULLED = 4
"""Targets that a program reads at once; more leave fewer registers for other programs."""


class GpuEngine:
    """Holds the vectors on a card; nodes move in place, and read what others showed at the start of the round.

    `stop` may be called from any thread, and takes effect between two rounds unless the state is not kept.
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self._card = card = Card()
        card.check(settings.dimensions, count_gpu_bytes(graph, settings))
        self.name, self._graph, self._settings = card.name, graph, settings
        self._stopped = self._abandoned = False
        self.arcs = prepare_arcs(graph)
        self._size = graph.number_of_nodes
        with card.active():
            if state is None:
                tables = [allocate(self._size, settings.dimensions) for _ in range(1 + settings.context)]
                state = State(tables, settings.dimensions)
                self._tables = self._begin(state)
            else:
                self._tables = [card.send(table) for table in state.tables]
            self._updates = card.zeros(self._size, kind="int64")
        self.state, self._initial_pairs = state, state.pairs
        with card.active():
            self._views = CardViews(card, self._neighbours, self._tables, state, settings)
        self._columns = self._tables[0].shape[1]
        self._padded = 1 << (self._columns - 1).bit_length()
        self._prepare_rounds()

    def _prepare_rounds(self) -> None:
        """Allocate what nodes show, and set what stays the same in all rounds."""
        from manela.kernels.gpu import messages as gpu_messages

        self._kernels = gpu_messages
        card, settings = self._card, self._settings
        self._hops = len(settings.targets_by_hop)
        with card.active():
            self._shares = self._neighbours.find_shares()
            self.shown = [card.empty(self._hops * self._size, self._columns, kind="float16") for _ in self._tables]
        self._hop_of_target = card.send(np.repeat(np.arange(self._hops), settings.targets_by_hop).astype(np.int64))
        self._targets = sum(settings.targets_by_hop)
        self._amount = count_negatives(settings, Sizes.of(self._graph.indptr)) * self._targets
        self._keys = derive_key(settings.seed, ROUNDS), derive_key(settings.seed, NEGATIVES)
        self._schedule: Schedule | None = None
        self.planned = range(0)
        self._nodes: Any = None
        self._counts: Any = None
        self.chosen: Any = None
        self._rows = max(16, min(_NEGATIVES, _LARGE_TILE // self._padded))
        self._kind, self._way = _OPERANDS[PRECISION]
        self._room = [card.zeros(0, 0, 0) for _ in self._tables]
        self._kept = card.empty(0, kind="int32")

    def _begin(self, state: State) -> list[Any]:
        tables = [self._card.empty(*table.shape) for table in state.tables]
        for table, purpose in zip(tables, (VECTORS, CONTEXTS), strict=False):
            draw_first_vectors(self._card, table, state.dimensions, self._settings.seed, purpose)
        if self._settings.starts_by_sweeps:
            state.sweeping = Sweeping()
        return tables

    @cached_property
    def _neighbours(self) -> CardNeighbours:
        return CardNeighbours(self._card, self._graph, self.arcs, len(self._settings.targets_by_hop))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._card.wait()

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; return False if it was stopped before, or abandoned and does not count."""
        if self._stopped:
            return False
        with self._card.active():
            self.show()
            self._move(schedule, self.state.round, schedule.rate(self.state.round))
        if self._abandoned:
            return False
        self.state.round += 1
        return True

    def stop(self, *, keep: bool = True) -> None:
        """Stop after the current round, or at once if the state is not kept."""
        self._stopped, self._abandoned = True, self._abandoned or not keep

    def has_grown(self) -> bool:
        """Whether vectors lie far enough apart for the learning rate to fall."""
        with self._card.active():
            return self._neighbours.measure_spread(self._tables[0]) >= GROWN

    @property
    def is_sweeping(self) -> bool:
        """Whether sweeps are left to do before the rounds."""
        return self._views.is_due

    def sweep(self) -> int | None:
        """Do the next sweep and return how many are done; None if it was stopped before."""
        if self._stopped:
            return None
        with self._card.active():
            return self._views.sweep()

    def finish(self) -> None:
        """Smooth the vectors and join the views, as the settings require, after the last round."""
        self.shown, self._shares, self.planned = [], None, range(0)  # this needs the memory
        with self._card.active():
            self._views.finish()

    def settle(self) -> None:
        """Do nothing: rounds on a card are not lost."""

    def collect(self) -> None:
        """Bring the state's tables and pairs up to date."""
        for table, on_card in zip(self.state.tables, self._tables, strict=True):
            self._card.torch.from_numpy(table).copy_(on_card)
        self._views.collect()
        self.state.pairs = self.pairs

    @property
    def pairs(self) -> int:
        """Number of update pairs made, including those of the initial state."""
        return self._initial_pairs + int(self._updates.sum())

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Number of update pairs of each node with this engine."""
        updates: npt.NDArray[np.int64] = self._updates.cpu().numpy()
        return updates

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Return the current vectors of some rows of a table, shape (len(rows), m)."""
        padded: Table = self._tables[table][self._card.send(rows)].cpu().numpy()
        return padded[:, : self.state.dimensions]

    def is_finite(self) -> bool:
        """Whether all vectors are finite."""
        torch = self._card.torch
        with self._card.active():
            return all(bool(torch.isfinite(torch.stack(torch.aminmax(table))).all()) for table in self._tables)

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure update pairs per second, including dropped targets, for about `seconds`; changes no vector."""
        round, pairs, started = 0, 0, 0.0
        while round < 2 or (time.perf_counter() - started < seconds and not self._stopped):
            with self._card.active():
                self.show()
                self._move(schedule, round % schedule.rounds, 0.0, count=False)
                self._card.wait()
            if round == 0:
                started = time.perf_counter()  # kernels are compiled now
            else:
                pairs += int(self._counts[round % schedule.rounds - self.planned.start].sum()) * self._targets
            round += 1
        return max(1.0, pairs / (time.perf_counter() - started))

    def show(self) -> None:
        """Publish what all nodes show: their current vectors, and the means."""
        for table, shown in zip(self._tables, self.shown, strict=True):
            self._neighbours.show(table, shown, self._hops)

    def _move(self, schedule: Schedule, round: int, rate: float, count: bool = True) -> None:
        if self._schedule is None or not schedule.has_work_of(self._schedule):
            self._schedule, self.planned = schedule, range(0)
            self._on_card, self._most_iterations = schedule.map(self._card.send), schedule.most_iterations
        if round not in self.planned:
            self._plan(round)
        at = round - self.planned.start
        tables = list(enumerate(self._tables))
        negatives = [self._fetch_negatives(self.shown[len(tables) - 1 - own], at, own) for own, _ in tables]
        iteration = 0
        for end, active in self._runs[at]:
            while iteration < end and not self._abandoned:
                self._draw_targets(at, iteration, active)
                for own, table in tables:
                    self._pull(at, active, table, self.shown[len(tables) - 1 - own])
                    self._push(at, active, table, negatives[own][iteration % self._blocks], rate, count and own == 0)
                iteration += 1

    def _draw_targets(self, at: int, iteration: int, active: int) -> None:
        arcs, shares = self._neighbours.arcs, self._shares
        unused = arcs.indptr  # a placeholder that no kernel reads
        self._card.launch(
            self._kernels.draw_targets, -(-active * self._targets // _BLOCK), self._nodes, arcs.indptr,
            arcs.indices, unused if arcs.thresholds is None else arcs.thresholds,
            unused if arcs.aliases is None else arcs.aliases, unused if shares is None else shares,
            self._neighbours.scales, self._hop_of_target, self._round_keys, self._drawn, self._own_shares,
            at * self._size, active, at, iteration, self._size, self._targets,
            HOPS=self._hops, WEIGHTED=arcs.thresholds is not None, BY_ARC=shares is not None,
            DIRECTED=self._graph.directed, BLOCK=_BLOCK,
        )  # fmt: skip

    def _pull(self, at: int, active: int, table: Any, shown: Any) -> None:
        """Compute how targets change the vectors of all active nodes."""
        self._card.launch(
            self._kernels.pull, active, self._nodes, self._drawn, self._own_shares, table, shown, self._changes,
            self._kept, at * self._size, self._targets, self._columns, HOPS=self._hops, COLUMNS=self._padded,
            ROWS=max(PULLED, 512 // self._padded), EVEN=self._padded == self._columns,
            warps=max(1, self._padded // 256),
        )  # fmt: skip

    def _push(self, at: int, active: int, table: Any, negatives: Any, rate: float, count: bool) -> None:
        """Add to the vectors how targets and negatives change them, and count updates if `count`."""
        tile = min(TILE, max(16, TILE * 128 // self._padded))
        self._card.launch(
            self._kernels.push, -(-active // tile), self._nodes, table, negatives, self._changes, self._kept,
            self._updates, float(np.float32(rate)), at * self._size, active, self._columns, len(negatives),
            self._targets, COUNT=count, PRECISION=self._way, TILE=tile, COLUMNS=self._padded, NEGATIVES=self._rows,
            warps=min(16, WARPS * max(1, tile * self._padded // 8192)),
        )  # fmt: skip

    def _plan(self, first: int) -> None:
        """Count the iterations of some rounds, sort nodes by them, most first, and draw the common negatives."""
        torch, schedule = self._card.torch, self._on_card
        blocks = min(BLOCKS, self._most_iterations)
        ahead = min(MOST_PLANNED // self._size, _MOST_CHOSEN // max(1, blocks * self._amount))
        last = min(schedule.rounds, first + max(1, ahead))
        self._nodes = self._counts = self.chosen = None  # frees their memory
        numbers = torch.arange(first, last + 1, dtype=torch.float64, device=self._card.device)[:, None]
        begun = schedule.begun(numbers).floor_()
        counts = (begun[1:] - begun[:-1]).to(torch.int32 if self._most_iterations < 2**31 else torch.int64)
        del begun
        self._counts, order = counts.sort(dim=1, descending=True, stable=True)
        self._nodes = order.to(torch.int32)
        self._runs = self._find_runs()
        self._reserve(max((runs[0][1] for runs in self._runs if runs), default=0))
        rounds = np.arange(first, last)
        self._round_keys = self._card.send(derive(self._keys[0], rounds).view(np.int64))
        self._blocks = min(BLOCKS, max((runs[-1][0] for runs in self._runs if runs), default=1))
        keys = derive(derive(derive(self._keys[1], rounds)[:, None], np.arange(self._blocks))[..., None],
                      np.arange(self._amount))  # fmt: skip
        nodes = self._settings.negative_source == "nodes"
        self.chosen = self._card.send(scale_to(keys, self._size).astype(np.int64) if nodes else keys.view(np.int64))
        self.planned = range(first, last)

    def _find_runs(self) -> list[list[tuple[int, int]]]:
        """Return for each planned round a list of (end, active): up to iteration `end`, `active` nodes take part."""
        counts = self._counts
        is_last = self._card.torch.ones_like(counts, dtype=self._card.torch.bool)
        is_last[:, :-1] = counts[:, 1:] != counts[:, :-1]
        is_last &= counts > 0
        positions = is_last.nonzero()
        steps = self._card.torch.cat((positions, counts[is_last][:, None]), dim=1).tolist()
        runs: list[list[tuple[int, int]]] = [[] for _ in range(len(counts))]
        for round, position, end in reversed(steps):
            runs[round].append((end, position + 1))
        return runs

    def _reserve(self, active: int) -> None:
        """Allocate tensors for the targets of an iteration, and for their pulls."""
        if len(self._kept) < active:
            kind = "int32" if self._hops * self._size < 2**31 else "int64"
            self._drawn = self._card.empty(active, self._targets, kind=kind)
            self._own_shares = self._card.empty(active, self._targets)
            self._changes = self._card.empty(active, self._columns)
            self._kept = self._card.empty(active, kind="int32")

    def _fetch_negatives(self, shown: Any, at: int, own: int) -> Any:
        """Return the common negatives of a round, (blocks, amount, m), padded with zeros, which have no effect."""
        amount, chosen = -(-self._amount // self._rows) * self._rows, self.chosen[at]
        if self._room[own].shape[:2] != (self._blocks, amount):
            self._room[own] = self._card.zeros(self._blocks, amount, self._columns, kind=self._kind)
        if self._amount > 0:
            shown = shown[: self._size]
            if self._settings.negative_source == "nodes":
                self._room[own][:, : self._amount] = shown[chosen]
            else:
                self._room[own][:, : self._amount, : self.state.dimensions] = self._draw_from_moments(shown, at)
        return self._room[own]

    def _draw_from_moments(self, shown: Any, at: int) -> Any:
        """Draw from the normal distribution with the moments of the shown vectors, (blocks, amount, m)."""
        torch, m = self._card.torch, self.state.dimensions
        mean, lower = moments.factor(self._measure_moments(shown[:, :m]))
        amount = self._blocks * self._amount
        normals = self._card.empty(amount, m, kind="float64")
        self._card.launch(
            self._kernels.draw_normals, -(-amount * m // _BLOCK), self.chosen, normals, at * amount, amount, m,
            BLOCK=_BLOCK,
        )  # fmt: skip
        drawn = torch.addmm(self._card.send(mean), normals, self._card.send(np.ascontiguousarray(lower.T)))
        return drawn.to(torch.float32).reshape(self._blocks, self._amount, m)

    def _measure_moments(self, shown: Any) -> moments.Moments:
        torch, (size, m) = self._card.torch, shown.shape
        total, products = self._card.zeros(m, kind="int64"), self._card.zeros(m, m, kind="int64")
        for first in range(0, size, moments.STEP):
            part = shown[first : first + moments.STEP].to(torch.float64)
            part = part.clamp_(-moments.LARGEST, moments.LARGEST).div_(moments.UNIT).round_()
            total += part.sum(0).to(torch.int64)
            # every partial sum is an integer below 2^53, so the order of additions does not matter
            products += (part.T @ part).to(torch.int64)
        return moments.Moments(size, total.cpu().numpy(), products.cpu().numpy())
