"""The experiment on SYN-SBM: its communities on a plane, and how well they are separated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from manela.analysis.classification import measure_separation
from manela.formats.datasets import stochastic_block_model
from manela.kernels.layout import normalise_rows
from manela.reproduction.drawing import colour, open_panels, save
from manela.reproduction.laboratory import Laboratory, Results, fit
from manela.reproduction.paper import SYN_SBM_EDGES
from manela.reproduction.plan import Plan
from manela.reproduction.sections import Section, Table, draw


def run(lab: Laboratory) -> Results:
    """Return results by r₁: points on the plane, communities, and how well they are separated."""
    graph, communities = stochastic_block_model()
    results: Results = {}
    for r1 in (1.0, 0.75, 0.5):
        parameters = lab.choose_parameters("manela", graph.number_of_nodes, r1)

        def compute(parameters: Any = parameters) -> Any:
            vectors = fit("manela", parameters, graph, lab.jobs).embedding_
            directions = normalise_rows(vectors)
            points = TSNE(init="pca", perplexity=30, random_state=0).fit_transform(directions)
            return {
                "points": np.round(points, 2).tolist(),
                "communities": communities.tolist(),
                "vectors": asdict(measure_separation(vectors, communities)),
                "plane": asdict(measure_separation(points, communities, "euclidean")),
            }

        result = lab.get("visualisation", compute, network="sbm", parameters=parameters)
        results[str(r1)] = {**result, "edges": graph.number_of_edges}
    return results


def describe(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:  # noqa: ARG001
    """Return the section of the report."""
    rows = [
        [r1, *(f"{result[where][what]:.3f}" for where in ("vectors", "plane") for what in ("silhouette", "accuracy"))]
        for r1, result in results.items()
    ]
    header = ["r₁", "silhouette, 128-D", "nearest centre, 128-D", "silhouette, plane", "nearest centre, plane"]
    edges = next(iter(results.values()))["edges"]
    clearest = max(results, key=lambda r1: results[r1]["vectors"]["silhouette"])
    return Section(
        "visualisation", "Visualisation",
        ["SYN-SBM: 1,024 nodes in three communities, learned without knowing them and laid out by t-SNE. The smaller "
         "r₁, the more a node looks two hops away.",
         f"The network has {edges:,} edges, as the paper's probabilities of 0.1 within and 0.01 between communities "
         f"give; the paper prints {SYN_SBM_EDGES:,}, which they cannot."],
        [Table("How clear the boundaries are", header, rows)],
        [draw("visualisation", "SYN-SBM on a plane, a colour for each community.", folder,
              lambda path: plot(results, path))],
        remark=f"the paper shows pictures alone; communities are clearest with r₁ = {float(clearest):g}; "
        f"SYN-SBM has {edges:,} edges, the paper prints {SYN_SBM_EDGES:,}",
    )  # fmt: skip


def plot(results: Mapping[str, Any], path: Path) -> None:
    """Draw vectors on a plane, one panel per r₁, with how well communities are separated."""
    figure, axes = open_panels(1, len(results), (4 * len(results), 4.2))
    for panel, (r1, result) in zip(axes[0], results.items(), strict=True):
        points, communities = np.array(result["points"]), np.array(result["communities"])
        for place, community in enumerate(np.unique(communities)):
            panel.scatter(*points[communities == community].T, s=6, color=colour(place), linewidths=0, alpha=0.8)
        scores = result["vectors"]
        panel.set(
            title=f"r₁ = {float(r1):g}\nsilhouette {scores['silhouette']:.3f}, nearest centre {scores['accuracy']:.1%}",
            xticks=[], yticks=[],
        )  # fmt: skip
        panel.spines[:].set_visible(False)
    save(figure, path)
