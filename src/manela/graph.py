"""Graph: a network, built from the data structures of common libraries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manela.edge_columns import WEIGHT_NAMES, choose_by_names, describe_choice, find_pair
from manela.errors import GraphError, ManelaWarning, import_extra
from manela.network import Network, as_ids, check_rule, check_weights, is_symmetric, say_directed


class Graph(Network):
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

    @classmethod
    def of(cls, data: Any, *, directed: bool = False, duplicates: str = "sum") -> Self:
        """Build a network from data of any supported type.

        By default, the weights of edges that are given more than once are added; `duplicates` is "first" to keep the
        first of them, or "error" to raise an error.

        `data` is a Graph, a SciPy sparse matrix or an array (square, or rectangular as for `from_biadjacency`), a
        NetworkX or igraph graph, a pandas, polars or Arrow table of edges, a list or array of pairs, or of triples with
        a weight, a dict of each node's neighbours, a PyG Data or edge_index (integers of shape (2, arcs)), or a sparse
        tensor. Files are read by `manela.read_graph`.
        """
        check_rule(duplicates)
        if isinstance(data, cls):
            return data
        if sp.issparse(data):
            return cls._from_matrix(_merge_entries(data, duplicates), directed)
        rule: Any = {"directed": directed, "duplicates": duplicates}
        library = type(data).__module__.partition(".")[0]
        if hasattr(data, "is_directed") and hasattr(data, "adj"):
            return cls.from_networkx(data, **rule)
        if library == "networkx":  # G.edges
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
            matrix = sp.coo_array(
                (np.asarray(tensor.values()), np.asarray(tensor.indices())), shape=tuple(tensor.shape)
            )
            return cls._from_matrix(matrix, directed)
        if library == "torch" or isinstance(data, np.ndarray):
            return cls._from_array(_as_array(data), **rule)
        if isinstance(data, Mapping):
            if _holds_columns(data):
                return cls.from_columns({str(name): np.asarray(values) for name, values in data.items()}, **rule)
            return cls._from_mapping(data, **rule)
        if isinstance(data, set | frozenset):
            data = sorted(data, key=repr)
        if (
            isinstance(data, list | tuple)
            and data
            and all(isinstance(edge, list | tuple | np.ndarray) for edge in data)
        ):
            return cls._from_tuples(data, **rule)
        raise GraphError(
            "a network must be a Graph, a SciPy sparse matrix, a NetworkX or igraph graph, a table, a list of pairs, "
            f"an edge_index array of shape (2, arcs) or the path of a file, got {type(data).__name__}"
        )

    @classmethod
    def _from_array(cls, array: npt.NDArray[Any], *, directed: bool, duplicates: str) -> Self:
        """Build a network from an edge_index (2, arcs), pairs or weighted pairs (edges, 2 or 3), or a matrix."""
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
    def _from_tuples(cls, edges: Sequence[Any], *, directed: bool, duplicates: str) -> Self:
        """Build a network from a list of pairs, or of triples with a weight."""
        sizes = {len(edge) for edge in edges}
        if sizes not in ({2}, {3}):
            raise GraphError("a list of edges must hold pairs, or triples with a weight, and not both")
        weights = [edge[2] for edge in edges] if sizes == {3} else None
        if weights is not None and all(
            isinstance(weight, Mapping) for weight in weights
        ):  # edge attributes of NetworkX
            weights = [weight.get("weight", 1.0) for weight in weights]
        return cls.from_edges(
            [edge[0] for edge in edges], [edge[1] for edge in edges], weights, directed=directed, duplicates=duplicates
        )

    @classmethod
    def _from_mapping(cls, adjacency: Mapping[Any, Any], *, directed: bool, duplicates: str) -> Self:
        """Build a network from a dict of adjacency lists or of dicts with weights; both ends may list the same edge."""
        sources, targets, weights = [], [], []
        for node, neighbours in adjacency.items():
            if isinstance(neighbours, str) or not isinstance(neighbours, Iterable):
                raise GraphError(f"a dict must hold the neighbours of each node, got {neighbours!r} for {node!r}")
            for neighbour in neighbours:
                sources.append(node)
                targets.append(neighbour)
                value = neighbours[neighbour] if isinstance(neighbours, Mapping) else 1.0
                weights.append(value.get("weight", 1.0) if isinstance(value, Mapping) else value)
        nodes = list(dict.fromkeys([*adjacency, *targets]))
        if not directed:
            duplicates = "first" if duplicates == "sum" else duplicates
        return cls.from_edges(sources, targets, weights, nodes=nodes, directed=directed, duplicates=duplicates)

    @classmethod
    def _from_matrix(cls, matrix: Any, directed: bool) -> Self:
        """Build a network from an adjacency matrix if it is square, and otherwise from a biadjacency matrix."""
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
    ) -> Self:
        """Build a network from a PyG edge_index, an integer array or tensor of shape (2, arcs); ids are 0 … n - 1."""
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
        data = np.ones(array.shape[1]) if weights is None else check_weights(weights, array.shape[1])
        matrix = sp.coo_array((data, (array[0], array[1])), shape=(size, size))
        if duplicates != "sum" and array.size and not (matrix.tocsr().nnz == array.shape[1] and is_symmetric(matrix)):
            return cls.from_arcs(array[0], array[1], weights, np.arange(size), directed=directed, duplicates=duplicates)
        return cls.from_scipy(matrix, directed=directed)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, weight: str = "weight", directed: bool = False, duplicates: str = "sum"
    ) -> Self:
        """Build a network from a NetworkX graph; edges without the weight attribute weigh 1."""
        nodes = as_ids(graph.nodes)
        places = {node: place for place, node in enumerate(graph.nodes)}
        edges = [(places[u], places[v], w) for u, v, w in graph.edges(data=weight)]
        return cls._from_library(edges, nodes, graph.is_directed(), directed, duplicates)

    @classmethod
    def from_igraph(
        cls, graph: Any, *, weight: str = "weight", directed: bool = False, duplicates: str = "sum"
    ) -> Self:
        """Build a network from an igraph graph; ids are the names of the vertices, if they have any."""
        names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
        weights = graph.es[weight] if weight in graph.es.attributes() else [None] * graph.ecount()
        edges = [(u, v, w) for (u, v), w in zip(graph.get_edgelist(), weights, strict=True)]
        return cls._from_library(edges, as_ids(names), graph.is_directed(), directed, duplicates)

    @classmethod
    def _from_library(
        cls,
        edges: list[tuple[int, int, Any]],
        nodes: npt.NDArray[Any],
        is_directed: bool,
        directed: bool,
        duplicates: str,
    ) -> Self:
        """Return the network of edges between rows, as graph libraries give them."""
        if is_directed and not directed:
            say_directed()
        ends = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2)
        edge_weights = [edge[2] for edge in edges]
        weights = None if all(w is None for w in edge_weights) else [1.0 if w is None else w for w in edge_weights]
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
    ) -> Self:
        """Build a network from a frame with one edge per row; columns as for `from_columns`.

        A frame whose index equals its columns is read as an adjacency matrix.
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
    ) -> Self:
        """Build a network from named columns of equal length, one edge per position.

        Columns that are not specified are found by name (source and target, src and dst, from and to, and other common
        names; weight, value, count and the like). Without such names the first two columns are the ends, and a third
        column of numbers is the weight. A warning says which columns were chosen if the names leave it open.
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
        elif weight is None and None in (source, target) and choice.weight >= 0:
            named = names[choice.weight]
            weight = named if named.lower() in WEIGHT_NAMES else None
        sources, targets = columns[source or names[choice.source]], columns[target or names[choice.target]]
        if _has_gaps(sources) or _has_gaps(targets):
            raise GraphError("a table of edges must not have missing ids")
        weights = None if weight is None or unweighted else columns[weight]
        return cls.from_edges(sources, targets, weights, directed=directed, duplicates=duplicates)


def columns_of(names: Sequence[str], read: Callable[[int], npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a table by name; names must be unique."""
    repeated = [name for place, name in enumerate(names) if name in names[:place]]
    if repeated:
        raise GraphError(f"the columns of a table must have different names, but two are called {repeated[0]!r}")
    return {name: read(place) for place, name in enumerate(names)}


def _holds_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a dict holds the columns of an edge table, rather than adjacency lists."""
    names = [str(name).strip().lower() for name in data]
    lengths = {len(values) if hasattr(values, "__len__") and not isinstance(values, str | Mapping) else -1
               for values in data.values()}  # fmt: skip
    return find_pair(names) is not None and len(lengths) == 1 and min(lengths) >= 0


def _merge_entries(matrix: Any, duplicates: str) -> Any:
    """Return a sparse matrix without duplicate entries, merged by the rule `duplicates`."""
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
    """Warn that an array could also have been read in another way."""
    warnings.warn(f"an array of shape {array.shape} is read as {what}; {otherwise}", ManelaWarning, stacklevel=5)


def _as_array(data: Any) -> npt.NDArray[Any]:
    """Convert to a NumPy array; also a tensor that requires gradients or is on another device."""
    return np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)


def _counts_up(values: npt.NDArray[Any]) -> bool:
    """Whether the values are consecutive integers, like row numbers."""
    is_whole = np.issubdtype(values.dtype, np.integer)
    return bool(is_whole and len(values) and np.all(np.diff(values) == 1))


def _is_number(values: npt.NDArray[Any]) -> bool:
    """Return whether values are numbers."""
    return bool(np.issubdtype(values.dtype, np.number))


def _has_gaps(values: npt.NDArray[Any]) -> bool:
    """Return whether a value is missing."""
    if np.issubdtype(values.dtype, np.integer):
        return False
    return any(value is None or type(value).__name__ in ("NAType", "NaTType") or value != value for value in values)
