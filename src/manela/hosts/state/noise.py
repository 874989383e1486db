"""Noise: what a host adds to what it shows, and the account of what means and sums disclose.

A sum or mean over neighbours moves by a bounded amount if one edge more or less goes into it: the *reach* of an edge.
Gaussian noise in proportion to the reach hides the edge, and releases add up: k releases whose noise is z times the
reach disclose no more than one whose noise is z/√k times the reach. So the account is one number, μ² = Σ 1/z², from
which `find_epsilon` has ε for any δ, exactly ("Gaussian differential privacy"). It tells apart two networks in which
one edge leads elsewhere and all degrees are the same: strengths are shown, and noise goes with them. It holds against
anyone who knows all vectors and all other edges. It covers means and sums. It does not cover the vectors of nodes, nor
the rows that stand for them in a start, which neighbours at peers must be shown: these have noise, but no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from manela.hosts.state.messages import Step, Sum, Sums
from manela.hosts.state.terms import PeerOptions
from manela.kernels.layout import normalise_rows
from manela.kernels.moments import LARGEST, UNIT, Moments
from manela.kernels.randomness import derive

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


class Kind(Enum):
    """What is shown with noise: rows of sweeps, means in rounds, and sums over many nodes."""

    ROWS = 0
    MEANS = 1
    SUMS = 2


_USUAL = {Kind.ROWS: 0.5, Kind.MEANS: 1.0}
_SPARSE = {Kind.ROWS: 0.8, Kind.MEANS: 3.0}
"""Noise over the reach of an edge, on dense and on sparse networks, where an edge tells more; larger discloses less."""
_OF_PRODUCTS, _OF_MOMENTS, _OF_TOTALS = 1.0, 16.0, 19.0
"""Noise on sums of products of rows, on the products and the totals of moments; larger hides a single vector better.

Over the square of the longest vector, or its length, and the square root of the number of columns. A vector that only
one of two sums holds is lost in it, also in the mean of the 16 moments that are shown in one frame.
"""
_SHARE = 0.5
"""Share of the budget that is for one start and its rounds; the rest is for changes, and another start."""
_PARTS = {Kind.MEANS: (0.25, 4), Kind.SUMS: (0.75, 9)}
"""The share in this of each kind, and how many releases it is for; more releases cost more."""
_ENDS = 2.0
"""The ends of an edge, which both show a row that the edge moves."""
_OF_COUNTS = 2.0
"""Noise on a sum of a number over nodes, over the mean of the number; smaller tells more of a single node."""
_DENSE = 48.0
"""Mean degree from which vectors are shown as they are; on sparser networks they would tell more of single edges."""
_DIRECTIONS = 32
"""Directions in which vectors are shown there; more tell more of single edges, fewer less of communities."""
_VECTOR_NOISE = 0.75
"""Size of the noise on these vectors, over their median size; larger tells less of edges, and of all else."""
_LEAST_EPSILON, _MOST_EPSILON = 1e-6, 1e9


def find_delta(mu: float, epsilon: float) -> float:
    """Return the least δ for which a Gaussian release of μ is (ε, δ)-differentially private (Balle and Wang, 2018).

    Examples
    --------
    >>> round(find_delta(1.0, 1.0), 6)
    0.126937
    """
    if mu <= 0.0:
        return 0.0
    return float(ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def find_epsilon(mu: float, delta: float) -> float:
    """Return the least ε for which a Gaussian release of μ is (ε, δ)-differentially private.

    Examples
    --------
    >>> round(find_epsilon(1.0, 1e-5), 2), find_epsilon(0.0, 1e-5)
    (4.38, 0.0)
    """
    if mu <= 0.0 or find_delta(mu, 0.0) <= delta:
        return 0.0
    if not math.isfinite(mu):
        return math.inf
    return _bisect(lambda epsilon: find_delta(mu, epsilon) > delta, 0.0, mu * mu / 2 + mu * 40.0)


def find_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ of a Gaussian release that is (ε, δ)-differentially private.

    Examples
    --------
    >>> round(find_mu(4.38, 1e-5), 2)
    1.0
    """
    return _bisect(lambda mu: find_delta(mu, epsilon) <= delta, 0.0, math.sqrt(2.0 * epsilon) + 40.0)


def _bisect(is_below: Any, low: float, high: float) -> float:
    """Return where `is_below` turns from True to False."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return high


@dataclass
class Ledger:
    """What was disclosed in a period: μ² in all, and to each peer."""

    limit: float = math.inf
    spent: float = 0.0
    by_peer: dict[str, float] = field(default_factory=dict)
    period: int = 0  # the day on which the period began
    # by peer and kind, the last release that the peer was shown
    _last: dict[tuple[str, Kind], Any] = field(default_factory=dict)

    def charge(self, cost: float) -> bool:
        """Charge a release, unless it would exceed the limit; return whether it may be made."""
        if self.spent + cost > self.limit * (1.0 + 1e-9):
            return False
        self.spent += cost
        return True

    def show(self, peer: str, kind: Kind, release: Any, cost: float) -> None:
        """Charge a peer for a release, once."""
        if cost > 0.0 and self._last.get((peer, kind)) != release:
            self._last[peer, kind] = release
            self.by_peer[peer] = self.by_peer.get(peer, 0.0) + cost

    def turn(self, today: int, days: int) -> None:
        """Begin a new period with nothing spent, if so many days have passed since this one began."""
        if today >= self.period + days:
            self.period, self.spent, self.by_peer, self._last = today, 0.0, {}, {}


class Noise:
    """The noise of a host, whose draws have the seed `key`; an amount of 0 adds none.

    `ledger` is the account; with `epsilon` it has a limit, and the noise is as much as the limit wants.
    """

    def __init__(self, options: PeerOptions, key: int) -> None:
        self.amount, self._key = options.noise, key
        self.budget = find_mu(options.epsilon, options.delta) ** 2 if options.epsilon > 0 else math.inf
        self.ledger = Ledger(self.budget)

    @property
    def is_off(self) -> bool:
        """Whether everything is shown as it is."""
        return self.amount == 0.0 and not math.isfinite(self.budget)

    @property
    def has_budget(self) -> bool:
        """Whether there is a bound on what may be disclosed."""
        return math.isfinite(self.budget)

    @property
    def _least_amount(self) -> float:
        """The factor on noise that hides vectors in sums, which a budget does not replace."""
        return max(self.amount, 1.0) if math.isfinite(self.budget) else self.amount

    def blur(
        self, rows: Floats, reach: Doubles, kind: Kind, step: Step, version: int, mean_degree: float
    ) -> tuple[Floats, float] | None:
        """Return rows, (n, …, m), with noise, and the cost; None if the budget is spent.

        `reach`, (n,), is how far one edge can move each row. The noise is another for each step and version.
        """
        if self.is_off:
            self.ledger.charge(math.inf)
            return rows, math.inf
        cost = self._find_cost(kind, mean_degree)
        multiplier = math.sqrt(_ENDS / cost)
        copies = int(np.prod(rows.shape[1:-1], dtype=int))  # each table and level is a release
        if kind is Kind.ROWS:  # they are vectors of neighbours, which the account does not cover
            copies = 0
        elif not self.ledger.charge(cost * copies):
            return None
        random = self._draw(64 * step.phase + step.number % 64, version)
        scale = (multiplier * reach).reshape(-1, *(1,) * (rows.ndim - 1)).astype(np.float32)
        blurred: Floats = rows + random.standard_normal(rows.shape, dtype=np.float32) * scale
        return blurred, cost * copies

    def blur_products(self, sums: Doubles, square: float, reach: float, draw: int) -> tuple[Doubles, float] | None:
        """Return sums of products of rows, (k, k), with symmetric noise, and the cost; None if the budget is spent.

        No two rows have a larger product than `square`, and one edge moves a row by at most `reach` of its length.
        """
        if self.is_off:
            self.ledger.charge(math.inf)
            return sums, math.inf
        multiplier = self._least_amount * _OF_PRODUCTS / math.sqrt(len(sums))
        cost = (2.0 * _ENDS * reach / multiplier) ** 2
        if math.isfinite(self.budget) and cost > self._find_cost(Kind.SUMS):
            cost = self._find_cost(Kind.SUMS)
            multiplier = 2.0 * _ENDS * reach / math.sqrt(cost)
        if not self.ledger.charge(cost):
            return None
        noise = self._draw(_DRAW_OF_PRODUCTS, draw).standard_normal(sums.shape) * (multiplier * square)
        blurred: Doubles = sums + (noise + noise.T) / math.sqrt(2.0)
        return blurred, cost

    def blur_moments(self, moments: Moments, longest: float, draw: int) -> Moments:
        """Return moments of vectors of at most this length with noise that hides any one of them."""
        if self.is_off:
            return moments
        random = self._draw(_DRAW_OF_MOMENTS, draw)
        scale = self._least_amount * longest / UNIT / math.sqrt(len(moments.total))
        total = random.standard_normal(moments.total.shape) * (_OF_TOTALS * scale)
        noise = random.standard_normal(moments.products.shape) * (_OF_MOMENTS * scale * longest / UNIT)
        # no coordinate of a mean may be larger than one of a vector may be
        largest = moments.size * LARGEST / UNIT
        total = np.clip(moments.total + total, -largest, largest)
        return _make_possible(moments.size, total, moments.products + (noise + noise.T) / math.sqrt(2.0))

    def blur_sums(self, sums: Sums, draw: int) -> Sums:
        """Return the sum of vectors of norm 1 with noise that hides any one of them."""
        if self.is_off:
            return sums
        scale = self._least_amount * _OF_TOTALS / math.sqrt(len(sums.total))
        noise = self._draw(_DRAW_OF_MOMENTS, draw).standard_normal(sums.total.shape) * (scale / UNIT)
        return Sums(sums.count, sums.total + np.rint(noise).astype(np.int64), sums.squares)

    def blur_sum(self, sum_of_nodes: Sum, draw: int) -> Sum:
        """Return a sum of a number over nodes with noise of a few of the numbers."""
        if self.is_off or not sum_of_nodes.parts:
            return sum_of_nodes
        total = math.fsum(sum_of_nodes.parts)
        noise = float(self._draw(_DRAW_OF_COUNTS, draw).standard_normal()) * _OF_COUNTS * total / sum_of_nodes.count
        return Sum(sum_of_nodes.count, (max(total / 4.0, total + noise),))

    def coarsen(self, vectors: Floats, shown: npt.NDArray[np.int64], mean_degree: float) -> Floats:
        """Return those of own vectors, (n, m), that peers see: on a sparse network, coarser than they are.

        There the vectors of neighbours are alike in what is particular to them. Peers see the strongest directions
        only, with some noise, always the same.
        """
        rows: Floats = vectors[shown]
        if not self._coarsens(vectors, mean_degree) or not len(rows):
            return rows
        mean, strongest = _find_directions(vectors)
        parts = (rows - mean) @ strongest
        # of few nodes, next to nothing is left when their mean is subtracted
        lengths = np.linalg.norm(parts if len(vectors) > _DIRECTIONS else rows, axis=1)
        size = float(np.median(lengths)) / math.sqrt(_DIRECTIONS)
        noise = self._draw(_DRAW_OF_VECTORS, 0).standard_normal(rows.shape, dtype=np.float32) @ strongest
        coarse = mean + (parts + np.float32(_VECTOR_NOISE * self._least_amount * size) * noise) @ strongest.T
        return coarse.astype(np.float32)

    def flatten(self, means: Floats, vectors: Floats, mean_degree: float) -> Floats:
        """Return means in the directions in which `coarsen` shows vectors, (n, m)."""
        if not self._coarsens(vectors, mean_degree):
            return means
        mean, strongest = _find_directions(vectors)
        flat = mean + ((means - mean) @ strongest) @ strongest.T
        return flat.astype(np.float32)

    def _coarsens(self, vectors: Floats, mean_degree: float) -> bool:
        return self._least_amount > 0.0 and mean_degree < _DENSE and vectors.shape[1] > _DIRECTIONS

    def _find_cost(self, kind: Kind, mean_degree: float = math.inf) -> float:
        """Return the cost of a release with the noise that is added to this kind, where an edge moves two rows."""
        if kind is Kind.ROWS or not math.isfinite(self.budget):
            usual = _USUAL if mean_degree >= _DENSE else _SPARSE
            return _ENDS / (usual[kind] * self._least_amount) ** 2
        share, releases = _PARTS[kind]
        return self.budget * _SHARE * share / releases

    def _draw(self, purpose: int, version: int) -> np.random.Generator:
        return np.random.default_rng(int(derive(derive(self._key, purpose), version)))


_DRAW_OF_PRODUCTS, _DRAW_OF_MOMENTS, _DRAW_OF_COUNTS, _DRAW_OF_VECTORS = range(2**32, 2**32 + 4)
"""The purposes of draws, apart from those of steps."""


def _find_directions(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the mean of vectors, (n, m), and their strongest directions, (m, directions)."""
    mean = vectors.mean(axis=0)
    centered = (vectors - mean).astype(np.float64)
    _, directions = np.linalg.eigh(centered.T @ centered)
    return mean, directions[:, -_DIRECTIONS:].astype(np.float32)


def round_strengths(strengths: Doubles) -> Doubles:
    """Return strengths rounded to powers of 2^¼, so that an exact volume or degree stays here.

    Examples
    --------
    >>> round_strengths(np.array([0.0, 1.0, 14379.27])).round(2).tolist()
    [0.0, 1.0, 13777.25]
    """
    rounded = np.zeros_like(strengths)
    positive = strengths > 0
    rounded[positive] = 2.0 ** (np.rint(np.log2(strengths[positive]) * 4.0) / 4.0)
    return rounded


def clip_lengths(vectors: Floats, longest: float) -> Floats:
    """Return vectors, (n, m), of which longer ones are scaled to this length."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    clipped: Floats = np.where(lengths > longest, normalise_rows(vectors) * np.float32(longest), vectors)
    return clipped


def find_longest(vectors: Floats, times: float) -> float:
    """Return so many times the median length of vectors that are not zero, or that of the longest; 0 if all are."""
    lengths = np.linalg.norm(vectors, axis=1)
    lengths = lengths[lengths > 0]
    return min(times * float(np.median(lengths)), float(lengths.max())) if len(lengths) else 0.0


def make_positive(matrix: Doubles) -> Doubles:
    """Return the symmetric matrix without negative directions, and with the same trace, that is nearest.

    Noise adds as much to some directions as it takes from others; what it adds is taken back.
    """
    values, vectors = np.linalg.eigh(matrix)
    trace = max(float(values.sum()), 0.0)
    falling = values[::-1]
    surplus = (np.cumsum(falling) - trace) / np.arange(1, len(values) + 1)
    kept = int(np.count_nonzero(falling > surplus))
    lowered = np.maximum(values - (surplus[kept - 1] if kept else 0.0), 0.0)
    positive: Doubles = (vectors * lowered) @ vectors.T
    return (positive + positive.T) / 2.0


def _make_possible(size: int, total: Doubles, products: Doubles) -> Moments:
    """Return moments near these that some vectors have: noise can leave directions with a negative variance."""
    mean = total / size
    covariance = make_positive(products / size - mean[:, None] * mean[None, :])
    products = size * (covariance + mean[:, None] * mean[None, :])
    largest = size * (LARGEST / UNIT) ** 2
    products = np.clip((products + products.T) / 2, -largest, largest)
    return Moments(size, np.rint(total).astype(np.int64), np.rint(products).astype(np.int64))
