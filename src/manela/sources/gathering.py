"""gather_graph: builds a Graph from a source, in little more memory than its arrays take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.errors import GraphError
from manela.formats.numbers import number_pairs
from manela.sources.edges import BATCH, Edges
from manela.sources.source import Source
from manela.sources.state import ImportState

_LEAST_ROOM = 1 << 16
_GROWTH = 8
"""A full column grows by 1 / this of its length; larger values take less memory, and copy the column more often."""


def gather_graph(source: Source, directed: bool = False, duplicates: str = "sum") -> Graph:
    """Read all edges of a source as a network.

    Parameters
    ----------
    source : Source
        The source, which is read from its start.
    directed : bool
        Whether edges lead from `own` to `other` only.
    duplicates : {"sum", "first", "error"}
        How repeated edges are handled, as for `Graph.of`.

    Returns
    -------
    Graph
        Ids are sorted integers if all ends are integers; otherwise texts in order of first appearance.

    Examples
    --------
    >>> import tempfile
    >>> from manela.sources.sql import SqlSource
    >>> with tempfile.NamedTemporaryFile(suffix=".db") as file:
    ...     query = "SELECT 'ann', 'bob' UNION SELECT 'bob', 'cem'"
    ...     gather_graph(SqlSource(f"sqlite:///{file.name}", query))
    Graph(3 nodes, 2 edges)
    """
    columns = _Columns()
    with ImportState(None, source.key) as state:
        for batch in source.read(state):
            columns.append(batch)
    if columns.size == 0:
        raise GraphError(f"no edges were found: {source.describe()}")
    weights = columns.take_weights()
    own, other, nodes = columns.take_ends()
    return Graph.from_arcs(own, other, weights, nodes, directed=directed, duplicates=duplicates)


class _Columns:
    """The collected ends and weights of edges; after the first end that is not an integer, all become texts."""

    def __init__(self) -> None:
        self.size = 0
        self._own: _Column = _Column(np.int64)
        self._other: _Column = _Column(np.int64)
        self._weights: _Column | None = None
        self._numbers: _Numbers | None = None

    def append(self, batch: Edges) -> None:
        """Add a batch of edges."""
        if self._numbers is None and not self._append_integers(batch):
            self._turn_into_texts()
        if self._numbers is not None:
            self._append_texts(self._numbers, batch.own, batch.other)
        self._append_weights(batch)
        self.size += len(batch.own)

    def take_weights(self) -> npt.NDArray[np.float64] | None:
        """Return the weights, or None if there are none."""
        return None if self._weights is None else self._weights.take()

    def take_ends(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the ends as positions in the ids, and the ids; this empties the columns, to save memory."""
        if self._numbers is None:
            return number_pairs(self._own.take(), self._other.take())
        nodes = np.empty(len(self._numbers), dtype=object)
        nodes[:] = list(self._numbers)
        nodes.flags.writeable = False  # so that the graph keeps this array instead of a copy
        self._numbers.clear()
        return self._own.take(), self._other.take(), nodes

    def _append_integers(self, batch: Edges) -> bool:
        ends = [_as_integers(column) for column in (batch.own, batch.other)]
        if ends[0] is None or ends[1] is None:
            return False
        self._own.append(ends[0])
        self._other.append(ends[1])
        return True

    def _append_texts(self, numbers: _Numbers, own: Iterable[Any], other: Iterable[Any]) -> None:
        pairs = chain.from_iterable(zip(map(str, own), map(str, other), strict=True))
        codes = np.fromiter(map(numbers.__getitem__, pairs), dtype=np.int32)
        self._own.append(codes[::2])
        self._other.append(codes[1::2])

    def _turn_into_texts(self) -> None:
        own, other = self._own.take(), self._other.take()
        self._own, self._other, self._numbers = _Column(np.int32), _Column(np.int32), _Numbers()
        for first in range(0, len(own), BATCH):
            batch = slice(first, first + BATCH)
            self._append_texts(self._numbers, own[batch].tolist(), other[batch].tolist())

    def _append_weights(self, batch: Edges) -> None:
        """Append weights; there is no column of weights while all of them are 1."""
        is_plain = batch.weights is None or bool(np.all(batch.weights == 1.0))
        if self._weights is None:
            if is_plain:
                return
            self._weights = _Column(np.float64)
            for first in range(0, self.size, BATCH):
                self._weights.append(np.ones(min(BATCH, self.size - first)))
        self._weights.append(np.ones(len(batch.own)) if batch.weights is None else batch.weights)


class _Numbers(dict[str, int]):
    """The number of each text; a new text gets the next number."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


class _Column:
    def __init__(self, kind: Any) -> None:
        self._values, self._size = np.empty(_LEAST_ROOM, dtype=kind), 0

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add values, with room for later ones."""
        end = self._size + len(values)
        if end > len(self._values):
            self._values.resize(max(end, len(self._values) + len(self._values) // _GROWTH), refcheck=False)
        self._values[self._size : end] = values
        self._size = end

    def take(self) -> npt.NDArray[Any]:
        """Return all values and empty the column."""
        values, size = self._values, self._size
        self._values, self._size = np.empty(0, dtype=values.dtype), 0
        values.resize(size, refcheck=False)
        return values


def _as_integers(column: Sequence[Any]) -> npt.NDArray[np.int64] | None:
    if isinstance(column, np.ndarray):
        return column.astype(np.int64) if np.issubdtype(column.dtype, np.signedinteger) else None
    if set(map(type, column)) != {int}:
        return None
    try:
        return np.array(column, dtype=np.int64)
    except OverflowError:
        return None
