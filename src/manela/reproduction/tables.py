"""The experiments whose values the paper prints: node classification (Table IV) and link prediction (Table V)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score

from manela.analysis.classification import classify, split, take_best
from manela.analysis.links import HEURISTICS, Split, hide_edges, rank_links, sample_nodes, score_vectors
from manela.analysis.methods import make_scorer
from manela.data.graph import Graph
from manela.estimators.relational_neighbors import RelationalNeighbors
from manela.formats.loading import load_graph
from manela.reproduction.drawing import add_legend, draw_band, open_panels, plot_precision, save, tidy
from manela.reproduction.laboratory import BIASES, FIRST_RATIO, LINK_RUNS, Laboratory, Plan, Results, fit, load_plain
from manela.reproduction.paper import MEAN_AVERAGE_PRECISION, MICRO_F1, Reasons
from manela.reproduction.sections import (
    NAMES,
    Comparison,
    Section,
    Table,
    compare,
    count,
    draw,
    format_scores,
    name_parameters,
)

_LEARNED = ("manela", "node2vec", "deepwalk")
_NOT_LEARNED = ("relational-neighbors", "most-frequent")


def run_classification(lab: Laboratory) -> Results:
    """Return results by network and method: a row for each train ratio."""
    return {network: _run_network(lab, network) for network in lab.plan.networks}


def _run_network(lab: Laboratory, network: str) -> Results:
    plain, labels = load_plain(network)
    weighted = load_graph(network)
    work = {"train_ratios": lab.plan.train_ratios, "shuffles": lab.plan.shuffles}
    results: Results = {}
    for method in _LEARNED:
        # with weights, as the value to reach is one with weights; the paper does not say whether it used them
        graph = weighted if method == "node2vec" else plain
        parameters = lab.choose_parameters(method, graph.number_of_nodes, FIRST_RATIO[network], *BIASES[network])

        def learn(method: str = method, graph: Graph = graph, parameters: Any = parameters) -> Any:
            return _classify_vectors(lab, f"{network} {method}", method, parameters, graph, labels)

        about = {"network": network, "method": method, "parameters": parameters, "weighted": graph.is_weighted}
        results[method] = {**lab.get("classification", learn, **about, **work), "parameters": parameters}
    for method in _NOT_LEARNED:

        def classify_plainly(method: str = method) -> Any:
            return {"rows": list(_classify_without_vectors(method, plain, labels, lab.plan))}

        about = {"network": network, "method": method, "random_state": 0}
        results[method] = lab.get("classification", classify_plainly, **about, **work)
    return results


def _classify_vectors(
    lab: Laboratory, name: str, method: str, parameters: dict[str, Any], graph: Graph, labels: npt.NDArray[np.bool_]
) -> Results:
    model = fit(method, parameters, graph, lab.jobs)
    rows = []
    for ratio in lab.plan.train_ratios:
        lab.tell(f"classification: {name} {ratio:.0%}")
        scores = classify(model.embedding_, labels, train_ratio=ratio, shuffles=lab.plan.shuffles, jobs=lab.jobs)
        rows.append({"train_ratio": ratio, **{key: values.tolist() for key, values in asdict(scores).items()}})
    return {"rows": rows, "pairs": model.provenance_["pairs_made"]}


def _classify_without_vectors(
    method: str, graph: Graph, labels: npt.NDArray[np.bool_], plan: Plan
) -> Iterator[dict[str, Any]]:
    """Yield scores of Relational Neighbors, or of the most frequent training labels, on the splits used for vectors."""
    labelled = np.flatnonzero(labels.any(axis=1))
    for ratio in plan.train_ratios:
        row: dict[str, Any] = {"train_ratio": ratio, "micro": [], "macro": []}
        for train, test in split(len(labelled), ratio, plan.shuffles):
            train_labels = np.zeros_like(labels)
            train_labels[labelled[train]] = labels[labelled[train]]
            if method == "relational-neighbors":
                predicted = RelationalNeighbors().fit(graph, train_labels).predict(labels.sum(axis=1))
            else:
                frequencies = np.tile(train_labels.mean(axis=0), (len(labels), 1))
                predicted = take_best(frequencies, labels.sum(axis=1))
            for average in ("micro", "macro"):
                truth, test_predicted = labels[labelled[test]], predicted[labelled[test]]
                row[average].append(float(f1_score(truth, test_predicted, average=average, zero_division=0)))
        yield row


def describe_classification(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:
    """Return the section of the report."""
    rows, reasons = [], Reasons()
    comparisons: list[Comparison] = []
    for method in (*_LEARNED, *_NOT_LEARNED):
        for network, methods in results.items():
            half = next(row for row in methods[method]["rows"] if row["train_ratio"] == 0.5)
            printed = MICRO_F1.get(method, {}).get(network) if plan.compares(method) else None
            cells, compared = compare(f"{NAMES[method]}, {NAMES[network]}", half["micro"], printed)
            open_score = format_scores(half["open_micro"]) if "open_micro" in half else ""
            pairs = f"{methods[method]['pairs'] / 1e6:.1f} M" if "pairs" in methods[method] else ""
            about = [NAMES[method], NAMES[network], name_parameters(methods[method].get("parameters", {}))]
            rows.append([*about, *cells, open_score, pairs])
            comparisons += compared
            reasons.add(method, NAMES[method], compared)
    header = ["method", "network", "parameters", "paper", "ours", "difference", "labels not counted", "update pairs"]
    caption = "Micro-F1 with half of the nodes trained on (the paper's Table IV)"
    return Section(
        "classification", "Node classification",
        [
            "One-versus-rest logistic regression on the vectors; mean and deviation over shuffles that are the same "
            "for every method. How many labels a test node has is known, as in the literature; “labels not counted” is "
            "the score when it is not, and labels above a threshold chosen on the training part are predicted. "
            "node2vec uses edge weights, the others do not."
        ],
        [Table(caption, header, rows, reasons.notes + plan.notes)],
        [draw("classification", "F1 against the part of the nodes trained on; shades are deviations.", folder,
              lambda path: plot_classification(results, path))],
        comparisons,
    )  # fmt: skip


def plot_classification(results: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw F1 against train ratio: a row of two panels for each network, a line for each method."""
    figure, axes = open_panels(len(results), 2, (9, 3.2 * len(results) + 0.4))
    for panels, (network, methods) in zip(axes, results.items(), strict=True):
        for panel, name in zip(panels, ("micro", "macro"), strict=True):
            for position, method in enumerate(method for method in methods if method != "most-frequent"):
                rows = methods[method]["rows"]
                table = np.array([row[name] for row in rows])
                draw_band(panel, [row["train_ratio"] for row in rows], table, position, NAMES[method])
            panel.set(xlabel="part of the nodes trained on", ylabel=f"{name}-F1", title=NAMES[network])
    tidy(axes.ravel())
    add_legend(figure, axes[0, 0], columns=4)
    save(figure, path)


_RATIO, _BIASES = 0.4, (4.0, 4.0)
"""The paper's r₁, and its p and q, for link prediction."""
_METHODS = ("manela", "deepwalk", "node2vec", *HEURISTICS)


def run_links(lab: Laboratory) -> Results:
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


def describe_links(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:
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
              lambda path: plot_links(results, "sampled", path)),
         draw("links-all", "Precision@k among all nodes.", folder, lambda path: plot_links(results, "all", path))],
        comparisons,
        remark="" if comparisons else few_runs,
    )  # fmt: skip


def plot_links(results: Mapping[str, Any], where: str, path: Path) -> None:
    """Draw precision@k against k, one line per method."""
    precision = {
        NAMES[method]: [{int(k): value for k, value in run[where]["precision"].items()} for run in runs]
        for method, runs in results.items()
    }
    plot_precision(precision, path)
