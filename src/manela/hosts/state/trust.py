"""Trust: how a host limits the influence of what peers send.

In lock-step, which is for verification, values are used and sent unchanged (`Trust`). Otherwise the harm that a peer
can do is bounded (`Bounded`): received vectors are clipped, and a peer counts for at most its configured or known
number of nodes. `Judge` decides which peers are believed at all. What own messages disclose is up to `noise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manela.engines.rounds import spectral
from manela.engines.rounds.neighbours import Neighbours
from manela.engines.rounds.spectral import Weighted
from manela.errors import MalformedError
from manela.hosts.state.messages import Integers, Products, Sum, Sums
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.noise import clip_lengths, find_longest
from manela.hosts.state.peers import Peers
from manela.kernels.cpu import rows as kernels
from manela.kernels.layout import Table
from manela.kernels.moments import UNIT, Moments, add, center, estimate, measure
from manela.kernels.reference import LEAST_DIRECTION, VIEW_WEIGHT, choose_scale

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

FEWEST_NODES = 32
"""A host with fewer nodes shows no sums or moments; if this were smaller, they would disclose single nodes."""
_MOST_OWN = 0.75
"""The largest share that one own edge may have in the mean of a peer's node.

Above it the mean is not used: the remainder would be scaled up by 1 / (1 − share), and its noise with it.
"""
_ROUNDING = 1e-6
"""How far below 0 rounding may push a variance, over the largest mean square of a column, for each column.

If larger, false moments pass the check.
"""
_FEW_NODES = 2048
"""Most nodes whose moments are computed exactly; if larger, rounds of larger hosts take longer.

With fewer nodes than dimensions there are directions without variance, in which an estimate would be below 0.
"""


class Norms(NamedTuple):
    """Median norms of the host's own rows, (tables, levels), and the median relative move since the last round."""

    sizes: Doubles
    moves: float


class Judgement(NamedTuple):
    """A peer's rows as they are used, and what is suspicious about them."""

    rows: Floats  # the rows, clipped
    clipped: float  # the share of vectors that had to be clipped
    alarms: list[str]


class Likeness(NamedTuple):
    """The mean cosine between the ends of some edges, of which chance gives 0, and its standard error."""

    mean: float
    error: float = 0.0

    @property
    def is_certain(self) -> bool:
        """Whether the ends are more alike than chance explains."""
        return self.mean > _ERRORS * self.error


class Trust:
    """How a host limits the influence of what peers send: here not at all."""

    view_weight = VIEW_WEIGHT
    """Weight of the spectral view in the join, beside 1 for rounds; all hosts must have the same."""

    def judge(self, rows: Floats, before: Floats, norms: Norms) -> Judgement:
        """Return a peer's rows, (rows, tables, levels, m), as they are used; they may be changed in place.

        `before`, (rows, m), holds the vectors that were known of the same nodes.
        """
        return Judgement(rows, 0.0, [])

    def believes(self, own: float, theirs: Likeness, clipped: float, round: int, trusted: bool) -> bool:
        """Return whether a peer is believed in a round.

        `own` is the mean cosine between neighbours here, `theirs` the likeness of nodes here and the peer's, `clipped`
        the share of the peer's vectors that were too long, and `trusted` whether the peer was believed so far.
        """
        return True

    def bound_strengths(self, strengths: Doubles, known: Doubles, largest: Doubles) -> Doubles:
        """Return the strengths to use for a peer's nodes, given those that the peer states.

        `known` is the sum of our own edges with each node, and `largest` the largest of them.
        """
        return strengths

    def show_totals(self, nodes: int, hidden: int) -> bool:
        """Return whether a host shows sums and moments of its nodes to a peer that cannot see `hidden` of them."""
        return True

    def show_products(self, nodes: int) -> bool:
        """Return whether a host shows products of the columns of its nodes' rows."""
        return True

    def measure(self, vectors: Floats) -> Moments:
        """Return the moments of own vectors, (n, m); exact, so that the order of additions does not matter."""
        return measure(vectors)

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments that no set of vectors has."""

    def tells_of_sums(self, own: int, theirs: int) -> bool:
        """Return whether sums over so many nodes here and at a peer are enough to raise an alarm."""
        return min(own, theirs) >= _FEWEST_DOUBTED

    def doubts_moments(self, own: Moments, theirs: Moments) -> bool:
        """Return whether a peer's moments, which some vectors have, are far from those of own vectors."""
        return False

    def pool_moments(self, own: Moments, others: Mapping[str, Moments], sizes: Mapping[str, int]) -> Moments:
        """Return the moments of own and peers' vectors together."""
        return add([own, *others.values()])

    def pool_sums(self, own: Sums, others: Mapping[str, Sums], sizes: Mapping[str, int]) -> Sums:
        """Return the sums of own and peers' rows of a sweep, which have norm 1."""
        parts = [own, *others.values()]
        total = np.sum([part.total for part in parts], axis=0)
        return Sums(sum(part.count for part in parts), total, sum(part.squares for part in parts))

    def pool_sum(self, own: Sum, others: Mapping[str, Sum]) -> tuple[int, float]:
        """Return the number of nodes of all hosts that have neighbours, and the sum of a number of each."""
        parts = [own, *others.values()]
        return max(1, sum(part.count for part in parts)), math.fsum(number for part in parts for number in part.parts)

    def sum_products(
        self, left: Table, views: Sequence[Weighted], joined: int, unit: float, largest: float, neighbours: Neighbours,
        apart: bool = False,
    ) -> tuple[Products, float]:  # fmt: skip
        """Return the products of own rows, of which `joined` have neighbours, as `spectral.sum_products` has them.

        Return also the largest product of two rows, if it is bounded.
        """
        sums = spectral.sum_products(left, views, unit, largest, neighbours, apart)
        return Products(joined, sums, unit**2 * (0.5 if apart else 1.0)), math.inf

    def choose_products(self, parts: Mapping[str, Products], own: Products) -> dict[str, Products]:
        """Return those of the peers' products that can be pooled, given this host's own."""
        return dict(parts)

    def pool_products(self, parts: Mapping[str, Products]) -> Doubles:
        """Return the second moment of the rows of all hosts from products by host."""
        one, *others = parts.values()
        sums = np.sum([one.sums, *(other.sums for other in others)], axis=0)
        return spectral.find_second(sums, one.unit, max(1, sum(part.size for part in parts.values())))

    def orthogonalise(self, second: Doubles) -> Doubles:
        """Return the matrix that makes rows with this second moment orthogonal."""
        return spectral.orthogonalise(second)

    def find_root(self, second: Doubles, kept: int, sweeps: int) -> Doubles:
        """Return |H|^½ of the products of the view, of which so many eigenvectors are kept, after so many sweeps."""
        return spectral.find_root(second, kept)

    def describe_stretch(self, size: int, stretch: Doubles) -> Products:
        """Return what hosts pooled, for one that comes later or has no such peers, as products of this many rows."""
        return round_products(size, stretch * size)

    def check_products(self, products: Products, is_moment: bool) -> None:
        """Refuse products that no rows have; those of a second moment are not negative."""

    def find_scale(self, energy: float) -> float:
        """Return the factor on the sums of a sweep."""
        return choose_scale(energy)

    def bound_rows(self, rows: Floats, own: Floats) -> Floats:
        """Return a peer's rows of a sweep, (rows, m), as they are used, given the own ones that are shown."""
        return rows

    def find_consistent(self, rows: Floats, known: Floats) -> npt.NDArray[np.bool_]:
        """Return which rows of a peer, (rows, m), are like those of the same nodes that it showed before."""
        return np.ones(len(rows), bool)


class Bounded(Trust):
    """Bounds the harm that a peer can do.

    `clip` is the largest norm of a peer's row, over the median norm of the host's own rows. With `noise`, sums say
    little of weak directions.
    """

    view_weight = 0.5  # less than on one machine, as the view has more noise

    def __init__(self, clip: float, noise: bool = True) -> None:
        self._clip, self._least = clip, _LEAST_DIRECTION if noise else LEAST_DIRECTION

    def judge(self, rows: Floats, before: Floats, norms: Norms) -> Judgement:
        """Return the rows, clipped to `clip` times the median norm of the host's own rows."""
        if not len(rows):
            return Judgement(rows, 0.0, [])
        limits = self._clip * norms.sizes[:, : rows.shape[2]].reshape(-1)
        parts = rows.reshape(len(rows), len(limits), -1)
        lengths, moves = np.empty(parts.shape[:2]), np.empty(len(parts))
        kernels.clip_rows(parts, limits, before, lengths, moves)
        alarms = []
        clipped = float((lengths[:, 0] > limits[0]).mean())
        if clipped > _MANY_OUTLIERS and len(rows) >= _FEWEST_FOR_ALARMS:
            alarms.append("outliers")
        measured = moves[moves >= 0]
        if len(measured) >= _FEWEST_FOR_ALARMS and np.median(measured) > max(_LEAST_JUMP, _JUMP * norms.moves):
            alarms.append("jumping")
        return Judgement(rows, clipped, alarms)

    def believes(self, own: float, theirs: Likeness, clipped: float, round: int, trusted: bool) -> bool:
        """Return False if the peer's nodes are surely unlike ours; to be believed again they must be clearly alike.

        Where hosts are communities of their own, the nodes of honest ones are hardly more alike than by chance, so that
        chance must not decide.

        In the first rounds honest hosts may still be unlike each other, so then more than half of the peer's vectors
        must also be too long.
        """
        at_most = theirs.mean + _ERRORS * theirs.error
        alike = at_most > own * _UNLIKE if trusted else theirs.mean > own * _LIKE_AGAIN
        if round < _FIRST_ROUNDS and trusted:
            return alike or clipped <= 0.5
        return alike or own < _LEAST_LIKENESS

    def bound_strengths(self, strengths: Doubles, known: Doubles, largest: Doubles) -> Doubles:
        """Return the strengths, but at least the known ones.

        A node whose strength is little more than its largest edge with us gets this edge as its strength.
        """
        bounded = np.where(np.isfinite(strengths), np.maximum(strengths, known), known)
        return np.where(largest > _MOST_OWN * bounded, largest, bounded)

    def show_totals(self, nodes: int, hidden: int) -> bool:
        """Return True if there are enough nodes, and the peer sees all of them, or some with enough of them unseen."""
        return nodes >= FEWEST_NODES and hidden < nodes and (hidden == 0 or hidden >= FEWEST_NODES)

    def show_products(self, nodes: int) -> bool:
        """Return True if there are enough nodes; rows that a peer sees have noise, so that it cannot subtract them."""
        return nodes >= FEWEST_NODES

    def measure(self, vectors: Floats) -> Moments:
        """Return the moments of few vectors, and of many an estimate, which is faster."""
        return measure(vectors) if len(vectors) <= _FEW_NODES else estimate(vectors)

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments of too few nodes, and those whose covariance is not positive semidefinite."""
        if moments.size < FEWEST_NODES:
            raise MalformedError(f"moments must be of at least {FEWEST_NODES} nodes, got {moments.size}")
        _, covariance = center(moments)
        largest = float(np.abs(np.diag(moments.products).astype(np.float64)).max()) / moments.size
        rounding = _ROUNDING * len(covariance) * max(1.0, largest)
        if np.diag(covariance).min() < -rounding:
            raise MalformedError("moments must have variances of at least 0")
        try:
            np.linalg.cholesky(covariance + rounding * np.eye(len(covariance)))
        except np.linalg.LinAlgError:
            raise MalformedError("moments must have a positive covariance") from None

    def doubts_moments(self, own: Moments, theirs: Moments) -> bool:
        """Return True if most of their mean, or of their variance, will not be used."""
        if not self.tells_of_sums(own.size, theirs.size):
            return False
        square = _find_square(own)
        mean, covariance = center(theirs)
        used = _shrink(float(mean @ mean), _MOST_COMMON**2 * square)
        return min(used, _shrink(float(np.trace(covariance)), self._clip**2 * square)) < 0.5

    def pool_moments(self, own: Moments, others: Mapping[str, Moments], sizes: Mapping[str, int]) -> Moments:
        """Return the sum; each peer counts for at most its known size, and with a bounded mean and variance."""
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
        """Return the sum; each peer counts for at most its known size.

        Rows have norm 1, so a mean that is longer is scaled down to norm 1.
        """
        count, total = own.count, own.total.astype(np.float64)
        for peer, theirs in others.items():
            size = min(theirs.count, sizes.get(peer, 0))
            mean = theirs.total / max(1, theirs.count)
            length = float(np.sqrt(mean @ mean)) * UNIT
            total += mean * (size / max(1.0, length))
            count += size
        return Sums(count, np.rint(total).astype(np.int64), own.squares)

    def pool_sum(self, own: Sum, others: Mapping[str, Sum]) -> tuple[int, float]:
        """Return the sum; the mean of a peer's nodes counts as at most a few times the least of all, and no less."""
        parts = [part for part in (own, *others.values()) if part.count > 0]
        if not parts:
            return 1, 1.0
        means = [math.fsum(part.parts) / part.count for part in parts]
        # sizes enter by their logarithm, so that large honest hosts matter more here than large false ones
        counts = _bound_sizes(np.array([part.count for part in parts]), _MOST_LARGER)
        usual = means[0] if own.count > 0 and means[0] > 0.0 else 1.0
        bounded = np.clip(means, usual / _MOST_UNLIKE, usual * _MOST_UNLIKE)
        return max(1, round(float(counts.sum()))), float((counts * bounded).sum())

    def sum_products(
        self, left: Table, views: Sequence[Weighted], joined: int, unit: float, largest: float, neighbours: Neighbours,
        apart: bool = False,
    ) -> tuple[Products, float]:  # fmt: skip
        """Return the products in single precision, which is faster; rows count as at most a few times the usual one."""
        rows = spectral.lay_beside(views, 0, len(left))
        longest = find_longest(left, _LONGEST_SUMMED)
        clipped = clip_lengths(left, longest)
        if rows is None:
            return round_products(joined, (clipped.T @ clipped).astype(np.float64)), longest**2
        longest_beside = find_longest(rows, _LONGEST_SUMMED)
        beside = clip_lengths(rows, longest_beside)
        if apart:
            crossed = (beside.T @ clipped).astype(np.float64)
            return round_products(joined, 0.5 * (crossed + crossed.T)), longest * longest_beside
        both = np.concatenate((clipped, beside), axis=1)
        return round_products(joined, (both.T @ both).astype(np.float64)), longest**2 + longest_beside**2

    def choose_products(self, parts: Mapping[str, Products], own: Products) -> dict[str, Products]:
        """Leave out products that are far larger or smaller than own ones."""
        size = _measure(_find_second(own))
        sizes = {name: _measure(_find_second(part)) for name, part in parts.items()}
        return {name: part for name, part in parts.items() if size == 0.0 or size / _FAR <= sizes[name] <= size * _FAR}

    def pool_products(self, parts: Mapping[str, Products]) -> Doubles:
        """Return the second moment; all hosts that hear the same parts get the same.

        So that all come to the same basis, nobody's own part counts more here than elsewhere. A host counts for at most
        a few times as many nodes as the usual one, and with products of at most a few times the usual size.
        """
        found = {name: _find_second(part) for name, part in sorted(parts.items())}
        names, seconds = list(found), list(found.values())
        sizes = np.array([_measure(second) for second in seconds])
        usual = float(np.sort(sizes)[(len(sizes) - 1) // 2])
        counts = _bound_sizes(np.array([parts[name].size for name in names]), _MOST_UNLIKE)
        shrunk = np.minimum(1.0, _MOST_UNLIKE * usual / np.maximum(sizes, 1e-300))
        pooled = np.zeros_like(seconds[0])
        for second, weight in zip(seconds, counts * shrunk, strict=True):
            pooled += second * (weight / counts.sum())
        return pooled

    def check_products(self, products: Products, is_moment: bool) -> None:
        """Refuse products of too few nodes, and second moments with a negative direction."""
        if products.size < FEWEST_NODES:
            raise MalformedError(f"products must be of at least {FEWEST_NODES} nodes, got {products.size}")
        if is_moment:
            second = products.sums.astype(np.float64)
            slack = _ROUNDING * len(second) * max(1.0, float(np.abs(np.diag(second)).max()))
            try:
                np.linalg.cholesky(second + slack * np.eye(len(second)))
            except np.linalg.LinAlgError:
                raise MalformedError("products must be those of a second moment") from None

    def find_scale(self, energy: float) -> float:
        """Return 1: sums are no whole numbers here, and a factor on which hosts disagree would harm."""
        return 1.0

    def orthogonalise(self, second: Doubles) -> Doubles:
        """Return the symmetric matrix that does it, which turns rows least."""
        if not second.any():
            return np.eye(len(second))
        values, vectors = np.linalg.eigh(second)
        least = self._least * max(float(np.trace(second)) / len(second), 1e-300)
        turned: Doubles = (vectors / np.sqrt(np.maximum(values, least))) @ vectors.T
        return turned

    def find_root(self, second: Doubles, kept: int, sweeps: int) -> Doubles:
        """Return it with the signs that an odd number of sweeps has given to directions with negative eigenvalues.

        So a start that continues an older one ends with the directions that it began with.
        """
        values, vectors = np.linalg.eigh(second)
        order = np.argsort(-np.abs(values), kind="stable")[:kept]
        values, vectors = values[order], vectors[:, order]
        root: Doubles = (vectors * (np.sqrt(np.abs(values)) * np.sign(values) ** (sweeps % 2))) @ vectors.T
        return root

    def find_consistent(self, rows: Floats, known: Floats) -> npt.NDArray[np.bool_]:
        """Return which rows point where those of the same nodes pointed that it showed before, if it showed any."""
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(known, axis=1)
        consistent: npt.NDArray[np.bool_] = (rows * known).sum(axis=1) >= _CONSISTENT * lengths
        return consistent

    def bound_rows(self, rows: Floats, own: Floats) -> Floats:
        """Return the rows, clipped to `clip` times the median norm of the own ones."""
        lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1, keepdims=True))
        longest = self._clip * float(np.median(np.sqrt(np.square(own, dtype=np.float64).sum(axis=1))))
        bounded: Floats = (rows * np.minimum(1.0, longest / np.maximum(lengths, 1e-30))).astype(np.float32)
        return bounded


def _bound_sizes(sizes: npt.NDArray[np.integer], most: float) -> Doubles:
    """Return for how many nodes each host counts: at most `most` times as many as the usual one has."""
    usual = np.sort(sizes)[(len(sizes) - 1) // 2]
    bounded: Doubles = np.minimum(sizes, most * usual).astype(np.float64)
    return bounded


def _find_second(products: Products) -> Doubles:
    """Return the second moment that these products say, zeros if its numbers are too small or too large."""
    second = products.sums.astype(np.float64) * (products.unit / max(1, products.size))
    return second if _LEAST_SECOND <= np.abs(second).max() <= 1.0 / _LEAST_SECOND else np.zeros_like(second)


def _measure(second: Doubles) -> float:
    return float(np.sqrt(np.square(second).sum()))


def round_products(size: int, sums: Doubles) -> Products:
    """Return products of so many rows as whole numbers of a unit that suits them."""
    largest = float(np.abs(sums).max())
    unit = 2.0 ** (math.frexp(largest)[1] - _DIGITS) if largest > 0.0 else 1.0
    return Products(max(1, size), np.rint(sums / unit).astype(np.int64), unit)


_LEAST_DIRECTION = 0.05
"""Least share of a direction in the second moment of rows, over the mean share, where sums have noise.

If smaller, rows are scaled up in directions of which noise hides how strong they are.
"""
_LONGEST_SUMMED = 2.0
"""Length of a row in sums of products, over the median one, at most; larger needs more noise to hide a row."""
_DIGITS = 52
"""Binary digits of the largest of a host's products; fewer lose small ones."""
_LEAST_SECOND = 1e-30
"""Second moments of smaller numbers, or of larger ones than its inverse, count as none."""
_FAR = 64.0
"""How many times larger or smaller than own products those of a peer may be; if larger, a liar's are used."""
_MOST_LARGER = 100.0
"""How many times as many nodes as the usual host another one may say to have, where only the logarithm matters."""
_MOST_UNLIKE = 4.0
"""How many times the usual a host's nodes or products may count; if larger, a liar counts more.

If smaller, honest hosts of another size count less.
"""
_FEWEST_DOUBTED = 512
"""Fewest nodes whose moments can raise an alarm; those of fewer are mostly noise."""
_MOST_COMMON = 0.6
"""Largest norm of the mean of a peer's vectors, over the size of own ones; if larger, a liar could shift them all."""
_CONSISTENT = 0.5
"""Least cosine of a vector in smoothing with the last in rounds; if larger, vectors that still move are not used."""
_MANY_OUTLIERS = 0.25
"""Share of clipped vectors that raises an alarm; if larger, fewer liars are reported; honest peers have some."""
_FEWEST_FOR_ALARMS = 8
"""Fewest vectors in a reply that can raise an alarm; of fewer, some are long by chance; if larger, small liars are not
reported. All are clipped."""
_FIRST_ROUNDS = 8
"""Rounds in which honest hosts may still be unlike, as the start is noisy; if larger, a liar has more time."""
_LEAST_LIKENESS = 0.2
"""Least mean cosine between own neighbours for which peers are judged; if larger, peers are judged later."""
_UNLIKE, _LIKE_AGAIN = 0.15, 0.35
"""Least likeness of a peer's nodes to ours, over the likeness among ours, to stay trusted and to be trusted again.

If the first were larger, honest hosts of other communities would be distrusted. If the second were smaller, a liar
would alternate between trusted and distrusted.
"""
_ERRORS = 2.0
"""Standard errors by which a peer's likeness must be too small; if larger, liars with few edges are believed."""
_JUMP, _LEAST_JUMP = 4.0, 1.0
"""A peer's vectors that move by more than this many times own moves, and this many times their length, raise an alarm.

If larger, fewer alarms are raised.
"""


def _shrink(value: float, limit: float) -> float:
    return limit / value if value > limit else 1.0


def _find_square(moments: Moments) -> float:
    """Return the mean square norm of vectors; summed in floats, as the sum of integers could overflow."""
    return float(np.diag(moments.products).astype(np.float64).sum()) / moments.size


def measure_norms(rows: Floats, before: Floats | None) -> Norms:
    """Return the norms of the host's own rows, (rows, tables, levels, m); `before` holds the same rows a round ago."""
    parts = rows.reshape(len(rows), rows.shape[1] * rows.shape[2], rows.shape[3])
    lengths = np.empty(parts.shape[:2])
    kernels.measure_lengths(parts, lengths)
    moves = 0.0
    if before is not None:
        distances, sizes = np.empty((len(rows), 1)), np.empty((len(rows), 1))
        kernels.measure_lengths(rows[:, 0, :1] - before[:, 0, :1], distances)
        kernels.measure_lengths(np.ascontiguousarray(before[:, 0, :1]), sizes)
        moves = float(np.median(distances / np.maximum(sizes, 1e-30)))
    # ignore zero rows: the means of nodes whose neighbours are all away
    lengths = np.where(lengths > 0, lengths, np.nan)
    has_rows = ~np.isnan(lengths).all(axis=0)
    medians = np.full(lengths.shape[1], np.nan)
    medians[has_rows] = np.nanmedian(lengths[:, has_rows], axis=0)
    return Norms(medians.reshape(rows.shape[1:3]), moves)


_FEWEST_ARCS = 8
"""Fewest arcs to judge a peer by; if larger, peers with few edges are never judged; if smaller, chance decides."""
_FEWEST_ENDS = 4
"""Fewest nodes on each side of these arcs; of fewer, little is left when their mean is subtracted."""
_SAMPLE = 2000
"""Most arcs and vectors by which a peer is judged; more take longer, and are hardly more certain."""
_SAME = 0.9
"""Largest share of the mean in the mean square of a peer's vectors; if larger, near-constant vectors pass.

Constant vectors have 1, honest ones less than 0.6.
"""
_CERTAIN = 5
"""Exchanges without trust that raise an alarm; more delay it, fewer accuse honest peers that fail for a moment."""

Read = Callable[[Integers], npt.NDArray[np.float32]]
"""Returns the last shown vectors of the given rows."""


class Judge:
    """Judges peers by comparing a sample of the arcs to their nodes with a sample of the arcs between own nodes."""

    def __init__(self, near: Neighbourhood, trust: Trust, key: int, most: int = _SAMPLE) -> None:
        self._near, self._trust, self._most = near, trust, most
        random = np.random.default_rng(key)
        # the likeness of own nodes, and by peer that of own nodes and the peer's, when it was judged last
        self.own, self.found = 0.0, dict[str, Likeness]()
        # the key "" stands for arcs between own nodes
        arcs = {"": np.flatnonzero(near.indices < len(near.nodes)), **{peer: near.arcs_to(peer) for peer in near.peers}}
        self.samples: dict[str, Integers] = {
            peer: random.choice(candidates, min(len(candidates), most), replace=False)
            for peer, candidates in arcs.items()
            if len(candidates) or not peer
        }

    def judge(
        self,
        peers: Peers,
        seen: npt.NDArray[np.bool_],
        read: Read,
        round: int,
        read_as_peers: Read | None = None,
    ) -> tuple[bool, list[str]]:
        """Judge all peers in a round; return whether trust in any has changed, and the peers to report.

        `read_as_peers` returns own vectors as peers see them, if that is not as they are.
        """
        self.own = own = self.measure_own(read, read_as_peers or read)
        changed, alarms = False, []
        for peer in peers.values():
            sample = self.samples.get(peer.name)
            if sample is None or peer.link is None:
                continue
            sample = sample[seen[self._near.indices[sample]]]
            ends = self._near.sources[sample], self._near.indices[sample]
            if len(sample) < _FEWEST_ARCS or min(len(np.unique(nodes)) for nodes in ends) < _FEWEST_ENDS:
                continue
            trusted = not peer.distrust
            self.found[peer.name] = theirs = self._measure_likeness(sample, read, read)
            believed = self._trust.believes(own, theirs, peer.clipped, round, trusted)
            rows = peer.link.neighbours
            believed = believed and not _are_constant(read(rows[seen[rows]][: self._most]))
            changed |= believed != trusted
            peer.distrust = 0 if believed else peer.distrust + 1
            peer.doubts += not believed
            peer.judged += 1
            if peer.distrust == _CERTAIN:
                alarms.append(peer.name)
        return changed, alarms

    def measure_own(self, read: Read, read_as_peers: Read) -> float:
        """Return the mean cosine between neighbours here, of which one is seen as peers see it."""
        return self._measure_likeness(self.samples[""], read, read_as_peers).mean

    def _measure_likeness(self, arcs: Integers, read: Read, read_other: Read) -> Likeness:
        """Return the likeness of the two ends of the arcs, after subtracting the mean of each side.

        Common negatives shift the mean, at each host at a different time, so it says nothing about honesty.
        """
        if not len(arcs):
            return Likeness(0.0)
        ends = [read(self._near.sources[arcs]), read_other(self._near.indices[arcs])]
        ends = [rows - rows.mean(axis=0) for rows in ends]
        products = (ends[0] * ends[1]).sum(axis=1)
        lengths = np.linalg.norm(ends[0], axis=1) * np.linalg.norm(ends[1], axis=1)
        cosines = products / np.maximum(lengths, 1e-12)
        return Likeness(float(cosines.mean()), float(cosines.std() / np.sqrt(len(cosines))))


def _are_constant(vectors: npt.NDArray[np.float32]) -> bool:
    """Return whether the vectors are enough to judge, and nearly all the same."""
    if len(vectors) < FEWEST_NODES:
        return False
    wide = vectors.astype(np.float64)
    mean = wide.mean(axis=0)
    return float(mean @ mean) > _SAME * float((wide**2).sum(axis=1).mean())


def pool_moments(trust: Trust, own: list[Moments], peers: Peers, sizes: Mapping[str, int], width: int) -> list[Moments]:
    """Return for each table the moments of own and trusted peers' vectors together, padded to the width of a table.

    `sizes` is for how many nodes each peer counts at most.
    """
    pooled = []
    for table, moments in enumerate(own):
        others = {name: peer.moments[table] for name, peer in peers.items() if peer.moments and not peer.distrust}
        together = trust.pool_moments(moments, others, sizes)
        padding = width - len(together.total)
        products = np.pad(together.products, ((0, padding), (0, padding)))
        pooled.append(Moments(together.size, np.pad(together.total, (0, padding)), products))
    return pooled
