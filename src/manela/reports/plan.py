"""Plan: how much of each experiment is done."""

from __future__ import annotations

from dataclasses import dataclass

from manela.evaluation.classification import TRAIN_RATIOS

PAIRS_PER_NODE = 7450
"""Update pairs for each node, as many as make the paper's numbers."""
WALKS = 10
"""Walks of DeepWalk and node2vec from each node, as in the paper."""


@dataclass(frozen=True)
class Plan:
    """How much of each experiment is done.

    A method is compared with the paper only where it gets all of the paper's work: `compares` says so.
    """

    networks: tuple[str, ...] = ("blogcatalog", "ppi", "wikipedia")
    train_ratios: tuple[float, ...] = TRAIN_RATIOS
    shuffles: int = 10
    walks: int = WALKS
    pairs_per_node: int = PAIRS_PER_NODE
    link_runs: int = 10
    related: str = "blogcatalog"
    sweep: tuple[float, ...] = tuple(k / 10 for k in range(11))
    sweep_shuffles: int = 3
    tuned_networks: tuple[str, ...] = ("blogcatalog", "ppi", "wikipedia")
    tuned_seeds: int = 3
    search_pairs_per_node: int = PAIRS_PER_NODE
    """Update pairs for each node where many settings are tried: in the sweep and in tuning."""
    quick: bool = False

    def compares(self, method: str) -> bool:
        """Whether the method gets as much work as in the paper, so that its scores can be compared."""
        if method == "manela":
            return self.pairs_per_node >= PAIRS_PER_NODE
        if method in ("deepwalk", "node2vec"):
            return self.walks >= WALKS
        return True

    @property
    def notes(self) -> list[str]:
        """What the page says below a table of methods of which some are not compared."""
        if all(self.compares(method) for method in ("manela", "deepwalk", "node2vec")):
            return []
        return [
            f"A quick run makes {self.walks} of the paper's {WALKS} walks from each node: DeepWalk and node2vec are "
            "shown, but not compared with the paper."
        ]

    @property
    def compares_search(self) -> bool:
        """Whether each of many settings, in the sweep and in tuning, gets as much work as the paper's MANELA."""
        return self.search_pairs_per_node >= PAIRS_PER_NODE


FULL = Plan()
QUICK = Plan(
    train_ratios=(0.1, 0.5, 0.9), shuffles=2, walks=1, link_runs=1, related="ppi", sweep=(0.0, 0.5, 1.0),
    sweep_shuffles=1, tuned_networks=("ppi",), tuned_seeds=1, search_pairs_per_node=1000, quick=True,
)  # fmt: skip
