"""Embedding: a vector for each node, with the ids and how it came about."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError, UnknownNodeError, import_extra
from manela.index import VectorIndex
from manela.nearest import find_nearest
from manela.pictures import draw_points, plot_vectors, show_facts

Vectors = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int64]


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
        The second vectors, where the run kept them.
    provenance : mapping
        Parameters, seed, network and version.
    further : mapping of str to array
        What a method needs besides, and .npz files keep.

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
        """What a notebook shows."""
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
            A label for each node, which gives its colour.
        method : {"tsne", "pca"}, default="tsne"
        axes : matplotlib axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        matplotlib axes
        """
        if isinstance(labels, Mapping):
            labels = [labels.get(node) for node in self.nodes.tolist()]
        return plot_vectors(self.vectors, labels, method, axes)

    def by_context(self) -> Embedding:
        """The same with context vectors in the place of vectors: the in vectors of a directed network."""
        if self.context is None:
            raise ParameterError("there are no context vectors; they are learned with context=True or directed=True.")
        return replace(self, vectors=self.context, context=self.vectors, further={})

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        """Whether a node of this id has a vector."""
        try:
            return node in self._positions
        except TypeError:  # what cannot be hashed is nobody's id
            return False

    def __getitem__(self, node: Any) -> Vectors:
        """The vector of a node, by the id that the user gave; or the vectors of a list or array of ids, a row each."""
        if is_list_of_ids(node):
            return self.vectors[self.rows(node)]
        vector: Vectors = self.vectors[self.row(node)]
        return vector

    def rows(self, nodes: Iterable[Hashable]) -> npt.NDArray[np.int64]:
        """Where the vectors of these nodes stand."""
        listed = getattr(nodes, "tolist", None) or getattr(nodes, "to_list", None)
        ids = nodes if listed is None else listed()
        return np.array([self.row(node) for node in ids], dtype=np.int64)

    def row(self, node: Hashable) -> int:
        """Where a node's vector stands."""
        try:
            return self._positions[node]
        except (KeyError, TypeError):
            raise UnknownNodeError(
                f"no node has the id {node!r}; there are {len(self):,}, the first is {self.nodes[:1].tolist()[0]!r}"
            ) from None

    def most_similar(
        self,
        node: Any = None,
        k: int = 10,
        *,
        positive: Any = None,
        negative: Any = None,
        among: Any = None,
    ) -> Any:
        """The k nodes whose vectors have the largest cosine with what is given, most similar first.

        Parameters
        ----------
        node : id, list of ids, or vectors
            Whom to find nodes for; a list or array of ids, or an array of vectors of shape (q, m), is a batch. A node
            is never found for itself.
        k : int, default=10
        positive, negative : id, list of ids, or vectors, optional
            Instead of `node`: find nodes near all of the first and far from the second, which are themselves left out.
        among : "rows", "columns", list of ids, array of bool, or callable, optional
            Who may be found: the nodes of the rows or of the columns of a biadjacency matrix, those in a list, those
            with True in an array of shape (n,), or those for whose id a function returns True. All by default.

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
        most = len(self) if rows is None else len(rows)
        found, cosines = find_nearest(self.vectors, query.vectors, min(_check_k(k), most), rows, query.exclude)
        return self._name(found, cosines, query)

    def index(self, path: str | Path | None = None) -> Index:
        """An approximate index, which finds nearly all of the most similar nodes in a fraction of the time.

        With a path, it is read from there if it was saved for these vectors; if not, it is made and saved there.
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
        """A vector for each pair of nodes, for models of edges.

        Parameters
        ----------
        edges : list of pairs of ids, or array of shape (e, 2)
        operator : {"hadamard", "average", "l1", "l2"}, default="hadamard"
            The products, means, absolute or squared differences of the vectors' components.

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
            raise ParameterError(f"operator must be one of {', '.join(_OPERATORS)}, got {operator!r}.")
        pairs = (
            edges.tolist() if isinstance(edges, np.ndarray) else list(edges) if isinstance(edges, Iterable) else [edges]
        )
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise ParameterError("edges must be pairs of ids.")
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
        """How many nodes are rows of a biadjacency matrix; they come first."""
        rows = self.provenance.get("graph", {}).get("rows")
        if rows is None:
            raise ParameterError(
                "rows and columns are those of a biadjacency matrix, which this network was not, or has grown since."
            )
        return int(rows)

    def _find_query(self, node: Any, positive: Any, negative: Any) -> _Query:
        """What is searched for."""
        if (node is None) == (positive is None and negative is None):
            raise ParameterError("most_similar needs a node, or positive and negative ones, and not both.")
        if node is not None:
            vectors, rows, is_batch = self._find_vectors(node)
            self._check_directions(vectors, rows)
            return _Query(vectors, rows[:, None], is_batch)
        total, exclude = np.zeros((1, self.vectors.shape[1]), dtype=np.float32), []
        for given, sign in ((positive, 1.0), (negative, -1.0)):
            if given is not None:
                vectors, rows, _ = self._find_vectors(given)
                norms = np.linalg.norm(vectors, axis=1, keepdims=True)
                total += np.float32(sign) * (vectors / np.maximum(norms, np.finfo(np.float32).tiny)).sum(axis=0)
                exclude.append(rows)
        if not total.any():
            raise ParameterError("positive and negative must not be empty, nor cancel each other out.")
        return _Query(total, np.concatenate(exclude)[None, :], False)

    def _check_directions(self, vectors: Vectors, rows: RowNumbers) -> None:
        """That there is something to be similar to: an end of arcs that a node does not have is zero."""
        empty = np.flatnonzero(~vectors.any(axis=1))
        if len(empty) and self.context is not None:
            row = rows[empty[0]]
            who = "a vector" if row < 0 else repr(self.nodes[row : row + 1].tolist()[0])
            raise ParameterError(
                f"{who} is zero in all dimensions, so that no node is similar to it; by_context() has other vectors."
            )

    def _find_vectors(self, given: Any) -> tuple[Vectors, RowNumbers, bool]:
        """The vectors that are given or of nodes that are given, their rows, −1 for none, and whether it is a batch."""
        if isinstance(given, list) and given and all(_is_vector(one) for one in given):
            given = np.stack(given)
        if isinstance(given, np.ndarray) and np.issubdtype(given.dtype, np.floating) and given.ndim in (1, 2):
            vectors = np.atleast_2d(given).astype(np.float32, copy=False)
            if vectors.shape[1] != self.vectors.shape[1]:
                raise ParameterError(f"a vector must have {self.vectors.shape[1]} numbers, got {vectors.shape[1]}.")
            return vectors, np.full(len(vectors), -1, dtype=np.int64), given.ndim == 2
        if is_list_of_ids(given):
            rows = self.rows(given)
            return self.vectors[rows], rows, True
        rows = np.array([self.row(given)], dtype=np.int64)
        return self.vectors[rows], rows, False

    def _find_rows(self, among: Any) -> RowNumbers | None:
        """The rows that may be found, in order; None for all."""
        if among is None:
            return None
        if isinstance(among, str):
            if among not in ("rows", "columns"):
                raise ParameterError(f"among must be 'rows', 'columns', ids, booleans or a function, got {among!r}.")
            return np.arange(self._split) if among == "rows" else np.arange(self._split, len(self))
        if callable(among):
            return np.flatnonzero([bool(among(node)) for node in self.nodes.tolist()])
        if not isinstance(among, Iterable):
            raise ParameterError(f"among must be 'rows', 'columns', ids, booleans or a function, got {among!r}.")
        ids = among.tolist() if hasattr(among, "tolist") else list(among)
        if ids and all(isinstance(one, bool) for one in ids):
            values = np.array(ids)
            if values.shape != (len(self),):
                raise ParameterError(f"among must have a boolean for each of {len(self):,} nodes, got {values.shape}.")
            return np.flatnonzero(values)
        return np.unique(self.rows(ids))

    def _name(self, rows: RowNumbers, cosines: Vectors, query: _Query) -> Any:
        """The ids of what was found, with cosines; for a batch, a list for each query."""
        batches = [
            [(node, cosine) for node, cosine, row in zip(*found, strict=True) if row >= 0]
            for found in zip(self.nodes[rows].tolist(), cosines.tolist(), rows.tolist(), strict=True)
        ]
        return batches if query.is_batch else batches[0]

    def to_polars(self) -> Any:
        """A polars frame: a column of ids, and a column for each dimension."""
        polars = import_extra("polars", "io", "to_polars")
        columns = {"node": self.nodes.tolist(), **dict(zip(self._columns, self.vectors.T, strict=True))}
        return polars.DataFrame(columns, strict=False)

    def to_pandas(self) -> Any:
        """A pandas frame: a row for each node, by its id."""
        pandas = import_extra("pandas", "io", "to_pandas")
        return pandas.DataFrame(self.vectors, index=pandas.Index(self.nodes, name="node"), columns=self._columns)

    @property
    def _columns(self) -> list[str]:
        return [f"d{place}" for place in range(self.vectors.shape[1])]

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {node: row for row, node in enumerate(self.nodes.tolist())}


@dataclass(frozen=True)
class Index:
    """An approximate index of an embedding, as `Embedding.index` makes it."""

    embedding: Embedding
    _vectors: VectorIndex

    def most_similar(
        self, node: Any = None, k: int = 10, *, positive: Any = None, negative: Any = None, among: Any = None
    ) -> Any:
        """Nearly the same as `Embedding.most_similar` finds; with `among` exactly the same, without the index."""
        if among is not None:
            return self.embedding.most_similar(node, k, positive=positive, negative=negative, among=among)
        query = self.embedding._find_query(node, positive, negative)
        left_out = query.exclude.shape[1]
        rows, cosines = self._vectors.find_nearest(query.vectors, _check_k(k) + left_out)
        is_good = ~(rows[:, :, None] == query.exclude[:, None, :]).any(axis=2)
        order = np.argsort(~is_good, axis=1, kind="stable")[:, :k]
        rows = np.take_along_axis(np.where(is_good, rows, -1), order, axis=1)
        return self.embedding._name(rows, np.take_along_axis(cosines, order, axis=1), query)

    def save(self, path: str | Path) -> None:
        """Write the index to a file, to be read by `Embedding.index`; the vectors stay in their own."""
        self._vectors.save(path)


@dataclass(frozen=True)
class _Query:
    """Vectors to find nodes for, shape (q, m); rows not to be found for each, shape (q, any); whether it is a batch."""

    vectors: Vectors
    exclude: RowNumbers
    is_batch: bool


_OPERATORS: dict[str, Callable[[Vectors, Vectors], Vectors]] = {
    "hadamard": lambda one, other: one * other,
    "average": lambda one, other: (one + other) * np.float32(0.5),
    "l1": lambda one, other: np.abs(one - other),
    "l2": lambda one, other: (one - other) ** 2,
}
"""How the vectors of two nodes become one."""


def _check_k(k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(f"k must be at least 1, got {k!r}.")
    return int(k)


def is_list_of_ids(data: Any) -> bool:
    """Whether this is a list, an array or a series of ids; a tuple may be an id itself."""
    if isinstance(data, list):
        return True
    if type(data).__name__ == "Series":
        return True
    return getattr(data, "ndim", None) == 1 and hasattr(data, "tolist")


def _is_vector(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.ndim == 1 and np.issubdtype(data.dtype, np.floating)
