"""The schedule of a run: how many iterations each node does in each round, and at what learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.kernels.randomness import draw_phases
from manela.settings.budget import Budget
from manela.settings.settings import Settings

FINAL_RATE = 1e-4
"""Learning rate of the last round, as a fraction of the first; larger, and vectors settle less."""
GROWN = 1.0
"""With messages, how far vectors lie from their mean when the learning rate begins to fall; larger overfits."""


@dataclass(frozen=True)
class Schedule:
    """The rounds of a run."""

    # (n,): c, the iterations of each node in `spread_over` rounds; need not be integers
    iterations: npt.NDArray[np.float64]
    phases: npt.NDArray[np.float64]  # (n,): the fraction of an iteration with which each node begins, in [0, 1)
    rounds: int  # R, the total number of rounds if the rate falls from `falls_at` on
    learning_rate: float  # α of the first round
    falls_at: int = 0  # the round from which the rate falls; the latest possible one while it is not known
    falling: int | None = None  # number of rounds in which the rate falls, if that decides the total
    spread_over: int | None = None  # number of rounds over which `iterations` are spread; all rounds if None
    pairs: int | None = None  # update pairs of the whole network; None if the length of the run is open

    def counts(self, round: int, nodes: slice = slice(None)) -> npt.NDArray[np.int64]:
        """Return k_t(v), the iterations in this round of each of `nodes`, all by default."""
        return self._count_begun(round + 1, nodes) - self._count_begun(round, nodes)

    @property
    def most_iterations(self) -> int:
        """An upper bound of the iterations of any node in a round."""
        return int(self.iterations.max() / (self.spread_over or self.rounds)) + 2

    def rate(self, round: int) -> float:
        """Return α_t, which is constant until `falls_at` and then falls linearly."""
        falling = self.rounds - self.falls_at
        progress = max(0, round - self.falls_at) / (falling - 1) if falling > 1 else 0.0
        return self.learning_rate * (1.0 - (1.0 - FINAL_RATE) * progress)

    def has_work_of(self, other: Schedule) -> bool:
        """Whether both schedules have the same iterations in every round, whatever the learning rate."""
        same = self.iterations is other.iterations and self.phases is other.phases
        return same and (self.spread_over or self.rounds) == (other.spread_over or other.rounds)

    def fall(self, round: int) -> Schedule:
        """Return the schedule with a rate that falls from this round on."""
        return replace(self, falls_at=round, rounds=self.rounds if self.falling is None else round + self.falling)

    def expect_rounds(self, round: int) -> int:
        """Estimate the total number of rounds if the rate does not fall yet in this one."""
        return self.rounds if self.falling is None else min(self.rounds, round + self.falling)

    def map(self, convert: Callable[[Any], Any]) -> Schedule:
        """Return the schedule with its arrays converted, for example copied to a GPU or reordered."""
        return replace(self, iterations=convert(self.iterations), phases=convert(self.phases))

    def begun(self, round: Any, nodes: slice = slice(None)) -> Any:
        """Return c·t/R + phase for each node, whose integer part is the number of iterations begun before a round.

        `round` may be a column of rounds. NumPy arrays and tensors give the same bits.
        """
        begun = self.iterations[nodes] * round
        # torch divides by a Python number by multiplying with its inverse, which rounds differently
        begun /= self.iterations[:1] * 0.0 + (self.spread_over or self.rounds)
        begun += self.phases[nodes]
        return begun

    def _count_begun(self, round: int, nodes: slice) -> npt.NDArray[np.int64]:
        begun: npt.NDArray[np.float64] = self.begun(round, nodes)
        return np.floor(begun, out=begun).astype(np.int64)


def plan(
    budget: Budget,
    settings: Settings,
    weights: npt.NDArray[np.float64],
    *,
    total: float | None = None,
    numbers: npt.NDArray[np.int64] | None = None,
) -> Schedule:
    """Return the schedule of all nodes of a network, or of some, spread evenly over the rounds of the whole budget.

    `weights` are what `weigh` returns for the scheduled nodes, and `total` is the sum over all nodes of the network, by
    default over these, summed exactly, so order does not matter. `numbers` seed the draws of nodes, by default rows do.
    """
    total = math.fsum(weights) if total is None else total
    pairs = budget.pairs_per_round if budget.pairs is None else budget.pairs
    return Schedule(
        iterations=weights * (pairs / sum(settings.targets_by_hop) / (total or 1.0)),
        phases=draw_phases(settings.seed, np.arange(len(weights)) if numbers is None else numbers),
        rounds=budget.rounds,
        learning_rate=settings.learning_rate,
        falls_at=budget.falls_at,
        falling=budget.falling,
        spread_over=1 if budget.pairs is None else None,
        pairs=budget.pairs,
    )


def weigh(strengths: npt.NDArray[np.float64], settings: Settings) -> npt.NDArray[np.float64]:
    """Return strength^frequency for these strengths; 0 for a strength of 0."""
    if settings.frequency == 1.0:
        return strengths
    weights: npt.NDArray[np.float64] = np.where(strengths > 0, strengths**settings.frequency, 0.0)
    return weights
