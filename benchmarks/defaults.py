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
from manela.analysis.links import hide_edges, rank_links, sample_nodes, score_vectors
from manela.formats.datasets import fetch, find
from manela.formats.loading import load_graph
from manela.settings.parameters import PAPER, THOROUGH

Trial = tuple[str, dict[str, Any], dict[str, Any]]
REFERENCE, SPECTRAL, BUDGET = "kernels.reference", "engines.rounds.spectral", "settings.budget"
TRIALS: list[Trial] = [
    ("default settings", {}, {}),
    ("another seed", {"random_state": 1}, {}),
    ("what rounds learn only", {"views": "rounds"}, {}),
    ("spectral view only", {"views": "spectral"}, {}),
    ("start random", {"start": "random"}, {}),
    ("rounds only, start random", {"start": "random", "views": "rounds"}, {}),
    ("always 32 sweeps", {}, {f"{REFERENCE}.FEWEST_SWEEPS": 32}),
    ("affinity by q to the power 0", {}, {f"{REFERENCE}.AFFINITY_POWER": 0.0}),
    ("filter of the spectral view in the middle at 0.2", {}, {f"{SPECTRAL}.VIEW_MIDDLE": 0.2}),
    ("rounds start at norm 0.3", {}, {f"{SPECTRAL}.VIEW_SIZE": 0.3}),
    ("spectral view weighs 0.6", {}, {f"{SPECTRAL}.VIEW_WEIGHT": 0.6}),
    ("spectral view weighs 1", {}, {f"{SPECTRAL}.VIEW_WEIGHT": 1.0}),
    ("joined coordinates ∝ deviation^0.75", {}, {f"{REFERENCE}.JOIN_POWER": 0.75}),
    ("joined coordinates as they are", {}, {f"{REFERENCE}.JOIN_POWER": 1.0}),
    ("nothing in common", {}, {f"{REFERENCE}.COMMON": 0.0}),
    ("rows ∝ degree^0.2", {}, {"engines.rounds.smoothing.POWER": 0.2}),
    ("rows ∝ degree^0.4", {}, {"engines.rounds.smoothing.POWER": 0.4}),
    ("half the rounds", {"patience": 0.5}, {f"{BUDGET}._LEAST_PAIRS": 120}),
    ("twice the rounds", {"patience": 2.0}, {}),
    ("frequency 0", {"frequency": 0.0}, {}),
    ("ratios 0.8, 0.2", {"ratios": (0.8, 0.2)}, {}),
    ("ratios 0.2, 0.8", {"ratios": (0.2, 0.8)}, {}),
    ("3 negatives", {"negatives": 3}, {}),
    ("moments", {"negative_source": "moments"}, {}),
    ("learning rate 0.05", {"learning_rate": 0.05}, {}),
    ("context vectors", {"context": True}, {}),
    ("thorough", THOROUGH, {}),
    ("the paper's", PAPER, {}),
]
"""Label, parameters, and constants by the modules that use them; a module has its own name for what it imports."""
SHUFFLES = 3
LABELLED = 10_000
"""Most nodes whose labels are used; more take longer to classify than to learn."""
FORMER = 11
"""The networks of the table in 0.2, which come first; their mean can be compared with it."""


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    networks: dict[str, Any] = {}
    for name in ("blogcatalog", "ppi", "wikipedia"):
        labels = np.asarray(scipy.io.loadmat(fetch(find(name)))["group"].todense()).astype(bool)
        networks[name] = load_graph(name, unweighted=name != "wikipedia"), labels
    networks |= {name: make() for name, make in NETWORKS.items()}
    split = hide_edges(load_graph("ppi"), 0.2)
    asked = sample_nodes(split, 1024)
    heads = ("mean", "mean of the first eleven", "links of PPI, MAP", "seconds in all")
    with table("what is changed", *networks, *heads) as rows:
        for label, parameters, constants in TRIALS:
            seconds, scores = 0.0, []
            with ExitStack() as stack:
                for place, value in constants.items():
                    stack.enter_context(patch(f"manela.{place}", value))
                for name, (graph, labels) in networks.items():
                    since = time.perf_counter()
                    vectors = Manela(**parameters).fit(graph).embedding_
                    seconds += time.perf_counter() - since
                    scores.append(score(name, vectors, labels))
                scorer = score_vectors(Manela(**parameters).fit(split.graph).embedding_)
            links = rank_links(scorer, split, asked).mean_average_precision
            means = (f"{np.mean(scores):.4f}", f"{np.mean(scores[:FORMER]):.4f}")
            rows.row(label, *(f"{value:.3f}" for value in scores), *means, f"{links:.3f}", f"{seconds:.1f}")
    print("\nMicro-F1 at 50 %; for the sparse SBM the share of the ten nearest that are of the own community.")
    print("Links: 20 % of the edges are hidden, and ranked among 1,024 nodes by the product of vectors.")


def score(name: str, vectors: np.ndarray, labels: np.ndarray) -> float:
    """How well labels can be told from vectors."""
    if name == "SBM, sparse":
        return share_of_own(vectors, labels)
    truth = labels if labels.ndim == 2 else np.equal.outer(labels, np.unique(labels))
    if len(truth) > LABELLED:
        chosen = np.random.default_rng(0).permutation(len(truth))[:LABELLED]
        vectors, truth = vectors[chosen], truth[chosen]
    return float(classify(vectors, truth, shuffles=SHUFFLES, jobs=2).micro.mean())
