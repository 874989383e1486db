"""Reads the labels of nodes from a .mat file or a text file."""

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

_HEADER_NAMES = {"node", "id", "node_id", "name"}
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BLANKS = re.compile(r"[\s,;]+")


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of nodes."""

    nodes: tuple[str, ...]  # ids as text, one for each row
    names: tuple[str, ...]  # the labels, one for each column
    matrix: sp.csr_array  # (nodes, names)
    source: str  # the file name, for error messages

    def of(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return the labels of the nodes with these ids, in the same order; all False for a node without labels.

        Ids are compared as text. A labelled node that is not among the ids is an error, as it would be lost silently.
        """
        rows = {node: row for row, node in enumerate(self.nodes)}
        label_rows = np.array([rows.get(str(node), -1) for node in ids.tolist()], dtype=np.int64)
        labelled = np.flatnonzero(np.diff(self.matrix.indptr))
        missing = np.setdiff1d(labelled, label_rows)
        if len(missing):
            raise FormatError(
                f"{self.source}: labels {len(missing):,} nodes without a vector, the first is "
                f"{self.nodes[missing[0]]!r}; both must be of the same network"
            )
        labels = np.zeros((len(ids), len(self.names)), dtype=bool)
        labels[label_rows >= 0] = self.matrix[label_rows[label_rows >= 0]].toarray()
        return labels


def read_labels(path: str | Path, variable: str = "group") -> Labels:
    """Read labels from a .mat file (the variable `group`, nodes × labels), or from lines of a node and its labels.

    A node may have several labels, on one line or on several. Columns are separated by commas in .csv, by tabs in
    .tsv, and otherwise by white space, commas or semicolons. In .csv an empty cell means no label. A line that begins
    with `#` is a comment; a first line that begins with `node`, `id`, `node_id` or `name` is a header.
    """
    path = Path(path)
    if not path.exists():
        raise FormatError(f"{path}: no such file")
    if path.is_dir():
        raise FormatError(f"{path}: must be a file of labels, but is a folder")
    return _read_mat(path, variable) if path.suffix.lower() == ".mat" else _read_lines(path)


def sort_by_id(ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return an order of ids that does not depend on the file: numbers by size, others as text."""
    if ids.dtype.kind in "iu":
        return np.argsort(ids, kind="stable")
    return np.argsort(np.array([str(node) for node in ids.tolist()]), kind="stable")


def _read_mat(path: Path, variable: str) -> Labels:
    from scipy.io import loadmat

    try:
        content = loadmat(path)
    except Exception as error:
        raise FormatError(f"{path}: is damaged or not a .mat file: {error or type(error).__name__}") from error
    if variable not in content:
        names = ", ".join(name for name in content if not name.startswith("__")) or "nothing"
        raise FormatError(f"{path}: must hold the variable {variable!r}, got {names}")
    kind = getattr(content[variable], "dtype", np.dtype(object)).kind
    if kind not in "biuf" or content[variable].ndim != 2:
        raise FormatError(f"{path}: {variable!r} must be a matrix of 0 and 1, nodes x labels")
    matrix = sp.csr_array(content[variable])
    matrix.eliminate_zeros()
    nodes, columns = (tuple(str(i) for i in range(size)) for size in matrix.shape)
    return Labels(nodes, columns, sp.csr_array(matrix != 0), str(path))


def _read_lines(path: Path) -> Labels:
    nodes: dict[str, int] = {}
    names: dict[str, int] = {}
    rows, columns = [], []
    ending = (path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix).lower()
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
        node, *labels = [cell.strip() for cell in cells]
        if not nodes and node.lower() in _HEADER_NAMES:
            continue
        if ending == ".csv" and node and labels and not any(labels):
            continue  # `manela groups` writes an empty cell for no label
        labels = [label for label in labels if label]
        if not node or not labels:
            raise FormatError(f"{path}:{number}: must be a node and a label, got {line.strip()[:60]!r}")
        for label in labels:
            rows.append(nodes.setdefault(node, len(nodes)))
            columns.append(names.setdefault(label, len(names)))
    if not nodes:
        raise FormatError(f"{path}: must hold labels, but has none")
    matrix = sp.coo_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(len(nodes), len(names)))
    return Labels(tuple(nodes), tuple(names), sp.csr_array(matrix), str(path))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        encoding = "utf-8-sig"
        with (
            gzip.open(path, "rt", encoding=encoding)
            if path.suffix.lower() == ".gz"
            else path.open(encoding=encoding) as file
        ):
            yield from enumerate(file, 1)
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is not text: {error.reason}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{path}: is damaged: {error}") from error
