"""Micro-F1 at 50 % on the paper's networks: one-versus-rest logistic regression, top-k labels, 10 shuffles."""

import warnings

import scipy.io

from benchmarks.table import table
from manela import Manela, ManelaWarning
from manela.datasets.catalogue import fetch, find
from manela.datasets.loading import load_graph
from manela.evaluation.classification import classify

SEEDS = (0, 1, 2)
RUNS = [
    ("blogcatalog", {"ratios": (0.7, 0.3)}, False, 0.386),
    ("ppi", {"ratios": (0.1, 0.9)}, False, 0.229),
    ("wikipedia", {"ratios": (0.3, 0.7)}, False, 0.492),
    ("wikipedia", {"ratios": (0.8, 0.2)}, True, None),
    ("wikipedia", {"ratios": (0.9, 0.1), "context": True}, True, None),
]


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    with table("network", "run", *(f"seed {seed}" for seed in SEEDS), "mean", "paper") as rows:
        for name, parameters, weighted, paper in RUNS:
            graph = load_graph(name, unweighted=not weighted)
            labels = scipy.io.loadmat(fetch(find(name)))["group"]
            scores = []
            for seed in SEEDS:
                model = Manela(**parameters, random_state=seed).fit(graph)
                scores.append(classify(model.embedding_, labels).micro.mean())
            words = [f"r₁ = {parameters['ratios'][0]}", "weights" if weighted else "no weights"]
            words += ["context vectors"] if parameters.get("context") else []
            cells = [f"{score:.4f}" for score in scores]
            rows.row(name, ", ".join(words), *cells, f"{sum(scores) / len(scores):.4f}", paper or "")
