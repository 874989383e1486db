"""Relationship to DeepWalk: the number of updates of each vector, and the degree of its node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from manela.evaluation.frequencies import explain, fit_power_law
from manela.reports.drawing import GREY, colour, open_panels, save, tidy
from manela.reports.laboratory import FIRST_RATIO, Laboratory, Results, fit, load_plain
from manela.reports.plan import Plan
from manela.reports.sections import NAMES, Section, Table, draw


def run(lab: Laboratory) -> Results:
    """Return results by method: the updates of each node's vector, with its degree."""
    network = lab.plan.related
    graph, _ = load_plain(network)
    results: Results = {"degrees": graph.degrees.tolist(), "network": network, "methods": {}}
    for method in ("deepwalk", "manela"):
        parameters = lab.choose_parameters(method, graph.number_of_nodes, FIRST_RATIO[network])

        def compute(method: str = method, parameters: Any = parameters) -> Any:
            model: Any = fit(method, parameters, graph, lab.jobs)
            return {
                "updates": model.updates_.tolist(),
                "law": asdict(fit_power_law(model.updates_)),
                "explained": explain(graph.degrees, model.updates_),
            }

        results["methods"][method] = lab.get(
            "relationship", compute, network=network, method=method, parameters=parameters
        )
    return results


def describe(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:  # noqa: ARG001
    """Return the section of the report."""
    methods = {NAMES[method]: result for method, result in results["methods"].items()}
    rows = [
        [method, f"{result['law']['exponent']:.2f} ± {result['law']['error']:.2f}", f"{result['law']['smallest']:,.0f}",
         f"{result['explained']:.4f}", f"{sum(result['updates']):,}"]
        for method, result in methods.items()
    ]  # fmt: skip
    header = ["method", "exponent", "from updates", "r² of updates and degree", "updates in all"]
    explained = " and ".join(f"{result['explained']:.4f} ({method})" for method, result in methods.items())
    return Section(
        "relationship", "Relationship to DeepWalk",
        [f"How often each node's vector was really updated in a run on {NAMES[results['network']]}, the power law that "
         "fits the many updates best, and how well a node's degree explains its updates."],
        [Table("Updates of a node", header, rows)],
        [draw("relationship", "Above: how many nodes have so many updates, with the fitted law. Below: degree against "
              "updates, a dot for each node.", folder, lambda path: plot(methods, results["degrees"], path))],
        remark=f"the paper shows pictures alone; r² of updates and degree is {explained}",
    )  # fmt: skip


def plot(methods: Mapping[str, Any], degrees: list[int], path: Path) -> None:
    """Draw histograms of updates, and degrees against updates, for each method."""
    figure, axes = open_panels(2, len(methods), (4.5 * len(methods), 7))
    for column, (method, result) in enumerate(methods.items()):
        updates, law = np.array(result["updates"]), result["law"]
        updated = updates[updates > 0]
        edges = np.geomspace(updated.min(), updated.max() + 1, 40)
        counts, _ = np.histogram(updated, edges)
        density, middles = counts / np.diff(edges) / len(updated), np.sqrt(edges[1:] * edges[:-1])
        top, bottom = axes[0, column], axes[1, column]
        top.loglog(middles[counts > 0], density[counts > 0], "o", markersize=4, color=colour(column))
        x = np.geomspace(law["smallest"], updated.max(), 20)
        share = law["above"] / len(updated) * (law["exponent"] - 1) / law["smallest"]
        top.loglog(x, share * (x / law["smallest"]) ** -law["exponent"], "-", linewidth=1, color=GREY)
        top.set(
            title=f"{method}: exponent {law['exponent']:.2f} ± {law['error']:.2f}", xlabel="updates", ylabel="density"
        )
        bottom.scatter(updates, degrees, s=4, alpha=0.4, linewidths=0, color=colour(column), rasterized=True)
        bottom.set(title=f"{method}: r² {result['explained']:.4f}", xlabel="updates", ylabel="degree")
    tidy(axes.ravel())
    save(figure, path)
