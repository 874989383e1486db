"""read_graph: reads a network from a file, a stream or a URL in any supported format."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manela.data.conversion import columns_of, say_directed
from manela.data.graph import Graph
from manela.errors import FormatError, GraphError, ManelaError, Option, ParameterError, import_extra
from manela.formats.input_file import ADJACENCY_LISTS, EDGE_LISTS, SIZE_LIMIT, InputFile, open_input
from manela.formats.text import read_adjacency_list, read_edge_list, read_metis
from manela.system.progress import DownloadReporter

_TABLES = (".parquet", ".feather", ".arrow")


@dataclass(frozen=True)
class _Reading:
    """The arguments of `read_graph` that readers need."""

    directed: bool
    unweighted: bool
    matfile_variable: str
    duplicates: str
    columns: Sequence[str] | None


def read_graph(
    path: str | Path,
    *,
    directed: bool = False,
    unweighted: bool = False,
    matfile_variable: str = "network",
    duplicates: str = "sum",
    columns: Sequence[str] | None = None,
    size_limit: float = SIZE_LIMIT,
    progress: DownloadReporter | None = None,
) -> Graph:
    """Read a network from a file.

    Parameters
    ----------
    path : path or str
        An edge list (.txt .csv .tsv .edgelist .edges), adjacency list (.adjlist .adj), .mat, SciPy .npz, an array of
        edges (.npy), Matrix Market (.mtx), .graphml, .gml, .gexf, Pajek (.net), node-link .json, METIS (.metis
        .graph), .parquet or .feather; also compressed as .gz, .bz2, .xz, .zst or .zip. The format of a file with
        another suffix is recognised by its first bytes. `-` is standard input; a URL such as `https://…` or `s3://…`
        is downloaded.
    directed : bool, default=False
        Follow arcs as given; otherwise the network is read as undirected.
    unweighted : bool, default=False
        Ignore weights, and further columns of an edge list.
    matfile_variable : str, default="network"
        The variable of a .mat file that holds the adjacency matrix.
    duplicates : {"sum", "first", "error"}, default="sum"
        Rule for edges that are given more than once: add their weights, keep the first, or raise an error.
    columns : sequence of str, or None
        The columns of an edge list: source, target, and optionally weight, by name or by number from 1. By default
        they are found by the header, or are the first ones.
    size_limit : float, default=16
        Limit in GB of what is downloaded, piped in or decompressed.
    progress : callable, optional
        Called during a download with the bytes received so far and the total, which is 0 if unknown.

    Returns
    -------
    Graph
    """
    reading = _Reading(directed, unweighted, matfile_variable, duplicates, columns)
    with open_input(path, size_limit=size_limit, progress=progress) as source:
        if columns is not None and source.kind not in (*EDGE_LISTS, *_TABLES):
            raise ParameterError(
                Option("columns"), f" is for edge lists and tables, got {source}, a {source.kind} file"
            )
        try:
            graph = _READERS[source.kind](source, reading)
        except GraphError as error:
            raise GraphError(f"{source}: ", *error.args) from error
        except (ManelaError, Warning):
            raise
        except MemoryError as error:
            raise FormatError(f"{source}: does not fit into memory") from error
        except OSError as error:
            message = error.strerror or " ".join(str(error).split())
            raise FormatError(f"{source}: cannot be read: {message}") from error
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            message = f"is not a readable {source.kind} file: {first or type(error).__name__}"
            raise FormatError(f"{source}: {message}") from error
    return graph.without_weights() if unweighted else graph


def _read_edge_list(source: InputFile, reading: _Reading) -> Graph:
    return read_edge_list(
        source, directed=reading.directed, unweighted=reading.unweighted, duplicates=reading.duplicates,
        columns=reading.columns,
    )  # fmt: skip


def _read_mat(source: InputFile, reading: _Reading) -> Graph:
    import scipy.io
    import scipy.sparse as sp

    variable = reading.matfile_variable
    content = scipy.io.loadmat(source.path, variable_names=[variable])
    if variable not in content:
        names = ", ".join(name for name, _, _ in scipy.io.whosmat(source.path)) or "none"
        raise FormatError(
            f"{source}: must have a variable {variable!r}, but has {names}; pass ", Option("matfile_variable"),
            " to choose another",
        )  # fmt: skip
    matrix = content[variable]
    if not sp.issparse(matrix):
        if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.number):
            raise FormatError(f"{source}: the variable {variable!r} must be a matrix of numbers")
        matrix = sp.coo_array(matrix)
    return Graph.of(matrix, directed=reading.directed)


def _read_npz(source: InputFile, reading: _Reading) -> Graph:
    """Read a sparse matrix of SciPy, or arrays named as in the Open Graph Benchmark and similar collections."""
    import scipy.sparse as sp

    if not zipfile.is_zipfile(source.path):
        raise FormatError(f"{source}: must be a sparse matrix as written by scipy.sparse.save_npz, or an edge_index")
    with np.load(source.path, allow_pickle=False) as arrays:
        names = set(arrays.files)
        if "edge_index" in names:
            sizes = next((arrays[name] for name in ("num_nodes_list", "num_nodes") if name in names), None)
            if sizes is not None and np.size(sizes) > 1:
                raise FormatError(f"{source}: must hold one network, but holds {np.size(sizes):,}")
            return Graph.from_edge_index(
                arrays["edge_index"], arrays["edge_weight"] if "edge_weight" in names else None,
                number_of_nodes=None if sizes is None else int(np.sum(sizes)), directed=reading.directed,
                duplicates=reading.duplicates,
            )  # fmt: skip
        parts = [f"adj_{name}" for name in ("data", "indices", "indptr", "shape")]
        if names >= set(parts):
            data, indices, indptr, shape = (arrays[name] for name in parts)
            return Graph.of(sp.csr_array((data, indices, indptr), shape=shape), directed=reading.directed)
        if not names & {"format", "indices", "row"}:
            raise FormatError(
                f"{source}: must hold a sparse matrix as written by scipy.sparse.save_npz, or an edge_index, got "
                f"{', '.join(sorted(names)) or 'nothing'}"
            )
    return Graph.of(sp.load_npz(source.path), directed=reading.directed)


def _read_npy(source: InputFile, reading: _Reading) -> Graph:
    array = np.load(source.path, allow_pickle=False)
    return Graph.of(array, directed=reading.directed, duplicates=reading.duplicates)


def _read_matrix_market(source: InputFile, reading: _Reading) -> Graph:
    """Read a Matrix Market file, whose size must fit its number of entries."""
    import scipy.io
    import scipy.sparse as sp

    with contextlib.closing(io.BytesIO(source.read().tobytes())) as stream:
        matrix = sp.coo_array(scipy.io.mmread(stream))
    if max(matrix.shape) > 1000 + 100 * matrix.nnz:  # a small file must not allocate all memory
        raise FormatError(f"{source}: {matrix.nnz:,} entries cannot be a network of {max(matrix.shape):,} nodes")
    return Graph.of(matrix, directed=reading.directed)


def _read_node_link(source: InputFile, reading: _Reading) -> Graph:
    """Read JSON of `networkx.node_link_data` or D3: nodes with ids, and links or edges with their ends."""
    content = json.loads(source.read().tobytes())
    links = content.get("links", content.get("edges")) if isinstance(content, dict) else None
    ends = {"source", "target"}
    if not isinstance(links, list) or not all(isinstance(link, dict) and ends <= set(link) for link in links):
        raise FormatError(
            f"{source}: must be node-link JSON, with a list of links or edges, each with source and target"
        )
    nodes = [_as_id(node["id"]) for node in content.get("nodes", []) if isinstance(node, dict) and "id" in node]
    sources, targets = ([_as_id(link[end]) for link in links] for end in ("source", "target"))
    name = next((name for name in ("weight", "value") if any(name in link for link in links)), None)
    weights = None if name is None else [link.get(name, 1.0) for link in links]
    is_directed = bool(content.get("directed", False))
    if is_directed and not reading.directed:
        say_directed()
    if reading.directed and not is_directed:  # each edge becomes two arcs
        sources, targets, weights = sources + targets, targets + sources, weights and weights + weights
    return Graph.from_edges(
        sources, targets, weights, nodes=nodes or None, directed=reading.directed, duplicates=reading.duplicates
    )


def _as_id(value: Any) -> Any:
    return tuple(_as_id(part) for part in value) if isinstance(value, list) else value


def _by_networkx(reader: str) -> Callable[[InputFile, _Reading], Graph]:
    def read(source: InputFile, reading: _Reading) -> Graph:
        networkx = import_extra("networkx", "io", f"reading {source.kind}")
        with contextlib.closing(io.BytesIO(source.read().tobytes())) as stream:
            try:
                graph = getattr(networkx, reader)(stream)
            except networkx.NetworkXError:
                if reader != "read_gml":
                    raise
                stream.seek(0)
                graph = networkx.read_gml(stream, label="id")
            return Graph.from_networkx(graph, directed=reading.directed, duplicates=reading.duplicates)

    return read


def _by_arrow(module: str) -> Callable[[InputFile, _Reading], Graph]:
    def read(source: InputFile, reading: _Reading) -> Graph:
        library: Any = import_extra(f"pyarrow.{module}", "io", f"reading {source.kind}")
        table = library.read_table(source.path)
        if {"node", "vector"} <= set(table.column_names) and table.schema.field("vector").type.num_fields:  # lists
            raise FormatError(f"{source}: must hold a network, with a column for each end, but it holds vectors")
        return _read_table(table, reading)

    return read


def _read_table(table: Any, reading: _Reading) -> Graph:
    columns = columns_of(table.column_names, lambda position: table.column(position).to_numpy())
    names = list(columns)
    chosen: list[str | None] = [None, None, None]
    if reading.columns is not None:
        if not 2 <= len(reading.columns) <= 3:
            raise GraphError(
                Option("columns"), f" must be two, or three with a weight, got {', '.join(reading.columns)}"
            )
        chosen = [_find_name(name, names) for name in reading.columns] + [None] * (3 - len(reading.columns))
    return Graph.from_columns(
        columns, source=chosen[0], target=chosen[1], weight=chosen[2], directed=reading.directed,
        duplicates=reading.duplicates, unweighted=reading.unweighted,
    )  # fmt: skip


def _find_name(column: str, names: list[str]) -> str:
    if column not in names and column.isdecimal() and 1 <= int(column) <= len(names):
        return names[int(column) - 1]
    return column


_READERS: dict[str, Callable[[InputFile, _Reading], Graph]] = {
    **dict.fromkeys(EDGE_LISTS, _read_edge_list),
    **dict.fromkeys(ADJACENCY_LISTS, lambda source, reading: read_adjacency_list(source, directed=reading.directed)),
    **dict.fromkeys((".metis", ".graph"), lambda source, reading: read_metis(source, directed=reading.directed)),
    ".mat": _read_mat,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".mtx": _read_matrix_market,
    ".json": _read_node_link,
    ".graphml": _by_networkx("read_graphml"),
    ".gml": _by_networkx("read_gml"),
    ".gexf": _by_networkx("read_gexf"),
    ".net": _by_networkx("read_pajek"),
    _TABLES[0]: _by_arrow("parquet"),
    **dict.fromkeys(_TABLES[1:], _by_arrow("feather")),
}
