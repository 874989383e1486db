"""Graph: a network as frozen arrays in compressed sparse rows, with the ids that the user gave."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manela.adjacency import build_rows
from manela.edge_columns import WEIGHT_NAMES, choose_by_names, describe_choice, find_pair
from manela.errors import GraphError, ManelaWarning, UnknownNodeError, import_extra
from manela.params import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE
from manela.pictures import draw_degrees, show_facts

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A network: undirected by default, weighted or not.

    Build one with a `from_…` method, or with `Graph.of`, which takes whatever it is given. They copy what they keep;
    `Graph(…)` itself keeps the arrays it is given, which must not change from then on.

    Attributes
    ----------
    indptr : array of int64, shape (n + 1,)
        Where the neighbours of each node begin in `indices`.
    indices : array of int32 or int64, shape (arcs,)
        The neighbours, as positions; an edge stands here twice.
    weights : array of float64, shape (arcs,), or None
        Weights of the arcs; None where all are the same, `unit`.
    nodes : array, shape (n,)
        The ids, integers or objects.
    directed : bool
        Whether arcs are followed as given.
    self_loops : int
        How many were dropped.
    duplicates : int
        How many edges were given that had been given before.
    rows : int or None
        Of a biadjacency matrix, how many nodes are its rows; they come first, and its columns after them.
    unit : float
        The weight of every edge where all weigh the same; counts only if others are added.

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

    def without_weights(self) -> Graph:
        """The same network, every edge counting alike."""
        return self if self.weights is None else replace(self, weights=None)

    def add(self, other: Graph) -> Graph:
        """The network of both: nodes of this one first, and then those that are new.

        Edges of both add up their weights, unless neither network has weights.

        Examples
        --------
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
        return Graph._build(
            np.concatenate([pair[0] for pair in ends]), np.concatenate([pair[1] for pair in ends]),
            np.concatenate(weights) if is_weighted else None, _as_ids(list(places)), directed=self.directed,
            duplicates="sum" if is_weighted else "first", unit=self.unit,
        )  # fmt: skip

    def to_scipy(self) -> sp.csr_array:
        """The adjacency matrix; the network's own arrays, not copies."""
        data = np.ones(len(self.indices)) if self.weights is None else self.weights
        shape = (self.number_of_nodes, self.number_of_nodes)
        return sp.csr_array((data, self.indices, self.indptr), shape=shape, copy=False)

    @classmethod
    def of(cls, data: Any, *, directed: bool = False, duplicates: str = "sum") -> Graph:
        """The network in whatever this is.

        Edges that are given several times add up to a weight; `duplicates` is "first" to keep the first of them, or
        "error" to refuse them.

        Takes a Graph, a SciPy sparse matrix or an array (square, or rectangular as for `from_biadjacency`), a NetworkX
        or igraph graph, a pandas, polars or Arrow
        table of edges, a list or array of pairs, or triples with a weight, a dict of each node's neighbours, a PyG Data
        or edge_index (integers of shape (2, arcs)), or a sparse tensor. Files are read by `manela.read_graph`.
        """
        _check_rule(duplicates)
        if isinstance(data, cls):
            return data
        if sp.issparse(data):
            return cls._from_matrix(_merge_entries(data, duplicates), directed)
        rule: Any = {"directed": directed, "duplicates": duplicates}
        library = type(data).__module__.partition(".")[0]
        if hasattr(data, "is_directed") and hasattr(data, "adj"):
            return cls.from_networkx(data, **rule)
        if library == "networkx":  # edges of a graph
            return cls._from_tuples(list(data(data=True)) if callable(data) else list(data), **rule)
        if library == "igraph":
            return cls.from_igraph(data, **rule)
        if type(data).__name__ == "Series":
            raise GraphError("a network must be a table of edges or the like, got a Series, which is one column")
        if library == "pandas":
            return cls.from_pandas(data, **rule)
        if library == "polars" and hasattr(data, "collect"):
            data = data.collect()
        if hasattr(data, "__arrow_c_stream__"):  # tables of Arrow, polars, DuckDB and others
            arrow = import_extra("pyarrow", "io", f"a table of {library}")
            table = arrow.table(data)
            columns = columns_of(table.column_names, lambda place: table.column(place).to_numpy())
            return cls.from_columns(columns, **rule)
        if hasattr(data, "edge_index"):
            weights = getattr(data, "edge_weight", None)
            return cls.from_edge_index(
                data.edge_index, None if weights is None else _as_array(weights),
                number_of_nodes=getattr(data, "num_nodes", None), **rule,
            )  # fmt: skip
        if library == "torch" and str(data.layout) != "torch.strided":
            tensor = data.detach().to_sparse_coo().coalesce().cpu()
            found = sp.coo_array((np.asarray(tensor.values()), np.asarray(tensor.indices())), shape=tuple(tensor.shape))
            return cls._from_matrix(found, directed)
        if library == "torch" or isinstance(data, np.ndarray):
            return cls._from_array(_as_array(data), **rule)
        if isinstance(data, Mapping):
            if _holds_columns(data):
                return cls.from_columns({str(name): np.asarray(values) for name, values in data.items()}, **rule)
            return cls._from_mapping(data, **rule)
        if isinstance(data, set | frozenset):
            data = sorted(data, key=repr)
        if isinstance(data, list | tuple) and data and all(isinstance(one, list | tuple | np.ndarray) for one in data):
            return cls._from_tuples(data, **rule)
        raise GraphError(
            "a network must be a Graph, a SciPy sparse matrix, a NetworkX or igraph graph, a table, a list of pairs, "
            f"an edge_index array of shape (2, arcs) or the path of a file, got {type(data).__name__}"
        )

    @classmethod
    def _from_array(cls, array: npt.NDArray[Any], *, directed: bool, duplicates: str) -> Graph:
        """The network of an edge_index (2, arcs), of pairs or pairs with a weight (edges, 2 or 3), or of a matrix."""
        rule: Any = {"directed": directed, "duplicates": duplicates}
        is_square = array.ndim == 2 and array.shape[0] == array.shape[1]
        is_number = np.issubdtype(array.dtype, np.number)
        if array.ndim != 2 or not (is_number or array.dtype == bool):
            return (
                cls.from_edge_index(array, **rule)
                if is_number or array.ndim != 2
                else cls._from_tuples(array.tolist(), **rule)
            )
        if array.dtype == bool or (is_square and len(array) > 2):
            return cls._from_matrix(sp.csr_array(array), directed)
        if is_square:
            _note_array(array, "an edge_index, arcs from its first row to its second", "pairs can be given as a list")
            return cls.from_edge_index(array, **rule)
        if array.shape[0] == 2:
            return cls.from_edge_index(array, **rule)
        if array.shape[1] not in (2, 3):
            return cls._from_matrix(sp.csr_array(array), directed)
        ends = array[:, :2]
        if np.issubdtype(array.dtype, np.complexfloating) or not np.array_equal(ends, np.trunc(ends)):
            return cls._from_matrix(sp.csr_array(array), directed)
        if not np.issubdtype(array.dtype, np.integer) or array.shape[1] == 3:
            what = "pairs" if array.shape[1] == 2 else "pairs with a weight"
            _note_array(array, what, "a biadjacency matrix is for Graph.from_biadjacency")
        weights = array[:, 2].astype(np.float64) if array.shape[1] == 3 else None
        return cls.from_edges(ends[:, 0].astype(np.int64), ends[:, 1].astype(np.int64), weights, **rule)

    @classmethod
    def _from_tuples(cls, edges: Sequence[Any], *, directed: bool, duplicates: str) -> Graph:
        """The network of a list of pairs, or of triples with a weight."""
        sizes = {len(edge) for edge in edges}
        if sizes not in ({2}, {3}):
            raise GraphError("a list of edges must hold pairs, or triples with a weight, and not both")
        weights = [edge[2] for edge in edges] if sizes == {3} else None
        if weights is not None and all(isinstance(weight, Mapping) for weight in weights):  # as NetworkX has them
            weights = [weight.get("weight", 1.0) for weight in weights]
        return cls.from_edges(
            [edge[0] for edge in edges], [edge[1] for edge in edges], weights, directed=directed, duplicates=duplicates
        )

    @classmethod
    def _from_mapping(cls, adjacency: Mapping[Any, Any], *, directed: bool, duplicates: str) -> Graph:
        """The network of each node's neighbours, in a list or a dict with weights; an edge may stand at both nodes."""
        sources, targets, weights = [], [], []
        for node, neighbours in adjacency.items():
            if isinstance(neighbours, str) or not isinstance(neighbours, Iterable):
                raise GraphError(f"a dict must hold the neighbours of each node, got {neighbours!r} for {node!r}")
            for other in neighbours:
                sources.append(node)
                targets.append(other)
                value = neighbours[other] if isinstance(neighbours, Mapping) else 1.0
                weights.append(value.get("weight", 1.0) if isinstance(value, Mapping) else value)
        nodes = list(dict.fromkeys([*adjacency, *targets]))
        if not directed:
            duplicates = "first" if duplicates == "sum" else duplicates
        return cls.from_edges(sources, targets, weights, nodes=nodes, directed=directed, duplicates=duplicates)

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
    ) -> Graph:
        """The network of these edges, sources[i] with targets[i].

        Ids may be of any hashable type. Integer ids are put in order, others stand in order of first appearance;
        `nodes` gives the order instead, and may name nodes without edges.
        """
        sources, targets = _as_ids(sources), _as_ids(targets)
        if sources.shape != targets.shape:
            raise GraphError(f"as many sources as targets are needed, got {len(sources):,} and {len(targets):,}")
        codes, found = _number(np.concatenate((sources, targets)))
        if nodes is not None:
            known = _as_ids(nodes)
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
    ) -> Graph:
        """The network of edges between positions in `nodes`; self-loops are dropped.

        Of edges that are given several times `duplicates` says whether they add up to a weight ("sum"), the first
        counts ("first"), or they are refused ("error"). In an undirected network an edge and its reverse are one.
        """
        _check_rule(duplicates)
        data = _check_weights(weights, len(rows))
        graph = cls._build(rows, columns, data, nodes, directed=directed, duplicates=duplicates)
        if graph.duplicates and graph.is_weighted and duplicates == "sum":
            what = "add up to weights" if data is None else "add up their weights"
            warnings.warn(
                f"edges that are given several times ({graph.duplicates:,} times more than once) {what}; "
                "duplicates='first' (--duplicates first) counts each once",
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
    ) -> Graph:
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
    def from_scipy(cls, matrix: Any, *, nodes: Sequence[Hashable] | None = None, directed: bool = False) -> Graph:
        """The network of a square adjacency matrix; ids are 0 … n - 1 unless given.

        A matrix whose entries are all the same is that of a network without weights.
        """
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise GraphError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
        if np.issubdtype(matrix.dtype, np.complexfloating):
            raise GraphError(f"an adjacency matrix must be real, got {matrix.dtype}")
        matrix = sp.csr_array(matrix)  # in which entries of one place are one
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        ids = np.arange(matrix.shape[0]) if nodes is None else _as_ids(nodes)
        if ids.dtype != object and nodes is not None and len(np.unique(ids)) < len(ids):
            raise GraphError("every node must have an id of its own, but one id stands for two nodes")
        if len(ids) != matrix.shape[0]:
            raise GraphError(f"as many nodes as rows are needed, got {len(ids):,} nodes and {matrix.shape[0]:,} rows")
        if directed or not _is_symmetric(matrix):
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
        is_same = len(weights) > 0 and weights[0] > 0 and bool(np.all(weights == weights[0]))
        graph = cls.from_arcs(rows, columns, None if is_same else weights, ids, directed=directed)
        return replace(graph, unit=float(weights[0])) if is_same else graph

    @classmethod
    def from_biadjacency(
        cls, matrix: Any, *, rows: Sequence[Hashable] | None = None, columns: Sequence[Hashable] | None = None
    ) -> Graph:
        """The network of a biadjacency matrix: an edge between a row and a column for each entry that is not zero.

        Rows and columns are nodes, with the ids ("row", i) and ("column", j) unless given.

        Examples
        --------
        >>> graph = Graph.from_biadjacency(np.array([[1, 1, 0], [0, 1, 1]]), rows=["ann", "bob"], columns="xyz")
        >>> list(graph.neighbours("ann")), graph.rows
        (['x', 'y'], 2)
        """
        if matrix.ndim != 2:
            raise GraphError(f"a biadjacency matrix must have two dimensions, got shape {tuple(matrix.shape)}")
        if np.issubdtype(matrix.dtype, np.complexfloating):
            raise GraphError(f"a biadjacency matrix must be real, got {matrix.dtype}")
        entries = sp.coo_array(sp.csr_array(matrix))
        ids: list[Hashable] = []
        for given, name, count in ((rows, "row", matrix.shape[0]), (columns, "column", matrix.shape[1])):
            part = [(name, place) for place in range(count)] if given is None else list(given)
            if len(part) != count:
                raise GraphError(f"as many {name} ids as {name}s are needed, got {len(part):,} for {count:,}")
            ids += part
        if len(set(ids)) < len(ids):
            raise GraphError("every row and every column must have an id of its own, but one id stands for two")
        kept = np.flatnonzero(entries.data)
        sources, targets = (coordinates[kept].astype(np.int64) for coordinates in entries.coords)
        weights = entries.data[kept]
        is_same = len(weights) > 0 and weights[0] > 0 and bool(np.all(weights == weights[0]))
        graph = cls.from_arcs(sources, targets + matrix.shape[0], None if is_same else weights, _as_ids(ids))
        return replace(graph, rows=matrix.shape[0])

    @classmethod
    def _from_matrix(cls, matrix: Any, directed: bool) -> Graph:
        """The network of an adjacency matrix if it is square, and otherwise of a biadjacency matrix."""
        if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1]:
            if directed:
                raise GraphError("the network of a biadjacency matrix has no direction, so directed must be False")
            return cls.from_biadjacency(matrix)
        return cls.from_scipy(matrix, directed=directed)

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
        """The network of a PyG-style edge_index, an integer array or tensor of shape (2, arcs); ids are 0 … n - 1."""
        array = _as_array(edge_index)
        if array.ndim != 2 or array.shape[0] != 2 or not np.issubdtype(array.dtype, np.integer):
            raise GraphError(
                f"an edge_index must be integers of shape (2, arcs), got {array.dtype} of shape {array.shape}; "
                "for an adjacency matrix give a SciPy sparse matrix"
            )
        if array.size and array.min() < 0:
            raise GraphError(f"an edge_index must not be negative, got {array.min()}")
        size = (int(array.max()) + 1 if array.size else 0) if number_of_nodes is None else number_of_nodes
        if array.size and array.max() >= size:
            raise GraphError(f"an edge_index must be below number_of_nodes = {size:,}, got {array.max()}")
        if array.size and size > 1000 + 100 * array.size:
            raise GraphError(f"an edge_index of {array.shape[1]:,} arcs cannot name {size:,} nodes; renumber its nodes")
        data = np.ones(array.shape[1]) if weights is None else _check_weights(weights, array.shape[1])
        matrix = sp.coo_array((data, (array[0], array[1])), shape=(size, size))
        if duplicates != "sum" and array.size and not (matrix.tocsr().nnz == array.shape[1] and _is_symmetric(matrix)):
            return cls.from_arcs(array[0], array[1], weights, np.arange(size), directed=directed, duplicates=duplicates)
        return cls.from_scipy(matrix, directed=directed)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, weight: str = "weight", directed: bool = False, duplicates: str = "sum"
    ) -> Graph:
        """The network of a NetworkX graph; edges without the weight attribute count 1."""
        nodes = _as_ids(graph.nodes)
        places = {node: place for place, node in enumerate(graph.nodes)}
        edges = [(places[u], places[v], w) for u, v, w in graph.edges(data=weight)]
        return cls._from_library(edges, nodes, graph.is_directed(), directed, duplicates)

    @classmethod
    def from_igraph(
        cls, graph: Any, *, weight: str = "weight", directed: bool = False, duplicates: str = "sum"
    ) -> Graph:
        """The network of an igraph graph; ids are the vertices' names where they have them."""
        names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
        weights = graph.es[weight] if weight in graph.es.attributes() else [None] * graph.ecount()
        edges = [(u, v, w) for (u, v), w in zip(graph.get_edgelist(), weights, strict=True)]
        return cls._from_library(edges, _as_ids(names), graph.is_directed(), directed, duplicates)

    @classmethod
    def _from_library(
        cls,
        edges: list[tuple[int, int, Any]],
        nodes: npt.NDArray[Any],
        is_directed: bool,
        directed: bool,
        duplicates: str,
    ) -> Graph:
        if is_directed and not directed:
            say_directed()
        ends = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2)
        given = [edge[2] for edge in edges]
        weights = None if all(w is None for w in given) else [1.0 if w is None else w for w in given]
        if directed and not is_directed:
            ends, weights = np.concatenate((ends, ends[:, ::-1])), None if weights is None else weights + weights
        return cls.from_arcs(ends[:, 0], ends[:, 1], weights, nodes, directed=directed, duplicates=duplicates)

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
        """The network of a frame with an edge a row; columns as for `from_columns`.

        A frame whose index and columns are the same ids is an adjacency matrix.
        """
        if source is None and target is None and len(frame) > 1 and frame.index.tolist() == frame.columns.tolist():
            return cls.from_scipy(sp.csr_array(frame.to_numpy()), nodes=frame.index.tolist(), directed=directed)
        columns = columns_of([str(name) for name in frame.columns], lambda place: frame.iloc[:, place].to_numpy())
        return cls.from_columns(
            columns, source=source, target=target, weight=weight, directed=directed, duplicates=duplicates
        )

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
        """The network of named columns with an edge in each place.

        Columns that are not given are found by name (source and target, src and dst, from and to, and others that
        people use; weight, value, count and the like); without such names they are the first two, and a third of
        numbers is the weight. A warning tells what was taken for what where names do not say it.
        """
        names = list(columns)
        if len(names) < 2:
            raise GraphError(f"a table of edges must have at least two columns, got {len(names)}")
        for name in (source, target, weight):
            if name is not None and name not in columns:
                raise GraphError(f"a table of edges has no column {name!r}, only {', '.join(names)}")
        choice = choose_by_names(
            names, lambda: _counts_up(columns[names[0]]), lambda place: _is_number(columns[names[place]])
        )
        if source is None and target is None:
            note = describe_choice(names, choice, unweighted or weight is not None)
            if note and len(names) > 2:
                warnings.warn(note, ManelaWarning, stacklevel=4)
            if weight is None and choice.weight >= 0:
                weight = names[choice.weight]
        elif (
            weight is None
            and names[choice.weight].lower() in WEIGHT_NAMES
            and choice.weight >= 0
            and None in (source, target)
        ):
            weight = names[choice.weight]
        sources, targets = columns[source or names[choice.source]], columns[target or names[choice.target]]
        if _has_gaps(sources) or _has_gaps(targets):
            raise GraphError("a table of edges must not have missing ids")
        weights = None if weight is None or unweighted else columns[weight]
        return cls.from_edges(sources, targets, weights, directed=directed, duplicates=duplicates)


DUPLICATES = ("sum", "first", "error")
"""What can be done about edges that are given several times."""


def columns_of(names: Sequence[str], read: Callable[[int], npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The columns of a table by their names, which must differ."""
    repeated = [name for place, name in enumerate(names) if name in names[:place]]
    if repeated:
        raise GraphError(f"the columns of a table must have different names, but two are called {repeated[0]!r}")
    return {name: read(place) for place, name in enumerate(names)}


def _check_rule(duplicates: str) -> None:
    if duplicates not in DUPLICATES:
        raise GraphError(f"duplicates must be one of {', '.join(DUPLICATES)}, got {duplicates!r}")


def _holds_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a dict holds columns of a table of edges, rather than the neighbours of each node."""
    names = [str(name).strip().lower() for name in data]
    lengths = {len(values) if hasattr(values, "__len__") and not isinstance(values, str | Mapping) else -1
               for values in data.values()}  # fmt: skip
    return find_pair(names) is not None and len(lengths) == 1 and min(lengths) >= 0


def _merge_entries(matrix: Any, duplicates: str) -> Any:
    """A sparse matrix in which entries of one place are one, as `duplicates` says."""
    if matrix.format != "coo" or duplicates == "sum":
        return matrix
    places = matrix.coords[0].astype(np.int64) * matrix.shape[1] + matrix.coords[1]
    _, first = np.unique(places, return_index=True)
    if len(first) == len(places):
        return matrix
    if duplicates == "error":
        raise GraphError("no edge must be given twice, but this matrix has several entries in one place")
    rows, columns = (coordinates[first] for coordinates in matrix.coords)
    return sp.coo_array((matrix.data[first], (rows, columns)), shape=matrix.shape)


def _note_array(array: npt.NDArray[Any], what: str, otherwise: str) -> None:
    warnings.warn(f"an array of shape {array.shape} is read as {what}; {otherwise}", ManelaWarning, stacklevel=5)


def _as_array(data: Any) -> npt.NDArray[Any]:
    """An array of NumPy, also of a tensor that is learned or on another device."""
    return np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)


def _counts_up(values: npt.NDArray[Any]) -> bool:
    """Whether whole numbers number the rows."""
    is_whole = np.issubdtype(values.dtype, np.integer)
    return bool(is_whole and len(values) and np.all(np.diff(values) == 1))


def _is_number(values: npt.NDArray[Any]) -> bool:
    return bool(np.issubdtype(values.dtype, np.number))


def _as_ids(values: Any) -> npt.NDArray[Any]:
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
        if not isinstance(item, Hashable):
            raise GraphError(f"an id must be hashable, got {type(item).__name__}")
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


def _check_weights(weights: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float64] | None:
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


def _drop_if_equal(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    return None if len(weights) == 0 or bool(np.all(weights == weights[0])) else weights


def _is_symmetric(matrix: Any) -> bool:
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


def _has_gaps(values: npt.NDArray[Any]) -> bool:
    if np.issubdtype(values.dtype, np.integer):
        return False
    return any(value is None or type(value).__name__ in ("NAType", "NaTType") or value != value for value in values)


def say_directed() -> None:
    """Warn that arcs become edges."""
    warnings.warn(
        "the network is directed and is read as undirected; directed=True (--directed) follows its arcs as given",
        ManelaWarning,
        stacklevel=4,
    )
