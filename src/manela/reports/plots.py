"""Plots of vectors and scores, for the command line and the demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.reports.drawing import add_legend, colour, draw_band, import_pyplot, save, tidy


def plot_communities(
    vectors: npt.NDArray[np.floating], communities: npt.NDArray[np.integer], title: str, path: Path
) -> None:
    """Draw vectors on a plane with t-SNE, one colour per community, as a PNG or SVG file."""
    from sklearn.manifold import TSNE

    pyplot = import_pyplot()
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    points = TSNE(init="pca", perplexity=30, random_state=0).fit_transform(directions)
    figure, axes = pyplot.subplots(figsize=(6, 5.4), layout="constrained")
    for place, community in enumerate(np.unique(communities)):
        chosen = communities == community
        label = f"community {community + 1} ({np.count_nonzero(chosen):,} nodes)"
        axes.scatter(*points[chosen].T, s=9, color=colour(place), linewidths=0, alpha=0.8, label=label)
    axes.set(title=title, xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    add_legend(figure, axes, markerscale=2)
    save(figure, path)


def plot_scores(methods: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Draw micro- and macro-F1 against the share of training nodes, one line per method.

    Dashed lines are the scores if the number of labels of a node is not known; bands show the standard deviation.
    """
    figure, axes = import_pyplot().subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    for panel, name in zip(axes, ("micro", "macro"), strict=True):
        for place, (method, rows) in enumerate(methods.items()):
            ratios = [row["train_ratio"] for row in rows]
            for key, line, what in ((name, "-", ""), (f"open_{name}", "--", ", number of labels not known")):
                draw_band(panel, ratios, np.array([row[key] for row in rows]), place, f"{method}{what}", line)
        panel.set(xlabel="part of the nodes trained on", ylabel=f"{name}-F1")
    tidy(axes)
    add_legend(figure, axes[0], columns=2)
    save(figure, path)


def plot_precision(methods: Mapping[str, Sequence[Mapping[int, float]]], path: Path) -> None:
    """Draw precision@k against k, one line per method: the mean of runs, with the standard deviation as a band."""
    figure, axes = import_pyplot().subplots(figsize=(6, 4.6), layout="constrained")
    for place, (method, runs) in enumerate(methods.items()):
        counts = sorted(set.intersection(*(set(run) for run in runs)))
        draw_band(axes, counts, np.array([[run[k] for run in runs] for k in counts]), place, method)
    axes.set(xscale="log", xlabel="k", ylabel="precision@k")
    tidy([axes])
    add_legend(figure, axes)
    save(figure, path)
