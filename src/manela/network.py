"""The arrays of a network in compressed sparse row (CSR) form, with the user's node ids."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manela.adjacency import build_rows
from manela.errors import GraphError, ManelaWarning, UnknownNodeError
from manela.params import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE
from manela.pictures import draw_degrees, show_facts

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """Base of `Graph`: the CSR arrays, properties computed from them, and constructors from edges and matrices."""

    indptr: Integers
    indices: npt.NDArray[np.integer]
    weights: npt.NDArray[np.float64] | None
    nodes: npt.NDArray[Any]
    directed: bool = False
    self_loops: int = 0
    duplicates: int = 0
    rows: int | None = None
    unit: float = 1.0

    def __post_init__(self) -> None:
        if len(self.nodes) < 2 or len(self.indices) == 0:
            edges = len(self.indices) // (1 if self.directed else 2)
            raise GraphError(
                "a network must have at least two nodes and an edge between different nodes, "
                f"got {len(self.nodes):,} node(s) and {edges:,} edge(s)"
            )
        if self.nodes.dtype == object and len(set(self.nodes.tolist())) < len(self.nodes):
            raise GraphError("every node must have an id of its own, but one id stands for two nodes")
        self._freeze()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def _freeze(self) -> None:
        """Replace the arrays with read-only views; the caller can still write through its own references."""
        for name in ("indptr", "indices", "weights", "nodes"):
            array = getattr(self, name)
            if array is not None and array.flags.writeable:
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def __repr__(self) -> str:
        words = ["directed"] * self.directed + ["weighted"] * self.is_weighted
        sizes = f"{self.number_of_nodes:,} nodes, {self.number_of_edges:,} {'arcs' if self.directed else 'edges'}"
        return f"Graph({', '.join([sizes, *words])})"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        degrees = self.degrees
        facts = {
            "nodes": f"{self.number_of_nodes:,}",
            "arcs" if self.directed else "edges": f"{self.number_of_edges:,}",
            "weights": "yes" if self.is_weighted else "no",
            "mean degree": f"{degrees.mean():.1f}",
            "largest degree": f"{degrees.max():,}",
        }
        return show_facts("Graph", facts, draw_degrees(degrees))

    @property
    def number_of_nodes(self) -> int:
        """|V|."""
        return len(self.nodes)

    @property
    def number_of_edges(self) -> int:
        """|E|; arcs where the network is directed."""
        return len(self.indices) // (1 if self.directed else 2)

    @property
    def is_weighted(self) -> bool:
        """Whether the edges differ in weight."""
        return self.weights is not None

    @property
    def degrees(self) -> Integers:
        """d(v) of each node."""
        return np.diff(self.indptr)

    @property
    def strengths(self) -> npt.NDArray[np.float64]:
        """The sum of the weights of each node's edges; its degree in a network without weights."""
        if self.weights is None:
            return self.degrees.astype(np.float64)
        strengths = np.zeros(self.number_of_nodes)
        joined = self.degrees > 0
        strengths[joined] = np.add.reduceat(self.weights, self.indptr[:-1][joined])
        return strengths

    @cached_property
    def positions(self) -> dict[Hashable, int]:
        """The row of each id."""
        return {node: row for row, node in enumerate(self.nodes.tolist())}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the network, ids included."""
        sha = hashlib.sha256(f"{self.directed} {self.number_of_nodes}".encode())
        for array in (self.indptr, self.indices.astype(np.int64, copy=False), self.weights):
            sha.update(b"|" if array is None else np.ascontiguousarray(array).data)
        for first in range(0, len(self.nodes), 65536):
            sha.update("\n".join(map(repr, self.nodes[first : first + 65536].tolist())).encode())
        return sha.hexdigest()

    def neighbours(self, node: Hashable) -> npt.NDArray[Any]:
        """Return the ids of a node's neighbours."""
        if node not in self.positions:
            raise UnknownNodeError(f"no node has the id {node!r}")
        row = self.positions[node]
        neighbours: npt.NDArray[Any] = self.nodes[self.indices[self.indptr[row] : self.indptr[row + 1]]]
        return neighbours

    def without_weights(self) -> Self:
        """Return the same network without edge weights."""
        return self if self.weights is None else replace(self, weights=None)

    def add(self, other: Network) -> Self:
        """Return the union of both networks: the nodes of this one first, then the new ones.

        The weights of an edge that is in both are added, unless neither network has weights.

        Examples
        --------
        >>> from manela import Graph
        >>> one, two = Graph.from_edges(["a"], ["b"]), Graph.from_edges(["b"], ["c"])
        >>> one.add(two).nodes.tolist()
        ['a', 'b', 'c']
        """
        if self.directed != other.directed:
            raise GraphError("a directed and an undirected network cannot be added")
        places = dict(self.positions)
        for node in other.nodes.tolist():
            places.setdefault(node, len(places))
        other_rows = np.array([places[node] for node in other.nodes.tolist()], dtype=np.int64)
        is_weighted = self.is_weighted or other.is_weighted or self.unit != other.unit
        ends, weights = [], []
        for graph, rows in ((self, np.arange(self.number_of_nodes)), (other, other_rows)):
            sources = np.repeat(np.arange(graph.number_of_nodes), graph.degrees)
            is_listed_once = np.full(len(sources), True) if graph.directed else sources < graph.indices
            ends.append((rows[sources[is_listed_once]], rows[graph.indices[is_listed_once]]))
            weights.append(
                np.full(len(ends[-1][0]), graph.unit) if graph.weights is None else graph.weights[is_listed_once]
            )
        return self._build(
            np.concatenate([pair[0] for pair in ends]), np.concatenate([pair[1] for pair in ends]),
            np.concatenate(weights) if is_weighted else None, as_ids(list(places)), directed=self.directed,
            duplicates="sum" if is_weighted else "first", unit=self.unit,
        )  # fmt: skip

    def to_scipy(self) -> sp.csr_array:
        """Return the adjacency matrix, which shares the network's arrays."""
        data = np.ones(len(self.indices)) if self.weights is None else self.weights
        shape = (self.number_of_nodes, self.number_of_nodes)
        return sp.csr_array((data, self.indices, self.indptr), shape=shape, copy=False)

    @classmethod
    def from_edges(
        cls,
        sources: Iterable[Hashable] | npt.ArrayLike,
        targets: Iterable[Hashable] | npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        *,
        nodes: Sequence[Hashable] | None = None,
        directed: bool = False,
        duplicates: str = "sum",
    ) -> Self:
        """Build a network from edges between sources[i] and targets[i].

        Ids may be of any hashable type. Integer ids are sorted, others keep the order of their first appearance.
        `nodes` sets a different order, and may include nodes without edges.
        """
        sources, targets = as_ids(sources), as_ids(targets)
        if sources.shape != targets.shape:
            raise GraphError(f"as many sources as targets are needed, got {len(sources):,} and {len(targets):,}")
        codes, ids = _number(np.concatenate((sources, targets)))
        if nodes is not None:
            known = as_ids(nodes)
            places = {node: place for place, node in enumerate(known.tolist())}
            if len(places) != len(known):
                raise GraphError("nodes must not name a node twice")
            missing = [node for node in ids.tolist() if node not in places]
            if missing:
                raise GraphError(f"nodes must name every node of the edges, {missing[0]!r} is missing")
            codes = np.array([places[node] for node in ids.tolist()], dtype=np.int64)[codes]
            ids = known
        half = len(sources)
        return cls.from_arcs(codes[:half], codes[half:], weights, ids, directed=directed, duplicates=duplicates)

    @classmethod
    def from_arcs(
        cls,
        rows: npt.NDArray[np.integer],
        columns: npt.NDArray[np.integer],
        weights: npt.ArrayLike | None,
        nodes: npt.NDArray[Any],
        *,
        directed: bool = False,
        duplicates: str = "sum",
    ) -> Self:
        """Build a network from edges between positions in `nodes`; self-loops are dropped.

        `duplicates` decides about edges that are given more than once: add their weights ("sum"), keep the first
        ("first"), or raise an error ("error"). In an undirected network an edge and its reverse are the same edge.
        """
        check_rule(duplicates)
        data = check_weights(weights, len(rows))
        graph = cls._build(rows, columns, data, nodes, directed=directed, duplicates=duplicates)
        if graph.duplicates and graph.is_weighted and duplicates == "sum":
            what = "add up to weights" if data is None else "add up their weights"
            warnings.warn(
                f"edges that are given several times ({graph.duplicates:,} repeats) {what}; "
                "duplicates='first' of read_graph and Graph.of counts each once",
                ManelaWarning,
                stacklevel=3,
            )
        return graph

    @classmethod
    def _build(
        cls,
        rows: npt.NDArray[np.integer],
        columns: npt.NDArray[np.integer],
        data: npt.NDArray[np.float64] | None,
        nodes: npt.NDArray[Any],
        *,
        directed: bool,
        duplicates: str,
        unit: float = 1.0,
    ) -> Self:
        """Build the network like `from_arcs`, with checked weights and without a warning about duplicates."""
        self_loops = int(np.count_nonzero(rows == columns))
        compressed = build_rows(rows, columns, data, len(nodes), directed=directed, adds=duplicates == "sum")
        if compressed.repeated and duplicates == "error":
            raise GraphError(f"no edge must be given twice, but {_name_repeated(rows, columns, nodes, directed)} is")
        weights = None if compressed.weights is None else _drop_if_equal(compressed.weights)
        if weights is None and data is not None and compressed.weights is not None and len(compressed.weights):
            unit = float(compressed.weights[0])
        return cls(
            indptr=compressed.indptr,
            indices=compressed.indices,
            weights=weights,
            nodes=nodes.copy() if nodes.flags.writeable else nodes,
            directed=directed,
            self_loops=self_loops,
            duplicates=compressed.repeated,
            unit=unit,
        )

    @classmethod
    def from_scipy(cls, matrix: Any, *, nodes: Sequence[Hashable] | None = None, directed: bool = False) -> Self:
        """Build a network from a square adjacency matrix; ids are 0 … n - 1 by default.

        If all entries are equal, the network has no weights.
        """
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise GraphError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
        if np.issubdtype(matrix.dtype, np.complexfloating):
            raise GraphError(f"an adjacency matrix must be real, got {matrix.dtype}")
        check_places(matrix)
        matrix = sp.csr_array(matrix)  # which adds duplicate entries
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        ids = np.arange(matrix.shape[0]) if nodes is None else as_ids(nodes)
        if ids.dtype != object and nodes is not None and len(np.unique(ids)) < len(ids):
            raise GraphError("every node must have an id of its own, but one id stands for two nodes")
        if len(ids) != matrix.shape[0]:
            raise GraphError(f"as many nodes as rows are needed, got {len(ids):,} nodes and {matrix.shape[0]:,} rows")
        if directed or not is_symmetric(matrix):
            if not directed:
                say_directed()
            triples = sp.coo_array(matrix)
            nonzero = np.flatnonzero(triples.data)
            rows, columns = (coordinates[nonzero] for coordinates in triples.coords)
            weights = triples.data[nonzero]
        else:
            upper = sp.triu(matrix, format="coo")
            upper.eliminate_zeros()
            (rows, columns), weights = upper.coords, upper.data
        weights, unit = _find_unit(weights)
        return replace(cls.from_arcs(rows, columns, weights, ids, directed=directed), **unit)

    @classmethod
    def from_biadjacency(
        cls, matrix: Any, *, rows: Sequence[Hashable] | None = None, columns: Sequence[Hashable] | None = None
    ) -> Self:
        """Build a network from a biadjacency matrix: each non-zero entry is an edge between its row and its column.

        Rows and columns are nodes, with the ids ("row", i) and ("column", j) by default.

        Examples
        --------
        >>> from manela import Graph
        >>> graph = Graph.from_biadjacency(np.array([[1, 1, 0], [0, 1, 1]]), rows=["ann", "bob"], columns="xyz")
        >>> list(graph.neighbours("ann")), graph.rows
        (['x', 'y'], 2)
        """
        if matrix.ndim != 2:
            raise GraphError(f"a biadjacency matrix must have two dimensions, got shape {tuple(matrix.shape)}")
        if np.issubdtype(matrix.dtype, np.complexfloating):
            raise GraphError(f"a biadjacency matrix must be real, got {matrix.dtype}")
        check_places(matrix)
        entries = sp.coo_array(sp.csr_array(matrix))
        ids: list[Hashable] = []
        for given_ids, name, count in ((rows, "row", matrix.shape[0]), (columns, "column", matrix.shape[1])):
            part_ids = [(name, place) for place in range(count)] if given_ids is None else list(given_ids)
            if len(part_ids) != count:
                raise GraphError(f"as many {name} ids as {name}s are needed, got {len(part_ids):,} for {count:,}")
            ids += part_ids
        names = as_ids(ids)
        if len(set(names.tolist())) < len(ids):
            raise GraphError("every row and every column must have an id of its own, but one id stands for two")
        nonzero = np.flatnonzero(entries.data)
        sources, targets = (coordinates[nonzero].astype(np.int64) for coordinates in entries.coords)
        weights = entries.data[nonzero]
        weights, unit = _find_unit(weights)
        graph = cls.from_arcs(sources, targets + matrix.shape[0], weights, names)
        return replace(graph, rows=matrix.shape[0], **unit)


DUPLICATES = ("sum", "first", "error")
"""The rules for edges that are given more than once."""


def check_rule(duplicates: str) -> None:
    """Raise GraphError unless `duplicates` is a known rule for repeated edges."""
    if duplicates not in DUPLICATES:
        raise GraphError(f"duplicates must be one of {', '.join(DUPLICATES)}, got {duplicates!r}")


def as_ids(values: Any) -> npt.NDArray[Any]:
    """Convert ids to an array of int64 or of objects; objects keep their Python type."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if np.issubdtype(values.dtype, np.integer) and values.dtype != np.uint64:
            return values.astype(np.int64)
        if values.dtype != object:
            values = values.tolist()
    items = list(values)
    if items and all(type(item) is int and -(2**63) <= item < 2**63 for item in items):
        return np.array(items, dtype=np.int64)
    ids = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        try:
            hash(item)
        except TypeError as error:
            raise GraphError(f"an id must be hashable, got {type(item).__name__}: {error}") from error
        ids[place] = item.item() if isinstance(item, np.generic) else item
    return ids


def _number(ids: npt.NDArray[Any]) -> tuple[Integers, npt.NDArray[Any]]:
    """Return a number for each id, and the distinct ids in the order of their numbers."""
    if ids.dtype != object:
        distinct, codes = np.unique(ids, return_inverse=True)
        return codes.astype(np.int64, copy=False), distinct
    numbers: dict[Hashable, int] = {}
    try:
        codes = np.fromiter((numbers.setdefault(node, len(numbers)) for node in ids), dtype=np.int64, count=len(ids))
    except TypeError as error:
        raise GraphError(f"an id must be hashable: {error}") from error
    distinct = np.empty(len(numbers), dtype=object)
    distinct[:] = list(numbers)
    return codes, distinct


def check_weights(weights: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float64] | None:
    """Check edge weights and return them as float64; None stays None."""
    if weights is None:
        return None
    try:
        data = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"weights must be numbers: {error}") from error
    if data.shape != (count,):
        raise GraphError(f"one weight for each edge is needed, got {data.shape} for {count:,} edges")
    bad = np.flatnonzero(~((data >= LEAST_WEIGHT) & (data <= MOST_WEIGHT)))
    if len(bad):
        raise GraphError(f"a weight must be {WEIGHT_RULE}, got {data[bad[0]]:g} for edge number {bad[0] + 1:,}")
    return data


def _find_unit(weights: npt.NDArray[Any]) -> tuple[npt.NDArray[Any] | None, dict[str, Any]]:
    """Return (None, the common weight as `unit`) if all weights are equal, and otherwise (the weights, {})."""
    if len(weights) == 0 or not bool(np.all(weights == weights[0])):
        return weights, {}
    check_weights(weights[:1], 1)
    return None, {"unit": float(weights[0])}


def _drop_if_equal(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """Return weights, or None if all are the same."""
    return None if len(weights) == 0 or bool(np.all(weights == weights[0])) else weights


def is_symmetric(matrix: Any) -> bool:
    """Whether a sparse matrix equals its transpose, after adding duplicate entries."""
    rows = sp.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    columns = rows.tocsc()
    return all(np.array_equal(getattr(rows, name), getattr(columns, name)) for name in ("indptr", "indices", "data"))


def _name_repeated(
    rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], nodes: npt.NDArray[Any], directed: bool
) -> str:
    """Return the ids of an edge that is given more than once."""
    is_edge = rows != columns
    rows, columns = rows[is_edge], columns[is_edge]
    if not directed:
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.lexsort((columns, rows))
    is_repeated = (np.diff(rows[order]) == 0) & (np.diff(columns[order]) == 0)
    place = order[int(np.argmax(is_repeated))]
    return f"{nodes[rows[place]]} - {nodes[columns[place]]}"


def check_places(matrix: Any) -> None:
    """Raise GraphError if entries of a sparse matrix lie outside its shape, on which SciPy's C++ code would crash."""
    if getattr(matrix, "format", "") in ("csr", "csc", "bsr"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise GraphError(f"a sparse matrix must have its entries within its shape: {error}") from error


def say_directed() -> None:
    """Warn that a directed network is read as undirected."""
    warnings.warn(
        "the network is directed and is read as undirected; directed=True follows its arcs as given",
        ManelaWarning,
        stacklevel=4,
    )
