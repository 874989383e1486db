"""Vectors on a plane, so that nodes with similar ones lie together: by t-SNE, UMAP or principal components."""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from manela.errors import ManelaWarning, ParameterError, import_extra

Vectors = npt.NDArray[np.float32]
Points = npt.NDArray[np.float32]
Neighbours = tuple[npt.NDArray[np.int64], Vectors]

METHODS = ("auto", "umap", "tsne", "pca")
NEIGHBOURS = 15
"""Neighbours that UMAP keeps together; more show the large and blur the small."""
_MOST_BY_DEFAULT = 2_000
"""Nodes up to which t-SNE is chosen; it takes seconds for so many."""
_MOST_BY_TSNE = 20_000
"""Nodes beyond which t-SNE would take a quarter of an hour and more."""
_FEWEST = 8
"""Nodes from which on there is something to spread; of fewer the principal components are taken."""


def choose_method(method: str, nodes: int) -> str:
    """The method that "auto" stands for with so many nodes; others are themselves, if they can be had."""
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    if method == "umap":
        import_extra("umap", "map", "a map by UMAP")
    if method == "tsne" and nodes > _MOST_BY_TSNE:
        raise ParameterError(
            f"method 'tsne' is for at most {_MOST_BY_TSNE:,} nodes, and there are {nodes:,}; use 'umap' or 'pca'."
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
    """Place vectors on a plane.

    Parameters
    ----------
    vectors : array of float32, shape (n, m)
    method : {"umap", "tsne", "pca"}
        As `choose_method` gives it.
    random_state : int
        The same one gives the same points.
    neighbours : pair of arrays, shape (n, k), optional
        The nearest other nodes and their cosines, for UMAP, which would search them itself.

    Returns
    -------
    array of float32, shape (n, 2)

    Examples
    --------
    >>> lay_out(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32), "pca").shape
    (3, 2)
    """
    directions = _normalise(vectors)
    flat = _find_components(directions)
    if method == "pca":
        return flat
    points = (
        _by_tsne(directions, random_state) if method == "tsne" else _by_umap(flat, random_state, neighbours, vectors)
    )
    if not np.isfinite(points).all():
        raise ParameterError(f"method {method!r} found no place for some nodes; use 'pca'.")
    return points


def _normalise(vectors: Vectors) -> Vectors:
    """Vectors of length 1, for cosines; zeros stay."""
    directions: Vectors = vectors / np.maximum(np.abs(vectors).max(axis=1, keepdims=True), np.float32(1e-30))
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), np.float32(1e-12))
    return directions


def _find_components(directions: Vectors) -> Points:
    """The first two principal components, each with the sign that makes its largest weight positive."""
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
    # on the sphere, squared Euclidean distances are twice the cosine ones
    points: Points = TSNE(init="pca", perplexity=perplexity, random_state=random_state).fit_transform(directions)
    return points


def _by_umap(flat: Points, random_state: int, neighbours: Neighbours | None, vectors: Vectors) -> Points:
    """UMAP that begins at the principal components, which keeps what is far apart where it is."""
    library = import_extra("umap", "map", "a map by UMAP")
    nodes = len(vectors)
    known: tuple[object, ...] = (None, None, None)
    if neighbours is not None and neighbours[0].shape[1] >= 2:
        # each node is its own first neighbour, as UMAP has it
        rows = np.column_stack((np.arange(nodes), neighbours[0]))
        distances = np.column_stack((np.zeros(nodes), 1.0 - neighbours[1])).astype(np.float32)
        known = (rows, np.maximum(distances, 0.0), None)
    width = known[0].shape[1] if isinstance(known[0], np.ndarray) else min(NEIGHBOURS, nodes - 1)
    rng = np.random.default_rng(random_state)
    begin = 10.0 * flat / max(float(np.abs(flat).max()), 1e-12) + rng.normal(scale=1e-4, size=flat.shape)
    model = library.UMAP(
        metric="cosine", n_neighbors=width, init=begin.astype(np.float32), random_state=random_state, n_jobs=1,
        precomputed_knn=known, force_approximation_algorithm=known[0] is not None,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it does without, and of nodes that lie apart
        points: Points = np.asarray(model.fit_transform(vectors), dtype=np.float32)
    return points
