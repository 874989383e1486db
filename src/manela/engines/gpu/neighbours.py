"""Computations over direct neighbours on a GPU: means, smoothing, and the spread of vectors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from manela.data.graph import Graph
from manela.engines.gpu.card import Card
from manela.engines.rounds.neighbours import Neighbours, find_scales
from manela.engines.rounds.spread import find_spread
from manela.kernels.layout import Arcs
from manela.kernels.moments import LARGEST, UNIT
from manela.kernels.randomness import VECTORS, derive_key
from manela.kernels.reference import FILTER, POWER, SCALE
from manela.system.threads import Threads

_MANY, _PIECE = 256, 256
"""Degree from which neighbours are summed in pieces, and the size of a piece."""
FEW = 256
"""Numbers that a program computes for nodes of low degree; more leave fewer registers for other programs."""
_PROGRAMS = 1024
"""Programs that add up rows; more leave more partial sums to add at the end."""
_EXACT = 1 << 14
"""Most rows for which a sum of squares of integers is always exact in double precision."""


class CardNeighbours:
    """The arcs of a network on a card, as tensors, with the weights and scales of `engines.rounds.neighbours`."""

    def __init__(self, card: Card, graph: Graph, arcs: Arcs, hops: int) -> None:
        from manela.kernels.gpu import neighbours as gpu_neighbours

        self._kernels, self._card, self._graph, self._host_arcs = gpu_neighbours, card, graph, arcs
        self.arcs = Arcs(*(card.send(array) for array in arcs))
        self.weights = card.send(graph.weights)
        self.scales = card.send(find_scales(graph, hops - 1 if graph.directed else 1))
        torch = card.torch
        self.degrees = torch.diff(self.arcs.indptr)
        # most neighbours first, so that long programs do not come last
        self._order = torch.argsort(self.degrees, descending=True, stable=True)
        self._many = int((self.degrees >= _MANY).sum())
        self._joined = int((self.degrees > 0).sum())
        self._pieces = self._cut_pieces()

    def find_shares(self) -> Any:
        """Return for each arc from v to w the share of v in the mean of w; None if it is the scale of w."""
        graph = self._graph
        if graph.directed:
            with Threads(1) as threads:
                return self._card.send(Neighbours.of(graph, self._host_arcs, 2, threads).find_own_shares())
        if self.weights is None:
            return None
        return (self.weights * self.scales[0][self.arcs.indices]).to(self._card.torch.float32)

    def show(self, table: Any, shown: Any, hops: int) -> None:
        """Write what nodes v show to the rows h·n + v of shown: Φ, M¹, … M^(hops − 1)."""
        n = len(table)
        shown[:n].copy_(table)
        for hop in range(1, hops):
            self.average(shown[(hop - 1) * n :], shown[hop * n :], self.scales[min(hop, len(self.scales)) - 1])

    def average(self, source: Any, target: Any, scale: Any, affinities: Any = None) -> None:
        """target[v] ← scale[v]·Σ weight·source[u] over the neighbours u of every node v.

        `affinities` of arcs take the place of weights.
        """
        narrow = target.dtype == self._card.torch.float16
        weights = self.weights if affinities is None else affinities
        for summands, indptr, first, last, constants in self._cut(source, scale, weights):
            self._card.launch(
                self._kernels.average, -(-(last - first) // constants["NODES"]), self._order, summands, indptr,
                self.arcs.indices, self._or_unused(weights), scale, target, first, last, source.shape[1],
                **constants, NARROW=narrow,
            )  # fmt: skip

    def _cut(self, source: Any, scale: Any, weights: Any) -> list[tuple[Any, Any, int, int, dict[str, Any]]]:
        """Return the kernel launches for nodes with few neighbours, and for those with many, if any.

        Each is (summands, indptr, first, last, constants of the kernel). The neighbours of nodes with many are summed
        in pieces here, so that no program has to add thousands of them.
        """
        columns = source.shape[1]
        padded = 1 << (columns - 1).bit_length()
        fixed = {"WEIGHTED": weights is not None, "COLUMNS": padded}
        few: dict[str, Any] = {"NODES": max(1, FEW // padded), "ROWS": 4, "warps": max(1, padded // 256)}
        parts = [(source, self.arcs.indptr, self._many, len(self._order), {**fixed, **few, "PARTIAL": False})]
        if self._many:
            firsts, lasts, nodes, borders = self._pieces
            partial = self._card.empty(len(firsts), columns)
            self._card.launch(
                self._kernels.sum_pieces, len(firsts), source, self.arcs.indices, self._or_unused(weights), scale,
                firsts, lasts, nodes, partial, columns, **fixed, ROWS=max(1, 4096 // padded),
            )  # fmt: skip
            parts.append((partial, borders, 0, self._many, {**fixed, **few, "PARTIAL": True}))
        return parts

    def _cut_pieces(self) -> tuple[Any, Any, Any, Any]:
        """Cut the arcs of nodes with many; return begin, end and node of each piece, and the pieces of each node."""
        torch = self._card.torch
        nodes = self._order[: self._many]
        counts = (self.degrees[nodes] + (_PIECE - 1)) // _PIECE
        borders = torch.cat((torch.zeros_like(counts[:1]), torch.cumsum(counts, 0)))
        owners = torch.repeat_interleave(torch.arange(self._many, device=self._card.device), counts)
        numbers = torch.arange(len(owners), device=self._card.device) - borders[owners]
        firsts = self.arcs.indptr[nodes[owners]] + numbers * _PIECE
        lasts = torch.minimum(firsts + _PIECE, self.arcs.indptr[nodes[owners] + 1])
        return firsts, lasts, nodes[owners], borders

    def _or_unused(self, tensor: Any) -> Any:
        """Return the tensor, or for None a placeholder that no kernel reads."""
        return self.arcs.indptr if tensor is None else tensor

    def resize(self, table: Any, sizes: Any) -> None:
        """Scale rows to these norms; rows of size 0 stay."""
        columns = table.shape[1]
        padded = 1 << (columns - 1).bit_length()
        rows = max(1, 1024 // padded)
        self._card.launch(
            self._kernels.resize, -(-len(table) // rows), table, sizes, len(table), columns, COLUMNS=padded, ROWS=rows,
        )  # fmt: skip

    def add_up(self, table: Any) -> tuple[Any, int]:
        """Return exact sums over nodes that have neighbours: of rows in units of UNIT, and of squares in UNIT²."""
        columns = table.shape[1]
        padded = 1 << (columns - 1).bit_length()
        rows = max(1, 1024 // padded)
        programs = min(max(_PROGRAMS, len(table) // _EXACT), -(-len(table) // rows))
        totals, squares = (self._card.empty(programs, columns, kind="float64") for _ in range(2))
        self._card.launch(
            self._kernels.add_up, programs, table, self.degrees, totals, squares, len(table), columns,
            float(UNIT), float(LARGEST), COLUMNS=padded, ROWS=rows,
        )  # fmt: skip
        totals, squares = (part.to(self._card.torch.int64).sum(0) for part in (totals, squares))
        return totals, int(squares.sum())

    def measure_spread(self, table: Any) -> float:
        """Return the spread of vectors, as in `engines.rounds.spread.measure_spread`."""
        totals, squares = self.add_up(table)
        return find_spread(totals.cpu().numpy(), squares, self._joined)

    @cached_property
    def strengths(self) -> Any:
        """The sum of the weights of each node's arcs."""
        return self._card.send(self._graph.strengths)

    def give_final_norms(self, table: Any) -> None:
        """Scale vectors to norms proportional to a power of the degree; nodes without neighbours keep theirs."""
        torch = self._card.torch
        sizes = torch.where(self.degrees == 0, 0.0, self.degrees.to(torch.float64) ** POWER)
        self.resize(table, sizes * (SCALE * max(1, self._joined) / sizes.sum().clamp_min(1.0)))

    def filter(self, table: Any, middle: float) -> None:
        """Filter vectors in place; nodes without neighbours keep theirs. See `kernels.reference.smooth`."""
        torch, isolated = self._card.torch, self.degrees == 0
        loops = torch.where(isolated, 0.0, self.strengths / self.degrees.to(torch.float64))
        inverse = torch.where(isolated, 0.0, 1.0 / (self.strengths + loops))
        isolated_rows = table[isolated]
        self._filter(table, inverse, (loops * inverse).to(torch.float32), middle)
        table[isolated] = isolated_rows

    def _filter(self, table: Any, inverse: Any, own: Any, middle: float) -> None:
        torch = self._card.torch
        kept = (1.0 - middle) - own
        before, now, after, product = table.clone(), *(torch.empty_like(table) for _ in range(3))
        filtered = table
        filtered *= FILTER[0] - 1.0
        shift = {"kept": kept, "inverse": inverse, "a": -1.0}
        self._step(before, product, **shift)
        self._step(product, now, kept, inverse, 0.5, (-1.0, before), (0.0, before), FILTER[1], filtered)
        for weight in FILTER[2:]:
            self._step(now, product, **shift)
            self._step(product, after, kept, inverse, 1.0, (-2.0, now), (-1.0, before), weight, filtered)
            before, now, after = now, after, before
        after.copy_(filtered)
        self._step(after, table, own, inverse, 1.0)

    def _step(
        self, source: Any, target: Any, kept: Any, inverse: Any, a: float, now: tuple[float, Any] | None = None,
        before: tuple[float, Any] | None = None, weight: float = 0.0, filtered: Any = None,
    ) -> None:  # fmt: skip
        b, now_rows = now or (0.0, source)
        c, before_rows = before or (0.0, source)
        columns = source.shape[1]
        for summands, indptr, first, last, constants in self._cut(source, inverse, self.weights):
            self._card.launch(
                self._kernels.filter_rows, -(-(last - first) // constants["NODES"]), self._order, source, summands,
                indptr, self.arcs.indices, self._or_unused(self.weights), inverse, kept, now_rows, before_rows,
                source if filtered is None else filtered, target, a, b, c, weight, first, last, columns,
                STEP=filtered is not None, **constants,
            )  # fmt: skip


def draw_first_vectors(card: Card, table: Any, dimensions: int, seed: int, purpose: int = VECTORS) -> None:
    """Write Φ₀ or Ψ₀ to a table on the card: the same numbers as `randomness.draw_vectors`."""
    from manela.kernels.gpu import neighbours as gpu_neighbours

    key = card.send(np.array([derive_key(seed, purpose)], dtype=np.uint64).view(np.int64))
    columns = table.shape[1]
    padded = 1 << (columns - 1).bit_length()
    rows = max(1, 1024 // padded)
    card.launch(
        gpu_neighbours.draw_rows, -(-len(table) // rows), table, key, len(table), columns, dimensions,
        COLUMNS=padded, ROWS=rows,
    )  # fmt: skip
