"""Pictures of measurements: quality against time, and costs against size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manela.reproduction.drawing import MARKERS, add_legend, colour, import_pyplot, save, tidy


def plot_frontier(networks: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], path: Path) -> None:
    """Draw scores against seconds, a panel for each network and a line or a point for each method."""
    from matplotlib.ticker import LogLocator

    figure, axes = import_pyplot().subplots(1, len(networks), figsize=(4.2 * len(networks), 4), layout="constrained")
    for panel, (network, methods) in zip(np.atleast_1d(axes), networks.items(), strict=True):
        for place, (method, points) in enumerate(methods.items()):
            seconds, scores = zip(*sorted(points), strict=True)
            style = {"color": colour(place), "marker": MARKERS[place % len(MARKERS)]}
            panel.plot(seconds, scores, linestyle="-", markersize=5, label=method, **style)
        panel.set(
            xscale="log", xlabel="seconds of the whole fit, two threads", ylabel="micro-F1 at 50 %", title=network
        )
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter("")
    tidy(np.atleast_1d(axes))
    add_legend(figure, np.atleast_1d(axes)[0], columns=4)
    save(figure, path)


def plot_complexity(results: Mapping[str, Any], path: Path) -> None:
    """Draw seconds a million pairs against nodes, and preparing against edges, for each method."""
    figure, axes = import_pyplot().subplots(1, 2, figsize=(9, 4), layout="constrained")
    names = list(results["nodes"][0]["methods"])
    for place, method in enumerate(names):
        for part, line in (("sampling", "--"), ("updating", "-")):
            x = [one["nodes"] for one in results["nodes"]]
            y = [one["methods"][method][part] / one["methods"][method]["pairs"] * 1e6 for one in results["nodes"]]
            axes[0].loglog(x, y, line, marker="o", markersize=3, color=colour(place), label=f"{method}, {part}")
    axes[0].set(xlabel="nodes (mean degree 10)", ylabel="seconds a million update pairs")
    for place, method in enumerate(names):
        x = [one["edges"] for one in results["degrees"]]
        y = [max(one["methods"][method]["preparing"], 1e-5) for one in results["degrees"]]
        axes[1].loglog(x, y, marker="o", markersize=3, color=colour(place), label=f"{method}, preparing")
    fits = [one for one in results["degrees"] if one["transitions"]["seconds"] is not None]
    axes[1].loglog(
        [one["edges"] for one in fits], [one["transitions"]["seconds"] for one in fits],
        marker="s", markersize=4, color=colour(4), label="node2vec with precomputed transitions",
    )  # fmt: skip
    for one in results["degrees"]:
        if one["transitions"]["seconds"] is None:
            axes[1].axvline(one["edges"], color=colour(4), linestyle=":", linewidth=1)
    axes[1].set(xlabel="edges (2,000 nodes)", ylabel="seconds of preparing")
    tidy(axes)
    for panel in axes:
        panel.legend(frameon=False, fontsize="x-small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    save(figure, path)
