"""Draws figures with matplotlib: lines, bars, points, and curves of precision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.analysis.classification import summarise
from manela.errors import ParameterError, import_extra
from manela.system.files import replace_file

INK = "#010203"
"""The colour of text and axes: nearly black, and unique, so that a page can replace it with its own."""
GREY = "#808080"
COLOURS = ("#2a6f97", "#e07a1f", "#3a8f5c", "#8e5aa8", "#b8323c", "#6b6b6b", "#1b1b1b", "#c9a227")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "h", "<", ">")


def colour(position: int) -> str:
    """Return the colour of a line by its position; colours repeat after the last."""
    return COLOURS[position % len(COLOURS)]


def import_pyplot() -> Any:
    """Return matplotlib's pyplot, configured for drawing to files."""
    matplotlib: Any = import_extra("matplotlib", "report", "drawing")
    matplotlib.use("agg")
    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    matplotlib.rcParams.update(dict.fromkeys(names, INK))
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "manela", "axes.facecolor": "none"})
    return import_extra("matplotlib.pyplot", "report", "drawing")


def open_panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, npt.NDArray[Any]]:
    """Return a figure of this size in inches, and its panels, shape (rows, columns)."""
    figure, panels = import_pyplot().subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    return figure, panels


def draw_band(
    panel: Any, x: Sequence[float], table: npt.NDArray[np.float64], position: int, label: str, line: str = "-"
) -> None:
    """Draw the mean of each row of a table, one row per x, with the standard deviation as a band."""
    means, deviations = np.array([summarise(row) for row in table]).T
    panel.plot(x, means, line, color=colour(position), marker="o", markersize=3, label=label)
    panel.fill_between(
        x, np.maximum(means - deviations, 0), means + deviations, color=colour(position), alpha=0.15, linewidth=0
    )


def tidy(panels: Iterable[Any]) -> None:
    """Remove the top and right border, and draw a light grid."""
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, linewidth=0.5)


def add_legend(figure: Any, panel: Any, columns: int = 3, **look: Any) -> None:
    """Put the legend of a panel below the figure, where it does not cover lines."""
    handles, labels = panel.get_legend_handles_labels()
    look = {"frameon": False, "fontsize": "small", **look}
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)), **look)


def check_picture(path: Path) -> str:
    """Return the format for the suffix of a path; raise ParameterError if it is not supported."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in ("png", "svg"):
        raise ParameterError(f"a picture must end in .png or .svg, got {path}")
    return kind


def save(figure: Any, path: Path) -> None:
    """Write a figure in the format of the path's suffix; the file appears complete or not at all."""
    kind = check_picture(path)
    with replace_file(path) as file:
        if kind == "svg":
            figure.savefig(file, format=kind, dpi=150, facecolor="none", metadata={"Date": None})
        else:
            figure.savefig(file, format=kind, dpi=150)
    import_pyplot().close(figure)


def plot_scores(methods: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Draw micro- and macro-F1 against the share of training nodes, one line per method.

    Dashed lines are the scores if the number of labels of a node is not known; bands show the standard deviation.
    """
    figure, axes = import_pyplot().subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    for panel, name in zip(axes, ("micro", "macro"), strict=True):
        for position, (method, rows) in enumerate(methods.items()):
            ratios = [row["train_ratio"] for row in rows]
            for key, line, what in ((name, "-", ""), (f"open_{name}", "--", ", number of labels not known")):
                draw_band(panel, ratios, np.array([row[key] for row in rows]), position, f"{method}{what}", line)
        panel.set(xlabel="part of the nodes trained on", ylabel=f"{name}-F1")
    tidy(axes)
    add_legend(figure, axes[0], columns=2)
    save(figure, path)


def plot_precision(methods: Mapping[str, Sequence[Mapping[int, float]]], path: Path) -> None:
    """Draw precision@k against k, one line per method: the mean of runs, with the standard deviation as a band."""
    figure, axes = import_pyplot().subplots(figsize=(6, 4.6), layout="constrained")
    for position, (method, runs) in enumerate(methods.items()):
        counts = sorted(set.intersection(*(set(run) for run in runs)))
        draw_band(axes, counts, np.array([[run[k] for run in runs] for k in counts]), position, method)
    axes.set(xscale="log", xlabel="k", ylabel="precision@k")
    tidy([axes])
    add_legend(figure, axes)
    save(figure, path)
