"""The spectral view: sweeps over neighbours that gather it, and its join with the vectors of rounds."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.neighbours import Neighbours, allocate_shown
from manela.engines.rounds.smoothing import filter_columns, give_final_norms, resize
from manela.engines.state import State, Sweeping, begin
from manela.errors import DivergenceError
from manela.kernels.cpu import spectral as kernels
from manela.kernels.cpu.draws import factor
from manela.kernels.cpu.half import from_half
from manela.kernels.layout import Shown, Table
from manela.kernels.moments import LARGEST, UNIT
from manela.kernels.randomness import VECTORS, draw_vectors
from manela.kernels.reference import (
    LEAST_DIRECTION,
    MIDDLE,
    SWEEP_LARGEST,
    SWEEP_UNIT,
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
    split_affinities,
)
from manela.settings.settings import Settings
from manela.system.threads import Integers

Matrix = npt.NDArray[np.float64]
Weighted = tuple[Shown, float]
"""What nodes show of a view, with norm 1, and the weight of the view in the join."""

_ROWS_AT_ONCE = 1024
"""Rows whose products are summed, or that are multiplied, at a time by one thread; more share work less evenly."""


class Views:
    """The spectral view of a run: its sweeps before the rounds, and its join with the vectors after them.

    `find_neighbours` is called when the neighbours are needed.
    """

    def __init__(self, state: State, settings: Settings, find_neighbours: Callable[[], Neighbours]) -> None:
        self._state, self._settings, self._find_neighbours = state, settings, find_neighbours
        self._sweeps: Sweeps | None = None

    @property
    def is_due(self) -> bool:
        """Whether there are sweeps left to do before the rounds."""
        state = self._state
        return not state.swept and (state.sweeping is not None or self._settings.has_view)

    def sweep(self) -> int:
        """Do the next sweep, and after the last one start the vectors from the view; return how many are done."""
        state, settings = self._state, self._settings
        if self._sweeps is None:
            table, sweeping = state.tables[0], state.sweeping
            if sweeping is None:  # the vectors have another start
                table, sweeping = self._draw(), Sweeping()
            self._sweeps = Sweeps(table, self._find_neighbours(), state.dimensions, sweeping)
        self._sweeps.advance()
        done = self._sweeps.sweeping
        if state.sweeping is not None:
            state.sweeping = done
        if done.ended:
            view, self._sweeps = self._sweeps.finish(settings.smooth), None
            if state.sweeping is not None:
                self._start(view)
            state.sweeping, state.swept = None, True
            state.view = view if settings.has_view else None
        return done.number

    def _draw(self) -> Table:
        settings, table = self._settings, self._state.tables[0]
        return begin(len(table), self._state.dimensions, False, settings.seed, settings.threads).tables[0]

    def _start(self, view: Shown) -> None:
        """Start the vectors from the view; nodes without neighbours keep random ones."""
        table, neighbours, dimensions = self._state.tables[0], self._find_neighbours(), self._state.dimensions
        widen(view, table, neighbours)
        resize(table, neighbours, np.where(neighbours.joined, VIEW_SIZE, 0.0))
        isolated = np.flatnonzero(~neighbours.joined)
        random = np.zeros((len(isolated), dimensions), np.float32)
        draw_vectors(self._settings.seed, isolated, random, VECTORS)
        table[isolated, :dimensions] = random

    def finish(self) -> None:
        """Smooth the vectors and join them with the view, as the settings require; no rounds may follow."""
        settings, state = self._settings, self._state
        table, view = state.tables[0], state.view
        if settings.views == "spectral" and view is not None:
            isolated = np.flatnonzero(~self._find_neighbours().joined)
            kept = table[isolated]
            widen(view, table, self._find_neighbours())
            table[isolated] = kept
        elif settings.smooths:
            filter_columns(table, self._find_neighbours(), MIDDLE)
        if settings.views in ("both", "all") and view is not None:
            join(table, weigh_views(view, state.aside), self._find_neighbours(), state.dimensions)
        if settings.smooths or view is not None:
            give_final_norms(table, self._find_neighbours())
        state.view = state.aside = None


class Sweeps:
    """The sweeps that gather the spectral view in `table`, (n, padded m), which begins with random vectors.

    The definition is `kernels.reference.find_view`. `advance` is called until `sweeping.ended`, and then `finish`. The
    table and `sweeping` are all that a resumed run needs.
    """

    def __init__(self, table: Table, neighbours: Neighbours, dimensions: int, sweeping: Sweeping) -> None:
        self._table, self._neighbours, self._dimensions = table, neighbours, dimensions
        self._size = max(1, int(np.count_nonzero(neighbours.joined)))
        self._affinities, squares = find_affinities(neighbours)
        self._shown = allocate_shown(len(table), dimensions)
        if sweeping.number == 0:
            table *= np.float32(math.sqrt(12.0) * dimensions)  # coordinates then have mean square 1
            table[~neighbours.joined] = 0.0
            sweeping = Sweeping(energy=squares / self._size)
        self.sweeping = sweeping

    def advance(self) -> None:
        """Do a sweep: each node adds up what its neighbours show, and all rows are made orthogonal."""
        before = self.sweeping
        self._add_up()
        sums = sum_products(self._table, [], SWEEP_UNIT, SWEEP_LARGEST, self._neighbours)
        second = find_second(sums, SWEEP_UNIT**2, self._size)
        energy = float(np.trace(second)) / self._dimensions / choose_scale(before.energy) ** 2
        multiply(self._table, [], orthogonalise(second), self._neighbours)
        number = before.number + 1
        self.sweeping = Sweeping(number, energy, has_settled(number, before.energy, energy))

    def finish(self, smooth: bool) -> Shown:
        """Return the view in half precision, filtered if `smooth`; the table is of no more use."""
        table, neighbours, ones = self._table, self._neighbours, self._neighbours.joined.astype(np.float64)
        self._add_up()
        sums = sum_products(table, [(self._shown, 1.0)], SWEEP_UNIT, SWEEP_LARGEST, neighbours, apart=True)
        second = find_second(sums, 0.5 * SWEEP_UNIT**2, self._size)
        self._affinities = np.zeros(0, np.float32)
        widen(self._shown, table, neighbours)
        kept = count_directions(self._size, self._dimensions)
        multiply(table, [], find_root(second, kept), neighbours)
        resize(table, neighbours, ones)
        if smooth:
            filter_columns(table, neighbours, VIEW_MIDDLE)
            resize(table, neighbours, ones)
        neighbours.show(table, self._shown)
        return self._shown

    def _add_up(self) -> None:
        """table ← A·table, as neighbours see it, brought to a mean square of about 1."""
        table, shown, neighbours = self._table, self._shown, self._neighbours
        neighbours.show(table, shown)
        indptr, indices, _, _ = neighbours.arcs
        scale, affinities = choose_scale(self.sweeping.energy), self._affinities
        neighbours.threads.share(
            lambda first, last: kernels.sweep(
                shown, indptr, indices, affinities, scale, SWEEP_LARGEST, table, first, last
            ),
            neighbours.borders,
        )


def find_affinities(neighbours: Neighbours) -> tuple[npt.NDArray[np.float32], float]:
    """Return the affinity of each arc, (arcs,), and the sum of their squares.

    The definition is `kernels.reference.find_affinities`.
    """
    indptr, indices, _, _ = neighbours.arcs
    weights, strengths, share = neighbours.weights, neighbours.strengths, neighbours.threads.share
    shares, squares = np.zeros(len(strengths)), np.zeros(len(strengths))
    affinities = np.empty(len(indices), np.float32)
    share(
        lambda first, last: kernels.add_shares(indptr, indices, weights, strengths, shares, first, last),
        neighbours.borders,
    )
    halves = split_affinities(strengths, shares)
    share(
        lambda first, last: kernels.find_affinities(indptr, indices, weights, halves, affinities, squares, first, last),
        neighbours.borders,
    )
    return affinities, math.fsum(squares)


def sum_products(
    left: Table, views: Sequence[Weighted], unit: float, largest: float, neighbours: Neighbours, apart: bool = False
) -> Integers:
    """Return Σ xᵀ·x over rows x of `left` beside weighted views, in units of unit²; exact.

    If `apart`, it is Σ viewᵀ·left of the one view, and its transpose.
    """
    width = left.shape[1] * (1 + len(views))
    products, lock = np.zeros((width, width), np.int64), threading.Lock()

    def add(first: int, last: int) -> None:
        part = np.zeros_like(products)
        kernels.add_products(
            left[first:last], lay_beside(views, first, last), apart, unit, largest, 0, last - first, part
        )
        with lock:
            products[:] += part

    _share_rows(add, len(left), neighbours)
    if apart:
        crossed = products[left.shape[1] :, : left.shape[1]]
        return crossed + crossed.T
    return np.tril(products) + np.tril(products, -1).T


def find_second(sums: Integers, unit: float, size: int) -> Matrix:
    """Return the second moment of `size` rows from sums of products in this unit."""
    return sums.astype(np.float64) * unit / size


def multiply(table: Table, views: Sequence[Weighted], matrix: Matrix, neighbours: Neighbours) -> None:
    """table ← (table beside weighted views)·matrix."""
    factors = np.zeros((1, len(matrix), table.shape[1]), np.float32)
    factors[0, :, : matrix.shape[1]] = matrix

    def work(first: int, last: int) -> None:
        rows = table[first:last]
        kernels.multiply(rows, lay_beside(views, first, last), factors, 0, last - first, rows)

    _share_rows(work, len(table), neighbours)


def widen(shown: Shown, table: Table, neighbours: Neighbours) -> None:
    """table ← shown, in single precision."""

    def work(first: int, last: int) -> None:
        table[first:last] = _widen(shown[first:last])

    _share_rows(work, len(table), neighbours)


def lay_beside(views: Sequence[Weighted], first: int, last: int) -> Table | None:
    """Return some rows of weighted views side by side, in single precision; None without views."""
    parts = [np.float32(weight) * _widen(view[first:last]) for view, weight in views]
    return np.concatenate(parts, axis=1) if parts else None


def _widen(rows: Shown) -> Table:
    widened: Table = from_half(rows.view(np.float16)) if rows.dtype == np.uint16 else np.asarray(rows, np.float32)
    return widened


def _share_rows(work: Callable[[int, int], None], size: int, neighbours: Neighbours) -> None:
    neighbours.threads.share(work, np.append(np.arange(0, size, _ROWS_AT_ONCE), size))


def orthogonalise(second: Matrix) -> Matrix:
    """Return the matrix that makes rows with this second moment orthogonal, with the bits of any thread."""
    left, lower, inverse = second.copy(), np.zeros_like(second), np.zeros_like(second)
    factor(left, LEAST_DIRECTION * float(np.trace(second)) / len(second), lower)
    kernels.invert(lower, inverse)
    return inverse.T


def decompose(matrix: Matrix) -> tuple[npt.NDArray[np.float64], Matrix]:
    """Return the eigenvalues of a symmetric matrix, largest first, and their eigenvectors as columns."""
    values, vectors = np.zeros(len(matrix)), np.zeros_like(matrix)
    if not kernels.decompose(matrix.copy(), values, vectors):
        raise DivergenceError("vectors stopped being finite in the spectral view: learning_rate must be smaller")
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[order].T


def find_root(second: Matrix, kept: int) -> Matrix:
    """Return |H|^½ of a symmetric matrix H; of its eigenvectors, those with the largest |λ| are kept."""
    values, vectors = decompose(second)
    order = np.argsort(-np.abs(values), kind="stable")[:kept]  # columns of padding come last
    return multiply_small(vectors[:, order] * np.sqrt(np.abs(values[order])), vectors[:, order].T)


def invert_softly(second: Matrix, least: float) -> Matrix:
    """Return the inverse of a symmetric matrix, in which eigenvalues far below `least` of the largest count less.

    Examples
    --------
    >>> invert_softly(np.diag([2.0, -1.0, 0.0]), 0.01).round(2) + 0.0
    array([[ 0.5,  0. ,  0. ],
           [ 0. , -1. ,  0. ],
           [ 0. ,  0. ,  0. ]])
    """
    values, vectors = decompose(second)
    largest = float(np.abs(values).max())
    if not 0.0 < largest < float("inf"):
        return np.zeros_like(second)
    values = values / largest
    return multiply_small(vectors * (values / (values**2 + least**2) / largest), vectors.T)


def find_turn(overlap: Matrix) -> Matrix:
    """Return the orthogonal matrix nearest to a square matrix that is not singular."""
    values, vectors = decompose(multiply_small(overlap, overlap.T))
    if not values[-1] > 0.0:
        return np.eye(len(overlap))
    turn = multiply_small(multiply_small(vectors / np.sqrt(values), vectors.T), overlap)
    # products of numbers of very different size have lost digits, which a step of Newton's method brings back
    return 1.5 * turn - 0.5 * multiply_small(multiply_small(turn, turn.T), turn)


def multiply_small(left: Matrix, right: Matrix) -> Matrix:
    """Return left·right, with the bits of any library and any number of threads."""
    product = np.empty((len(left), right.shape[1]))
    kernels.multiply_small(np.ascontiguousarray(left), np.ascontiguousarray(right), product)
    return product


def weigh_views(view: Shown, aside: Shown | None) -> list[Weighted]:
    """Return the spectral view, and context vectors if there are any, with their weights in the join."""
    return [(view, VIEW_WEIGHT)] if aside is None else list(zip((view, aside), VIEW_WEIGHTS, strict=True))


def join(table: Table, views: Sequence[Weighted], neighbours: Neighbours, dimensions: int) -> None:
    """Join the vectors of rounds with other views, in place but for norms; nodes without neighbours keep theirs.

    The definition is `kernels.reference.join`.
    """
    isolated = np.flatnonzero(~neighbours.joined)
    kept = table[isolated]
    table[isolated] = 0.0
    resize(table, neighbours, neighbours.joined.astype(np.float64))
    sums = sum_products(table, views, UNIT, LARGEST, neighbours)
    second = find_second(sums, UNIT**2, max(1, int(np.count_nonzero(neighbours.joined))))
    matrix, common = find_joint(second, 1 + len(views), dimensions)
    multiply(table, views, matrix, neighbours)
    resize(table, neighbours, neighbours.joined.astype(np.float64))
    size = find_common(len(neighbours.arcs.indices), len(table) - len(isolated))
    table[:, :dimensions] += (size * common).astype(np.float32)
    table[isolated] = kept


def find_joint(second: Matrix, views: int, dimensions: int) -> tuple[Matrix, npt.NDArray[np.float64]]:
    """Return the matrix by which rows of views side by side are multiplied, and the direction of what is in common."""
    values, vectors = decompose(second)
    values, vectors = values[:dimensions], vectors[:, :dimensions]
    factors = find_factors(values)
    turn = find_turn(find_overlap(values, vectors, factors, views))
    return multiply_small(vectors * factors, turn), multiply_small(find_calm(values, factors, turn[:, -1])[None], turn)[
        0
    ]
