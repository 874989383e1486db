"""Link prediction on PPI: the paper's Table V, and precision against the number of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from manela.analysis.links import HEURISTICS, Split, hide_edges, rank_links, sample_nodes, score_vectors
from manela.analysis.methods import make_scorer
from manela.reproduction.drawing import plot_precision
from manela.reproduction.laboratory import LINK_RUNS, Laboratory, Plan, Results, fit, load_plain
from manela.reproduction.paper import MEAN_AVERAGE_PRECISION, Reasons
from manela.reproduction.sections import NAMES, Comparison, Section, Table, compare, count, draw, format_scores

_RATIO, _BIASES = 0.4, (4.0, 4.0)
"""The paper's r₁, and its p and q, for link prediction."""
_METHODS = ("manela", "deepwalk", "node2vec", *HEURISTICS)


def run(lab: Laboratory) -> Results:
    """Return results by method: scores of each run, on 1,024 nodes and on all."""
    graph, _ = load_plain("ppi")
    results: Results = {method: [] for method in _METHODS}
    for seed in range(lab.plan.link_runs):

        def compute(seed: int = seed) -> Any:
            hidden = hide_edges(graph, random_state=seed)
            with ThreadPoolExecutor(lab.jobs) as threads:
                scores = threads.map(lambda name: _score(lab, hidden, name, seed), _METHODS)
                return dict(zip(_METHODS, scores, strict=True))

        about = {"network": "ppi", "run": seed, "share": 0.2, "nodes": 1024, "walks": lab.plan.walks}
        about |= {"pairs_per_node": lab.plan.pairs_per_node, "first_ratio": _RATIO, "biases": _BIASES}
        scores_by_method = lab.get("links", compute, **about)
        for method in _METHODS:
            results[method].append(scores_by_method[method])
    return results


def _score(lab: Laboratory, hidden: Split, method: str, seed: int) -> Results:
    if method in HEURISTICS:
        scorer = make_scorer(method, hidden.graph, {})
    else:
        parameters = lab.choose_parameters(method, hidden.graph.number_of_nodes, _RATIO, *_BIASES, seed=seed)
        scorer = score_vectors(fit(method, parameters, hidden.graph, 1).embedding_)
    return {
        name: asdict(rank_links(scorer, hidden, sample_nodes(hidden, nodes, seed), random_state=seed))
        for name, nodes in (("sampled", 1024), ("all", None))
    }


def describe(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:
    """Return the section of the report."""
    rows, reasons = [], Reasons()
    comparisons: list[Comparison] = []
    columns = (("sampled", "over_all"), ("all", "mean_average_precision"), ("all", "over_all"), ("sampled", "auc"))
    for method, runs in results.items():
        scores = [run["sampled"]["mean_average_precision"] for run in runs]
        printed = MEAN_AVERAGE_PRECISION.get(method) if plan.compares(method) and plan.compares_links else None
        name = NAMES[method]
        cells, compared = compare(f"{name}, PPI", scores, printed)
        others = [format_scores([run[where][what] for run in runs]) for where, what in columns]
        rows.append([name, *cells, *others])
        comparisons += compared
        reasons.add(method, name, compared)
    runs_done = len(next(iter(results.values())))
    few_runs = (
        f"The paper's values are means of {LINK_RUNS} runs, and this is {count(runs_done, 'run')}: scores are shown, "
        "but not compared with the paper."
    )
    table = Table(
        f"Link prediction on PPI, {count(runs_done, 'run')} (the paper's Table V)",
        ["method", "paper", "MAP", "difference", "MAP, nothing to find as 0", "MAP, all nodes",
         "all nodes, nothing to find as 0", "AUC"],
        rows,
        reasons.notes + (plan.notes if plan.compares_links else [few_runs]),
    )  # fmt: skip
    return Section(
        "links", "Link prediction",
        [
            "A fifth of the edges is hidden, the largest component of the rest is learned from, and pairs without an "
            "edge there are ranked by the product of their vectors. MAP is over the pairs among 1,024 random nodes and "
            "over the nodes among them that have a hidden edge. The paper describes it differently: pairs of 1,024 "
            "nodes with any other, and nodes with nothing to find counted as 0. Its values come out only in our way "
            "(see docs/link-prediction.md).",
            f"MANELA with r₁ = {_RATIO:g}, node2vec with p = {_BIASES[0]:g} and q = {_BIASES[1]:g}. "
            "The last three methods learn nothing: they look at the neighbours of two nodes.",
        ],
        [table],
        [draw("links", f"Precision@k among 1,024 nodes{'; shades are deviations' if runs_done > 1 else ''}.", folder,
              lambda path: plot(results, "sampled", path)),
         draw("links-all", "Precision@k among all nodes.", folder, lambda path: plot(results, "all", path))],
        comparisons,
        remark="" if comparisons else few_runs,
    )  # fmt: skip


def plot(results: Mapping[str, Any], where: str, path: Path) -> None:
    """Draw precision@k against k, one line per method."""
    precision = {
        NAMES[method]: [{int(k): value for k, value in run[where]["precision"].items()} for run in runs]
        for method, runs in results.items()
    }
    plot_precision(precision, path)
