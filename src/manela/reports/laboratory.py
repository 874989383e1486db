"""Laboratory: the plan, ledger and other resources that every experiment needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.estimators.embedder import Embedder
from manela.evaluation.ledger import Ledger
from manela.evaluation.methods import make_embedder
from manela.formats.loading import load_graph, load_labels
from manela.reports.plan import Plan
from manela.settings.parameters import PAPER

FIRST_RATIO = {"blogcatalog": 0.7, "ppi": 0.1, "wikipedia": 0.3}
BIASES = {"blogcatalog": (0.25, 0.25), "ppi": (4.0, 1.0), "wikipedia": (4.0, 0.5)}
"""The paper's r₁, and its p and q, for node classification."""

Tell = Callable[[str], None]
Results = dict[str, Any]


@dataclass(frozen=True)
class Laboratory:
    """The plan, the ledger of finished work, the number of threads, and a function that reports progress."""

    plan: Plan
    ledger: Ledger
    jobs: int
    tell: Tell

    def get(self, part: str, compute: Callable[[], Any], **about: Any) -> Any:
        """Return the result from the ledger, or call `compute` and store its result there."""
        words = [f"{name}={value}" for name, value in about.items() if isinstance(value, str | int | float)]
        self.tell(f"{part}: {' '.join(words)}")
        return self.ledger.get(part, about, compute)

    def choose_parameters(
        self, method: str, nodes: int, r1: float, p: float = 1.0, q: float = 1.0, seed: int = 0
    ) -> dict[str, Any]:
        """Return the parameters of a method on a network of `nodes` nodes, with the budget of the plan."""
        if method == "manela":
            pairs = self.plan.pairs_per_node * nodes
            return {"ratios": split_ratio(r1), "pairs": pairs, "random_state": seed}
        biases = {"p": p, "q": q} if method == "node2vec" else {}
        return {"walks": self.plan.walks, **biases, "random_state": seed}


def split_ratio(r1: float) -> list[float]:
    """Return r₁ and 1 − r₁, the share of targets two hops away."""
    return [r1, round(1 - r1, 10)]


def load_plain(network: str) -> tuple[Graph, npt.NDArray[np.bool_]]:
    """Load a network without weights, and its labels."""
    graph = load_graph(network, unweighted=True)
    return graph, load_labels(network).of(graph.nodes)


def fit(method: str, parameters: dict[str, Any], graph: Graph, jobs: int) -> Embedder:
    """Fit a method: MANELA with the paper's settings, others with one thread, so that a seed gives the same bits."""
    if method == "manela":
        parameters = {**PAPER, **parameters}
    model = make_embedder(method, {**parameters, "n_jobs": jobs if method == "manela" else 1})
    fitted: Embedder = model.fit(graph)
    return fitted
