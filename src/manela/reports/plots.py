"""Pictures of vectors and of scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError, import_extra
from manela.formats.files import replace_file

_COLOURS = ("#2a6f97", "#e07a1f", "#3a8f5c", "#8e5aa8", "#b8323c", "#6b6b6b")


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
                means, spread = (np.array([f(row[key]) for row in rows]) for f in (np.mean, np.std))
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
        means, spread = table.mean(axis=0), table.std(axis=0)
        axes.plot(places, means, color=colour, marker="o", markersize=3, label=method)
        axes.fill_between(places, means - spread, means + spread, color=colour, alpha=0.15, linewidth=0)
    axes.set(xscale="log", xlabel="k", ylabel="precision@k")
    _finish([axes])
    _save(figure, path)


def check_picture(path: Path) -> str:
    """The format that the ending of path names; raises ParameterError if it is none of ours."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in ("png", "svg"):
        raise ParameterError(f"a picture must end in .png or .svg, got {path}.")
    return kind


def _pyplot() -> Any:
    matplotlib: Any = import_extra("matplotlib", "report", "drawing")
    matplotlib.use("agg")
    return import_extra("matplotlib.pyplot", "report", "drawing")


def _finish(axes: Iterable[Any]) -> None:
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, linewidth=0.5)
    panel.legend(frameon=False, fontsize="small")


def _save(figure: Any, path: Path) -> None:
    """Write a figure whole or not at all, in the format that the ending of path names."""
    kind = check_picture(path)
    with replace_file(path) as file:
        figure.savefig(file, format=kind, dpi=150)
    _pyplot().close(figure)
