"""The experiments of which the paper shows pictures alone: updates against degrees, and SYN-SBM on a plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.manifold import TSNE

from manela.analysis.classification import measure_separation
from manela.formats.datasets import stochastic_block_model
from manela.kernels.layout import normalise_rows
from manela.reproduction.drawing import GREY, colour, open_panels, save, tidy
from manela.reproduction.laboratory import FIRST_RATIO, Laboratory, Plan, Results, fit, load_plain
from manela.reproduction.paper import SYN_SBM_EDGES
from manela.reproduction.sections import NAMES, Section, Table, draw


def run_relationship(lab: Laboratory) -> Results:
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


def describe_relationship(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:  # noqa: ARG001
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
              "updates, a dot for each node.", folder,
              lambda path: plot_relationship(methods, results["degrees"], path))],
        remark=f"the paper shows pictures alone; r² of updates and degree is {explained}",
    )  # fmt: skip


def plot_relationship(methods: Mapping[str, Any], degrees: list[int], path: Path) -> None:
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


Counts = npt.NDArray[np.integer]


@dataclass(frozen=True)
class PowerLaw:
    """P(count) ∝ count^−exponent from `smallest` on; `error` is the standard error, `above` the counts used."""

    exponent: float
    error: float
    smallest: float
    above: int


def fit_power_law(counts: Counts, smallest: float | None = None) -> PowerLaw:
    """Fit a power law by maximum likelihood to the counts from `smallest` on.

    By default `smallest` is the one of 50 candidates, each leaving at least 50 counts, with the smallest
    Kolmogorov-Smirnov distance (Clauset, Shalizi and Newman 2009).

    Examples
    --------
    >>> drawn = np.random.default_rng(0).pareto(1.5, 20000) + 1
    >>> round(fit_power_law(drawn, 1.0).exponent, 1)
    2.5
    """
    values = np.sort(np.asarray(counts, dtype=np.float64))
    values = values[values > 0]
    if smallest is not None:
        candidates = np.array([smallest])
    else:
        tail = values[: max(1, len(values) - 50)]
        candidates = np.unique(np.quantile(tail, np.linspace(0, 1, 50)))
    fits = [_fit_from(values, float(candidate)) for candidate in candidates]
    return min(fits, key=lambda fit: fit[0])[1]


def _fit_from(values: npt.NDArray[np.float64], smallest: float) -> tuple[float, PowerLaw]:
    """Return the power law of the values from `smallest` on, and its Kolmogorov-Smirnov distance from them."""
    tail = values[values >= smallest]
    exponent = 1.0 + len(tail) / max(float(np.log(tail / smallest).sum()), 1e-12)
    expected = 1.0 - (tail / smallest) ** (1.0 - exponent)
    observed = np.arange(1, len(tail) + 1) / len(tail)
    distance = float(np.abs(observed - expected).max())
    return distance, PowerLaw(exponent, (exponent - 1.0) / len(tail) ** 0.5, smallest, len(tail))


def explain(x: npt.NDArray[np.number], y: npt.NDArray[np.number]) -> float:
    """Return r², the share of the variance of y explained by a linear function of x."""
    return float(np.corrcoef(np.asarray(x, np.float64), np.asarray(y, np.float64))[0, 1] ** 2)


def run_visualisation(lab: Laboratory) -> Results:
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


def describe_visualisation(results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:  # noqa: ARG001
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
              lambda path: plot_visualisation(results, path))],
        remark=f"the paper shows pictures alone; communities are clearest with r₁ = {float(clearest):g}; "
        f"SYN-SBM has {edges:,} edges, the paper prints {SYN_SBM_EDGES:,}",
    )  # fmt: skip


def plot_visualisation(results: Mapping[str, Any], path: Path) -> None:
    """Draw vectors on a plane, one panel per r₁, with how well communities are separated."""
    figure, axes = open_panels(1, len(results), (4 * len(results), 4.2))
    for panel, (r1, result) in zip(axes[0], results.items(), strict=True):
        points, communities = np.array(result["points"]), np.array(result["communities"])
        for position, community in enumerate(np.unique(communities)):
            panel.scatter(*points[communities == community].T, s=6, color=colour(position), linewidths=0, alpha=0.8)
        scores = result["vectors"]
        panel.set(
            title=f"r₁ = {float(r1):g}\nsilhouette {scores['silhouette']:.3f}, nearest centre {scores['accuracy']:.1%}",
            xticks=[], yticks=[],
        )  # fmt: skip
        panel.spines[:].set_visible(False)
    save(figure, path)
