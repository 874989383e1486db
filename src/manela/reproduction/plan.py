"""Plan: the amount of work for each experiment."""

from __future__ import annotations

from dataclasses import dataclass

from manela.analysis.classification import TRAIN_RATIOS
from manela.settings.parameters import PAIRS_PER_NODE

WALKS = 10
"""Walks of DeepWalk and node2vec from each node, as in the paper."""
LINK_RUNS = 10
"""Runs of link prediction, as in the paper; scores of single runs differ by more than those of methods."""


@dataclass(frozen=True)
class Plan:
    """The amount of work for each experiment.

    A method is compared with the paper only if it gets as much work as there; see `compares`.
    """

    networks: tuple[str, ...] = ("blogcatalog", "ppi", "wikipedia")
    train_ratios: tuple[float, ...] = TRAIN_RATIOS
    shuffles: int = 10
    walks: int = WALKS
    pairs_per_node: int = PAIRS_PER_NODE
    link_runs: int = LINK_RUNS
    related: str = "blogcatalog"
    sweep: tuple[float, ...] = tuple(k / 10 for k in range(11))
    sweep_shuffles: int = 3
    tuned_networks: tuple[str, ...] = ("blogcatalog", "ppi", "wikipedia")
    tuned_seeds: int = 3
    search_pairs_per_node: int = PAIRS_PER_NODE
    """Update pairs per node in the sweep and in tuning, which try many settings."""
    quick: bool = False

    def compares(self, method: str) -> bool:
        """Whether the method gets as much work as in the paper, so that its scores can be compared."""
        if method == "manela":
            return self.pairs_per_node >= PAIRS_PER_NODE
        if method in ("deepwalk", "node2vec"):
            return self.walks >= WALKS
        return True

    @property
    def compares_links(self) -> bool:
        """Whether links are predicted as often as in the paper."""
        return self.link_runs >= LINK_RUNS

    @property
    def notes(self) -> list[str]:
        """Notes below a table in which some methods are not compared with the paper."""
        if all(self.compares(method) for method in ("manela", "deepwalk", "node2vec")):
            return []
        return [
            f"A quick run makes {self.walks} of the paper's {WALKS} walks from each node: DeepWalk and node2vec are "
            "shown, but not compared with the paper."
        ]

    @property
    def compares_search(self) -> bool:
        """Whether each setting in the sweep and in tuning gets as much work as MANELA in the paper."""
        return self.search_pairs_per_node >= PAIRS_PER_NODE


FULL = Plan()
QUICK = Plan(
    train_ratios=(0.1, 0.5, 0.9), shuffles=2, walks=1, link_runs=1, related="ppi", sweep=(0.0, 0.5, 1.0),
    sweep_shuffles=1, tuned_networks=("ppi",), tuned_seeds=1, search_pairs_per_node=1000, quick=True,
)  # fmt: skip
