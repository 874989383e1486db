"""The points of a map: where they lie on the plane, and which group each of them belongs to."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.analysis.groups import find_groups
from manela.data.embedding import Embedding
from manela.errors import ManelaWarning, ParameterError, import_extra
from manela.formats.labels import Labels
from manela.kernels.layout import Vectors, normalise_rows

Points = npt.NDArray[np.float32]
Neighbours = tuple[npt.NDArray[np.int64], Vectors]

METHODS = ("auto", "umap", "tsne", "pca")
NEIGHBOURS = 15
"""Neighbours that UMAP keeps together; more show large structures better and small ones worse."""
_MOST_BY_DEFAULT = 2_000
"""Most nodes for which t-SNE is the default; it takes seconds for this many, and longer for more."""
_MOST_BY_TSNE = 20_000
"""Most nodes that t-SNE is allowed for; with more it would take a quarter of an hour or longer."""
_FEWEST = 8
"""With fewer nodes principal components are used and no groups are searched for; larger does so for more maps."""


def choose_method(method: str, nodes: int) -> str:
    """Return the method to use for this many nodes; raise if the requested one is not available."""
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == "umap":
        import_extra("umap", "map", "a map by UMAP")
    if method == "tsne" and nodes > _MOST_BY_TSNE:
        raise ParameterError(
            f"method 'tsne' is for at most {_MOST_BY_TSNE:,} nodes, and there are {nodes:,}; use 'umap' or 'pca'"
        )
    if nodes < _FEWEST:
        return "pca"
    if method != "auto":
        return method
    if nodes <= _MOST_BY_DEFAULT:
        return "tsne"
    if find_spec("umap") is not None:
        return "umap"
    warnings.warn(
        "the map is by principal components, which show less; pip install 'manela[map]' for UMAP",
        ManelaWarning,
        stacklevel=2,
    )
    return "pca"


def lay_out(vectors: Vectors, method: str, random_state: int = 0, neighbours: Neighbours | None = None) -> Points:
    """Place vectors on a plane, by the method that `choose_method` returned; the same seed gives the same points.

    `neighbours` are the nearest other nodes and their cosines, (n, k), for UMAP, which by default searches for them.

    Examples
    --------
    >>> lay_out(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32), "pca").shape
    (3, 2)
    """
    directions = normalise_rows(vectors)
    flat = _find_components(directions)
    if method == "pca":
        return flat
    points = (
        _by_tsne(directions, random_state) if method == "tsne" else _by_umap(flat, random_state, neighbours, vectors)
    )
    if not np.isfinite(points).all():
        raise ParameterError(f"method {method!r} could not place some nodes; use 'pca'")
    return points


def _find_components(directions: Vectors) -> Points:
    """Return the first two principal components, each with the sign that makes its largest weight positive."""
    centred = directions - directions.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T.astype(np.float64) @ centred)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    flat = np.zeros((len(directions), 2), dtype=np.float32)
    flat[:, : axes.shape[1]] = centred @ axes
    return flat


def _by_tsne(directions: Vectors, random_state: int) -> Points:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, max(1.0, (len(directions) - 1) / 3))
    # for unit vectors, squared Euclidean distances are twice the cosine distances
    points: Points = TSNE(init="pca", perplexity=perplexity, random_state=random_state).fit_transform(directions)
    return points


def _by_umap(flat: Points, random_state: int, neighbours: Neighbours | None, vectors: Vectors) -> Points:
    """Run UMAP from the principal components, which preserves large distances."""
    library = import_extra("umap", "map", "a map by UMAP")
    nodes = len(vectors)
    known: tuple[object, ...] = (None, None, None)
    if neighbours is not None and neighbours[0].shape[1] >= 2:
        # UMAP expects each node as its own first neighbour
        rows = np.column_stack((np.arange(nodes), neighbours[0]))
        distances = np.column_stack((np.zeros(nodes), 1.0 - neighbours[1])).astype(np.float32)
        known = (rows, np.maximum(distances, 0.0), None)
    width = known[0].shape[1] if isinstance(known[0], np.ndarray) else min(NEIGHBOURS, nodes - 1)
    rng = np.random.default_rng(random_state)
    start = 10.0 * flat / max(float(np.abs(flat).max()), 1e-12) + rng.normal(scale=1e-4, size=flat.shape)
    model = library.UMAP(
        metric="cosine", n_neighbors=width, init=start.astype(np.float32), random_state=random_state, n_jobs=1,
        precomputed_knn=known, force_approximation_algorithm=known[0] is not None,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about optional packages and disconnected nodes
        points: Points = np.asarray(model.fit_transform(vectors), dtype=np.float32)
    return points


_MOST_GROUPS = 250
"""Groups with a separate colour; a page stores group numbers in one byte, so at most 256 fit."""


@dataclass(frozen=True, eq=False)
class Colouring:
    """Groups of a map."""

    names: list[str]  # names of the groups, largest first, followed by entries that are not groups, such as "no label"
    groups: npt.NDArray[np.uint8]  # (n,): the group of each node, as an index into `names`
    grey: int  # the number of last names that are not groups; they are shown in grey
    title: str  # what the groups are: "Labels" or "Groups"
    summary: str  # a text that describes them


def colour_nodes(embedding: Embedding, labels: Any = None, random_state: int = 0) -> Colouring:
    """Find the group of each node, by its first label or, without labels, from the vectors.

    `labels` are Labels, a dict by node, or an array of shape (n,), where None or an empty text is not a label.

    Examples
    --------
    >>> embedding = Embedding(np.arange(3), np.eye(3, dtype=np.float32))
    >>> colouring = colour_nodes(embedding, ["red", "blue", "red"])
    >>> colouring.names, colouring.groups.tolist()
    (['red', 'blue'], [0, 1, 0])
    """
    if labels is not None:
        return _by_labels(_list_labels(embedding.nodes, labels))
    if len(embedding) < _FEWEST:
        return Colouring(["nodes"], np.zeros(len(embedding), dtype=np.uint8), 0, "Groups", "too few for groups")
    groups = find_groups(embedding.vectors, random_state=random_state)
    summary = f"coloured by {groups.count:,} groups found from the vectors"
    if groups.hidden:
        summary += (
            f" (silhouette of hidden nodes {groups.silhouette:.2f}, agreement of two halves {groups.stability:.2f})"
        )
    names = [f"group {number}" for number in range(groups.count)]
    return _merge(names, groups.labels, "no group", "Groups", summary)


def _list_labels(nodes: npt.NDArray[Any], labels: Any) -> list[str]:
    if isinstance(labels, Labels):
        matrix = labels.of(nodes)
        first = np.where(matrix.any(axis=1), matrix.argmax(axis=1), -1).tolist()
        return [labels.names[row] if row >= 0 else "" for row in first]
    if isinstance(labels, Mapping):
        listed = [labels.get(node) for node in nodes.tolist()]
    else:
        listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if len(listed) != len(nodes):
        raise ParameterError(f"labels must be one for each of {len(nodes):,} nodes, got {len(listed):,}")
    return ["" if label is None or label != label else str(label) for label in listed]  # NaN is not a label


def _by_labels(labels: list[str]) -> Colouring:
    places: dict[str, int] = {}
    numbers = np.array([places.setdefault(label, len(places)) if label else -1 for label in labels], dtype=np.int64)
    sizes = np.bincount(numbers[numbers >= 0], minlength=len(places))
    order = np.argsort(-sizes, kind="stable")
    ranks = np.empty(len(places) + 1, dtype=np.int64)
    ranks[order], ranks[-1] = np.arange(len(places)), -1
    names = list(places)
    summary = f"coloured by {len(places):,} labels"
    return _merge([names[row] for row in order], ranks[numbers], "no label", "Labels", summary)


def _merge(names: list[str], numbers: npt.NDArray[np.int64], none: str, title: str, summary: str) -> Colouring:
    """Keep the largest groups, merge all others into one, and put nodes without a group into another."""
    shown, grey = names[:_MOST_GROUPS], []
    groups = numbers.copy()
    if len(names) > _MOST_GROUPS:
        groups[numbers >= _MOST_GROUPS] = _MOST_GROUPS
        grey.append(f"{len(names) - _MOST_GROUPS:,} smaller ones")
        summary += f", of which the {_MOST_GROUPS} largest have a colour"
    if (numbers < 0).any():
        groups[numbers < 0] = len(shown) + len(grey)
        grey.append(none)
    return Colouring([*shown, *grey], groups.astype(np.uint8), len(grey), title, summary)
