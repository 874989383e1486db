"""When each node does its iterations, and at what learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError
from manela.params import MOST_PAIRS, PAIRS_PER_NODE
from manela.randomness import draw_phases
from manela.settings import Settings

if TYPE_CHECKING:  # a host has no Graph, and should not pay for SciPy
    from manela.graph import Graph

FINAL_RATE = 1e-4
"""What is left of the learning rate in the last round."""
GROWN = 1.0
"""By messages, how far vectors lie from their mean when the learning rate begins to fall; later is learned too much."""
STEADY = 1.5
"""By messages, by how much of itself a round may push back what all vectors have in common.

All nodes are pushed by the same negatives, which are a round old. From 2 on the mean of all vectors swings further with
every round; a smaller one makes more rounds of the same work.
"""
MOST_PAIRS_PER_ROUND = 60
"""By messages, update pairs a node in a round; with more, what a node reads of others is older."""

_MANY_NODES = 100_000
_LONGEST_GROWTH = 3000
"""Pairs a node after which the learning rate falls in any case."""
_USUAL_GROWTH = 400
"""Pairs a node until vectors have grown on most networks, to reckon with."""
_PAIRS_PER_NEIGHBOUR, _FEWEST_PAIRS, _MOST_PAIRS = 10.5, 720, 1800
"""Pairs a node while the rate falls: more on dense networks, where there is more to learn before it is too much."""
# with patience these grow by its first power, by its root, and by its first power: sparse networks gain less by it


@dataclass(frozen=True)
class Schedule:
    """The rounds of a run.

    Attributes
    ----------
    iterations : array of shape (n,)
        c, the iterations of each node in `spread_over` rounds; need not be whole.
    phases : array of shape (n,)
        Where between two iterations each node begins, in [0, 1).
    rounds : int
        R, all rounds if the rate falls from `falls_at` on.
    learning_rate : float
        α of the first round.
    falls_at : int
        The round from which the rate falls; the latest one, while that is not known.
    falling : int, or None
        Rounds in which the rate falls, where that decides how many there are in all.
    spread_over : int, or None
        Rounds over which `iterations` are spread; all of them if None.
    """

    iterations: npt.NDArray[np.float64]
    phases: npt.NDArray[np.float64]
    rounds: int
    learning_rate: float
    falls_at: int = 0
    falling: int | None = None
    spread_over: int | None = None

    def counts(self, number: int, nodes: slice = slice(None)) -> npt.NDArray[np.int64]:
        """k_t(v), the iterations of each node in this round, or of some nodes."""
        return self._count_begun(number + 1, nodes) - self._count_begun(number, nodes)

    @property
    def most_iterations(self) -> int:
        """More than any node has in a round."""
        return int(self.iterations.max() / (self.spread_over or self.rounds)) + 2

    def rate(self, number: int) -> float:
        """α_t, which stays until `falls_at` and then falls linearly."""
        falling = self.rounds - self.falls_at
        done = max(0, number - self.falls_at) / (falling - 1) if falling > 1 else 0.0
        return self.learning_rate * (1.0 - (1.0 - FINAL_RATE) * done)

    def has_work_of(self, other: Schedule) -> bool:
        """Whether nodes have the same iterations as by another in every round, whatever the learning rate."""
        same = self.iterations is other.iterations and self.phases is other.phases
        return same and (self.spread_over or self.rounds) == (other.spread_over or other.rounds)

    def fall(self, number: int) -> Schedule:
        """The same with a rate that falls from this round on."""
        return replace(self, falls_at=number, rounds=self.rounds if self.falling is None else number + self.falling)

    def expect_rounds(self, number: int) -> int:
        """About how many rounds there will be, if the rate does not fall yet in this one."""
        return self.rounds if self.falling is None else min(self.rounds, number + self.falling)

    def map(self, convert: Callable[[Any], Any]) -> Schedule:
        """The same with the arrays of nodes converted: sent to a card, say, or put into another order."""
        return replace(self, iterations=convert(self.iterations), phases=convert(self.phases))

    def begun(self, number: Any, nodes: slice = slice(None)) -> Any:
        """The iterations that each node has begun before a round, and a part of one; those that are whole count.

        `number` may be a column of rounds. Arrays of NumPy and tensors are computed alike, with the same bits.
        """
        begun = self.iterations[nodes] * number
        # by a plain number torch multiplies with its inverse, which rounds otherwise
        begun /= self.iterations[:1] * 0.0 + (self.spread_over or self.rounds)
        begun += self.phases[nodes]
        return begun

    def _count_begun(self, number: int, nodes: slice) -> npt.NDArray[np.int64]:
        begun: npt.NDArray[np.float64] = self.begun(number, nodes)
        return np.floor(begun, out=begun).astype(np.int64)


@dataclass(frozen=True)
class Basis:
    """What a schedule is made of.

    Attributes
    ----------
    weights : array of float64, shape (n,)
        What the iterations of each node that is scheduled are proportional to: strength^frequency.
    numbers : array of int, shape (n,)
        What the draws of these nodes go by.
    total : float
        The sum of the weights of all nodes of the network; exact and then rounded, so that the order does not matter.
    nodes : int
        All nodes of the network.
    degree : float
        The mean degree of those that have neighbours.
    """

    weights: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64]
    total: float
    nodes: int
    degree: float


def plan(graph: Graph, settings: Settings, pairs: int | None, share: npt.NDArray[np.float64] | None = None) -> Schedule:
    """The schedule of all nodes of a graph; `share` scales the iterations of each node, which is 1 by default.

    `pairs` is how many there are in all; None, by messages, for as many as the network asks for.
    """
    weights = weigh(graph.strengths, settings)
    basis = Basis(weights, np.arange(len(weights)), math.fsum(weights), len(weights), find_degree(graph))
    schedule = plan_nodes(basis, settings, pairs)
    if share is not None:
        schedule.iterations[:] *= share
    return schedule


def plan_nodes(basis: Basis, settings: Settings, pairs: int | None) -> Schedule:
    """Spread the update pairs of a network over some of its nodes by strength^frequency, and over rounds evenly."""
    if settings.exchange == "walks":
        rounds = settings.rounds or default_rounds(basis.nodes)
        return spread(basis, settings, pairs or PAIRS_PER_NODE * basis.nodes, rounds)
    a_round = count_pairs_per_round(settings)
    if pairs is None:
        falling = math.ceil(choose_falling(basis.degree, settings) / a_round)
        growing = math.ceil(_LONGEST_GROWTH / a_round)
        schedule = spread(basis, settings, round(a_round * basis.nodes), growing + falling)
        return replace(schedule, falls_at=growing, falling=falling, spread_over=1)
    rounds = settings.rounds or max(1, math.ceil(pairs / (a_round * basis.nodes)))
    return replace(spread(basis, settings, pairs, rounds), falls_at=rounds // 2)


def weigh_nodes(graph: Graph, settings: Settings) -> npt.NDArray[np.float64]:
    """What the iterations of each node are proportional to: strength^frequency, 0 without neighbours."""
    return weigh(graph.strengths, settings)


def weigh(strengths: npt.NDArray[np.float64], settings: Settings) -> npt.NDArray[np.float64]:
    """The same for nodes of these strengths."""
    if settings.frequency == 1.0:
        return strengths
    weights: npt.NDArray[np.float64] = np.where(strengths > 0, strengths**settings.frequency, 0.0)
    return weights


def find_degree(graph: Graph) -> float:
    """The mean degree of nodes that have neighbours."""
    return len(graph.indices) / max(1, int(np.count_nonzero(graph.degrees)))


def count_pairs_per_round(settings: Settings) -> float:
    """By messages, update pairs a node in a round: few enough that the mean of all vectors stays where it is.

    It is pushed back by α·(κ − 1)/2 of itself for each pair, as half of what is pushed away comes back from targets.

    Examples
    --------
    >>> from manela.settings import check_all
    >>> count_pairs_per_round(check_all({})), count_pairs_per_round(check_all({"learning_rate": 0.05}))
    (30.0, 15.0)
    """
    push = settings.learning_rate * max(1, settings.negatives - 1) / 2
    return max(1.0, min(float(MOST_PAIRS_PER_ROUND), round(STEADY / push, 6)))


def choose_falling(degree: float, settings: Settings) -> float:
    """Pairs a node while the learning rate falls, by the mean degree of nodes that have neighbours."""
    fewest, patience = _FEWEST_PAIRS * math.sqrt(settings.patience), settings.patience
    return min(_MOST_PAIRS * patience, max(fewest, _PAIRS_PER_NEIGHBOUR * patience * degree))


def spread(basis: Basis, settings: Settings, pairs: int, rounds: int) -> Schedule:
    """The schedule of some nodes of a network that makes so many update pairs in so many rounds."""
    return Schedule(
        iterations=basis.weights * (pairs / sum(settings.targets_by_hop) / (basis.total or 1.0)),
        phases=draw_phases(settings.seed, basis.numbers),
        rounds=rounds,
        learning_rate=settings.learning_rate,
    )


def default_rounds(nodes: int) -> int:
    """300; more on a large network, where a round is long anyway and then moves, and stages, fewer rows."""
    return 1000 if nodes >= _MANY_NODES else 300


def count_rounds(graph: Graph, settings: Settings) -> int:
    """The rounds of a run, for a budget that is not a time; the most that there may be, where there is no budget."""
    if settings.rounds is not None:
        return settings.rounds
    if settings.exchange == "walks":
        return default_rounds(graph.number_of_nodes)
    a_round = count_pairs_per_round(settings)
    if has_budget(settings):
        return max(1, math.ceil(count_pairs(graph, settings) / (a_round * graph.number_of_nodes)))
    return math.ceil(choose_falling(find_degree(graph), settings) / a_round) + math.ceil(_LONGEST_GROWTH / a_round)


def has_budget(settings: Settings) -> bool:
    """Whether it is known before a run how many update pairs it will be of."""
    given = (settings.pairs, settings.updates, settings.rounds, settings.max_seconds)
    return settings.exchange == "walks" or any(value is not None for value in given)


def choose_pairs(settings: Settings, nodes: int) -> int | None:
    """The update pairs of a run over so many nodes whose budget is given as pairs or rounds; None without a budget."""
    if settings.pairs is not None:
        return settings.pairs
    if settings.exchange == "walks":
        return PAIRS_PER_NODE * nodes
    return None if settings.rounds is None else round(count_pairs_per_round(settings) * nodes * settings.rounds)


def count_pairs(graph: Graph, settings: Settings) -> int:
    """The update pairs of the whole run, for a budget that is not a time; about how many, where there is no budget."""
    if settings.updates is not None:
        pairs = settings.updates * len(graph.indices) / settings.window * sum(settings.targets_by_hop)
        if pairs > MOST_PAIRS:
            raise ParameterError(f"updates must come to at most {MOST_PAIRS:.0e} update pairs, got {pairs:.1e}.")
        return max(1, round(pairs))
    given = choose_pairs(settings, graph.number_of_nodes)
    if given is not None:
        return given
    return round((_USUAL_GROWTH + choose_falling(find_degree(graph), settings)) * graph.number_of_nodes)
