"""The rounds in plain NumPy: the definition that every engine is tested against.

There are two variants. In both, round t reads the vectors Φ_t from its start, and each node v moves only its own
vector, by its own iterations:

    x ← Φ_t(v)
    for each of its iterations:
        x ← x + α_t · ( Σ targets (1 − σ(x·u))·u − Σ negatives σ(x·u)·u )
    Φ_{t+1}(v) ← x

With walks (`advance`), as in the paper: a target is Φ_t of the end of a walk of 1, 2, … s steps, unless the walk ends
at v, and each target has κ negatives of its own, Φ_t of uniformly drawn nodes. Keys: round → node → iteration.
Target j of an iteration has draw number j·(1 + κ), which is the key of its walk, and its negatives have the next κ
numbers; step h of a walk is draw h under the walk's key.

With messages (`advance_by_messages`): a target is what a direct neighbour w shows, Φ_t(w) for one hop and the mean
M^(h−1)(w) over what w's own neighbours show for h hops. All nodes move away from the same negatives, κ for each target
of a full iteration. What is shown is rounded to half precision. Keys of targets: round → node → iteration → number of
the target. Keys of negatives: round → block → number, where iteration j takes block j mod `BLOCKS`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from manela.kernels import moments
from manela.kernels.layout import Arcs, Integers
from manela.kernels.randomness import VECTORS, derive, draw_vectors, scale_to

Floats = npt.NDArray[np.floating]

BLOCKS = 32
"""Blocks of common negatives in a round; more take more memory, and affect only nodes with as many iterations."""
MOST_OWN = 1.0 - 1.0 / 64.0
"""A mean is dropped if the reading node's share in it is larger than this, as the rest is mostly rounding error."""
FILTER = (1.0634833707413236, -0.5157886107817927, 0.06381229835547651, -0.005290223937980572)
"""Chebyshev coefficients of exp(−θ·Z), θ = 0.5; the next ones are below 4e-4 and change nothing."""
MIDDLE = 0.2
"""μ, the eigenvalue of the Laplacian in the middle of the filter; a larger one lets sharper differences through."""
AFFINITY_POWER = 0.75
"""Power of a node's share in all neighbourhoods by which edges to it count less; 0 is worse, 1 as good."""
FEWEST_SWEEPS, MOST_SWEEPS, SETTLED = 8, 32, 0.004
"""Sweeps of the spectral view: it ends when one adds less than SETTLED to the energy; fewer are worse for labels."""
SWEEP_UNIT, SWEEP_LARGEST = 2.0**-10, 2.0**10
"""Fixed point of products in a sweep; sums have a mean square near 1 and are clipped, which a large hub's need."""
VIEW_MIDDLE = 0.3
"""μ in the filter of the spectral view."""
NODES_OF_A_DIRECTION = 2
"""Fewest nodes for each eigenvector of the spectral view; fewer tell less of groups and more of single nodes."""
VIEW_SIZE = 1.0
"""Norm of the first vectors of rounds that start from the spectral view."""
VIEW_WEIGHT, VIEW_WEIGHTS = 0.8, (0.6, 0.6)
"""Weights in the join, beside 1 for rounds: of the spectral view alone, and of it and context vectors.

1 suits roles, and less suits dense networks of communities.
"""
COMMON = 6.0
"""What any two nodes have in common, as a multiple of the chance that they are neighbours; see `find_common`."""
JOIN_POWER = 0.85
"""Coordinates of joined views are proportional to their standard deviation to this power; 1 keeps them as they are."""
LEAST_OVERLAP = 1e-5
"""Directions in which joined vectors overlap less with the sum of all views keep their turn; larger is less precise."""
LEAST_DIRECTION = 1e-9
"""Directions with less of the second moment than this, relative to the largest or the mean, count as empty."""
SCALE, POWER = 2.0, 0.3
"""Final norms are proportional to degree^POWER, with mean SCALE; a larger scale overfits a classifier with C = 1."""


def advance(
    tables: Sequence[Floats],
    arcs: Arcs,
    counts: Integers,
    key: int,
    learning_rate: float,
    walks: Sequence[int],
    negatives: int,
    singly: bool = False,
) -> list[Floats]:
    """Return the tables after one round with walks, each (n, m): (Φ,), or with context vectors (Φ, Ψ).

    `counts` are the iterations of each node in the round, and `key` is the key of the round. With two tables, each
    moves against the other with the same draws. `singly` is the strict order of the paper: each update is applied
    before the next is computed. No engine uses it; on BlogCatalog both orders learn equally good vectors.
    """
    moved = [table.copy() for table in tables]
    for node in np.flatnonzero(counts):
        node_key = derive(key, node)
        for own, new in enumerate(moved):
            others = tables[len(tables) - 1 - own]
            x = new[node]
            for iteration in range(counts[node]):
                rows, labels = draw(int(node), int(derive(node_key, iteration)), arcs, walks, negatives)
                if singly:
                    for row, label in zip(rows, labels, strict=True):
                        x += learning_rate * (label - sigmoid(x @ others[row])) * others[row]
                else:
                    x += learning_rate * ((labels - sigmoid(others[rows] @ x)) @ others[rows])
    return moved


def draw(node: int, key: int, arcs: Arcs, walks: Sequence[int], negatives: int) -> tuple[Integers, Floats]:
    """Return the rows of one iteration, each target before its negatives, and their labels: 1 for a target, else 0."""
    rows: list[int] = []
    steps_of_targets = [hop + 1 for hop, count in enumerate(walks) for _ in range(count)]
    for target, steps in enumerate(steps_of_targets):
        number = target * (1 + negatives)
        end = walk(node, int(derive(key, number)), steps, arcs)
        if end not in (node, NOWHERE):
            drawn = derive(key, number + 1 + np.arange(negatives))
            rows += [end, *scale_to(drawn, len(arcs.indptr) - 1).astype(np.int64).tolist()]
    labels = np.zeros(len(rows), dtype=np.float32)
    labels[:: 1 + negatives] = 1.0
    return np.array(rows, dtype=np.int64), labels


NOWHERE = -1


def walk(node: int, key: int, steps: int, arcs: Arcs) -> int:
    """Return the node where a walk ends, or NOWHERE if it met a node without neighbours."""
    for step in range(steps):
        first, last = int(arcs.indptr[node]), int(arcs.indptr[node + 1])
        if first == last:
            return NOWHERE
        node = int(arcs.indices[choose(first, last, int(derive(key, step)), arcs)])
    return node


def choose(first: int, last: int, drawn: int, arcs: Arcs) -> int:
    """Return the arc that a draw selects from `first` … `last` − 1, uniformly or by weight."""
    place, remainder = divmod(drawn * (last - first), 2**64)
    if arcs.thresholds is not None and arcs.aliases is not None and remainder >> 32 >= arcs.thresholds[first + place]:
        place = int(arcs.aliases[first + place])
    return first + place


def advance_by_messages(
    tables: Sequence[Floats],
    arcs: Arcs,
    weights: Floats | None,
    counts: Integers,
    key: int,
    learning_rate: float,
    targets_by_hop: Sequence[int],
    negatives: Sequence[Floats],
) -> list[Floats]:
    """Return the tables after one round with messages, each (n, m): (Φ,), or with context vectors (Φ, Ψ).

    `weights` are the weights of the arcs, None if all are equal. Vectors in tables[k] move away from negatives[k],
    (blocks, κ·targets, m): `draw_negatives` of the other table with context vectors, and of the same one without.
    """
    moved = [table.copy() for table in tables]
    scales = find_scales(arcs, weights, len(targets_by_hop))
    own_shares = find_own_shares(arcs, weights, scales)
    shown = [show(table, arcs, weights, scales) for table in tables]
    for node in np.flatnonzero(counts):
        for own, new in enumerate(moved):
            others, x = shown[len(tables) - 1 - own], new[node]
            for iteration in range(counts[node]):
                drawn = int(derive(derive(key, node), iteration))
                targets = draw_targets(int(node), drawn, arcs, targets_by_hop, others, own_shares, scales)
                common = negatives[own][iteration % len(negatives[own])]
                kept = len(targets) / sum(targets_by_hop)
                pull = (1.0 - sigmoid(targets @ x)) @ targets
                x += learning_rate * (pull - kept * (sigmoid(common @ x) @ common))
    return moved


def show(table: Floats, arcs: Arcs, weights: Floats | None, scales: Sequence[Floats]) -> list[Floats]:
    """Return what nodes show: [Φ, M¹, M², …], each (n, m) and rounded to half precision."""
    shown = [_halve(table)]
    for scale in scales:
        shown.append(_halve(average(shown[-1], arcs, weights, scale)))
    return shown


def _halve(table: Floats) -> Floats:
    """Return the table rounded to half precision."""
    return table.astype(np.float16).astype(table.dtype)


def average(table: Floats, arcs: Arcs, weights: Floats | None, scale: Floats) -> Floats:
    """Return scale[v]·Σ weight·table[u] over the neighbours u of each node v."""
    means = np.zeros_like(table)
    for node, (first, last) in enumerate(pairwise(arcs.indptr)):
        rows = table[arcs.indices[first:last]]
        means[node] = scale[node] * (rows.sum(axis=0) if weights is None else weights[first:last] @ rows)
    return means


def find_scales(arcs: Arcs, weights: Floats | None, hops: int) -> list[npt.NDArray[np.float64]]:
    """Return for h = 1 … hops − 1 the factors that turn sums into the means M^h; 0 if no walk has h steps.

    A node of a directed network may have no outgoing arcs; its means are zero, and do not count in those of others.
    """
    n = len(arcs.indptr) - 1
    scales, reaches = [], np.ones(n, dtype=bool)
    for _ in range(hops - 1):
        totals = average(reaches[:, None].astype(np.float64), arcs, weights, np.ones(n))[:, 0]
        scales.append(np.divide(1.0, totals, out=np.zeros(n), where=totals > 0))
        reaches = totals > 0
    return scales


def find_own_shares(arcs: Arcs, weights: Floats | None, scales: Sequence[Floats]) -> npt.NDArray[np.float64]:
    """Return for each arc from v to w the share of v in M¹(w); 1 if w has no neighbours."""
    shares = np.zeros(len(arcs.indices))
    if not scales:
        return shares
    back = {}
    for node, (first, last) in enumerate(pairwise(arcs.indptr)):
        for arc in range(first, last):
            back[node, int(arcs.indices[arc])] = 1.0 if weights is None else float(weights[arc])
    for node, (first, last) in enumerate(pairwise(arcs.indptr)):
        for arc in range(first, last):
            other = int(arcs.indices[arc])
            shares[arc] = back.get((other, node), 0.0) * scales[0][other] if scales[0][other] > 0 else 1.0
    return shares


def draw_targets(
    node: int,
    key: int,
    arcs: Arcs,
    targets_by_hop: Sequence[int],
    shown: Sequence[Floats],
    own_shares: Floats,
    scales: Sequence[Floats],
) -> Floats:
    """Return the targets of one iteration, one row each, without dropped ones."""
    rows = []
    first, last = int(arcs.indptr[node]), int(arcs.indptr[node + 1])
    hops = [hop for hop, count in enumerate(targets_by_hop) for _ in range(count)]
    for number, hop in enumerate(hops):
        arc = choose(first, last, int(derive(key, number)), arcs)
        other = int(arcs.indices[arc])
        row, share = shown[hop][other], own_shares[arc] if hop == 1 else 0.0
        if share > MOST_OWN or (hop > 1 and scales[hop - 1][other] == 0):
            continue
        rows.append((row - share * shown[0][node]) / (1.0 - share))
    return np.array(rows).reshape(len(rows), shown[0].shape[1])


def draw_negatives(table: Floats, key: int, blocks: int, amount: int, source: str) -> Floats:
    """Return the common negatives of a round, (blocks, amount, m); `key` is the round's key for negatives.

    They are shown vectors of uniformly drawn nodes ("nodes"), or draws from the normal distribution with the mean and
    covariance of the shown table ("moments").
    """
    shown = _halve(table)
    keys = derive(derive(key, np.arange(blocks))[:, None], np.arange(amount))
    if source == "nodes":
        return shown[scale_to(keys, len(table)).astype(np.int64)]
    drawn = moments.draw(moments.measure(shown), keys.reshape(-1))
    return drawn.astype(table.dtype).reshape(blocks, amount, table.shape[1])


def _normalise(rows: Floats) -> Floats:
    """Return rows with norm 1; rows of zeros stay zero."""
    norms = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    normalised: Floats = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return normalised


def find_view(arcs: Arcs, weights: Floats | None, seed: int, dimensions: int, filtered: bool = True) -> Floats:
    """Return the spectral view, (n, m): rows of norm 1, in half precision; 0 without neighbours.

    Sweeps begin with random rows of mean square m. In each, every node adds up what its neighbours show, weighted by
    affinity, and all rows are made orthogonal by the Cholesky factor L of their second moment L·Lᵀ. After the last
    one, H is the second moment of rows with a further sum over neighbours, and rows are multiplied by |H|^½: the
    eigenvectors of the network, each times |λ|^½, but for a turn. A direction with a negative eigenvalue counts as much
    as one with a positive; one that the sweeps have not separated from others has a small λ, and counts less.
    """
    n, joined = len(arcs.indptr) - 1, np.diff(arcs.indptr) > 0
    affinities = find_affinities(arcs, weights)
    random = np.zeros((n, dimensions), np.float32)
    draw_vectors(seed, np.arange(n), random, VECTORS)
    rows: Floats = np.where(joined[:, None], random * np.float32(math.sqrt(12.0) * dimensions), np.float32(0.0))
    size = max(1, int(joined.sum()))
    energy, number, ended = math.fsum(affinities.astype(np.float64) ** 2) / size, 0, False

    def add_up(shown: Floats) -> Floats:
        """A·shown, brought to a mean square of about 1, and clipped: a large hub would have nearly all of a sum."""
        sums = average(shown, arcs, affinities, np.full(n, choose_scale(energy))).astype(np.float32)
        return np.clip(sums, -SWEEP_LARGEST, SWEEP_LARGEST)

    while not ended:
        rows = add_up(_halve(rows))
        second = moments.multiply(rows, rows, SWEEP_UNIT, SWEEP_LARGEST) / size
        before, energy = energy, float(np.trace(second)) / dimensions / choose_scale(energy) ** 2
        rows = (rows @ moments.orthogonalise(second, LEAST_DIRECTION)).astype(np.float32)
        number += 1
        ended = has_settled(number, before, energy)
    shown = _halve(rows)
    second = moments.multiply(shown, add_up(shown), SWEEP_UNIT, SWEEP_LARGEST) / size
    values, vectors = np.linalg.eigh(0.5 * (second + second.T))
    order = np.argsort(-np.abs(values))[: count_directions(size, dimensions)]
    view = _normalise(shown @ (vectors[:, order] * np.abs(values[order]) ** 0.5 @ vectors[:, order].T))
    if filtered:
        view = _normalise(_filter(view, arcs, weights, VIEW_MIDDLE))
    return np.where(joined[:, None], _halve(view), 0.0)


def count_directions(size: int, dimensions: int) -> int:
    """Return how many eigenvectors the spectral view has, for `size` nodes with neighbours.

    The last ones of a small network tell single nodes apart, and drown what groups have in common.
    """
    return min(dimensions, max(2, size // NODES_OF_A_DIRECTION))


def find_affinities(arcs: Arcs, weights: Floats | None) -> npt.NDArray[np.float32]:
    """Return for each arc from v to w the affinity ½·(log(p_vw/q_w) + log(p_wv/q_v)), (arcs,).

    p_vw is the chance of a step from v to w, and q ∝ (Σ_u p_uv)^AFFINITY_POWER is the chance to draw v.
    """
    n = len(arcs.indptr) - 1
    ones = np.ones(n)
    strengths = average(ones[:, None], arcs, weights, ones)[:, 0]
    inverse = np.divide(1.0, strengths, out=np.zeros(n), where=strengths > 0)
    halves = split_affinities(strengths, average(inverse[:, None], arcs, weights, ones)[:, 0])
    sources = np.repeat(np.arange(n), np.diff(arcs.indptr))
    logs = 0.0 if weights is None else np.log(weights)
    affinities: npt.NDArray[np.float32] = (logs - (halves[sources] + halves[arcs.indices])).astype(np.float32)
    return affinities


def split_affinities(strengths: Floats, shares: Floats, total: float | None = None) -> npt.NDArray[np.float64]:
    """Return b, (n,), with which the affinity of v and w is log ω_vw − b_v − b_w; `shares` are Σ_u p_uv.

    `total` is the sum of shares^AFFINITY_POWER over all nodes; by default these are all.
    """
    likely = shares**AFFINITY_POWER
    total = math.fsum(likely) if total is None else total
    halves = np.zeros(len(strengths))
    joined = strengths > 0
    halves[joined] = 0.5 * (np.log(strengths[joined]) + np.log(likely[joined] / total))
    return halves


def choose_scale(energy: float) -> float:
    """Return the power of two that brings numbers of this mean square to one between 1 and 4."""
    return 2.0 ** -math.floor(0.5 * math.log2(energy)) if energy > 0.0 else 1.0


def has_settled(number: int, before: float, energy: float, fewest: int = FEWEST_SWEEPS) -> bool:
    """Return whether sweep `number` was the last, given the mean square of its rows, and of those before it.

    A sweep gathers the directions that the network multiplies most. On a sparse network, where many are multiplied
    about as much, it takes more of them.
    """
    return number >= fewest and (number >= MOST_SWEEPS or energy <= before * (1.0 + SETTLED))


def join(table: Floats, views: Sequence[tuple[Floats, float]], arcs: Arcs) -> Floats:
    """Return the joined vectors, (n, m), of those of rounds, (n, m), and other views with their weights.

    Rows of norm 1 are laid side by side, weighted. Of the eigenvectors of their second moment, the m largest are kept,
    and turned by `find_turn`. What all nodes have in common is added, so that neighbours in a tiny network do not point
    apart.
    """
    m, degrees = table.shape[1], np.diff(arcs.indptr)
    joined = degrees > 0
    parts = [(table, 1.0), *views]
    side_by_side = np.concatenate(
        [weight * _normalise(np.where(joined[:, None], v, 0.0)) for v, weight in parts], axis=1
    )
    second = moments.multiply(side_by_side, side_by_side, moments.UNIT, moments.LARGEST) / max(1, joined.sum())
    values, vectors = (part[..., ::-1][..., :m] for part in np.linalg.eigh(second))
    factors = find_factors(values)
    left, _, right = np.linalg.svd(find_overlap(values, vectors, factors, len(parts)))
    turn = left @ right
    rows = _normalise(side_by_side @ (vectors * factors @ turn))
    rows += find_common(int(degrees.sum()), int(joined.sum())) * (find_calm(values, factors, turn[:, -1]) @ turn)
    return np.where(joined[:, None], find_sizes(degrees)[:, None] * _normalise(rows), table)


def find_factors(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the factor on the coordinate along each eigenvector of the join, given the eigenvalues; 0 for nothing."""
    used = values > LEAST_DIRECTION * values.max()
    powers: npt.NDArray[np.float64] = np.where(used, values, 1.0) ** (0.5 * (JOIN_POWER - 1.0))
    return np.where(used, powers, 0.0)


def find_overlap(
    values: npt.NDArray[np.float64], vectors: npt.NDArray[np.float64], factors: npt.NDArray[np.float64], views: int
) -> npt.NDArray[np.float64]:
    """Return the second moment of joined coordinates, before they are turned, with the sum of all views, (m, m).

    The orthogonal matrix nearest to it turns joined vectors as near as possible to that sum. Eigenvectors may have any
    sign, and those of nearly the same eigenvalue any turn among them; the turned vectors do not depend on it.
    """
    m = len(values)
    summed = vectors.reshape(views, -1, m).sum(axis=0)[:m]
    return regularise((factors * values)[:, None] * summed.T)


def regularise(overlap: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the overlap of two sets of coordinates, (m, m), with a little of the identity, so that it is regular."""
    small = LEAST_OVERLAP * np.sqrt(np.square(overlap).sum())
    regular: npt.NDArray[np.float64] = overlap + max(small, 1e-300) * np.eye(len(overlap))
    return regular


def find_calm(
    values: npt.NDArray[np.float64], factors: npt.NDArray[np.float64], turned: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the direction, by eigenvectors of the join, of what is in common: where vectors differ least.

    `turned` has their last coordinates after the turn.
    """
    variances = values * factors**2
    least = LEAST_DIRECTION * variances.max()
    calm = turned / (variances + least) if least > 0.0 else turned
    unit: npt.NDArray[np.float64] = calm / np.sqrt(np.square(calm).sum())
    return unit


def find_common(arcs: int, joined: int) -> float:
    """Return how much all rows of norm 1 get in common, given the arcs and the nodes with neighbours.

    The fewer nodes there are for each neighbour, the more do any two nodes have in common.
    """
    return math.sqrt(COMMON * arcs) / max(1, joined)


def smooth(table: Floats, arcs: Arcs, weights: Floats | None) -> Floats:
    """Return the vectors, (n, m), filtered over the network and scaled by degree."""
    degrees = np.diff(arcs.indptr)
    filtered = _filter(table, arcs, weights, MIDDLE)
    return np.where((degrees > 0)[:, None], find_sizes(degrees)[:, None] * _normalise(filtered), table)


def find_sizes(degrees: Integers) -> npt.NDArray[np.float64]:
    """Return the norm of each final vector, proportional to degree^POWER, with mean SCALE; 0 without neighbours."""
    sizes = np.where(degrees > 0, degrees.astype(np.float64) ** POWER, 0.0)
    return sizes * (SCALE / (sizes[degrees > 0].mean() if degrees.any() else 1.0))


def _filter(table: Floats, arcs: Arcs, weights: Floats | None, middle: float) -> Floats:
    """Return the vectors, (n, m), filtered over the network.

    With a loop of its mean weight at each node, L = I − D⁻¹A is the Laplacian and Z = ½(L − μI)² − I. The filter is
    A·(exp(−θ·Z) − I), a band-pass (that of ProNE, without its final SVD); the exponential is a sum of Chebyshev
    polynomials T_i(Z). It needs only sums over neighbours.
    """
    n = len(arcs.indptr) - 1
    degrees = np.diff(arcs.indptr)
    strengths = average(np.ones((n, 1)), arcs, weights, np.ones(n))[:, 0]
    joined = degrees > 0
    loops = np.divide(strengths, degrees, out=np.zeros(n), where=joined)
    inverse = np.divide(1.0, strengths + loops, out=np.zeros(n), where=joined)

    def shift(rows: Floats) -> Floats:
        """(L − μI)·rows."""
        return (1.0 - middle - loops * inverse)[:, None] * rows - average(rows, arcs, weights, inverse)

    before, now = table, 0.5 * shift(shift(table)) - table
    filtered = FILTER[0] * before + FILTER[1] * now - table
    for coefficient in FILTER[2:]:
        before, now = now, shift(shift(now)) - 2.0 * now - before
        filtered += coefficient * now
    return average(filtered, arcs, weights, np.ones(n)) + loops[:, None] * filtered


def build_aliases(indptr: Integers, weights: Floats) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
    """Return thresholds and aliases with which a step takes an arc with probability proportional to its weight.

    This is Walker's alias method: one of d arcs is drawn uniformly and kept if a draw of 32 bits is below its
    threshold; otherwise its alias is taken, counted from the node's first arc.
    """
    thresholds, aliases = np.empty(len(weights), np.uint32), np.empty(len(weights), np.int32)
    for first, last in pairwise(indptr):
        total = 0.0
        for weight in weights[first:last]:
            total += weight
        shares = [weight * (last - first) / total for weight in weights[first:last]]
        small = [j for j, share in enumerate(shares) if share < 1.0]
        large = [j for j, share in enumerate(shares) if not share < 1.0]
        while small and large:
            poor, rich = small.pop(), large[-1]
            thresholds[first + poor] = int(shares[poor] * (2**32 - 1))
            aliases[first + poor] = rich
            shares[rich] -= 1.0 - shares[poor]
            if shares[rich] < 1.0:
                small.append(large.pop())
        for j in small + large:
            thresholds[first + j] = 2**32 - 1
            aliases[first + j] = j
    return thresholds, aliases


def sigmoid(z: Floats) -> Floats:
    """Return σ(z) = 1/(1 + e^−z), with z clipped to ±30."""
    return 1.0 / (1.0 + np.exp(-np.clip(z, -30.0, 30.0)))
