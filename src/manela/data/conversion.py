"""Builds a network from the data structures of common libraries: matrices, graphs, tables, lists, tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manela.data.csr import as_ids, check_rule, check_weights
from manela.data.edge_table import WEIGHT_NAMES, choose_by_names, describe_choice, find_pair
from manela.data.graph import Graph
from manela.errors import GraphError, ManelaWarning, Option, import_extra


def convert(data: Any, directed: bool, duplicates: str) -> Graph:
    """Return a network of data of any supported type; see `Graph.of`."""
    check_rule(duplicates)
    if isinstance(data, Graph):
        return data
    if sp.issparse(data):
        return _from_matrix(_merge_entries(data, duplicates), directed)
    library = type(data).__module__.partition(".")[0]
    if hasattr(data, "is_directed") and hasattr(data, "adj"):
        return from_networkx(data, "weight", directed, duplicates)
    if library == "networkx":  # G.edges
        return _from_tuples(list(data(data=True)) if callable(data) else list(data), directed, duplicates)
    if library == "igraph":
        return from_igraph(data, "weight", directed, duplicates)
    if type(data).__name__ == "Series":
        raise GraphError("a network must be a table of edges or the like, got a Series, which has only one column")
    if library == "pandas":
        return from_pandas(data, None, None, None, directed, duplicates)
    if library == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if hasattr(data, "__arrow_c_stream__"):  # tables of Arrow, polars, DuckDB and others
        arrow = import_extra("pyarrow", "io", f"a table of {library}")
        table = arrow.table(data)
        columns = columns_of(table.column_names, lambda position: table.column(position).to_numpy())
        return from_columns(columns, None, None, None, directed, duplicates, unweighted=False)
    if hasattr(data, "edge_index"):
        weights = getattr(data, "edge_weight", None)
        weights = None if weights is None else _as_array(weights)
        return from_edge_index(data.edge_index, weights, getattr(data, "num_nodes", None), directed, duplicates)
    if library == "torch" and str(data.layout) != "torch.strided":
        tensor = data.detach().to_sparse_coo().coalesce().cpu()
        matrix = sp.coo_array((np.asarray(tensor.values()), np.asarray(tensor.indices())), shape=tuple(tensor.shape))
        return _from_matrix(matrix, directed)
    if library == "torch" or isinstance(data, np.ndarray):
        return _from_array(_as_array(data), directed, duplicates)
    if isinstance(data, Mapping):
        if _holds_columns(data):
            columns = {str(name): np.asarray(values) for name, values in data.items()}
            return from_columns(columns, None, None, None, directed, duplicates, unweighted=False)
        return _from_mapping(data, directed, duplicates)
    if isinstance(data, set | frozenset):
        data = sorted(data, key=repr)
    if isinstance(data, list | tuple) and data and all(isinstance(edge, list | tuple | np.ndarray) for edge in data):
        return _from_tuples(data, directed, duplicates)
    raise GraphError(
        "a network must be a Graph, a SciPy sparse matrix, a NetworkX or igraph graph, a table, a list of pairs, "
        f"an edge_index array of shape (2, arcs) or the path of a file, got {type(data).__name__}"
    )


def _from_array(array: npt.NDArray[Any], directed: bool, duplicates: str) -> Graph:
    """Build a network from an edge_index (2, arcs), pairs or weighted pairs (edges, 2 or 3), or a matrix."""
    is_square = array.ndim == 2 and array.shape[0] == array.shape[1]
    is_number = np.issubdtype(array.dtype, np.number)
    if array.ndim != 2 or not (is_number or array.dtype == bool):
        if array.ndim == 2 and not is_number:
            return _from_tuples(array.tolist(), directed, duplicates)
        return from_edge_index(array, None, None, directed, duplicates)
    if array.dtype == bool or (is_square and len(array) > 2):
        return _from_matrix(sp.csr_array(array), directed)
    if is_square:
        _note_array(array, "an edge_index, arcs from its first row to its second", "pairs can be given as a list")
        return from_edge_index(array, None, None, directed, duplicates)
    if array.shape[0] == 2:
        return from_edge_index(array, None, None, directed, duplicates)
    if array.shape[1] not in (2, 3):
        return _from_matrix(sp.csr_array(array), directed)
    ends = array[:, :2]
    if np.issubdtype(array.dtype, np.complexfloating) or not np.array_equal(ends, np.trunc(ends)):
        return _from_matrix(sp.csr_array(array), directed)
    if not np.issubdtype(array.dtype, np.integer) or array.shape[1] == 3:
        what = "pairs" if array.shape[1] == 2 else "pairs with a weight"
        _note_array(array, what, "a biadjacency matrix is for Graph.from_biadjacency")
    weights = array[:, 2].astype(np.float64) if array.shape[1] == 3 else None
    sources, targets = ends[:, 0].astype(np.int64), ends[:, 1].astype(np.int64)
    return Graph.from_edges(sources, targets, weights, directed=directed, duplicates=duplicates)


def _from_tuples(edges: Sequence[Any], directed: bool, duplicates: str) -> Graph:
    sizes = {len(edge) for edge in edges}
    if sizes not in ({2}, {3}):
        raise GraphError("a list of edges must hold pairs, or triples with a weight, and not both")
    weights = [edge[2] for edge in edges] if sizes == {3} else None
    if weights is not None and all(isinstance(weight, Mapping) for weight in weights):  # edge attributes of NetworkX
        weights = [weight.get("weight", 1.0) for weight in weights]
    return Graph.from_edges(
        [edge[0] for edge in edges], [edge[1] for edge in edges], weights, directed=directed, duplicates=duplicates
    )


def _from_mapping(adjacency: Mapping[Any, Any], directed: bool, duplicates: str) -> Graph:
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
    return Graph.from_edges(sources, targets, weights, nodes=nodes, directed=directed, duplicates=duplicates)


def _from_matrix(matrix: Any, directed: bool) -> Graph:
    """Build a network from an adjacency matrix if it is square, and otherwise from a biadjacency matrix."""
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1]:
        if directed:
            raise GraphError("directed must be False for a biadjacency matrix, whose network has no direction")
        return from_biadjacency(matrix, None, None)
    return from_scipy(matrix, None, directed)


def from_scipy(matrix: Any, nodes: Sequence[Hashable] | None, directed: bool) -> Graph:
    """Return the network that `Graph.from_scipy` builds."""
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
        raise GraphError("node ids must be unique, but one occurs twice")
    if len(ids) != matrix.shape[0]:
        raise GraphError(f"there must be one node for each row, got {len(ids):,} nodes and {matrix.shape[0]:,} rows")
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
    return replace(Graph.from_arcs(rows, columns, weights, ids, directed=directed), **unit)


def from_biadjacency(matrix: Any, rows: Sequence[Hashable] | None, columns: Sequence[Hashable] | None) -> Graph:
    """Return the network that `Graph.from_biadjacency` builds."""
    if matrix.ndim != 2:
        raise GraphError(f"a biadjacency matrix must have two dimensions, got shape {tuple(matrix.shape)}")
    if np.issubdtype(matrix.dtype, np.complexfloating):
        raise GraphError(f"a biadjacency matrix must be real, got {matrix.dtype}")
    check_places(matrix)
    entries = sp.coo_array(sp.csr_array(matrix))
    ids: list[Hashable] = []
    for given_ids, name, count in ((rows, "row", matrix.shape[0]), (columns, "column", matrix.shape[1])):
        part_ids = [(name, position) for position in range(count)] if given_ids is None else list(given_ids)
        if len(part_ids) != count:
            raise GraphError(f"as many {name} ids as {name}s are needed, got {len(part_ids):,} for {count:,}")
        ids += part_ids
    names = as_ids(ids)
    if len(set(names.tolist())) < len(ids):
        raise GraphError("ids of rows and columns must be unique, but one occurs twice")
    nonzero = np.flatnonzero(entries.data)
    sources, targets = (coordinates[nonzero].astype(np.int64) for coordinates in entries.coords)
    weights = entries.data[nonzero]
    weights, unit = _find_unit(weights)
    graph = Graph.from_arcs(sources, targets + matrix.shape[0], weights, names)
    return replace(graph, rows=matrix.shape[0], **unit)


def from_edge_index(
    edge_index: Any, weights: npt.ArrayLike | None, number_of_nodes: int | None, directed: bool, duplicates: str
) -> Graph:
    """Return the network that `Graph.from_edge_index` builds."""
    array = _as_array(edge_index)
    if array.ndim != 2 or array.shape[0] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise GraphError(
            f"an edge_index must be integers of shape (2, arcs), got {array.dtype} of shape {array.shape}; "
            "pass an adjacency matrix as a SciPy sparse matrix"
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
        return Graph.from_arcs(array[0], array[1], weights, np.arange(size), directed=directed, duplicates=duplicates)
    return from_scipy(matrix, None, directed)


def from_networkx(graph: Any, weight: str, directed: bool, duplicates: str) -> Graph:
    """Return the network that `Graph.from_networkx` builds."""
    nodes = as_ids(graph.nodes)
    positions = {node: position for position, node in enumerate(graph.nodes)}
    edges = [(positions[u], positions[v], w) for u, v, w in graph.edges(data=weight)]
    return _from_library(edges, nodes, graph.is_directed(), directed, duplicates)


def from_igraph(graph: Any, weight: str, directed: bool, duplicates: str) -> Graph:
    """Return the network that `Graph.from_igraph` builds."""
    names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
    weights = graph.es[weight] if weight in graph.es.attributes() else [None] * graph.ecount()
    edges = [(u, v, w) for (u, v), w in zip(graph.get_edgelist(), weights, strict=True)]
    return _from_library(edges, as_ids(names), graph.is_directed(), directed, duplicates)


def _from_library(
    edges: list[tuple[int, int, Any]], nodes: npt.NDArray[Any], is_directed: bool, directed: bool, duplicates: str
) -> Graph:
    if is_directed and not directed:
        say_directed()
    ends = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2)
    edge_weights = [edge[2] for edge in edges]
    weights = None if all(w is None for w in edge_weights) else [1.0 if w is None else w for w in edge_weights]
    if directed and not is_directed:
        ends, weights = np.concatenate((ends, ends[:, ::-1])), None if weights is None else weights + weights
    return Graph.from_arcs(ends[:, 0], ends[:, 1], weights, nodes, directed=directed, duplicates=duplicates)


def from_pandas(
    frame: Any, source: str | None, target: str | None, weight: str | None, directed: bool, duplicates: str
) -> Graph:
    """Return the network that `Graph.from_pandas` builds."""
    if source is None and target is None and len(frame) > 1 and frame.index.tolist() == frame.columns.tolist():
        return from_scipy(sp.csr_array(frame.to_numpy()), frame.index.tolist(), directed)
    columns = columns_of([str(name) for name in frame.columns], lambda position: frame.iloc[:, position].to_numpy())
    return from_columns(columns, source, target, weight, directed, duplicates, unweighted=False)


def from_columns(
    columns: Mapping[str, npt.NDArray[Any]], source: str | None, target: str | None, weight: str | None,
    directed: bool, duplicates: str, unweighted: bool,
) -> Graph:  # fmt: skip
    """Return the network that `Graph.from_columns` builds."""
    names = list(columns)
    if len(names) < 2:
        raise GraphError(f"a table of edges must have at least two columns, got {len(names)}")
    for name in (source, target, weight):
        if name is not None and name not in columns:
            raise GraphError(f"a table of edges has no column {name!r}, only {', '.join(names)}")
    kinds = [columns[name].dtype for name in names]
    choice = choose_by_names(
        names, lambda: _counts_up(columns[names[0]]), lambda position: np.issubdtype(kinds[position], np.number)
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
    return Graph.from_edges(sources, targets, weights, directed=directed, duplicates=duplicates)


def columns_of(names: Sequence[str], read: Callable[[int], npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a table by name; names must be unique."""
    repeated = [name for position, name in enumerate(names) if name in names[:position]]
    if repeated:
        raise GraphError(f"the columns of a table must have different names, but two are called {repeated[0]!r}")
    return {name: read(position) for position, name in enumerate(names)}


def _holds_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a dict holds the columns of an edge table, rather than adjacency lists."""
    names = [str(name).strip().lower() for name in data]
    lengths = {len(values) if hasattr(values, "__len__") and not isinstance(values, str | Mapping) else -1
               for values in data.values()}  # fmt: skip
    return find_pair(names) is not None and len(lengths) == 1 and min(lengths) >= 0


def _merge_entries(matrix: Any, duplicates: str) -> Any:
    if matrix.format != "coo" or duplicates == "sum":
        return matrix
    positions = matrix.coords[0].astype(np.int64) * matrix.shape[1] + matrix.coords[1]
    _, first = np.unique(positions, return_index=True)
    if len(first) == len(positions):
        return matrix
    if duplicates == "error":
        raise GraphError("edges must be unique, but this matrix has several entries at one position")
    rows, columns = (coordinates[first] for coordinates in matrix.coords)
    return sp.coo_array((matrix.data[first], (rows, columns)), shape=matrix.shape)


def _note_array(array: npt.NDArray[Any], what: str, otherwise: str) -> None:
    warnings.warn(f"an array of shape {array.shape} was read as {what}; {otherwise}", ManelaWarning, stacklevel=5)


def _as_array(data: Any) -> npt.NDArray[Any]:
    """Convert to a NumPy array; also a tensor that requires gradients or is on another device."""
    return np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)


def _counts_up(values: npt.NDArray[Any]) -> bool:
    """Whether the values are consecutive integers, like row numbers."""
    is_whole = np.issubdtype(values.dtype, np.integer)
    return bool(is_whole and len(values) and np.all(np.diff(values) == 1))


def _has_gaps(values: npt.NDArray[Any]) -> bool:
    if np.issubdtype(values.dtype, np.integer):
        return False
    return any(value is None or type(value).__name__ in ("NAType", "NaTType") or value != value for value in values)


def _find_unit(weights: npt.NDArray[Any]) -> tuple[npt.NDArray[Any] | None, dict[str, Any]]:
    """Return (None, the common weight as `unit`) if all weights are equal, and otherwise (the weights, {})."""
    if len(weights) == 0 or not bool(np.all(weights == weights[0])):
        return weights, {}
    check_weights(weights[:1], 1)
    return None, {"unit": float(weights[0])}


def is_symmetric(matrix: Any) -> bool:
    """Whether a sparse matrix equals its transpose, after adding duplicate entries."""
    rows = sp.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    columns = rows.tocsc()
    return all(np.array_equal(getattr(rows, name), getattr(columns, name)) for name in ("indptr", "indices", "data"))


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
        ManelaWarning(
            "a directed network was read as undirected; pass ", Option("directed", True), " to follow its arcs as given"
        ),
        stacklevel=4,
    )
