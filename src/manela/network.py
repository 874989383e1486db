"""Network: frozen arrays in compressed sparse rows, with the ids that the user gave."""

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
    """What a `Graph` is: its arrays, what can be read off them, and how they are made of edges and of matrices."""

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
        """Keep views that cannot be written to; whose arrays they are of may still write."""
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
        """What a notebook shows."""
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
        """Whether edges have different weights."""
        return self.weights is not None

    @property
    def degrees(self) -> Integers:
        """d(v) of each node."""
        return np.diff(self.indptr)

    @property
    def strengths(self) -> npt.NDArray[np.float64]:
        """The sum of the weights of each node's edges; its degree where there are none."""
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
        """The ids of a node's neighbours."""
        if node not in self.positions:
            raise UnknownNodeError(f"no node has the id {node!r}")
        row = self.positions[node]
        found: npt.NDArray[Any] = self.nodes[self.indices[self.indptr[row] : self.indptr[row + 1]]]
        return found

    def without_weights(self) -> Self:
        """The same network, every edge counting alike."""
        return self if self.weights is None else replace(self, weights=None)

    def add(self, other: Network) -> Self:
        """The network of both: nodes of this one first, and then those that are new.

        Edges of both add up their weights, unless neither network has weights.

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
        moved = np.array([places[node] for node in other.nodes.tolist()], dtype=np.int64)
        is_weighted = self.is_weighted or other.is_weighted or self.unit != other.unit
        ends, weights = [], []
        for graph, rows in ((self, np.arange(self.number_of_nodes)), (other, moved)):
            sources = np.repeat(np.arange(graph.number_of_nodes), graph.degrees)
            once = np.full(len(sources), True) if graph.directed else sources < graph.indices
            ends.append((rows[sources[once]], rows[graph.indices[once]]))
            weights.append(np.full(len(ends[-1][0]), graph.unit) if graph.weights is None else graph.weights[once])
        return self._build(
            np.concatenate([pair[0] for pair in ends]), np.concatenate([pair[1] for pair in ends]),
            np.concatenate(weights) if is_weighted else None, as_ids(list(places)), directed=self.directed,
            duplicates="sum" if is_weighted else "first", unit=self.unit,
        )  # fmt: skip

    def to_scipy(self) -> sp.csr_array:
        """The adjacency matrix; the network's own arrays, not copies."""
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
        """The network of these edges, sources[i] with targets[i].

        Ids may be of any hashable type. Integer ids are put in order, others stand in order of first appearance;
        `nodes` gives the order instead, and may name nodes without edges.
        """
        sources, targets = as_ids(sources), as_ids(targets)
        if sources.shape != targets.shape:
            raise GraphError(f"as many sources as targets are needed, got {len(sources):,} and {len(targets):,}")
        codes, found = _number(np.concatenate((sources, targets)))
        if nodes is not None:
            known = as_ids(nodes)
            places = {node: place for place, node in enumerate(known.tolist())}
            if len(places) != len(known):
                raise GraphError("nodes must not name a node twice")
            missing = [node for node in found.tolist() if node not in places]
            if missing:
                raise GraphError(f"nodes must name every node of the edges, {missing[0]!r} is missing")
            codes = np.array([places[node] for node in found.tolist()], dtype=np.int64)[codes]
            found = known
        half = len(sources)
        return cls.from_arcs(codes[:half], codes[half:], weights, found, directed=directed, duplicates=duplicates)

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
        """The network of edges between positions in `nodes`; self-loops are dropped.

        Of edges that are given several times `duplicates` says whether they add up to a weight ("sum"), the first
        counts ("first"), or they are refused ("error"). In an undirected network an edge and its reverse are one.
        """
        check_rule(duplicates)
        data = check_weights(weights, len(rows))
        graph = cls._build(rows, columns, data, nodes, directed=directed, duplicates=duplicates)
        if graph.duplicates and graph.is_weighted and duplicates == "sum":
            what = "add up to weights" if data is None else "add up their weights"
            warnings.warn(
                f"edges that are given several times ({graph.duplicates:,} times more than once) {what}; "
                "duplicates='first' counts each once",
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
        """The same, with weights that are checked already, and without a word about what adds up."""
        self_loops = int(np.count_nonzero(rows == columns))
        found = build_rows(rows, columns, data, len(nodes), directed=directed, adds=duplicates == "sum")
        if found.repeated and duplicates == "error":
            raise GraphError(f"no edge must be given twice, but {_name_repeated(rows, columns, nodes, directed)} is")
        kept = None if found.weights is None else _drop_if_equal(found.weights)
        if kept is None and data is not None and found.weights is not None and len(found.weights):
            unit = float(found.weights[0])
        return cls(
            indptr=found.indptr,
            indices=found.indices,
            weights=kept,
            nodes=nodes.copy() if nodes.flags.writeable else nodes,
            directed=directed,
            self_loops=self_loops,
            duplicates=found.repeated,
            unit=unit,
        )

    @classmethod
    def from_scipy(cls, matrix: Any, *, nodes: Sequence[Hashable] | None = None, directed: bool = False) -> Self:
        """The network of a square adjacency matrix; ids are 0 … n - 1 unless given.

        A matrix whose entries are all the same is that of a network without weights.
        """
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise GraphError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
        if np.issubdtype(matrix.dtype, np.complexfloating):
            raise GraphError(f"an adjacency matrix must be real, got {matrix.dtype}")
        check_places(matrix)
        matrix = sp.csr_array(matrix)  # in which entries of one place are one
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
            kept = np.flatnonzero(triples.data)
            rows, columns = (coordinates[kept] for coordinates in triples.coords)
            weights = triples.data[kept]
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
        """The network of a biadjacency matrix: an edge between a row and a column for each entry that is not zero.

        Rows and columns are nodes, with the ids ("row", i) and ("column", j) unless given.

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
        for given, name, count in ((rows, "row", matrix.shape[0]), (columns, "column", matrix.shape[1])):
            part = [(name, place) for place in range(count)] if given is None else list(given)
            if len(part) != count:
                raise GraphError(f"as many {name} ids as {name}s are needed, got {len(part):,} for {count:,}")
            ids += part
        names = as_ids(ids)
        if len(set(names.tolist())) < len(ids):
            raise GraphError("every row and every column must have an id of its own, but one id stands for two")
        kept = np.flatnonzero(entries.data)
        sources, targets = (coordinates[kept].astype(np.int64) for coordinates in entries.coords)
        weights = entries.data[kept]
        weights, unit = _find_unit(weights)
        graph = cls.from_arcs(sources, targets + matrix.shape[0], weights, names)
        return replace(graph, rows=matrix.shape[0], **unit)


DUPLICATES = ("sum", "first", "error")
"""What can be done about edges that are given several times."""


def check_rule(duplicates: str) -> None:
    """Raise GraphError unless this is what can be done about repeated edges."""
    if duplicates not in DUPLICATES:
        raise GraphError(f"duplicates must be one of {', '.join(DUPLICATES)}, got {duplicates!r}")


def as_ids(values: Any) -> npt.NDArray[Any]:
    """Ids as an array of int64 or of objects, each with the type that it came with."""
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
    """A number for each id, and the ids in the order of their numbers."""
    if ids.dtype != object:
        found, codes = np.unique(ids, return_inverse=True)
        return codes.astype(np.int64, copy=False), found
    numbers: dict[Hashable, int] = {}
    try:
        codes = np.fromiter((numbers.setdefault(node, len(numbers)) for node in ids), dtype=np.int64, count=len(ids))
    except TypeError as error:
        raise GraphError(f"an id must be hashable: {error}") from error
    found = np.empty(len(numbers), dtype=object)
    found[:] = list(numbers)
    return codes, found


def check_weights(weights: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float64] | None:
    """Weights as float64, or None where there are none."""
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
    """No weights, and the one that all edges have, where they are equal; the weights otherwise."""
    if len(weights) == 0 or not bool(np.all(weights == weights[0])):
        return weights, {}
    check_weights(weights[:1], 1)
    return None, {"unit": float(weights[0])}


def _drop_if_equal(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    return None if len(weights) == 0 or bool(np.all(weights == weights[0])) else weights


def is_symmetric(matrix: Any) -> bool:
    """Whether a sparse matrix is its own transpose, duplicates added."""
    rows = sp.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    columns = rows.tocsc()
    return all(np.array_equal(getattr(rows, name), getattr(columns, name)) for name in ("indptr", "indices", "data"))


def _name_repeated(
    rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], nodes: npt.NDArray[Any], directed: bool
) -> str:
    """The ids of an edge that is given several times."""
    proper = rows != columns
    rows, columns = rows[proper], columns[proper]
    if not directed:
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.lexsort((columns, rows))
    same = (np.diff(rows[order]) == 0) & (np.diff(columns[order]) == 0)
    place = order[int(np.argmax(same))]
    return f"{nodes[rows[place]]} - {nodes[columns[place]]}"


def check_places(matrix: Any) -> None:
    """Raise GraphError if entries of a sparse matrix lie outside of it: SciPy's own code would end the process."""
    if getattr(matrix, "format", "") in ("csr", "csc", "bsr"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise GraphError(f"a sparse matrix must have its entries within its shape: {error}") from error


def say_directed() -> None:
    """Warn that arcs become edges."""
    warnings.warn(
        "the network is directed and is read as undirected; directed=True follows its arcs as given",
        ManelaWarning,
        stacklevel=4,
    )
