"""Readers of labels: which nodes have which, from a .mat file or from lines."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manela.errors import FormatError

_HEADS = {"node", "id", "node_id", "name"}
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BLANKS = re.compile(r"[\s,;]+")


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of nodes.

    Attributes
    ----------
    nodes : tuple of str
        Ids as text, a row each.
    names : tuple of str
        The labels, a column each.
    matrix : sparse array of bool, shape (nodes, names)
    source : str
        Where they come from, for messages.
    """

    nodes: tuple[str, ...]
    names: tuple[str, ...]
    matrix: sp.csr_array
    source: str

    def of(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """The labels of the nodes with these ids, in their order; all False for one that has none.

        Ids are compared as text. Nodes with a label but not among the ids are an error: they would be left out unseen.
        """
        rows = {node: row for row, node in enumerate(self.nodes)}
        found = np.array([rows.get(str(node), -1) for node in ids.tolist()], dtype=np.int64)
        labelled = np.flatnonzero(np.diff(self.matrix.indptr))
        missing = np.setdiff1d(labelled, found)
        if len(missing):
            raise FormatError(
                f"{self.source}: labels {len(missing):,} nodes that have no vector, the first is "
                f"{self.nodes[missing[0]]!r}; both must be of the same network"
            )
        labels = np.zeros((len(ids), len(self.names)), dtype=bool)
        labels[found >= 0] = self.matrix[found[found >= 0]].toarray()
        return labels


def read_labels(path: str | Path, variable: str = "group") -> Labels:
    """Read labels from a .mat file (the variable `group`, nodes × labels), or from lines of a node and its labels.

    In lines a node may have several labels, in one line or in several; columns are parted by commas in .csv, tabs in
    .tsv, and blanks or commas elsewhere. In .csv an empty cell is no label. A line that begins with `#` is a comment; a
    first line that begins with `node` or `id` is a head.
    """
    path = Path(path)
    if not path.exists():
        raise FormatError(f"{path}: no such file")
    if path.is_dir():
        raise FormatError(f"{path}: is a folder, a file of labels is wanted")
    return _read_mat(path, variable) if path.suffix == ".mat" else _read_lines(path)


def sort_by_id(ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The order of ids that does not depend on how a file lists them: numbers by size, others as text."""
    if ids.dtype.kind in "iu":
        return np.argsort(ids, kind="stable")
    return np.argsort(np.array([str(node) for node in ids.tolist()]), kind="stable")


def _read_mat(path: Path, variable: str) -> Labels:
    from scipy.io import loadmat

    try:
        held = loadmat(path)
    except Exception as error:
        raise FormatError(f"{path}: is damaged or not a .mat file: {error or type(error).__name__}") from error
    if variable not in held:
        names = ", ".join(name for name in held if not name.startswith("__")) or "nothing"
        raise FormatError(f"{path}: must hold the variable {variable!r}, got {names}")
    kind = getattr(held[variable], "dtype", np.dtype(object)).kind
    if kind not in "biuf" or held[variable].ndim != 2:
        raise FormatError(f"{path}: {variable!r} must be a matrix of 0 and 1, nodes x labels")
    matrix = sp.csr_array(held[variable])
    matrix.eliminate_zeros()
    nodes, columns = (tuple(str(i) for i in range(size)) for size in matrix.shape)
    return Labels(nodes, columns, sp.csr_array(matrix != 0), str(path))


def _read_lines(path: Path) -> Labels:
    nodes: dict[str, int] = {}
    names: dict[str, int] = {}
    rows, columns = [], []
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    for number, line in _lines(path):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if ending in _DELIMITERS:
            try:
                cells = next(csv.reader([text], delimiter=_DELIMITERS[ending], skipinitialspace=True))
            except csv.Error as error:
                raise FormatError(f"{path}:{number}: is not a line of a table: {error}") from error
        else:
            cells = _BLANKS.split(text)
        node, *given = [cell.strip() for cell in cells]
        if not nodes and node.lower() in _HEADS:
            continue
        if ending == ".csv" and node and given and not any(given):
            continue  # a cell that is left empty, as `manela groups` does: no label
        given = [label for label in given if label]
        if not node or not given:
            raise FormatError(f"{path}:{number}: must be a node and a label, got {line.strip()[:60]!r}")
        for label in given:
            rows.append(nodes.setdefault(node, len(nodes)))
            columns.append(names.setdefault(label, len(names)))
    if not nodes:
        raise FormatError(f"{path}: holds no labels")
    matrix = sp.coo_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(len(nodes), len(names)))
    return Labels(tuple(nodes), tuple(names), sp.csr_array(matrix), str(path))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        encoding = "utf-8-sig"
        with gzip.open(path, "rt", encoding=encoding) if path.suffix == ".gz" else path.open(encoding=encoding) as file:
            yield from enumerate(file, 1)
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is not text: {error.reason}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{path}: is damaged: {error}") from error
