"""What the defaults were chosen among: each row changes one thing, on networks of different kinds."""

import time
import warnings
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.io

from benchmarks.networks import NETWORKS
from benchmarks.quality import share_of_own
from benchmarks.table import table
from manela import Manela, ManelaWarning
from manela.analysis.classification import classify
from manela.formats.datasets import fetch, find
from manela.formats.loading import load_graph

Trial = tuple[str, dict[str, Any], dict[str, Any]]
TRIALS: list[Trial] = [
    ("default settings", {}, {}),
    ("another seed", {"random_state": 1}, {}),
    ("no smoothing", {"smooth": False}, {}),
    ("start random", {"start": "random"}, {}),
    ("2 sweeps", {}, {"engines.rounds.start.SWEEPS": 2}),
    ("6 sweeps", {}, {"engines.rounds.start.SWEEPS": 6}),
    ("every start of norm 1", {}, {"engines.rounds.start._LEAST_SIZE": 1.0}),
    ("rate falls at once", {}, {"engines.cpu.GROWN": 0.0}),
    ("rate falls at 1.5", {}, {"engines.cpu.GROWN": 1.5}),
    (
        "always 450 pairs while the rate falls",
        {},
        {"settings.budget._FEWEST_PAIRS": 450, "settings.budget._MOST_PAIRS": 450},
    ),
    ("always 1,800", {}, {"settings.budget._FEWEST_PAIRS": 1800, "settings.budget._MOST_PAIRS": 1800}),
    ("60 pairs a round", {}, {"settings.budget.STEADY": 3.0}),
    ("frequency 0", {"frequency": 0.0}, {}),
    ("frequency 0.5", {"frequency": 0.5}, {}),
    ("ratios 0.8, 0.2", {"ratios": (0.8, 0.2)}, {}),
    ("ratios 0.2, 0.8", {"ratios": (0.2, 0.8)}, {}),
    ("3 negatives", {"negatives": 3}, {}),
    ("moments", {"negative_source": "moments"}, {}),
    ("learning rate 0.05", {"learning_rate": 0.05}, {}),
    ("filter in the middle at −0.2", {}, {"engines.rounds.smoothing.MIDDLE": -0.2}),
    ("rows of norm 2", {}, {"engines.rounds.smoothing.POWER": 0.0}),
    ("rows ∝ degree^0.4", {}, {"engines.rounds.smoothing.POWER": 0.4}),
    ("context vectors", {"context": True}, {}),
    ("thorough", {"learning_rate": 0.0125, "patience": 8.0}, {}),
]
SHUFFLES = 3


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    networks: dict[str, Any] = {}
    for name in ("blogcatalog", "ppi", "wikipedia"):
        labels = np.asarray(scipy.io.loadmat(fetch(find(name)))["group"].todense()).astype(bool)
        networks[name] = load_graph(name, unweighted=name != "wikipedia"), labels
    networks |= {name: make() for name, make in NETWORKS.items()}
    with table("what is changed", *networks, "mean", "seconds in all") as rows:
        for label, parameters, constants in TRIALS:
            begun, scores = 0.0, []
            with ExitStack() as stack:
                for place, value in constants.items():
                    stack.enter_context(patch(f"manela.{place}", value))
                for name, (graph, labels) in networks.items():
                    since = time.perf_counter()
                    vectors = Manela(**parameters).fit(graph).embedding_
                    begun += time.perf_counter() - since
                    scores.append(score(name, vectors, labels))
            rows.row(label, *(f"{value:.3f}" for value in scores), f"{np.mean(scores):.4f}", f"{begun:.1f}")
    print("\nMicro-F1 at 50 %; for the sparse SBM the share of the ten nearest that are of the own community.")


def score(name: str, vectors: np.ndarray, labels: np.ndarray) -> float:
    """How well labels can be told from vectors."""
    if name == "SBM, sparse":
        return share_of_own(vectors, labels)
    truth = labels if labels.ndim == 2 else np.equal.outer(labels, np.unique(labels))
    return float(classify(vectors, truth, shuffles=SHUFFLES, jobs=2).micro.mean())
