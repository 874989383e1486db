"""Embedding: a vector for each node, with the node ids and the provenance."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.nearest import VectorIndex, find_nearest
from manela.data.notebook import draw_points, plot_vectors, show_facts
from manela.errors import ParameterError, UnknownNodeError, import_extra
from manela.kernels.layout import RowNumbers, Vectors, normalise_rows


@dataclass(frozen=True, eq=False, repr=False)
class Embedding:
    """Vectors of nodes.

    Attributes
    ----------
    nodes : array, shape (n,)
        Ids, integers or objects.
    vectors : array of float32, shape (n, m)
        Row i is the vector of nodes[i].
    context : array of float32, shape (n, m), or None
        The second vector of each node, if the run kept them.
    provenance : mapping
        Parameters, seed, network and version.
    further : mapping of str to array
        Additional arrays that a method needs; saved in .npz files.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32)
    >>> embedding = Embedding(np.array(["a", "b", "c"], dtype=object), vectors)
    >>> [(node, round(cosine, 3)) for node, cosine in embedding.most_similar("a", k=1)]
    [('b', 0.995)]
    """

    nodes: npt.NDArray[Any]
    vectors: Vectors
    context: Vectors | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    further: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Embedding({self.vectors.shape[0]:,} nodes, {self.vectors.shape[1]} dimensions)"

    def _repr_html_(self) -> str:
        facts = {
            "nodes": f"{len(self):,}",
            "dimensions": f"{self.vectors.shape[1]:,}",
            "context vectors": "no" if self.context is None else "yes",
        }
        for name in ("method", "version"):
            if name in self.provenance:
                facts[name] = str(self.provenance[name])
        return show_facts("Embedding", facts, draw_points(self.vectors))

    def plot(self, labels: Any = None, *, method: str = "tsne", axes: Any = None) -> Any:
        """Draw the vectors on a plane, with matplotlib.

        Parameters
        ----------
        labels : array, shape (n,), or dict, optional
            A label for each node, which decides its colour.
        method : {"tsne", "pca"}, default="tsne"
        axes : matplotlib axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib axes
        """
        if isinstance(labels, Mapping):
            labels = [labels.get(node) for node in self.nodes.tolist()]
        return plot_vectors(self.vectors, labels, method, axes)

    def by_context(self) -> Embedding:
        """Return the embedding with vectors and context vectors swapped: the in-vectors of a directed network."""
        if self.context is None:
            raise ParameterError("there are no context vectors; learn them with context=True or directed=True")
        return replace(self, vectors=self.context, context=self.vectors, further={})

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        """Whether a node of this id has a vector."""
        try:
            return node in self._positions
        except TypeError:  # an unhashable object is never an id
            return False

    def __getitem__(self, node: Any) -> Vectors:
        """Return the vector of a node by its id, or one row for each id of a list or array."""
        if is_list_of_ids(node):
            return self.vectors[self.rows(node)]
        vector: Vectors = self.vectors[self.row(node)]
        return vector

    def rows(self, nodes: Iterable[Hashable]) -> npt.NDArray[np.int64]:
        """Return the row numbers of these nodes."""
        to_list = getattr(nodes, "tolist", None) or getattr(nodes, "to_list", None)
        ids = nodes if to_list is None else to_list()
        return np.array([self.row(node) for node in ids], dtype=np.int64)

    def row(self, node: Hashable) -> int:
        """Return the row number of a node."""
        try:
            return self._positions[node]
        except (KeyError, TypeError):
            raise UnknownNodeError(
                f"no node has the id {node!r}; the first of {len(self):,} is {self.nodes[:1].tolist()[0]!r}"
            ) from None

    def most_similar(
        self, node: Any = None, k: int = 10, *, positive: Any = None, negative: Any = None, among: Any = None
    ) -> Any:
        """Return the k nodes with the largest cosine to a node or vector, most similar first.

        Parameters
        ----------
        node : id, list of ids, or vectors
            The query. A list or array of ids, or an array of vectors of shape (q, m), is a batch. A node is never
            among its own results.
        k : int, default=10
        positive, negative : id, list of ids, or vectors, optional
            Instead of `node`: find nodes near all of `positive` and far from `negative`, excluding these nodes.
        among : "rows", "columns", list of ids, array of bool, or callable, optional
            The candidates: the nodes of the rows or columns of a biadjacency matrix, a list of nodes, the nodes that
            are True in an array of shape (n,), or those for whose id a function returns True. All by default.

        Returns
        -------
        list of (id, cosine), or a list of such lists for a batch

        Examples
        --------
        >>> vectors = np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32)
        >>> embedding = Embedding(np.array(["a", "b", "c"], dtype=object), vectors)
        >>> [[found for found, _ in batch] for batch in embedding.most_similar(["a", "c"], k=1)]
        [['b'], ['b']]
        >>> [found for found, _ in embedding.most_similar(positive=["a", "c"], negative=["b"])]
        []
        """
        query = self._find_query(node, positive, negative)
        rows = self._find_rows(among)
        candidates = len(self) if rows is None else len(rows)
        nearest, cosines = find_nearest(self.vectors, query.vectors, min(_check_k(k), candidates), rows, query.exclude)
        return self._name(nearest, cosines, query)

    def index(self, path: str | Path | None = None) -> Index:
        """Return an approximate index, which finds nearly all of the most similar nodes in a fraction of the time.

        With a path, the index is loaded from there if it was saved for these vectors, and otherwise built and saved.
        """
        if path is not None and Path(path).exists():
            saved = VectorIndex.load(path, self.vectors)
            if saved is not None:
                return Index(self, saved)
        index = Index(self, VectorIndex(self.vectors))
        if path is not None:
            index.save(path)
        return index

    def edge_vectors(self, edges: Any, operator: str = "hadamard") -> Vectors:
        """Return a vector for each pair of nodes, as features of edges.

        Parameters
        ----------
        edges : list of pairs of ids, or array of shape (e, 2)
        operator : {"hadamard", "average", "l1", "l2"}, default="hadamard"
            Componentwise product, mean, absolute difference or squared difference of the two vectors.

        Returns
        -------
        array of float32, shape (e, m)

        Examples
        --------
        >>> embedding = Embedding(np.arange(2), np.array([[1, 2], [3, 5]], dtype=np.float32))
        >>> embedding.edge_vectors([(0, 1)], "l1").tolist()
        [[2.0, 3.0]]
        """
        if operator not in _OPERATORS:
            raise ParameterError(f"operator must be one of {', '.join(_OPERATORS)}, got {operator!r}")
        pairs = (
            edges.tolist() if isinstance(edges, np.ndarray) else list(edges) if isinstance(edges, Iterable) else [edges]
        )
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise ParameterError("edges must be pairs of ids")
        sources, targets = (self.rows([pair[end] for pair in pairs]) for end in range(2))
        combined: Vectors = _OPERATORS[operator](self.vectors[sources], self.vectors[targets])
        return combined

    @property
    def row_vectors(self) -> Vectors:
        """The vectors of the rows of a biadjacency matrix."""
        return self.vectors[: self._split]

    @property
    def column_vectors(self) -> Vectors:
        """The vectors of the columns of a biadjacency matrix."""
        return self.vectors[self._split :]

    @property
    def _split(self) -> int:
        """The number of nodes that are rows of a biadjacency matrix; they come first."""
        rows = self.provenance.get("graph", {}).get("rows")
        if rows is None:
            raise ParameterError("rows and columns exist only for an unchanged network of a biadjacency matrix")
        return int(rows)

    def _find_query(self, node: Any, positive: Any, negative: Any) -> _Query:
        if (node is None) == (positive is None and negative is None):
            raise ParameterError("most_similar needs either a node, or positive and negative nodes")
        if node is not None:
            vectors, rows, is_batch = self._find_vectors(node)
            self._check_directions(vectors, rows)
            return _Query(vectors, rows[:, None], is_batch)
        total, exclude = np.zeros((1, self.vectors.shape[1]), dtype=np.float32), []
        for item, sign in ((positive, 1.0), (negative, -1.0)):
            if item is not None:
                vectors, rows, _ = self._find_vectors(item)
                total += np.float32(sign) * normalise_rows(vectors).sum(axis=0)
                exclude.append(rows)
        if not total.any():
            raise ParameterError("positive and negative must not be empty, nor cancel each other out")
        return _Query(total, np.concatenate(exclude)[None, :], False)

    def _check_directions(self, vectors: Vectors, rows: RowNumbers) -> None:
        """Raise ParameterError for a zero vector, as of a node without outgoing arcs: it has no direction."""
        empty = np.flatnonzero(~vectors.any(axis=1))
        if len(empty) and self.context is not None:
            row = rows[empty[0]]
            who = "a vector" if row < 0 else repr(self.nodes[row : row + 1].tolist()[0])
            raise ParameterError(f"{who} is zero in all dimensions, so no node is similar to it; try by_context()")

    def _find_vectors(self, query: Any) -> tuple[Vectors, RowNumbers, bool]:
        """Return the vectors of a query, their row numbers (−1 if not of a node), and whether it is a batch."""
        if isinstance(query, list) and query and all(_is_vector(item) for item in query):
            query = np.stack(query)
        if isinstance(query, np.ndarray) and np.issubdtype(query.dtype, np.floating) and query.ndim in (1, 2):
            vectors = np.atleast_2d(query).astype(np.float32, copy=False)
            if vectors.shape[1] != self.vectors.shape[1]:
                raise ParameterError(f"a vector must have {self.vectors.shape[1]} numbers, got {vectors.shape[1]}")
            return vectors, np.full(len(vectors), -1, dtype=np.int64), query.ndim == 2
        if is_list_of_ids(query):
            rows = self.rows(query)
            return self.vectors[rows], rows, True
        rows = np.array([self.row(query)], dtype=np.int64)
        return self.vectors[rows], rows, False

    def _find_rows(self, among: Any) -> RowNumbers | None:
        """Return the row numbers of the candidates in ascending order; None for all."""
        if among is None:
            return None
        if isinstance(among, str):
            if among not in ("rows", "columns"):
                raise ParameterError(f"among must be 'rows', 'columns', ids, booleans or a function, got {among!r}")
            return np.arange(self._split) if among == "rows" else np.arange(self._split, len(self))
        if callable(among):
            return np.flatnonzero([bool(among(node)) for node in self.nodes.tolist()])
        if not isinstance(among, Iterable):
            raise ParameterError(f"among must be 'rows', 'columns', ids, booleans or a function, got {among!r}")
        ids = among.tolist() if hasattr(among, "tolist") else list(among)
        if ids and all(isinstance(item, bool) for item in ids):
            values = np.array(ids)
            if values.shape != (len(self),):
                raise ParameterError(f"among must have a boolean for each of {len(self):,} nodes, got {values.shape}")
            return np.flatnonzero(values)
        return np.unique(self.rows(ids))

    def _name(self, rows: RowNumbers, cosines: Vectors, query: _Query) -> Any:
        """Return results as (id, cosine); for a batch, a list for each query."""
        batches = [
            [(node, cosine) for node, cosine, row in zip(*result, strict=True) if row >= 0]
            for result in zip(self.nodes[rows].tolist(), cosines.tolist(), rows.tolist(), strict=True)
        ]
        return batches if query.is_batch else batches[0]

    def to_polars(self) -> Any:
        """Return a polars frame: a column of ids, and a column for each dimension."""
        polars = import_extra("polars", "io", "to_polars")
        columns = {"node": self.nodes.tolist(), **dict(zip(self._columns, self.vectors.T, strict=True))}
        return polars.DataFrame(columns, strict=False)

    def to_pandas(self) -> Any:
        """Return a pandas frame: a row for each node, indexed by its id."""
        pandas = import_extra("pandas", "io", "to_pandas")
        return pandas.DataFrame(self.vectors, index=pandas.Index(self.nodes, name="node"), columns=self._columns)

    @property
    def _columns(self) -> list[str]:
        return [f"d{column}" for column in range(self.vectors.shape[1])]

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {node: row for row, node in enumerate(self.nodes.tolist())}


@dataclass(frozen=True)
class Index:
    """An approximate index of an embedding, built by `Embedding.index`."""

    embedding: Embedding
    _vectors: VectorIndex

    def most_similar(
        self, node: Any = None, k: int = 10, *, positive: Any = None, negative: Any = None, among: Any = None
    ) -> Any:
        """Approximate `Embedding.most_similar`; with `among` the result is exact and the index is not used."""
        if among is not None:
            return self.embedding.most_similar(node, k, positive=positive, negative=negative, among=among)
        query = self.embedding._find_query(node, positive, negative)
        excluded = query.exclude.shape[1]
        rows, cosines = self._vectors.find_nearest(query.vectors, _check_k(k) + excluded)
        is_allowed = ~(rows[:, :, None] == query.exclude[:, None, :]).any(axis=2)
        order = np.argsort(~is_allowed, axis=1, kind="stable")[:, :k]
        rows = np.take_along_axis(np.where(is_allowed, rows, -1), order, axis=1)
        return self.embedding._name(rows, np.take_along_axis(cosines, order, axis=1), query)

    def save(self, path: str | Path) -> None:
        """Write the index, without the vectors, to a file that `Embedding.index` can load."""
        self._vectors.save(path)


@dataclass(frozen=True)
class _Query:
    """Query vectors, shape (q, m); the rows to exclude for each, shape (q, any); and whether it is a batch."""

    vectors: Vectors
    exclude: RowNumbers
    is_batch: bool


_OPERATORS: dict[str, Callable[[Vectors, Vectors], Vectors]] = {
    "hadamard": lambda first, second: first * second,
    "average": lambda first, second: (first + second) * np.float32(0.5),
    "l1": lambda first, second: np.abs(first - second),
    "l2": lambda first, second: (first - second) ** 2,
}
"""Combine the vectors of the two ends of an edge."""


def _check_k(k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(f"k must be at least 1, got {k!r}")
    return int(k)


def is_list_of_ids(data: Any) -> bool:
    """Whether `data` is a list, an array or a series of ids; a tuple is a single id."""
    if isinstance(data, list):
        return True
    if type(data).__name__ == "Series":
        return True
    return getattr(data, "ndim", None) == 1 and hasattr(data, "tolist")


def _is_vector(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.ndim == 1 and np.issubdtype(data.dtype, np.floating)
