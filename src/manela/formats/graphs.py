"""read_graph: the network in a file, by the ending of its name."""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manela.errors import FormatError, GraphError, ManelaError, import_extra
from manela.formats.text import read_adjacency_list, read_bytes, read_edge_list
from manela.graph import Graph, find_columns

_EDGE_LISTS = (".txt", ".csv", ".tsv", ".edgelist", ".edges")
_ADJACENCY_LISTS = (".adjlist", ".adj")
ENDINGS = (*_EDGE_LISTS, *_ADJACENCY_LISTS, ".mat", ".npz", ".graphml", ".gml", ".parquet")
"""The endings of files that can be read; those of text files may have .gz behind them."""


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
        An edge list (.txt .csv .tsv .edgelist .edges), adjacency list (.adjlist .adj), .mat, SciPy .npz, .graphml, .gml
        or .parquet; text also as .gz.
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
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    ending = (suffixes[:-1] if zipped else suffixes)[-1:]
    kind = ending[0] if ending else ""
    if kind not in ENDINGS:
        raise FormatError(f"{path}: the format must be one of {' '.join(ENDINGS)}, got {kind + '.gz' * zipped!r}")
    readers: dict[str, Callable[[], Graph]] = {
        ".mat": lambda: _read_mat(path, matfile_variable, directed),
        ".npz": lambda: _read_npz(path, directed),
        ".graphml": lambda: _read_networkx(path, "read_graphml", directed, duplicates),
        ".gml": lambda: _read_networkx(path, "read_gml", directed, duplicates),
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
    table = parquet.read_table(path)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    if chosen is not None:
        source, target, weight = (*chosen, None)[:3]
        return Graph.from_columns(
            columns, source=source, target=target, weight=weight, directed=directed, duplicates=duplicates
        )
    if unweighted and find_columns(table.column_names) is None:
        columns = dict(list(columns.items())[:2])
    return Graph.from_columns(columns, directed=directed, duplicates=duplicates)
