"""Graph: a network as compressed sparse rows (CSR), with the user's node ids."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manela.data.csr import as_ids, build_rows, check_rule, check_weights, number_ids
from manela.data.notebook import draw_degrees, show_facts
from manela.errors import GraphError, ManelaWarning, Option, UnknownNodeError
from manela.kernels.layout import find_strengths
from manela.system.threads import Integers


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A network: undirected by default, weighted or not.

    Build one with a `from_…` method, or with `Graph.of`, which recognises the type of its argument. They copy the data
    that they keep; `Graph(…)` itself keeps the given arrays, which must not change afterwards.

    Attributes
    ----------
    indptr : array of int64, shape (n + 1,)
        Where the neighbours of each node begin in `indices`.
    indices : array of int32 or int64, shape (arcs,)
        The neighbours, as positions; an undirected edge is listed twice.
    weights : array of float64, shape (arcs,), or None
        Weights of the arcs; None if all are equal to `unit`.
    nodes : array, shape (n,)
        The ids, integers or objects.
    directed : bool
        Whether arcs are followed as given.
    self_loops : int
        Number of self-loops that were dropped.
    duplicates : int
        Number of edges that repeat an earlier one.
    rows : int or None
        For a biadjacency matrix, the number of its rows, which are the first nodes; its columns follow.
    unit : float
        The weight of every edge if all are equal; used only when another network is added.

    Examples
    --------
    >>> graph = Graph.from_edges(["ann", "bob", "bob"], ["bob", "cem", "bob"])
    >>> graph
    Graph(3 nodes, 2 edges)
    >>> graph.self_loops, list(graph.neighbours("bob"))
    (1, ['ann', 'cem'])
    """

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
            raise GraphError("node ids must be unique, but one occurs twice")
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
        return find_strengths(self.indptr, self.weights)

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

    def add(self, other: Graph) -> Self:
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
        positions = dict(self.positions)
        for node in other.nodes.tolist():
            positions.setdefault(node, len(positions))
        other_rows = np.array([positions[node] for node in other.nodes.tolist()], dtype=np.int64)
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
            np.concatenate(weights) if is_weighted else None, as_ids(list(positions)), directed=self.directed,
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
            raise GraphError(f"there must be as many sources as targets, got {len(sources):,} and {len(targets):,}")
        codes, ids = number_ids(np.concatenate((sources, targets)))
        if nodes is not None:
            known = as_ids(nodes)
            positions = {node: position for position, node in enumerate(known.tolist())}
            if len(positions) != len(known):
                raise GraphError("nodes must be unique, but one occurs twice")
            missing = [node for node in ids.tolist() if node not in positions]
            if missing:
                raise GraphError(f"nodes must contain every node of the edges, but {missing[0]!r} is missing")
            codes = np.array([positions[node] for node in ids.tolist()], dtype=np.int64)[codes]
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
            what = "turned into weights" if data is None else "their weights added"
            repeats = "1 repeated edge was" if graph.duplicates == 1 else f"{graph.duplicates:,} repeated edges were"
            warnings.warn(
                ManelaWarning(
                    f"{repeats} merged and {what}; pass ", Option("duplicates", "first"), " to count each edge once"
                ),
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
            raise GraphError(f"edges must be unique, but {_name_repeated(rows, columns, nodes, directed)} occurs twice")
        weights = compressed.weights
        if weights is not None and bool(np.all(weights == weights[:1])):
            unit = float(weights[0]) if data is not None and len(weights) else unit
            weights = None
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
    def of(cls, data: Any, *, directed: bool = False, duplicates: str = "sum") -> Graph:
        """Build a network from data of any supported type.

        By default, the weights of edges that are given more than once are added; `duplicates` is "first" to keep the
        first of them, or "error" to raise an error.

        `data` is a Graph, a SciPy sparse matrix or an array (square, or rectangular as for `from_biadjacency`), a
        NetworkX or igraph graph, a pandas, polars or Arrow table of edges, a list or array of pairs, or of triples with
        a weight, a dict of each node's neighbours, a PyG Data or edge_index (integers of shape (2, arcs)), or a sparse
        tensor. Files are read by `manela.read_graph`.
        """
        from manela.data import conversion

        return conversion.convert(data, directed, duplicates)

    @classmethod
    def from_scipy(cls, matrix: Any, *, nodes: Sequence[Hashable] | None = None, directed: bool = False) -> Graph:
        """Build a network from a square adjacency matrix; ids are 0 … n - 1 by default.

        If all entries are equal, the network has no weights.
        """
        from manela.data import conversion

        return conversion.from_scipy(matrix, nodes, directed)

    @classmethod
    def from_biadjacency(
        cls, matrix: Any, *, rows: Sequence[Hashable] | None = None, columns: Sequence[Hashable] | None = None
    ) -> Graph:
        """Build a network from a biadjacency matrix: each non-zero entry is an edge between its row and its column.

        Rows and columns are nodes, with the ids ("row", i) and ("column", j) by default.

        Examples
        --------
        >>> from manela import Graph
        >>> graph = Graph.from_biadjacency(np.array([[1, 1, 0], [0, 1, 1]]), rows=["ann", "bob"], columns="xyz")
        >>> list(graph.neighbours("ann")), graph.rows
        (['x', 'y'], 2)
        """
        from manela.data import conversion

        return conversion.from_biadjacency(matrix, rows, columns)

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Any,
        weights: npt.ArrayLike | None = None,
        *,
        number_of_nodes: int | None = None,
        directed: bool = False,
        duplicates: str = "sum",
    ) -> Graph:
        """Build a network from a PyG edge_index, an integer array or tensor of shape (2, arcs); ids are 0 … n - 1."""
        from manela.data import conversion

        return conversion.from_edge_index(edge_index, weights, number_of_nodes, directed, duplicates)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, weight: str = "weight", directed: bool = False, duplicates: str = "sum"
    ) -> Graph:
        """Build a network from a NetworkX graph; edges without the weight attribute weigh 1."""
        from manela.data import conversion

        return conversion.from_networkx(graph, weight, directed, duplicates)

    @classmethod
    def from_igraph(
        cls, graph: Any, *, weight: str = "weight", directed: bool = False, duplicates: str = "sum"
    ) -> Graph:
        """Build a network from an igraph graph; ids are the names of the vertices, if they have any."""
        from manela.data import conversion

        return conversion.from_igraph(graph, weight, directed, duplicates)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        *,
        source: str | None = None,
        target: str | None = None,
        weight: str | None = None,
        directed: bool = False,
        duplicates: str = "sum",
    ) -> Graph:
        """Build a network from a frame with one edge per row; columns as for `from_columns`.

        A frame whose index equals its columns is read as an adjacency matrix.
        """
        from manela.data import conversion

        return conversion.from_pandas(frame, source, target, weight, directed, duplicates)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, npt.NDArray[Any]],
        *,
        source: str | None = None,
        target: str | None = None,
        weight: str | None = None,
        directed: bool = False,
        duplicates: str = "sum",
        unweighted: bool = False,
    ) -> Graph:
        """Build a network from named columns of equal length, one edge per position.

        Columns that are not specified are found by name (source and target, src and dst, from and to, and other common
        names; weight, value, count and the like). Without such names the first two columns are the ends, and a third
        column of numbers is the weight. A warning says which columns were chosen if the names leave it open.
        """
        from manela.data import conversion

        return conversion.from_columns(columns, source, target, weight, directed, duplicates, unweighted)


def _name_repeated(
    rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer], nodes: npt.NDArray[Any], directed: bool
) -> str:
    is_edge = rows != columns
    rows, columns = rows[is_edge], columns[is_edge]
    if not directed:
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.lexsort((columns, rows))
    is_repeated = (np.diff(rows[order]) == 0) & (np.diff(columns[order]) == 0)
    position = order[int(np.argmax(is_repeated))]
    return f"{nodes[rows[position]]} - {nodes[columns[position]]}"
