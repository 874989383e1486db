"""Trust: what a host makes of what peers show, and what it adds to what it shows itself.

In lock-step, which is for checking, everything is taken and given as it is (`Exact`). Otherwise nothing that a peer
says can do more than a bounded harm (`Bounded`): vectors are clipped, shares are those that the operator wrote down,
and what is said of several nodes at once is shown with noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Step, Sums
from manela.errors import MalformedError
from manela.kernels import received as kernels
from manela.kernels.moments import UNIT, Moments, add, center, estimate, measure
from manela.randomness import derive

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

FEWEST_NODES = 32
"""A host with fewer shows no sums and moments; with less, they would tell of single nodes."""
_MOST_OWN = 0.75
"""Of a mean of a peer's node that is one's own; beyond it the mean is not used, as what is left of it is blown up."""
_ROUNDING = 1e-6
"""By how much less than nothing a variance may be, over the largest one, by rounding alone."""


class Norms(NamedTuple):
    """Median norms of the host's own rows, (tables, levels), and how much these rows moved since the round before."""

    sizes: Doubles
    moves: float


class Judgement(NamedTuple):
    """What is taken of a peer's rows, and what is odd about them.

    Attributes
    ----------
    rows : array
        No longer than they may be.
    clipped : float
        The share of vectors that were.
    alarms : list of str
    """

    rows: Floats
    clipped: float
    alarms: list[str]


class Trust(Protocol):
    """What a host makes of what peers show, and what it adds to what it shows itself."""

    def blur(self, rows: Floats, step: Step, version: int, share: float) -> Floats:
        """Own rows, (rows, tables, levels, m), that are made of neighbours' rows, as they are shown to peers.

        `share` is how much of the noise is added.
        """
        ...

    def judge(self, rows: Floats, before: Floats, norms: Norms) -> Judgement:
        """A peer's rows, (rows, tables, levels, m), as they are used; they may be changed in place.

        `before`, (rows, m), is what was known of their vectors.
        """
        ...

    def believes(self, own: float, theirs: float, clipped: float, number: int, trusted: bool) -> bool:
        """Whether a peer is believed, in a round, by how like its nodes are to ours, and ours to each other.

        That is by mean cosine; `clipped` is the share of its vectors that were too long.
        """
        ...

    def bound_strengths(self, strengths: Doubles, known: Doubles, largest: Doubles) -> Doubles:
        """What a peer says of its nodes' strengths; `known` is what our own edges with each add up to."""
        ...

    def show_totals(self, nodes: int, hidden: int) -> bool:
        """Whether a host shows sums and moments of its nodes to a peer that does not see so many of them."""
        ...

    def measure(self, vectors: Floats) -> Moments:
        """The moments of own vectors, (n, m)."""
        ...

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments that no vectors have."""
        ...

    def pool_moments(self, own: Moments, others: Mapping[str, Moments], sizes: Mapping[str, int]) -> Moments:
        """The moments of all vectors of the network, as far as they are known."""
        ...

    def pool_sums(self, own: Sums, others: Mapping[str, Sums], sizes: Mapping[str, int]) -> Sums:
        """The sums of all rows of a sweep, which have norm 1, as far as they are known."""
        ...


class Exact:
    """Takes and gives everything as it is."""

    def blur(self, rows: Floats, step: Step, version: int, share: float) -> Floats:
        """The rows."""
        return rows

    def judge(self, rows: Floats, before: Floats, norms: Norms) -> Judgement:
        """The rows."""
        return Judgement(rows, 0.0, [])

    def believes(self, own: float, theirs: float, clipped: float, number: int, trusted: bool) -> bool:
        """Always."""
        return True

    def bound_strengths(self, strengths: Doubles, known: Doubles, largest: Doubles) -> Doubles:
        """The strengths."""
        return strengths

    def show_totals(self, nodes: int, hidden: int) -> bool:
        """Always."""
        return True

    def measure(self, vectors: Floats) -> Moments:
        """Exactly, so that it does not matter who adds up what."""
        return measure(vectors)

    def check_moments(self, moments: Moments) -> None:
        """Take them."""

    def pool_moments(self, own: Moments, others: Mapping[str, Moments], sizes: Mapping[str, int]) -> Moments:
        """Their exact sum."""
        return add([own, *others.values()])

    def pool_sums(self, own: Sums, others: Mapping[str, Sums], sizes: Mapping[str, int]) -> Sums:
        """Their exact sum."""
        parts = [own, *others.values()]
        total = np.sum([part.total for part in parts], axis=0)
        return Sums(sum(part.count for part in parts), total, sum(part.squares for part in parts))


class Bounded:
    """Lets no peer do more than a bounded harm.

    Parameters
    ----------
    noise : float
        Size of the noise on what is said of several nodes at once, over the size of what it is added to.
    clip : float
        How many times the median norm of the host's own rows a peer's row may have.
    key : int
        By which noise is drawn.
    """

    def __init__(self, noise: float, clip: float, key: int) -> None:
        self._noise, self._clip, self._key = noise, clip, key

    def blur(self, rows: Floats, step: Step, version: int, share: float) -> Floats:
        """The rows with noise, drawn anew for each version."""
        noise = self._noise * share
        if noise == 0.0 or not rows.size:
            return rows
        random = np.random.default_rng(int(derive(derive(self._key, 64 * step.phase + step.number % 64), version)))
        sizes = np.sqrt(np.square(rows).mean(axis=(0, 3)))
        blurred: Floats = rows + random.standard_normal(rows.shape, dtype=np.float32) * (
            noise * sizes[None, :, :, None]
        )
        return blurred

    def judge(self, rows: Floats, before: Floats, norms: Norms) -> Judgement:
        """The rows, none of them longer than `clip` times the median norm of the host's own."""
        if not len(rows):
            return Judgement(rows, 0.0, [])
        limits = self._clip * norms.sizes[:, : rows.shape[2]].reshape(-1)
        parts = rows.reshape(len(rows), len(limits), -1)
        lengths, moves = np.empty(parts.shape[:2]), np.empty(len(parts))
        kernels.clip_rows(parts, limits, before, lengths, moves)
        alarms = []
        clipped = float((lengths[:, 0] > limits[0]).mean())
        if clipped > _MANY_OUTLIERS:
            alarms.append("outliers")
        moved = moves[moves >= 0]
        if len(moved) and np.median(moved) > max(_LEAST_JUMP, _JUMP * norms.moves):
            alarms.append("jumping")
        return Judgement(rows, clipped, alarms)

    def believes(self, own: float, theirs: float, clipped: float, number: int, trusted: bool) -> bool:
        """Unless its nodes are unlike ours; one that was not believed must be clearly like again.

        In the first rounds hosts have not come together yet: only one whose vectors are also too long is not believed.
        """
        alike = theirs > own * (_UNLIKE if trusted else _LIKE_AGAIN)
        if number < _FIRST_ROUNDS:
            return alike or clipped <= 0.5
        return alike or own < _LEAST_LIKENESS

    def bound_strengths(self, strengths: Doubles, known: Doubles, largest: Doubles) -> Doubles:
        """The strengths, at least what is known; a node that has hardly more than one edge has just this one."""
        bounded = np.where(np.isfinite(strengths), np.maximum(strengths, known), known)
        return np.where(largest > _MOST_OWN * bounded, largest, bounded)

    def show_totals(self, nodes: int, hidden: int) -> bool:
        """To peers with edges here, where those that they do not see are too many to tell anything of single ones."""
        return nodes >= FEWEST_NODES and hidden < nodes and (hidden == 0 or hidden >= FEWEST_NODES)

    def measure(self, vectors: Floats) -> Moments:
        """Nearly, which is faster."""
        return estimate(vectors)

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments that no vectors have: those of a covariance that is not positive."""
        if moments.size < FEWEST_NODES:
            raise MalformedError(f"moments must be of at least {FEWEST_NODES} nodes, got {moments.size}")
        _, covariance = center(moments)
        variances = np.diag(covariance)
        if variances.min() < -_ROUNDING * max(1.0, variances.max()):
            raise MalformedError("moments must have variances of at least 0")
        try:
            np.linalg.cholesky(covariance + _ROUNDING * max(1.0, variances.max()) * np.eye(len(covariance)))
        except np.linalg.LinAlgError:
            raise MalformedError("moments must have a positive covariance") from None

    def pool_moments(self, own: Moments, others: Mapping[str, Moments], sizes: Mapping[str, int]) -> Moments:
        """Their sum, of each peer for no more nodes than it is known to have, and no longer ones than may be."""
        square = _find_square(own)
        parts = [own]
        for peer, theirs in others.items():
            size = min(theirs.size, sizes.get(peer, 0))
            mean, covariance = center(theirs)
            mean *= _shrink(float(mean @ mean), _MOST_COMMON**2 * square) ** 0.5
            covariance *= _shrink(float(np.trace(covariance)), self._clip**2 * square)
            products = size * (covariance + mean[:, None] * mean[None, :])
            parts.append(Moments(size, np.rint(size * mean).astype(np.int64), np.rint(products).astype(np.int64)))
        return add(parts)

    def pool_sums(self, own: Sums, others: Mapping[str, Sums], sizes: Mapping[str, int]) -> Sums:
        """Their sum, of each peer for no more nodes than it is known to have; the mean of rows of norm 1 is shorter."""
        count, total = own.count, own.total.astype(np.float64)
        for peer, theirs in others.items():
            size = min(theirs.count, sizes.get(peer, 0))
            mean = theirs.total / max(1, theirs.count)
            length = float(np.sqrt(mean @ mean)) * UNIT
            total += mean * (size / max(1.0, length))
            count += size
        return Sums(count, np.rint(total).astype(np.int64), own.squares)


_MOST_COMMON = 0.6
"""The norm of the mean of a peer's vectors, over the size of own ones; with more, a liar could push all around."""
_MANY_OUTLIERS = 0.25
"""Share of a peer's vectors that must be longer than may be for an alarm; honest peers have some."""
_FIRST_ROUNDS = 8
"""Rounds in which honest hosts may still be unlike, as the start was blurred; with more, a liar has more time."""
_LEAST_LIKENESS = 0.2
"""How like each other, by mean cosine, own neighbours must be before peers are judged by it."""
_UNLIKE, _LIKE_AGAIN = 0.15, 0.35
"""A peer is not believed whose nodes are less than this part as like ours as ours are like each other.

With more, honest hosts of other communities would be done without; with less to be believed again, a liar would be in
and out.
"""
_JUMP, _LEAST_JUMP = 4.0, 1.0
"""An alarm is raised when a peer's vectors move by so many times what own ones move, and by their own length."""


def _shrink(value: float, limit: float) -> float:
    """By what to multiply a value so that it is within a limit."""
    return limit / value if value > limit else 1.0


def _find_square(moments: Moments) -> float:
    """The mean square of vectors; whole numbers of a liar could overflow."""
    return float(np.diag(moments.products).astype(np.float64).sum()) / moments.size


def measure_norms(rows: Floats, before: Floats | None) -> Norms:
    """Those of the host's own rows, (rows, tables, levels, m); `before` are the same rows a round ago."""
    parts = rows.reshape(len(rows), rows.shape[1] * rows.shape[2], rows.shape[3])
    lengths = np.empty(parts.shape[:2])
    kernels.measure_lengths(parts, lengths)
    moves = 0.0
    if before is not None:
        distances, sizes = np.empty((len(rows), 1)), np.empty((len(rows), 1))
        kernels.measure_lengths(rows[:, 0, :1] - before[:, 0, :1], distances)
        kernels.measure_lengths(np.ascontiguousarray(before[:, 0, :1]), sizes)
        moves = float(np.median(distances / np.maximum(sizes, 1e-30)))
    # nodes whose neighbours are all away have means of nothing
    lengths = np.where(lengths > 0, lengths, np.nan)
    there = ~np.isnan(lengths).all(axis=0)
    medians = np.full(lengths.shape[1], np.nan)
    medians[there] = np.nanmedian(lengths[:, there], axis=0)
    return Norms(medians.reshape(rows.shape[1:3]), moves)
