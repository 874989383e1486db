"""The spectral view on a GPU: its sweeps before the rounds, and its join with the vectors after them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from manela.engines.gpu.card import Card
from manela.engines.gpu.neighbours import CardNeighbours, draw_first_vectors
from manela.engines.rounds.neighbours import allocate_shown, read_shown, write_shown
from manela.engines.rounds.spectral import orthogonalise
from manela.engines.state import State, Sweeping
from manela.kernels.reference import (
    AFFINITY_POWER,
    LEAST_DIRECTION,
    MIDDLE,
    SWEEP_LARGEST,
    VIEW_MIDDLE,
    VIEW_SIZE,
    VIEW_WEIGHT,
    VIEW_WEIGHTS,
    choose_scale,
    count_directions,
    find_calm,
    find_common,
    find_factors,
    find_overlap,
    has_settled,
)
from manela.settings.settings import Settings

_ROWS_AT_ONCE = 1 << 16
"""Rows whose products are summed together in double precision; more take more memory."""


class CardViews:
    """As `engines.rounds.spectral.Views`, with everything on a card; `state` gets copies by `collect`."""

    def __init__(
        self, card: Card, neighbours: CardNeighbours, tables: list[Any], state: State, settings: Settings
    ) -> None:
        self._card, self._neighbours, self._tables = card, neighbours, tables
        self._state, self._settings = state, settings
        self._sweeps: _Sweeps | None = None
        self._view: Any = None
        if state.view is not None:
            self._view = card.empty(*tables[0].shape, kind="float16").zero_()
            self._view[:, : state.dimensions] = card.send(read_shown(state.view, slice(None))[:, : state.dimensions])

    @property
    def is_due(self) -> bool:
        """Whether there are sweeps left to do before the rounds."""
        return not self._state.swept and (self._state.sweeping is not None or self._settings.has_view)

    def sweep(self) -> int:
        """Do the next sweep, and after the last one start the vectors from the view; return how many are done."""
        state, settings = self._state, self._settings
        if self._sweeps is None:
            table, sweeping = self._tables[0], state.sweeping
            if sweeping is None:  # the vectors have another start
                table, sweeping = self._draw(), Sweeping()
            self._sweeps = _Sweeps(self._card, self._neighbours, table, state.dimensions, sweeping)
        self._sweeps.advance()
        done = self._sweeps.sweeping
        if state.sweeping is not None:
            state.sweeping = done
        if done.ended:
            view, self._sweeps = self._sweeps.finish(settings.smooth), None
            if state.sweeping is not None:
                self._start(view)
            state.sweeping, state.swept = None, True
            self._view = view if settings.has_view else None
        return done.number

    def _draw(self) -> Any:
        table = self._card.empty(*self._tables[0].shape)
        draw_first_vectors(self._card, table, self._state.dimensions, self._settings.seed)
        return table

    def _start(self, view: Any) -> None:
        """Start the vectors from the view; nodes without neighbours keep random ones."""
        table, isolated = self._tables[0], self._neighbours.degrees == 0
        table.copy_(view)
        self._neighbours.resize(table, (~isolated).to(self._card.torch.float64) * VIEW_SIZE)
        if bool(isolated.any()):
            table[isolated] = self._draw()[isolated]

    def finish(self) -> None:
        """Smooth the vectors and join them with the view, as the settings require; no rounds may follow."""
        settings, neighbours, table, view = self._settings, self._neighbours, self._tables[0], self._view
        isolated = neighbours.degrees == 0
        kept = table[isolated]
        if settings.views == "spectral" and view is not None:
            table.copy_(view)
        elif settings.smooths:
            neighbours.filter(table, MIDDLE)
        if settings.views in ("both", "all") and view is not None:
            self._join(table, self._weigh(view))
        if settings.smooths or view is not None:
            neighbours.give_final_norms(table)
        table[isolated] = kept
        self._view = self._state.aside = None

    def _weigh(self, view: Any) -> list[Any]:
        """Return the views that are joined with the vectors of rounds, weighted."""
        aside, dimensions = self._state.aside, self._state.dimensions
        if aside is None:
            return [view * VIEW_WEIGHT]
        on_card = self._card.zeros(*view.shape, kind="float16")
        on_card[:, :dimensions] = self._card.send(read_shown(aside, slice(None))[:, :dimensions])
        return [part * weight for part, weight in zip((view, on_card), VIEW_WEIGHTS, strict=True)]

    def _join(self, table: Any, views: list[Any]) -> None:
        torch, dimensions = self._card.torch, self._state.dimensions
        joined = (self._neighbours.degrees > 0).to(torch.float64)
        table *= joined.to(torch.float32)[:, None]
        self._neighbours.resize(table, joined)
        width = table.shape[1]
        second = sum_products(self._card, [table, *views]) / max(1.0, float(joined.sum()))
        values, vectors = (part.flip(-1)[..., :dimensions].cpu().numpy() for part in torch.linalg.eigh(second))
        factors = find_factors(values)
        overlap = find_overlap(values, vectors, factors, 1 + len(views))
        left, _, right = torch.linalg.svd(self._card.send(overlap))
        turn: Any = left @ right
        matrix = torch.zeros((1 + len(views)) * width, width, dtype=torch.float32, device=self._card.device)
        matrix[:, :dimensions] = (self._card.send(vectors * factors) @ turn).to(torch.float32)
        for first in range(0, len(table), _ROWS_AT_ONCE):
            rows = [part[first : first + _ROWS_AT_ONCE].to(torch.float32) for part in (table, *views)]
            table[first : first + _ROWS_AT_ONCE] = torch.cat(rows, dim=1) @ matrix
        self._neighbours.resize(table, joined)
        calm = self._card.send(find_calm(values, factors, turn[:, -1].cpu().numpy())) @ turn
        size = find_common(len(self._neighbours.arcs.indices), int(joined.sum()))
        table[:, :dimensions] += (size * calm).to(torch.float32)

    def collect(self) -> None:
        """Bring the view of the state up to date."""
        state = self._state
        if self._view is None:
            state.view = None
        elif state.view is None:
            state.view = allocate_shown(len(self._view), state.dimensions)
            write_shown(state.view, slice(None), self._view.cpu().numpy())


class _Sweeps:
    """As `engines.rounds.spectral.Sweeps`."""

    def __init__(self, card: Card, neighbours: CardNeighbours, table: Any, dimensions: int, sweeping: Sweeping) -> None:
        self._card, self._neighbours, self._table, self._dimensions = card, neighbours, table, dimensions
        torch = card.torch
        joined = neighbours.degrees > 0
        self._size = max(1, int(joined.sum()))
        self._ones = joined.to(torch.float64)
        self._affinities = find_affinities(card, neighbours)
        self._shown = torch.empty_like(table, dtype=torch.float16)
        if sweeping.number == 0:
            table *= np.float32(math.sqrt(12.0) * dimensions)
            table *= self._ones.to(torch.float32)[:, None]
            squares = float((self._affinities.to(torch.float64) ** 2).sum())
            sweeping = Sweeping(energy=squares / self._size)
        self.sweeping = sweeping

    def advance(self) -> None:
        """Do a sweep."""
        before = self.sweeping
        self._add_up()
        second = sum_products(self._card, [self._table]) / self._size
        energy = float(second.trace()) / self._dimensions / choose_scale(before.energy) ** 2
        self._multiply(self._table, self._orthogonalise(second))
        number = before.number + 1
        self.sweeping = Sweeping(number, energy, has_settled(number, before.energy, energy))

    def finish(self, smooth: bool) -> Any:
        """Return the view in half precision, filtered if `smooth`; the table is of no more use."""
        torch, table, neighbours = self._card.torch, self._table, self._neighbours
        self._add_up()
        second = sum_products(self._card, [self._shown], [table]) / self._size
        values, vectors = torch.linalg.eigh(0.5 * (second + second.T))
        order = torch.argsort(values.abs(), descending=True)[: count_directions(self._size, self._dimensions)]
        self._affinities = None
        self._multiply(self._shown, (vectors[:, order] * values[order].abs().sqrt()) @ vectors[:, order].T)
        neighbours.resize(table, self._ones)
        if smooth:
            neighbours.filter(table, VIEW_MIDDLE)
            neighbours.resize(table, self._ones)
        table *= self._ones.to(torch.float32)[:, None]
        return self._shown.copy_(table)

    def _add_up(self) -> None:
        """table ← A·table, as neighbours see it, brought to a mean square of about 1."""
        self._shown.copy_(self._table)
        scales = self._ones * choose_scale(self.sweeping.energy)
        self._neighbours.average(self._shown, self._table, scales, self._affinities)
        self._table.clamp_(-SWEEP_LARGEST, SWEEP_LARGEST)

    def _multiply(self, source: Any, matrix: Any) -> None:
        """table ← source·matrix."""
        torch = self._card.torch
        matrix = matrix.to(torch.float32)
        for first in range(0, len(source), _ROWS_AT_ONCE):
            rows = source[first : first + _ROWS_AT_ONCE].to(torch.float32)
            self._table[first : first + _ROWS_AT_ONCE] = rows @ matrix

    def _orthogonalise(self, second: Any) -> Any:
        """Return what makes rows with this second moment orthogonal; directions without any of it are left out."""
        torch = self._card.torch
        lower, failed = torch.linalg.cholesky_ex(second)
        least = LEAST_DIRECTION * second.trace() / len(second)
        if int(failed) == 0 and bool((lower.diagonal() ** 2 > least).all()):
            return torch.linalg.solve_triangular(lower, torch.eye(len(second)).to(second), upper=False).T
        return self._card.send(orthogonalise(second.cpu().numpy()))


def find_affinities(card: Card, neighbours: CardNeighbours) -> Any:
    """Return the affinity of each arc, in single precision; see `kernels.reference.find_affinities`."""
    torch, strengths, degrees = card.torch, neighbours.strengths, neighbours.degrees
    joined = degrees > 0
    inverse = torch.where(joined, 1.0 / torch.where(joined, strengths, 1.0), 0.0)
    sources = torch.repeat_interleave(torch.arange(len(degrees), device=card.device), degrees)
    indices: Any = neighbours.arcs.indices
    shares = inverse[indices] if neighbours.weights is None else inverse[indices] * neighbours.weights
    indptr: Any = neighbours.arcs.indptr
    # in a fixed order, so that the same card gives the same bits
    likely = torch.segment_reduce(shares, "sum", offsets=indptr.to(torch.int64), initial=0) ** AFFINITY_POWER
    halves = torch.where(joined, 0.5 * torch.log(torch.where(joined, strengths * likely / likely.sum(), 1.0)), 0.0)
    logs = 0.0 if neighbours.weights is None else torch.log(neighbours.weights)
    return (logs - halves[sources] - halves[indices]).to(torch.float32)


def sum_products(card: Card, left: list[Any], right: list[Any] | None = None) -> Any:
    """Return leftᵀ·right in double precision, of tables side by side; `right` is `left` by default."""
    torch = card.torch

    def take(tables: list[Any], first: int) -> Any:
        return torch.cat([table[first : first + _ROWS_AT_ONCE].to(torch.float64) for table in tables], dim=1)

    total: Any = 0.0
    for first in range(0, len(left[0]), _ROWS_AT_ONCE):
        rows = take(left, first)
        total = total + rows.T @ (rows if right is None else take(right, first))
    return total
