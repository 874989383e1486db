"""The schedule of a run: how many iterations each node does in each round, and at what learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError
from manela.kernels.randomness import draw_phases
from manela.settings.parameters import MOST_PAIRS, PAIRS_PER_NODE
from manela.settings.settings import Settings

if TYPE_CHECKING:  # a host has no Graph, and should not pay for SciPy
    from manela.data.graph import Graph

FINAL_RATE = 1e-4
"""Learning rate of the last round, as a fraction of the first; larger, and vectors settle less."""
GROWN = 1.0
"""With messages, how far vectors lie from their mean when the learning rate begins to fall; larger overfits."""
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
_USUAL_GROWTH = 400
"""Pairs per node until vectors have grown on most networks; used only to estimate the length of a run."""
_PAIRS_PER_NEIGHBOUR, _FEWEST_PAIRS, _MOST_PAIRS = 10.5, 720, 1800
"""Pairs per node while the rate falls: more on dense networks, which overfit later."""
# patience multiplies the first and the last, its square root the second: sparse networks gain less from it


@dataclass(frozen=True)
class Schedule:
    """The rounds of a run.

    Attributes
    ----------
    iterations : array of shape (n,)
        c, the iterations of each node in `spread_over` rounds; need not be integers.
    phases : array of shape (n,)
        The fraction of an iteration with which each node begins, in [0, 1).
    rounds : int
        R, the total number of rounds if the rate falls from `falls_at` on.
    learning_rate : float
        α of the first round.
    falls_at : int
        The round from which the rate falls; the latest possible one while it is not known.
    falling : int, or None
        Number of rounds in which the rate falls, if that decides the total.
    spread_over : int, or None
        Number of rounds over which `iterations` are spread; all rounds if None.
    """

    iterations: npt.NDArray[np.float64]
    phases: npt.NDArray[np.float64]
    rounds: int
    learning_rate: float
    falls_at: int = 0
    falling: int | None = None
    spread_over: int | None = None

    def counts(self, number: int, nodes: slice = slice(None)) -> npt.NDArray[np.int64]:
        """Return k_t(v), the iterations in this round of each of `nodes`, all by default."""
        return self._count_begun(number + 1, nodes) - self._count_begun(number, nodes)

    @property
    def most_iterations(self) -> int:
        """An upper bound of the iterations of any node in a round."""
        return int(self.iterations.max() / (self.spread_over or self.rounds)) + 2

    def rate(self, number: int) -> float:
        """Return α_t, which is constant until `falls_at` and then falls linearly."""
        falling = self.rounds - self.falls_at
        progress = max(0, number - self.falls_at) / (falling - 1) if falling > 1 else 0.0
        return self.learning_rate * (1.0 - (1.0 - FINAL_RATE) * progress)

    def has_work_of(self, other: Schedule) -> bool:
        """Whether both schedules have the same iterations in every round, whatever the learning rate."""
        same = self.iterations is other.iterations and self.phases is other.phases
        return same and (self.spread_over or self.rounds) == (other.spread_over or other.rounds)

    def fall(self, number: int) -> Schedule:
        """Return the schedule with a rate that falls from this round on."""
        return replace(self, falls_at=number, rounds=self.rounds if self.falling is None else number + self.falling)

    def expect_rounds(self, number: int) -> int:
        """Estimate the total number of rounds if the rate does not fall yet in this one."""
        return self.rounds if self.falling is None else min(self.rounds, number + self.falling)

    def map(self, convert: Callable[[Any], Any]) -> Schedule:
        """Return the schedule with its arrays converted, for example copied to a GPU or reordered."""
        return replace(self, iterations=convert(self.iterations), phases=convert(self.phases))

    def begun(self, number: Any, nodes: slice = slice(None)) -> Any:
        """Return c·t/R + phase for each node, whose integer part is the number of iterations begun before a round.

        `number` may be a column of rounds. NumPy arrays and tensors give the same bits.
        """
        begun = self.iterations[nodes] * number
        # torch divides by a Python number by multiplying with its inverse, which rounds differently
        begun /= self.iterations[:1] * 0.0 + (self.spread_over or self.rounds)
        begun += self.phases[nodes]
        return begun

    def _count_begun(self, number: int, nodes: slice) -> npt.NDArray[np.int64]:
        """Return how many iterations nodes have begun before round `number`."""
        begun: npt.NDArray[np.float64] = self.begun(number, nodes)
        return np.floor(begun, out=begun).astype(np.int64)


@dataclass(frozen=True)
class Basis:
    """The facts about a network from which a schedule is computed.

    Attributes
    ----------
    weights : array of float64, shape (n,)
        strength^frequency of each scheduled node, to which its iterations are proportional.
    numbers : array of int, shape (n,)
        The number of each scheduled node, which seeds its draws.
    total : float
        The sum of the weights of all nodes of the network; summed exactly and then rounded, so order does not matter.
    nodes : int
        Number of nodes of the whole network.
    degree : float
        The mean degree of nodes that have neighbours.
    """

    weights: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64]
    total: float
    nodes: int
    degree: float


def plan(graph: Graph, settings: Settings, pairs: int | None, share: npt.NDArray[np.float64] | None = None) -> Schedule:
    """Return the schedule of all nodes of a graph; `share` scales the iterations of each node, 1 by default.

    `pairs` is the total number of update pairs; with messages, None chooses it by the network.
    """
    weights = weigh(graph.strengths, settings)
    basis = Basis(weights, np.arange(len(weights)), math.fsum(weights), len(weights), find_degree(graph))
    schedule = plan_nodes(basis, settings, pairs)
    if share is not None:
        schedule.iterations[:] *= share
    return schedule


def plan_nodes(basis: Basis, settings: Settings, pairs: int | None) -> Schedule:
    """Return the schedule of some nodes of a network: pairs by strength^frequency, spread evenly over the rounds."""
    if settings.exchange == "walks":
        rounds = settings.rounds or default_rounds(basis.nodes)
        return spread(basis, settings, pairs or PAIRS_PER_NODE * basis.nodes, rounds)
    pairs_per_round = count_pairs_per_round(settings)
    if pairs is None:
        falling = math.ceil(choose_falling(basis.degree, settings) / pairs_per_round)
        growing = math.ceil(_LONGEST_GROWTH / pairs_per_round)
        schedule = spread(basis, settings, round(pairs_per_round * basis.nodes), growing + falling)
        return replace(schedule, falls_at=growing, falling=falling, spread_over=1)
    rounds = settings.rounds or max(1, math.ceil(pairs / (pairs_per_round * basis.nodes)))
    return replace(spread(basis, settings, pairs, rounds), falls_at=rounds // 2)


def weigh_nodes(graph: Graph, settings: Settings) -> npt.NDArray[np.float64]:
    """Return strength^frequency of each node, to which its iterations are proportional; 0 without neighbours."""
    return weigh(graph.strengths, settings)


def weigh(strengths: npt.NDArray[np.float64], settings: Settings) -> npt.NDArray[np.float64]:
    """Return strength^frequency for these strengths; 0 for a strength of 0."""
    if settings.frequency == 1.0:
        return strengths
    weights: npt.NDArray[np.float64] = np.where(strengths > 0, strengths**settings.frequency, 0.0)
    return weights


def find_degree(graph: Graph) -> float:
    """Return the mean degree of nodes that have neighbours."""
    return len(graph.indices) / max(1, int(np.count_nonzero(graph.degrees)))


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


def choose_falling(degree: float, settings: Settings) -> float:
    """Return the pairs per node while the rate falls, given the mean degree of nodes that have neighbours."""
    fewest, patience = _FEWEST_PAIRS * math.sqrt(settings.patience), settings.patience
    return min(_MOST_PAIRS * patience, max(fewest, _PAIRS_PER_NEIGHBOUR * patience * degree))


def spread(basis: Basis, settings: Settings, pairs: int, rounds: int) -> Schedule:
    """Return the schedule of some nodes of a network whose nodes make `pairs` update pairs in `rounds` rounds."""
    return Schedule(
        iterations=basis.weights * (pairs / sum(settings.targets_by_hop) / (basis.total or 1.0)),
        phases=draw_phases(settings.seed, basis.numbers),
        rounds=rounds,
        learning_rate=settings.learning_rate,
    )


def default_rounds(nodes: int) -> int:
    """Return 300, or 1000 on a large network, where shorter rounds move and stage fewer vectors each."""
    return 1000 if nodes >= _MANY_NODES else 300


def count_rounds(graph: Graph, settings: Settings) -> int:
    """Return the rounds of a run whose budget is not a time; without a budget, the largest possible number."""
    if settings.rounds is not None:
        return settings.rounds
    if settings.exchange == "walks":
        return default_rounds(graph.number_of_nodes)
    pairs_per_round = count_pairs_per_round(settings)
    if has_budget(settings):
        return max(1, math.ceil(count_pairs(graph, settings) / (pairs_per_round * graph.number_of_nodes)))
    return math.ceil(choose_falling(find_degree(graph), settings) / pairs_per_round) + math.ceil(
        _LONGEST_GROWTH / pairs_per_round
    )


def has_budget(settings: Settings) -> bool:
    """Whether the length of a run is known before it starts."""
    budgets = (settings.pairs, settings.updates, settings.rounds, settings.max_seconds)
    return settings.exchange == "walks" or any(value is not None for value in budgets)


def choose_pairs(settings: Settings, nodes: int) -> int | None:
    """Return the update pairs of a run with a budget of pairs or rounds; None without a budget."""
    if settings.pairs is not None:
        return settings.pairs
    if settings.exchange == "walks":
        return PAIRS_PER_NODE * nodes
    return None if settings.rounds is None else round(count_pairs_per_round(settings) * nodes * settings.rounds)


def count_pairs(graph: Graph, settings: Settings) -> int:
    """Return the update pairs of a run whose budget is not a time; an estimate if there is no budget."""
    if settings.updates is not None:
        pairs = settings.updates * len(graph.indices) / settings.window * sum(settings.targets_by_hop)
        if pairs > MOST_PAIRS:
            raise ParameterError(f"updates must come to at most {MOST_PAIRS:.0e} update pairs, got {pairs:.1e}.")
        return max(1, round(pairs))
    chosen = choose_pairs(settings, graph.number_of_nodes)
    if chosen is not None:
        return chosen
    return round((_USUAL_GROWTH + choose_falling(find_degree(graph), settings)) * graph.number_of_nodes)
