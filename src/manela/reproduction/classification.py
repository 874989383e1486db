"""Node classification: the paper's Table IV, and F1 against the share of training nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score

from manela.analysis.classification import classify, split, take_best
from manela.data.graph import Graph
from manela.estimators.relational_neighbors import RelationalNeighbors
from manela.formats.loading import load_graph
from manela.reproduction.drawing import add_legend, draw_band, open_panels, save, tidy
from manela.reproduction.laboratory import BIASES, FIRST_RATIO, Laboratory, Plan, Results, fit, load_plain
from manela.reproduction.paper import MICRO_F1, Reasons
from manela.reproduction.sections import (
    NAMES,
    Comparison,
    Section,
    Table,
    compare,
    draw,
    format_scores,
    name_parameters,
)

_LEARNED = ("manela", "node2vec", "deepwalk")
_NOT_LEARNED = ("relational-neighbors", "most-frequent")


def run(lab: Laboratory) -> Results:
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

        def count(method: str = method) -> Any:
            return {"rows": list(_classify_without_vectors(method, plain, labels, lab.plan))}

        about = {"network": network, "method": method, "random_state": 0}
        results[method] = lab.get("classification", count, **about, **work)
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


def describe(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:
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
              lambda path: plot(results, path))],
        comparisons,
    )  # fmt: skip


def plot(results: Mapping[str, Mapping[str, Any]], path: Path) -> None:
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
