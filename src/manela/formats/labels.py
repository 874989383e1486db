"""Readers of labels: which nodes have which, from a .mat file or from lines."""

from __future__ import annotations

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
_SEPARATORS = {".csv": re.compile(r"\s*,\s*"), ".tsv": re.compile(r"\t")}
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
        missing = np.setdiff1d(np.arange(len(self.nodes)), found[found >= 0])
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
    .tsv, and blanks or commas elsewhere. `#` begins a comment; a first line that begins with `node` or `id` is a head.
    """
    path = Path(path)
    if not path.exists():
        raise FormatError(f"{path}: no such file")
    if path.is_dir():
        raise FormatError(f"{path}: is a folder, a file of labels is wanted")
    return _read_mat(path, variable) if path.suffix == ".mat" else _read_lines(path)


def _read_mat(path: Path, variable: str) -> Labels:
    from scipy.io import loadmat

    try:
        held = loadmat(path)
    except Exception as error:
        raise FormatError(f"{path}: is damaged or not a .mat file: {error or type(error).__name__}") from error
    if variable not in held:
        names = ", ".join(name for name in held if not name.startswith("__")) or "nothing"
        raise FormatError(f"{path}: must hold the variable {variable!r}, got {names}")
    matrix = sp.csr_array(held[variable])
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise FormatError(f"{path}: {variable!r} must be a matrix of 0 and 1, nodes x labels")
    nodes, columns = (tuple(str(i) for i in range(size)) for size in matrix.shape)
    return Labels(nodes, columns, sp.csr_array(matrix != 0), str(path))


def _read_lines(path: Path) -> Labels:
    nodes: dict[str, int] = {}
    names: dict[str, int] = {}
    rows, columns = [], []
    separator = _SEPARATORS.get(path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix, _BLANKS)
    for number, line in _lines(path):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        node, *given = [cell.strip().strip('"') for cell in separator.split(text)]
        if not nodes and node.lower() in _HEADS:
            continue
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
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            yield from enumerate(file, 1)
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is not text: {error.reason}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{path}: is damaged: {error}") from error
