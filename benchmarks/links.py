"""Link prediction: on PPI by the two ways to read the paper, and on two networks with fewer edges hidden, by AUC too.

The paper ranks pairs among 1,024 nodes, or pairs of these with any node. AUC is the chance that a hidden edge of these
nodes scores above a random pair of theirs that is not an edge.
"""

import warnings
from typing import Any

import numpy as np

from benchmarks.table import table
from manela import ManelaWarning
from manela.analysis.links import hide_edges, rank_links, sample_nodes
from manela.analysis.methods import make_scorer
from manela.formats.loading import load_graph
from manela.settings.parameters import PAPER

RUNS = 4
METHODS = [
    ("manela, default settings", "manela", {}, ""),
    ("manela, the paper's settings", "manela", {**PAPER, "ratios": (0.4, 0.6)}, "0.136"),
    ("deepwalk", "deepwalk", {}, "0.096"),
    ("node2vec", "node2vec", {"p": 4.0, "q": 4.0}, "0.106"),
    ("prone", "prone", {}, ""),
    ("adamic-adar", "adamic-adar", {}, ""),
]
NETWORKS, SHARES = ("ppi", "wikipedia"), (0.2, 0.1)
VECTORS: list[tuple[str, str, dict[str, Any]]] = [
    ("manela, default settings", "manela", {}),
    ("manela, spectral view only", "manela", {"views": "spectral"}),
    ("prone", "prone", {}),
]


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    read_paper()
    print()
    compare_shares()


def read_paper() -> None:
    """The paper's experiment: 20 % of the edges of PPI hidden, and pairs ranked in both ways."""
    graph = load_graph("ppi")
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name, *_ in METHODS}
    for run in range(RUNS):
        split = hide_edges(graph, random_state=run)
        nodes = sample_nodes(split, 1024, run)
        for name, method, parameters, _ in METHODS:
            scorer = make_scorer(method, split.graph, {**parameters, "random_state": run})
            among, incident = (rank_links(scorer, split, nodes, among=way, random_state=run) for way in (True, False))
            maps = (score for scores in (among, incident) for score in (scores.mean_average_precision, scores.over_all))
            found[name].append((*maps, among.auc))
    with table(
        f"MAP on PPI, mean ± deviation of {RUNS} runs", "paper",
        "pairs among 1,024 nodes, mean over nodes with a hidden edge", "the same, mean over all",
        "pairs of 1,024 nodes with any, mean over nodes with a hidden edge", "the same, mean over all", "AUC",
    ) as rows:  # fmt: skip
        for name, _, _, paper in METHODS:
            rows.row(name, paper, *summarise(found[name]))


def compare_shares() -> None:
    """MAP among 1,024 nodes and AUC, with a fifth and a tenth of the edges hidden."""
    with table(f"network, mean ± deviation of {RUNS} runs", "edges hidden", "method", "MAP", "AUC") as rows:
        for network in NETWORKS:
            graph = load_graph(network)
            for share in SHARES:
                found: dict[str, list[tuple[float, ...]]] = {name: [] for name, *_ in VECTORS}
                for run in range(RUNS):
                    split = hide_edges(graph, share, random_state=run)
                    nodes = sample_nodes(split, 1024, run)
                    for name, method, parameters in VECTORS:
                        scorer = make_scorer(method, split.graph, {**parameters, "random_state": run})
                        scores = rank_links(scorer, split, nodes, random_state=run)
                        found[name].append((scores.mean_average_precision, scores.auc))
                for name, *_ in VECTORS:
                    rows.row(network, f"{share:.0%}", name, *summarise(found[name]))


def summarise(runs: list[tuple[float, ...]]) -> list[str]:
    """The mean and deviation of each score."""
    means, spread = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1)
    return [f"{mean:.4f} ± {deviation:.4f}" for mean, deviation in zip(means, spread, strict=True)]
