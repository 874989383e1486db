"""Pictures of vectors and of scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError, import_extra
from manela.evaluation.classification import summarise
from manela.files import replace_file

INK = "#010203"
"""The colour of text and axes: as good as black, and found again when a page wants its own."""
_GREY = "#808080"
_COLOURS = ("#2a6f97", "#e07a1f", "#3a8f5c", "#8e5aa8", "#b8323c", "#6b6b6b", "#1b1b1b", "#c9a227")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "h", "<", ">")


def plot_communities(
    vectors: npt.NDArray[np.floating], communities: npt.NDArray[np.integer], title: str, path: Path
) -> None:
    """Draw vectors on a plane by t-SNE, a colour for each community, as a PNG or SVG file."""
    from sklearn.manifold import TSNE

    pyplot = _pyplot()
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    points = TSNE(init="pca", perplexity=30, random_state=0).fit_transform(directions)
    figure, axes = pyplot.subplots(figsize=(6, 5), layout="constrained")
    for place, community in enumerate(np.unique(communities)):
        chosen = communities == community
        colour = _COLOURS[place % len(_COLOURS)]
        label = f"community {community + 1} ({np.count_nonzero(chosen):,} nodes)"
        axes.scatter(*points[chosen].T, s=9, color=colour, linewidths=0, alpha=0.8, label=label)
    axes.set(title=title, xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False, fontsize="small", markerscale=2)
    _save(figure, path)


def plot_scores(methods: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Draw micro- and macro-F1 against the part of the nodes that was trained on, a line for each method.

    Dashes show the scores when the number of labels of a node is not known; shades the deviation.
    """
    figure, axes = _pyplot().subplots(1, 2, figsize=(9, 4), layout="constrained")
    for panel, name in zip(axes, ("micro", "macro"), strict=True):
        for place, (method, rows) in enumerate(methods.items()):
            colour = _COLOURS[place % len(_COLOURS)]
            ratios = [row["train_ratio"] for row in rows]
            for key, line, what in ((name, "-", ""), (f"open_{name}", "--", ", number of labels not known")):
                means, spread = np.array([summarise(row[key]) for row in rows]).T
                panel.plot(ratios, means, line, color=colour, marker="o", markersize=3, label=f"{method}{what}")
                panel.fill_between(ratios, means - spread, means + spread, color=colour, alpha=0.15, linewidth=0)
        panel.set(xlabel="part of the nodes trained on", ylabel=f"{name}-F1")
    _finish(axes)
    _save(figure, path)


def plot_precision(methods: Mapping[str, Sequence[Mapping[int, float]]], path: Path) -> None:
    """Draw precision@k against k, the mean of runs with the deviation as a shade, a line for each method."""
    figure, axes = _pyplot().subplots(figsize=(6, 4), layout="constrained")
    for place, (method, runs) in enumerate(methods.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        places = sorted(set.intersection(*(set(run) for run in runs)))
        table = np.array([[run[k] for k in places] for run in runs])
        means, spread = np.array([summarise(column) for column in table.T]).T
        axes.plot(places, means, color=colour, marker="o", markersize=3, label=method)
        axes.fill_between(places, np.maximum(means - spread, 0), means + spread, color=colour, alpha=0.15, linewidth=0)
    axes.set(xscale="log", xlabel="k", ylabel="precision@k")
    _finish([axes])
    _save(figure, path)


def plot_classification(results: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw F1 against train ratio: a row of two panels for each network, a line for each method."""
    figure, axes = _pyplot().subplots(
        len(results), 2, figsize=(9, 3.2 * len(results)), layout="constrained", squeeze=False
    )
    for row, (network, methods) in zip(axes, results.items(), strict=True):
        for panel, name in zip(row, ("micro", "macro"), strict=True):
            for place, (method, found) in enumerate(methods.items()):
                ratios = [one["train_ratio"] for one in found["rows"]]
                table = np.array([one[name] for one in found["rows"]])
                _draw_band(panel, ratios, table, place, method)
            panel.set(xlabel="part of the nodes trained on", ylabel=f"{name}-F1", title=network)
    _finish(axes.ravel(), legend=False)
    lines = axes[0, 0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=len(lines[1]), frameon=False, fontsize="small")
    _save(figure, path)


def plot_planes(results: Mapping[str, Any], path: Path) -> None:
    """Draw vectors on a plane, a panel for each r₁, with how clear the boundaries are."""
    figure, axes = _pyplot().subplots(
        1, len(results), figsize=(4 * len(results), 4.2), layout="constrained", squeeze=False
    )
    for panel, (r1, found) in zip(axes[0], results.items(), strict=True):
        points, communities = np.array(found["points"]), np.array(found["communities"])
        for place, community in enumerate(np.unique(communities)):
            panel.scatter(*points[communities == community].T, s=6, color=_COLOURS[place], linewidths=0, alpha=0.8)
        clear = found["vectors"]
        panel.set(
            title=f"r₁ = {float(r1):g}\nsilhouette {clear['silhouette']:.3f}, nearest centre {clear['accuracy']:.1%}",
            xticks=[], yticks=[],
        )  # fmt: skip
        panel.spines[:].set_visible(False)
    _save(figure, path)


def plot_relationship(results: Mapping[str, Any], path: Path) -> None:
    """Draw histograms of updates, and degrees against updates, for each method."""
    methods = results["methods"]
    figure, axes = _pyplot().subplots(
        2, len(methods), figsize=(4.5 * len(methods), 7), layout="constrained", squeeze=False
    )
    degrees = np.array(results["degrees"])
    for column, (method, found) in enumerate(methods.items()):
        updates, law = np.array(found["updates"]), found["law"]
        above = updates[updates > 0]
        edges = np.geomspace(above.min(), above.max() + 1, 40)
        counts, _ = np.histogram(above, edges)
        density, middles = counts / np.diff(edges) / len(above), np.sqrt(edges[1:] * edges[:-1])
        top, bottom = axes[0, column], axes[1, column]
        top.loglog(middles[counts > 0], density[counts > 0], "o", markersize=4, color=_COLOURS[column])
        x = np.geomspace(law["smallest"], above.max(), 20)
        share = law["above"] / len(above) * (law["exponent"] - 1) / law["smallest"]
        top.loglog(x, share * (x / law["smallest"]) ** -law["exponent"], "-", linewidth=1, color=_GREY)
        top.set(
            title=f"{method}: exponent {law['exponent']:.2f} ± {law['error']:.2f}", xlabel="updates", ylabel="density"
        )
        bottom.scatter(updates, degrees, s=4, alpha=0.4, linewidths=0, color=_COLOURS[column], rasterized=True)
        bottom.set(title=f"{method}: r² {found['explained']:.4f}", xlabel="updates", ylabel="degree")
    _finish(axes.ravel(), legend=False)
    _save(figure, path)


def plot_complexity(results: Mapping[str, Any], path: Path) -> None:
    """Draw seconds a million pairs against nodes, and preparing against edges, for each method."""
    figure, axes = _pyplot().subplots(1, 2, figsize=(9, 4), layout="constrained")
    names = list(results["nodes"][0]["methods"])
    for place, method in enumerate(names):
        for part, line in (("sampling", "--"), ("updating", "-")):
            x = [one["nodes"] for one in results["nodes"]]
            y = [one["methods"][method][part] / one["methods"][method]["pairs"] * 1e6 for one in results["nodes"]]
            axes[0].loglog(x, y, line, marker="o", markersize=3, color=_COLOURS[place], label=f"{method}, {part}")
    axes[0].set(xlabel="nodes (mean degree 10)", ylabel="seconds a million update pairs")
    for place, method in enumerate(names):
        x = [one["edges"] for one in results["degrees"]]
        y = [max(one["methods"][method]["preparing"], 1e-5) for one in results["degrees"]]
        axes[1].loglog(x, y, marker="o", markersize=3, color=_COLOURS[place], label=f"{method}, preparing")
    fits = [one for one in results["degrees"] if one["transitions"]["seconds"] is not None]
    axes[1].loglog(
        [one["edges"] for one in fits], [one["transitions"]["seconds"] for one in fits],
        marker="s", markersize=4, color=_COLOURS[4], label="node2vec with precomputed transitions",
    )  # fmt: skip
    for one in results["degrees"]:
        if one["transitions"]["seconds"] is None:
            axes[1].axvline(one["edges"], color=_COLOURS[4], linestyle=":", linewidth=1)
    axes[1].set(xlabel="edges (2,000 nodes)", ylabel="seconds of preparing")
    _finish(axes)
    axes[0].legend(frameon=False, fontsize="x-small")
    _save(figure, path)


def plot_sweep(results: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Draw micro-F1 at 50 % against r₁, a panel for each network."""
    figure, axes = _pyplot().subplots(
        1, len(results), figsize=(3.6 * len(results), 3.2), layout="constrained", squeeze=False
    )
    for panel, (network, rows) in zip(axes[0], results.items(), strict=True):
        _draw_band(panel, [row["first_ratio"] for row in rows], np.array([row["micro"] for row in rows]), 0, "manela")
        panel.set(xlabel="r₁", ylabel="micro-F1 at 50 %", title=network)
    _finish(axes.ravel(), legend=False)
    _save(figure, path)


def _draw_band(panel: Any, x: Sequence[float], table: npt.NDArray[np.float64], place: int, label: str) -> None:
    """A line of means, with the deviation as a shade; a row of the table for each x."""
    colour = _COLOURS[place % len(_COLOURS)]
    means, spread = np.array([summarise(row) for row in table]).T
    panel.plot(x, means, color=colour, marker="o", markersize=3, label=label)
    panel.fill_between(x, means - spread, means + spread, color=colour, alpha=0.15, linewidth=0)


def check_picture(path: Path) -> str:
    """The format that the ending of path names; raises ParameterError if it is none of ours."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in ("png", "svg"):
        raise ParameterError(f"a picture must end in .png or .svg, got {path}.")
    return kind


def _pyplot() -> Any:
    matplotlib: Any = import_extra("matplotlib", "report", "drawing")
    matplotlib.use("agg")
    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    matplotlib.rcParams.update(dict.fromkeys(names, INK))
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "manela", "axes.facecolor": "none"})
    return import_extra("matplotlib.pyplot", "report", "drawing")


def plot_frontier(networks: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], path: Path) -> None:
    """Draw scores against seconds, a panel for each network and a line or a point for each method."""
    figure, axes = _pyplot().subplots(1, len(networks), figsize=(4.2 * len(networks), 4), layout="constrained")
    for panel, (network, methods) in zip(np.atleast_1d(axes), networks.items(), strict=True):
        for place, (method, points) in enumerate(methods.items()):
            seconds, scores = zip(*sorted(points), strict=True)
            style = {"color": _COLOURS[place % len(_COLOURS)], "marker": _MARKERS[place % len(_MARKERS)]}
            panel.plot(seconds, scores, linestyle="-", markersize=5, label=method, **style)
        panel.set(
            xscale="log", xlabel="seconds of the whole fit, two threads", ylabel="micro-F1 at 50 %", title=network
        )
    _finish(np.atleast_1d(axes), legend=False)
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    _save(figure, path)


def _finish(axes: Iterable[Any], legend: bool = True) -> None:
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, linewidth=0.5)
    if legend:
        panel.legend(frameon=False, fontsize="small")


def _save(figure: Any, path: Path) -> None:
    """Write a figure whole or not at all, in the format that the ending of path names."""
    kind = check_picture(path)
    with replace_file(path) as file:
        if kind == "svg":
            figure.savefig(file, format=kind, dpi=150, facecolor="none", metadata={"Date": None})
        else:
            figure.savefig(file, format=kind, dpi=150)
    _pyplot().close(figure)
