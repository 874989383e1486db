"""Tuned: the parameters that `manela tune` finds, compared with the paper's MANELA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from manela.analysis.classification import classify, summarise
from manela.analysis.tuning import tune
from manela.formats.loading import load_graph, load_labels
from manela.reproduction.laboratory import Laboratory, Results, fit
from manela.reproduction.paper import MICRO_F1
from manela.reproduction.plan import Plan
from manela.reproduction.sections import NAMES, Comparison, Section, Table, compare
from manela.settings.parameters import PAPER


def run(lab: Laboratory) -> Results:
    """Return results by network: the best candidate of tuning, with edge weights, and its scores on other splits."""
    return {network: _run_network(lab, network) for network in lab.plan.tuned_networks}


def _run_network(lab: Laboratory, network: str) -> Results:
    """Tune on one network, and return the scores of the best settings for several seeds."""
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


def describe(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:  # noqa: ARG001
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
