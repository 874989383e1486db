"""Micro-F1 at 50 % on the paper's networks: one-versus-rest logistic regression, top-k labels, 10 shuffles."""

import warnings

import numpy as np
import scipy.io

from benchmarks.table import table
from manela import Manela, ManelaWarning
from manela.analysis.classification import classify
from manela.formats.datasets import fetch, find, planted_partition
from manela.formats.loading import load_graph

SEEDS = (0, 1, 2)
RUNS = [
    ("blogcatalog", "default settings", Manela, {}, False, None),
    ("ppi", "default settings", Manela, {}, False, None),
    ("wikipedia", "default settings, weights", Manela, {}, True, None),
    ("blogcatalog", "thorough", Manela.thorough, {}, False, None),
    ("ppi", "thorough", Manela.thorough, {}, False, None),
    ("wikipedia", "thorough, weights", Manela.thorough, {}, True, None),
    ("wikipedia", "thorough, weights, context vectors", Manela.thorough, {"context": True}, True, None),
    ("blogcatalog", "the paper's, r₁ = 0.7", Manela.paper, {"ratios": (0.7, 0.3)}, False, 0.386),
    ("ppi", "the paper's, r₁ = 0.1", Manela.paper, {"ratios": (0.1, 0.9)}, False, 0.229),
    ("wikipedia", "the paper's, r₁ = 0.3", Manela.paper, {"ratios": (0.3, 0.7)}, False, 0.492),
]
COMMUNITIES = (("default settings", Manela), ("thorough", Manela.thorough), ("the paper's", Manela.paper))


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    with table("network", "run", *(f"seed {seed}" for seed in SEEDS), "mean", "paper") as rows:
        for name, label, kind, parameters, weighted, paper in RUNS:
            graph = load_graph(name, unweighted=not weighted)
            labels = scipy.io.loadmat(fetch(find(name)))["group"]
            scores = [
                classify(kind(**parameters, random_state=seed).fit(graph).embedding_, labels, jobs=2).micro.mean()
                for seed in SEEDS
            ]
            cells = [f"{score:.4f}" for score in scores]
            rows.row(name, label, *cells, f"{sum(scores) / len(scores):.4f}", paper or "")
    print()
    graph, communities = planted_partition(40_000, 400, inside=3, outside=3)
    with table(
        "SBM, 40,000 nodes, 400 communities, 3 random edges a node inside and 3 outside", "own community"
    ) as rows:
        for label, kind in COMMUNITIES:
            rows.row(label, f"{share_of_own(kind().fit(graph).embedding_, communities):.4f}")
    print("\nOf the ten nearest by cosine of 2,000 random nodes, the share that is of the node's own community.")


def share_of_own(vectors: np.ndarray, communities: np.ndarray, nearest: int = 10, asked: int = 2000) -> float:
    """Of the nearest nodes by cosine, the share that is of the same community; over some random nodes."""
    rows = np.random.default_rng(0).choice(len(vectors), asked, replace=False)
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = units[rows] @ units.T
    cosines[np.arange(asked), rows] = -2.0
    best = np.argpartition(-cosines, nearest, axis=1)[:, :nearest]
    return float((communities[best] == communities[rows][:, None]).mean())
