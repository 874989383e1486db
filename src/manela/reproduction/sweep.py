"""The ratio r₁: micro-F1 for values from 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manela.analysis.classification import classify, summarise
from manela.data.graph import Graph
from manela.reproduction.drawing import draw_band, open_panels, save, tidy
from manela.reproduction.laboratory import Laboratory, Results, fit, load_plain, split_ratio
from manela.reproduction.plan import Plan
from manela.reproduction.sections import NAMES, Section, Table, draw


def run(lab: Laboratory) -> Results:
    """Return results by network: micro-F1 at 50 % for each r₁."""
    results: Results = {}
    for network in lab.plan.networks:
        graph, labels = load_plain(network)
        pairs = lab.plan.search_pairs_per_node * graph.number_of_nodes
        results[network] = []
        for r1 in lab.plan.sweep:
            parameters = {"ratios": split_ratio(r1), "pairs": pairs, "random_state": 0}

            def compute(graph: Graph = graph, labels: Any = labels, parameters: Any = parameters) -> Any:
                vectors = fit("manela", parameters, graph, lab.jobs).embedding_
                scores = classify(vectors, labels, shuffles=lab.plan.sweep_shuffles, jobs=lab.jobs)
                return {"micro": scores.micro.tolist(), "macro": scores.macro.tolist()}

            about = {"first_ratio": r1, "parameters": parameters, "shuffles": lab.plan.sweep_shuffles}
            results[network].append({"first_ratio": r1, **lab.get("sweep", compute, network=network, **about)})
    return results


def describe(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:
    """Return the section of the report."""
    ratios = [row["first_ratio"] for row in next(iter(results.values()))]
    means = {network: [summarise(row["micro"])[0] for row in rows] for network, rows in results.items()}
    best = ", ".join(f"{ratios[int(np.argmax(scores))]:g} on {NAMES[network]}" for network, scores in means.items())
    return Section(
        "sweep", "The ratio r₁",
        ["How much of what a node looks at lies one hop away, the rest two hops: the parameter that the paper tunes."],
        [Table("Micro-F1 at 50 %", ["network", *(f"{ratio:g}" for ratio in ratios)],
               [[NAMES[network], *(f"{score:.3f}" for score in scores)] for network, scores in means.items()])],
        [draw("sweep", "Micro-F1 at 50 % against r₁.", folder, lambda path: plot(results, path))],
        remark=f"the paper shows curves alone; the best r₁ of those tried is {best}"
        if plan.compares_search
        else "a quick run gives each r₁ too little work to say which is best",
    )  # fmt: skip


def plot(results: Mapping[str, Any], path: Path) -> None:
    """Draw micro-F1 at 50 % against r₁, a panel for each network."""
    figure, axes = open_panels(1, len(results), (3.6 * len(results), 3.2))
    for panel, (network, rows) in zip(axes[0], results.items(), strict=True):
        draw_band(panel, [row["first_ratio"] for row in rows], np.array([row["micro"] for row in rows]), 0, "MANELA")
        panel.set(xlabel="r₁", ylabel="micro-F1 at 50 %", title=NAMES[network])
    tidy(axes.ravel())
    save(figure, path)
