"""Budget: the length of a run, resolved once from its settings and the sizes of the network."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError
from manela.settings.parameters import MOST_PAIRS, PAIRS_PER_NODE, default
from manela.settings.settings import Settings

STEADY = 1.5
"""With messages, by what fraction of itself one round may push back the mean of all vectors.

All nodes are pushed by the same negatives, which are one round old. At 2 or more the mean of all vectors oscillates
with growing amplitude; a smaller value splits the same work into more rounds.
"""
MOST_PAIRS_PER_ROUND = 60
"""With messages, most update pairs per node and round; with more, a node reads older vectors of others."""

_MANY_NODES = 100_000
_LONGEST_GROWTH = 3000
"""Pairs per node after which the learning rate falls in any case; larger lets slow vectors grow for longer."""
_USUAL_GROWTH, _WITH_CONTEXT = (300.0, 0.5), (270.0, 0.25)
"""Pairs per node until random vectors have grown: this times a power of the mean degree, at the default learning rate.

Used only to estimate the length of a run; with context vectors they grow sooner.
"""
_PAIRS_PER_NEIGHBOUR, _FEWEST_PAIRS, _MOST_PAIRS = 10.5, 720, 1800
"""Pairs per node while the rate falls: more on dense networks, which overfit later."""
_FROM_VIEW = 10.0, 480, 1200
"""The same for vectors that start from the spectral view, which need fewer."""
# patience multiplies the first and the last, its square root the second: sparse networks gain less from it
_OF_SPARSE, _LEAST_PAIRS = 25.0, 240
"""From the spectral view, on sparse networks: pairs per node for each neighbour, up to the fewest above, and at least.

More tell roles worse on such networks, and help nothing else.
"""
_FEW_NODES = 1000
"""Nodes up to which sparse networks get as many pairs as others; with fewer, chance tells more of them."""
_OF_ODDS = 0.3
"""Most negatives for a target, as a share of the odds that a step leads to a neighbour rather than chance."""


@dataclass(frozen=True)
class Sizes:
    """The nodes and arcs of a network, and how many of its nodes have neighbours."""

    nodes: int
    arcs: int
    joined: int

    @classmethod
    def of(cls, indptr: npt.NDArray[np.integer]) -> Sizes:
        """Return the sizes of a network, given the borders between the arcs of its nodes."""
        return cls(len(indptr) - 1, int(indptr[-1]), int(np.count_nonzero(np.diff(indptr))))

    @property
    def degree(self) -> float:
        """The mean degree of nodes that have neighbours."""
        return self.arcs / max(1, self.joined)


@dataclass(frozen=True)
class Budget:
    """The length of a run."""

    # update pairs of the run; None if its length is open, as the vectors decide when the learning rate falls
    pairs: int | None
    expected_pairs: int  # the same, or an estimate if the length is open
    rounds: int  # rounds of the run; the most possible if the length is open
    falls_at: int  # the round from which the learning rate falls at the latest
    falling: int | None  # rounds in which the rate falls, if that decides the length
    pairs_per_round: float  # update pairs of all nodes in a round
    seconds: float | None  # the running time; a run measures its speed, and is resolved again with the pairs that fit


def resolve(settings: Settings, sizes: Sizes, pairs: int | None = None) -> Budget:
    """Return the budget of a run on a network of these sizes; `pairs` overrides what the settings say.

    Examples
    --------
    >>> from manela.settings.settings import check_all
    >>> sizes = Sizes(nodes=1000, arcs=8000, joined=1000)
    >>> resolve(check_all({"pairs": 600_000}), sizes).rounds, resolve(check_all({"rounds": 7}), sizes).pairs
    (20, 210000)
    >>> resolve(check_all({}), sizes).rounds, resolve(check_all({"start": "random"}), sizes).pairs is None
    (16, True)
    """
    if pairs is None:
        pairs = _find_pairs(settings, sizes)
    if not settings.has_rounds:
        return Budget(0, 0, 0, 0, None, 0.0, None)
    if pairs is not None and settings.exchange == "walks":
        # on a large network, shorter rounds move and stage fewer vectors each
        rounds = settings.rounds or (1000 if sizes.nodes >= _MANY_NODES else 300)
        return Budget(pairs, pairs, rounds, 0, None, pairs / rounds, settings.max_seconds)
    of_a_node = count_pairs_per_round(settings)
    while_falling = _choose_falling(settings, sizes)
    if pairs is None and settings.starts_by_sweeps:
        pairs = round(of_a_node * sizes.nodes * math.ceil(while_falling / of_a_node))
    if pairs is not None:
        rounds = settings.rounds or max(1, math.ceil(pairs / (of_a_node * sizes.nodes)))
        # vectors that start from the spectral view have the shape that they would grow to first
        falls_at = 0 if settings.starts_by_sweeps else rounds // 2
        return Budget(pairs, pairs, rounds, falls_at, None, pairs / rounds, settings.max_seconds)
    growing, falling = math.ceil(_LONGEST_GROWTH / of_a_node), math.ceil(while_falling / of_a_node)
    expected = round((_expect_growth(settings, sizes.degree) + while_falling) * sizes.nodes)
    return Budget(
        None, expected, growing + falling, growing, falling, round(of_a_node * sizes.nodes), settings.max_seconds
    )


def _find_pairs(settings: Settings, sizes: Sizes) -> int | None:
    if settings.updates is not None:
        pairs = settings.updates * sizes.arcs / settings.window * sum(settings.targets_by_hop)
        if pairs > MOST_PAIRS:
            raise ParameterError(f"updates must come to at most {MOST_PAIRS:.0e} update pairs, got {pairs:.1e}")
        return max(1, round(pairs))
    if settings.pairs is not None:
        return settings.pairs
    if settings.exchange == "walks":
        return PAIRS_PER_NODE * sizes.nodes
    return None if settings.rounds is None else round(count_pairs_per_round(settings) * sizes.nodes * settings.rounds)


def count_pairs_per_round(settings: Settings) -> float:
    """Return the update pairs per node and round with messages: few enough that the mean of all vectors is stable.

    Each pair pushes the mean back by α·(κ − 1)/2 of itself, as targets return half of the push.

    Examples
    --------
    >>> from manela.settings.settings import check_all
    >>> count_pairs_per_round(check_all({})), count_pairs_per_round(check_all({"learning_rate": 0.05}))
    (30.0, 15.0)
    """
    push = settings.learning_rate * max(1, settings.negatives - 1) / 2
    return max(1.0, min(float(MOST_PAIRS_PER_ROUND), round(STEADY / push, 6)))


def count_negatives(settings: Settings, sizes: Sizes) -> int:
    """Return the negatives for each target: fewer where so many would push neighbours apart.

    Between two neighbours, vectors come to a product of about log((n/d)/κ), with n nodes of degree d. On a tiny or a
    nearly complete network it would be negative.

    Examples
    --------
    >>> from manela.settings.settings import check_all
    >>> [count_negatives(check_all({}), Sizes(nodes, 4 * nodes, nodes)) for nodes in (5, 24, 1000)]
    [1, 1, 5]
    """
    if not settings.starts_by_sweeps:
        return settings.negatives
    return min(settings.negatives, max(1, int(_OF_ODDS * sizes.joined / max(1.0, sizes.degree))))


def _expect_growth(settings: Settings, degree: float) -> float:
    factor, power = _WITH_CONTEXT if settings.context else _USUAL_GROWTH
    slowness = float(default("learning_rate")) / settings.learning_rate
    return float(min(_LONGEST_GROWTH, factor * degree**power * slowness))


def _choose_falling(settings: Settings, sizes: Sizes) -> float:
    per_neighbour, fewest, most = _PAIRS_PER_NEIGHBOUR, _FEWEST_PAIRS, _MOST_PAIRS
    if settings.starts_by_sweeps:
        per_neighbour, fewest, most = _FROM_VIEW
        if sizes.joined > _FEW_NODES:
            fewest = max(_LEAST_PAIRS, min(fewest, round(_OF_SPARSE * sizes.degree)))
    patience = settings.patience
    return min(most * patience, max(fewest * math.sqrt(patience), per_neighbour * patience * sizes.degree))
