"""read_graph: the network in a file, by the ending of its name."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manela.errors import FormatError, GraphError, ManelaError, import_extra
from manela.formats.text import drop_packing, read_adjacency_list, read_bytes, read_edge_list, read_metis
from manela.graph import Graph, find_columns, say_directed

_EDGE_LISTS = (".txt", ".csv", ".tsv", ".edgelist", ".edges")
_ADJACENCY_LISTS = (".adjlist", ".adj")
ENDINGS = (
    *_EDGE_LISTS, *_ADJACENCY_LISTS, ".mat", ".npz", ".npy", ".mtx", ".graphml", ".gml", ".gexf", ".net", ".json",
    ".metis", ".graph", ".parquet", ".feather", ".arrow",
)  # fmt: skip
"""The endings of files that can be read; those of text files may be packed, as .gz, .bz2, .xz, .zst or .zip."""


def read_graph(
    path: str | Path,
    *,
    directed: bool = False,
    unweighted: bool = False,
    matfile_variable: str = "network",
    duplicates: str = "sum",
    columns: Sequence[str] | None = None,
) -> Graph:
    """Read a network from a file.

    Parameters
    ----------
    path : path
        An edge list (.txt .csv .tsv .edgelist .edges), adjacency list (.adjlist .adj), .mat, SciPy .npz, an array of
        edges (.npy), Matrix Market (.mtx), .graphml, .gml, .gexf, Pajek (.net), node-link .json, METIS (.metis
        .graph), .parquet or .feather; text also packed as .gz, .bz2, .xz, .zst or .zip.
    directed : bool, default=False
        Follow arcs as given; otherwise the network is read as undirected.
    unweighted : bool, default=False
        Leave out weights, and further columns of an edge list.
    matfile_variable : str, default="network"
        The variable of a .mat file that holds the adjacency matrix.
    duplicates : {"sum", "first", "error"}, default="sum"
        What edges do that are given several times: add up to a weight, count once, or end the reading.
    columns : sequence of str, or None
        The columns of an edge list: source, target, and weight or not, by name or by number from 1. By default they
        are found by the heading, or are the first ones.

    Returns
    -------
    Graph
    """
    path = Path(path)
    if path.is_dir():
        raise FormatError(f"{path}: must be a file, but it is a folder")
    if not path.exists():
        raise FormatError(f"{path}: no such file, nor a data set of that name (manela datasets list)")
    kind = Path(drop_packing(path.name)).suffix.lower()
    if kind not in ENDINGS:
        shown = "".join(path.suffixes[-2:]) or path.name
        raise FormatError(f"{path}: the format must be one of {' '.join(ENDINGS)}, got {shown!r}")
    readers: dict[str, Callable[[], Graph]] = {
        ".mat": lambda: _read_mat(path, matfile_variable, directed),
        ".npz": lambda: _read_npz(path, directed),
        ".graphml": lambda: _read_networkx(path, "read_graphml", directed, duplicates),
        ".gml": lambda: _read_networkx(path, "read_gml", directed, duplicates),
        ".gexf": lambda: _read_networkx(path, "read_gexf", directed, duplicates),
        ".net": lambda: _read_networkx(path, "read_pajek", directed, duplicates),
        ".json": lambda: _read_node_link(path, directed, duplicates),
        ".npy": lambda: _read_npy(path, directed, duplicates),
        ".mtx": lambda: _read_matrix_market(path, directed),
        **{name: lambda: read_metis(path, directed=directed) for name in (".metis", ".graph")},
        **{
            name: lambda: _read_feather(path, directed, unweighted, duplicates, columns)
            for name in (".feather", ".arrow")
        },
        ".parquet": lambda: _read_parquet(path, directed, unweighted, duplicates, columns),
        **{name: lambda: read_adjacency_list(path, directed=directed) for name in _ADJACENCY_LISTS},
        **{
            name: lambda: read_edge_list(
                path, directed=directed, unweighted=unweighted, duplicates=duplicates, columns=columns
            )
            for name in _EDGE_LISTS
        },
    }
    try:
        graph = readers[kind]()
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error
    except (ManelaError, Warning):
        raise
    except MemoryError as error:
        raise FormatError(f"{path}: does not fit into memory") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise FormatError(f"{path}: is not a readable {kind} file: {first or type(error).__name__}") from error
    return graph.without_weights() if unweighted else graph


def _read_mat(path: Path, variable: str, directed: bool) -> Graph:
    import scipy.io
    import scipy.sparse as sp

    content = scipy.io.loadmat(path, variable_names=[variable])
    if variable not in content:
        names = ", ".join(name for name, _, _ in scipy.io.whosmat(path)) or "none"
        raise FormatError(f"{path}: must have a variable {variable!r} (--matfile-variable), it has {names}")
    matrix = content[variable]
    if not sp.issparse(matrix):
        if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.number):
            raise FormatError(f"{path}: the variable {variable!r} must be a matrix of numbers")
        matrix = sp.coo_array(matrix)
    return Graph.from_scipy(matrix, directed=directed)


def _read_npz(path: Path, directed: bool) -> Graph:
    import scipy.sparse as sp

    if not zipfile.is_zipfile(path):
        raise FormatError(f"{path}: must be a sparse matrix as written by scipy.sparse.save_npz")
    return Graph.from_scipy(sp.load_npz(path), directed=directed)


def _read_npy(path: Path, directed: bool, duplicates: str) -> Graph:
    array = np.load(path, allow_pickle=False)
    if array.ndim != 2 or 2 not in array.shape or not np.issubdtype(array.dtype, np.integer):
        raise FormatError(f"{path}: must be whole numbers of shape (edges, 2) or (2, edges), got {array.shape}")
    sources, targets = array.T if array.shape[1] == 2 else array
    return Graph.from_edges(sources, targets, directed=directed, duplicates=duplicates)


def _read_matrix_market(path: Path, directed: bool) -> Graph:
    import scipy.io
    import scipy.sparse as sp

    with contextlib.closing(io.BytesIO(read_bytes(path).tobytes())) as stream:
        matrix = sp.coo_array(scipy.io.mmread(stream))
    if max(matrix.shape) > 1000 + 100 * matrix.nnz:  # a few bytes must not ask for all memory
        raise FormatError(f"{path}: {matrix.nnz:,} entries cannot be a network of {max(matrix.shape):,} nodes")
    return Graph.from_scipy(matrix, directed=directed)


def _read_node_link(path: Path, directed: bool, duplicates: str) -> Graph:
    """A network as `networkx.node_link_data` or D3 write it: nodes with ids, and links or edges with their ends."""
    content = json.loads(read_bytes(path).tobytes())
    links = content.get("links", content.get("edges")) if isinstance(content, dict) else None
    ends = {"source", "target"}
    if not isinstance(links, list) or not all(isinstance(link, dict) and ends <= set(link) for link in links):
        raise FormatError(f"{path}: must be node-link JSON, with a list of links or edges, each with source and target")
    nodes = [_as_id(node["id"]) for node in content.get("nodes", []) if isinstance(node, dict) and "id" in node]
    sources, targets = ([_as_id(link[end]) for link in links] for end in ("source", "target"))
    weights = [link.get("weight", 1.0) for link in links] if any("weight" in link for link in links) else None
    is_directed = bool(content.get("directed", False))
    if is_directed and not directed:
        say_directed()
    if directed and not is_directed:  # each edge is two arcs then
        sources, targets, weights = sources + targets, targets + sources, weights and weights + weights
    return Graph.from_edges(sources, targets, weights, nodes=nodes or None, directed=directed, duplicates=duplicates)


def _as_id(value: Any) -> Any:
    """An id from JSON, which has lists for tuples."""
    return tuple(_as_id(part) for part in value) if isinstance(value, list) else value


def _read_feather(path: Path, directed: bool, unweighted: bool, duplicates: str, chosen: Sequence[str] | None) -> Graph:
    feather: Any = import_extra("pyarrow.feather", "io", f"reading {path.suffix}")
    return _read_table(feather.read_table(path), directed, unweighted, duplicates, chosen)


def _read_networkx(path: Path, reader: str, directed: bool, duplicates: str) -> Graph:
    networkx = import_extra("networkx", "io", f"reading {path.suffix}")
    with contextlib.closing(io.BytesIO(read_bytes(path).tobytes())) as stream:
        try:
            graph = getattr(networkx, reader)(stream)
        except networkx.NetworkXError:
            if reader != "read_gml":
                raise
            stream.seek(0)
            graph = networkx.read_gml(stream, label="id")
        return Graph.from_networkx(graph, directed=directed, duplicates=duplicates)


def _read_parquet(path: Path, directed: bool, unweighted: bool, duplicates: str, chosen: Sequence[str] | None) -> Graph:
    parquet: Any = import_extra("pyarrow.parquet", "io", "reading .parquet")
    return _read_table(parquet.read_table(path), directed, unweighted, duplicates, chosen)


def _read_table(table: Any, directed: bool, unweighted: bool, duplicates: str, chosen: Sequence[str] | None) -> Graph:
    """The network of a table of Arrow."""
    columns = {name: table[name].to_numpy() for name in table.column_names}
    if chosen is not None:
        source, target, weight = (*chosen, None)[:3]
        return Graph.from_columns(
            columns, source=source, target=target, weight=weight, directed=directed, duplicates=duplicates
        )
    if unweighted and find_columns(table.column_names) is None:
        columns = dict(list(columns.items())[:2])
    return Graph.from_columns(columns, directed=directed, duplicates=duplicates)
