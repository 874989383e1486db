"""The experiments that try many settings: the sweep of r₁, and the parameters that `manela tune` finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from manela.analysis.classification import classify, summarise
from manela.analysis.tuning import tune
from manela.data.graph import Graph
from manela.formats.loading import load_graph, load_labels
from manela.reproduction.drawing import draw_band, open_panels, save, tidy
from manela.reproduction.laboratory import Laboratory, Plan, Results, fit, load_plain, split_ratio
from manela.reproduction.paper import MICRO_F1
from manela.reproduction.sections import NAMES, Comparison, Section, Table, compare, draw
from manela.settings.parameters import PAPER


def run_sweep(lab: Laboratory) -> Results:
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


def describe_sweep(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:
    """Return the section of the report."""
    ratios = [row["first_ratio"] for row in next(iter(results.values()))]
    means = {network: [summarise(row["micro"])[0] for row in rows] for network, rows in results.items()}
    best = ", ".join(f"{ratios[int(np.argmax(scores))]:g} on {NAMES[network]}" for network, scores in means.items())
    return Section(
        "sweep", "The ratio r₁",
        ["How much of what a node looks at lies one hop away, the rest two hops: the parameter that the paper tunes."],
        [Table("Micro-F1 at 50 %", ["network", *(f"{ratio:g}" for ratio in ratios)],
               [[NAMES[network], *(f"{score:.3f}" for score in scores)] for network, scores in means.items()])],
        [draw("sweep", "Micro-F1 at 50 % against r₁.", folder, lambda path: plot_sweep(results, path))],
        remark=f"the paper shows curves alone; the best r₁ of those tried is {best}"
        if plan.compares_search
        else "a quick run gives each r₁ too little work to say which is best",
    )  # fmt: skip


def plot_sweep(results: Mapping[str, Any], path: Path) -> None:
    """Draw micro-F1 at 50 % against r₁, a panel for each network."""
    figure, axes = open_panels(1, len(results), (3.6 * len(results), 3.2))
    for panel, (network, rows) in zip(axes[0], results.items(), strict=True):
        draw_band(panel, [row["first_ratio"] for row in rows], np.array([row["micro"] for row in rows]), 0, "MANELA")
        panel.set(xlabel="r₁", ylabel="micro-F1 at 50 %", title=NAMES[network])
    tidy(axes.ravel())
    save(figure, path)


def run_tuned(lab: Laboratory) -> Results:
    """Return results by network: the best candidate of tuning, with edge weights, and its scores on other splits."""
    return {network: _tune_network(lab, network) for network in lab.plan.tuned_networks}


def _tune_network(lab: Laboratory, network: str) -> Results:
    graph = load_graph(network)
    labels = load_labels(network).of(graph.nodes)
    pairs_per_node = lab.plan.search_pairs_per_node

    def choose() -> Any:
        trials = tune(
            graph, labels, pairs_per_node=pairs_per_node, preset=PAPER, max_seconds=float("inf"), n_jobs=lab.jobs,
            tell=lambda trial: lab.tell(f"tuned: {network} {trial.candidate} {trial.score:.4f}"),
        )  # fmt: skip
        return [{**asdict(trial), "named": str(trial.candidate)} for trial in trials]

    trials = lab.get("tuned", choose, network=network, pairs_per_node=pairs_per_node, random_state=0)
    best = trials[-1]["candidate"]
    results: Results = {**best, "trials": trials, "seeds": []}
    for seed in range(lab.plan.tuned_seeds):
        parameters = {**best, "pairs": pairs_per_node * graph.number_of_nodes, "random_state": seed}

        def compute(parameters: Any = parameters) -> Any:
            vectors = fit("manela", parameters, graph, lab.jobs).embedding_
            scores = classify(vectors, labels, shuffles=lab.plan.shuffles, jobs=lab.jobs)
            return {"micro": scores.micro.tolist(), "macro": scores.macro.tolist()}

        about = {"parameters": parameters, "shuffles": lab.plan.shuffles, "seed": seed}
        results["seeds"].append(lab.get("tuned", compute, network=network, **about))
    return results


def describe_tuned(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:  # noqa: ARG001
    """Return the section of the report."""
    rows = []
    comparisons: list[Comparison] = []
    for network, result in results.items():
        printed = MICRO_F1["manela"][network] if plan.compares_search else None
        scores = [score for seed in result["seeds"] for score in seed["micro"]]
        cells, compared = compare(f"MANELA tuned, {NAMES[network]}", scores, printed)
        comparisons += compared
        by_seed = ", ".join(f"{summarise(seed['micro'])[0]:.4f}" for seed in result["seeds"])
        ratios = ", ".join(f"{ratio:g}" for ratio in result["ratios"])
        context = "yes" if result["context"] else "no"
        rows.append([NAMES[network], ratios, context, *cells, by_seed, str(len(result["trials"]))])
    header = ["network", "ratios", "context vectors", "paper's MANELA", "ours", "difference", "each seed", "trials"]
    return Section(
        "tuned", "Tuned",
        ["Ratios, hops and context vectors as manela tune finds them, edge weights used; mean over the shuffles of "
         "every seed. They are chosen with the first seed by the labels of the same nodes, on other splits than those "
         "of the score: some of the gain is the choice itself."],
        [Table("Micro-F1 at 50 % with the best of what was tried", header, rows)],
        comparisons=comparisons,
        remark="a quick run gives tuning too little work to compare it with the paper",
    )  # fmt: skip
