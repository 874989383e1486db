"""Link prediction on PPI by the two ways to read the paper: pairs among 1,024 nodes, or of these with any node."""

import warnings

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


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    graph = load_graph("ppi")
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name, *_ in METHODS}
    for run in range(RUNS):
        split = hide_edges(graph, random_state=run)
        nodes = sample_nodes(split, 1024, run)
        for name, method, parameters, _ in METHODS:
            scorer = make_scorer(method, split.graph, {**parameters, "random_state": run})
            among, incident = (rank_links(scorer, split, nodes, among=way, random_state=run) for way in (True, False))
            found[name].append(
                (among.mean_average_precision, among.over_all, incident.mean_average_precision, incident.over_all)
            )
    with table(
        f"MAP on PPI, mean ± deviation of {RUNS} runs", "paper",
        "pairs among 1,024 nodes, mean over nodes with a hidden edge", "the same, mean over all",
        "pairs of 1,024 nodes with any, mean over nodes with a hidden edge", "the same, mean over all",
    ) as rows:  # fmt: skip
        for name, _, _, paper in METHODS:
            means, spread = np.mean(found[name], axis=0), np.std(found[name], axis=0, ddof=1)
            rows.row(name, paper, *(f"{m:.4f} ± {s:.4f}" for m, s in zip(means, spread, strict=True)))
