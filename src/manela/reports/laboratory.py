"""Laboratory: what every experiment of the paper needs to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.datasets.loading import load_graph, load_labels
from manela.estimators.embedder import Embedder
from manela.evaluation.ledger import Ledger
from manela.evaluation.methods import make_embedder
from manela.graph import Graph
from manela.params import PAPER
from manela.reports.plan import Plan

FIRST_RATIO = {"blogcatalog": 0.7, "ppi": 0.1, "wikipedia": 0.3}
BIASES = {"blogcatalog": (0.25, 0.25), "ppi": (4.0, 1.0), "wikipedia": (4.0, 0.5)}
"""The paper's r₁, and its p and q, for node classification."""

Tell = Callable[[str], None]
Results = dict[str, Any]


@dataclass(frozen=True)
class Laboratory:
    """The plan, the ledger of what is done, how many threads to use, and whom to tell of progress."""

    plan: Plan
    ledger: Ledger
    jobs: int
    tell: Tell

    def get(self, part: str, compute: Callable[[], Any], **about: Any) -> Any:
        """The result that the ledger has, or that `compute` gives, which the ledger then keeps."""
        words = [f"{name}={value}" for name, value in about.items() if isinstance(value, str | int | float)]
        self.tell(f"{part}: {' '.join(words)}")
        return self.ledger.get(part, about, compute)

    def choose_parameters(
        self, method: str, nodes: int, r1: float, p: float = 1.0, q: float = 1.0, seed: int = 0
    ) -> dict[str, Any]:
        """The parameters of a method on a network of so many nodes, with the work that the plan gives it."""
        if method == "manela":
            pairs = self.plan.pairs_per_node * nodes
            return {"ratios": split_ratio(r1), "pairs": pairs, "random_state": seed}
        biases = {"p": p, "q": q} if method == "node2vec" else {}
        return {"walks": self.plan.walks, **biases, "random_state": seed}


def split_ratio(r1: float) -> list[float]:
    """r₁, and the rest for nodes two hops away."""
    return [r1, round(1 - r1, 10)]


def load_plain(network: str) -> tuple[Graph, npt.NDArray[np.bool_]]:
    """A network without weights, and its labels."""
    graph = load_graph(network, unweighted=True)
    return graph, load_labels(network).of(graph.nodes)


def fit(method: str, parameters: dict[str, Any], graph: Graph, jobs: int) -> Embedder:
    """Fit a method: MANELA with the paper's settings, those that walk by one thread: a seed gives the same bits."""
    if method == "manela":
        parameters = {**PAPER, **parameters}
    model = make_embedder(method, {**parameters, "n_jobs": jobs if method == "manela" else 1})
    fitted: Embedder = model.fit(graph)
    return fitted
