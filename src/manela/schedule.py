"""When each node does its iterations, and at what learning rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError
from manela.params import MOST_PAIRS, PAIRS_PER_NODE, Settings
from manela.randomness import draw_phases

if TYPE_CHECKING:  # a host has no Graph, and should not pay for SciPy
    from manela.graph import Graph

FINAL_RATE = 1e-4
"""What is left of the learning rate in the last round."""

_MANY_NODES = 100_000


@dataclass(frozen=True)
class Schedule:
    """The rounds of a run.

    Attributes
    ----------
    iterations : array of shape (n,)
        c, the iterations of each node in the whole run; need not be whole.
    phases : array of shape (n,)
        Where between two iterations each node begins, in [0, 1).
    rounds : int
        R.
    learning_rate : float
        α of the first round.
    """

    iterations: npt.NDArray[np.float64]
    phases: npt.NDArray[np.float64]
    rounds: int
    learning_rate: float

    def counts(self, number: int) -> npt.NDArray[np.int64]:
        """k_t(v), the iterations of each node in this round."""
        return self._begun(number + 1) - self._begun(number)

    def rate(self, number: int) -> float:
        """α_t, which falls linearly."""
        done = number / (self.rounds - 1) if self.rounds > 1 else 0.0
        return self.learning_rate * (1.0 - (1.0 - FINAL_RATE) * done)

    def _begun(self, number: int) -> npt.NDArray[np.int64]:
        begun = self.iterations * number
        begun /= self.rounds
        begun += self.phases
        return np.floor(begun, out=begun).astype(np.int64)


def plan(graph: Graph, settings: Settings, pairs: int, share: npt.NDArray[np.float64] | None = None) -> Schedule:
    """Spread this many update pairs over nodes by their strength, and over rounds evenly.

    `share` scales the iterations of each node, one unless given.
    """
    strengths = graph.strengths
    schedule = spread(
        strengths, math.fsum(strengths), np.arange(len(strengths)), settings, pairs,
        settings.rounds or default_rounds(graph.number_of_nodes),
    )  # fmt: skip
    if share is not None:
        schedule.iterations[:] *= share
    return schedule


def spread(
    strengths: npt.NDArray[np.float64],
    total: float,
    numbers: npt.NDArray[np.int64],
    settings: Settings,
    pairs: int,
    rounds: int,
) -> Schedule:
    """The schedule of some nodes of a network, whose update pairs and sum of strengths these are.

    `total` must be the exact sum, rounded: then it does not depend on the order in which hosts add up.
    """
    return Schedule(
        iterations=strengths * (pairs / sum(settings.targets_by_hop) / total),
        phases=draw_phases(settings.seed, numbers),
        rounds=rounds,
        learning_rate=settings.learning_rate,
    )


def default_rounds(nodes: int) -> int:
    """300; more on a large network, where a round is long anyway and then moves, and stages, fewer rows."""
    return 1000 if nodes >= _MANY_NODES else 300


def count_pairs(graph: Graph, settings: Settings) -> int:
    """The update pairs of the whole run, for a budget that is not a time."""
    if settings.pairs is not None:
        return settings.pairs
    if settings.updates is not None:
        pairs = settings.updates * len(graph.indices) / settings.window * sum(settings.targets_by_hop)
        if pairs > MOST_PAIRS:
            raise ParameterError(f"updates must come to at most {MOST_PAIRS:.0e} update pairs, got {pairs:.1e}.")
        return max(1, round(pairs))
    return PAIRS_PER_NODE * graph.number_of_nodes
