"""Pictures of vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import import_extra
from manela.formats.files import replace_file

_COLOURS = ("#2a6f97", "#e07a1f", "#3a8f5c", "#8e5aa8", "#b8323c", "#6b6b6b")


def plot_communities(
    vectors: npt.NDArray[np.floating], communities: npt.NDArray[np.integer], title: str, path: Path
) -> None:
    """Draw vectors on a plane by t-SNE, a colour for each community, as a PNG or SVG file."""
    from sklearn.manifold import TSNE

    matplotlib: Any = import_extra("matplotlib", "report", "drawing")
    matplotlib.use("agg")
    pyplot: Any = import_extra("matplotlib.pyplot", "report", "drawing")
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
    with replace_file(path) as file:
        figure.savefig(file, format=path.suffix.lstrip("."), dpi=150)
    pyplot.close(figure)
