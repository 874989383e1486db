"""Small pictures for notebooks, as HTML or as matplotlib plots."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError, import_extra
from manela.kernels.layout import normalise_rows

Points = npt.NDArray[np.floating]

_COLOURS = ("#2a6f97", "#e07a1f", "#3a8f5c", "#8e5aa8", "#b8323c", "#c9a227", "#4aa3a2", "#7a5c3e")
_MOST_POINTS = 800
"""Most points in an HTML picture; more make notebooks large."""
_MOST_PLOTTED = 5000
"""Most nodes in a t-SNE plot; t-SNE is slow with more."""
_FEWEST = 8
"""Fewest nodes for t-SNE; below it principal components are shown."""
_MOST_LABELS = 12
"""Most labels with a colour and a legend entry; the others are grey."""
_WIDTH, _HEIGHT, _CAPTION = 240, 120, 16


def show_facts(title: str, facts: Mapping[str, str], picture: str) -> str:
    """Return HTML with a title, a table of names and values, and a picture beside it."""
    rows = "".join(
        f"<tr><td style='text-align:left'>{escape(name)}</td><td style='text-align:right'>{escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return (
        f"<div style='display:flex;gap:1.5em;align-items:center;flex-wrap:wrap'><div><b>{escape(title)}</b>"
        f"<table style='margin:0.3em 0'>{rows}</table></div>{picture}</div>"
    )


def draw_degrees(degrees: npt.NDArray[np.integer]) -> str:
    """Return an SVG histogram of degrees: 1, 2 to 3, 4 to 7, and so on, with a logarithmic scale."""
    present = degrees[degrees > 0]
    groups = np.bincount(np.log2(present).astype(np.int64)) if len(present) else np.zeros(1, np.int64)
    first = int(np.argmax(groups > 0))
    groups = groups[first:]
    heights = np.log1p(groups) / max(float(np.log1p(groups.max())), 1e-9) * (_HEIGHT - _CAPTION)
    width = _WIDTH / len(groups)
    bars = "".join(
        f"<rect x='{position * width + 1:.1f}' y='{_HEIGHT - _CAPTION - height:.1f}' width='{max(1.0, width - 2):.1f}' "
        f"height='{height:.1f}' fill='{_COLOURS[0]}'>"
        f"<title>degree {2 ** (first + position)} to {2 ** (first + position + 1) - 1}: {count:,} nodes</title></rect>"
        for position, (height, count) in enumerate(zip(heights.tolist(), groups.tolist(), strict=True))
    )
    ends = (int(present.min()), int(present.max())) if len(present) else (0, 0)
    style = f"y='{_HEIGHT - 2}' font-size='11' font-family='sans-serif' fill='currentColor'"
    captions = f"<text x='1' {style}>degree {ends[0]:,}</text>"
    captions += f"<text x='{_WIDTH - 1}' text-anchor='end' {style}>{ends[1]:,}</text>"
    return _svg(bars + captions, "nodes by degree, both logarithmic")


def draw_points(vectors: Points) -> str:
    """Return an SVG scatter plot of some hundreds of vectors: two principal components of their directions."""
    chosen = vectors[:: max(1, -(-len(vectors) // _MOST_POINTS))]
    points = _flatten(chosen)
    low, high = points.min(axis=0), points.max(axis=0)
    scaled = (points - low) / np.maximum(high - low, 1e-12) * (_WIDTH - 8, _HEIGHT - 8) + 4
    dots = "".join(
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='1.6' fill='{_COLOURS[0]}' fill-opacity='0.6'/>" for x, y in scaled
    )
    return _svg(dots, "directions of vectors, by principal components")


def plot_vectors(vectors: Points, labels: Any = None, method: str = "tsne", axes: Any = None) -> Any:
    """Draw vectors on a plane with matplotlib, one colour per label, and return the axes."""
    if method not in ("tsne", "pca"):
        raise ParameterError(f"method must be 'tsne' or 'pca', got {method!r}")
    names = None
    if labels is not None:
        listed = np.asarray(labels).tolist()
        names = np.array(["no label" if label is None else str(label) for label in listed], dtype=object)
    if names is not None and len(names) != len(vectors):
        raise ParameterError(f"labels must be one for each of {len(vectors):,} nodes, got {len(names):,}")
    pyplot = import_extra("matplotlib.pyplot", "report", "plot")
    step = max(1, -(-len(vectors) // _MOST_PLOTTED)) if method == "tsne" else 1
    vectors, names = vectors[::step], None if names is None else names[::step]
    points = _flatten(vectors) if method == "pca" or len(vectors) < _FEWEST else _spread(vectors)
    if axes is None:
        _, axes = pyplot.subplots(figsize=(6, 5), layout="constrained")
    kinds, counts = (["nodes"], [len(points)]) if names is None else np.unique(names, return_counts=True)
    frequent = np.argsort(-np.asarray(counts), kind="stable").tolist()
    for position, number in enumerate([*sorted(frequent[:_MOST_LABELS]), *frequent[_MOST_LABELS:]]):
        chosen = slice(None) if names is None else names == kinds[number]
        has_colour = position < _MOST_LABELS
        colour = _COLOURS[position % len(_COLOURS)] if has_colour else "#b0b0b0"
        label = str(kinds[number]) if has_colour and names is not None else None
        axes.scatter(*points[chosen].T, s=9, color=colour, linewidths=0, alpha=0.8, label=label)
    axes.set(xticks=[], yticks=[], title=f"{len(points):,} nodes by {'t-SNE' if method == 'tsne' else 'PCA'}")
    axes.spines[:].set_visible(False)
    if names is not None:
        axes.legend(frameon=False, fontsize="small", markerscale=2, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


def _flatten(vectors: Points) -> Points:
    directions = normalise_rows(vectors)
    centred = directions - directions.mean(axis=0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    flat = centred @ components[:2].T
    return np.column_stack((flat, np.zeros((len(flat), 2 - flat.shape[1]))))


def _spread(vectors: Points) -> Points:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, max(1.0, (len(vectors) - 1) / 3))
    spread: Points = TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(normalise_rows(vectors))
    return spread


def _svg(content: str, title: str) -> str:
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img'>"
        f"<title>{title}</title>{content}</svg>"
    )
