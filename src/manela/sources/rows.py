"""Rows: turns the rows of a query into edges.

QuerySource is the base class of sources that read edges with a query to a database.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.csr import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE
from manela.errors import SourceError
from manela.sources.edges import Edges
from manela.sources.secret import hide_secret, refuse_password
from manela.sources.source import Source

FETCHED = 1_000
"""Rows to fetch at a time; many more do not fit into the CPU cache, and take twice the time."""


def check_columns(names: Sequence[str]) -> None:
    """Raise SourceError unless a query returns two or three columns.

    Examples
    --------
    >>> check_columns(["payer", "payee", "amount"])
    """
    if len(names) not in (2, 3):
        raise SourceError(
            "a query must return two columns, the ends, and optionally a third, the weight, "
            f"got {len(names)}: {', '.join(names)[:80]}"
        )


class Rows:
    """Turns the rows of one reading into edges, and counts those that are left out.

    Examples
    --------
    >>> rows = Rows()
    >>> [batch.own for batch in rows.take([("ann", "bob"), ("bob", None)])], rows.describe()
    ([('ann',)], '2 rows, of which 1 were left out as an end or the weight is NULL or empty')
    """

    def __init__(self) -> None:
        self._count = self._left_out = 0

    def take(self, rows: Sequence[Sequence[Any]]) -> Iterator[Edges]:
        """Yield the edges of these rows as one batch, or nothing if all rows are left out."""
        if not rows:
            return
        first, columns = self._count, _without_gaps(list(zip(*rows, strict=True)))
        self._count += len(rows)
        self._left_out += len(rows) - len(columns[0])
        if columns[0]:
            own, other, *weights = columns
            yield Edges(_as_names(own), _as_names(other), _as_weights(weights[0], first) if weights else None)

    def describe(self) -> str:
        """Return how many rows there were, and how many of them were left out."""
        left_out = f", of which {self._left_out:,} were left out as an end or the weight is NULL or empty"
        return f"{self._count:,} rows{left_out if self._left_out else ''}"


def _without_gaps(columns: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    if not any(None in column or "" in column for column in columns):
        return columns
    kept = [row for row in zip(*columns, strict=True) if None not in row and "" not in row[:2]]
    return list(zip(*kept, strict=True)) or [()] * len(columns)


def _as_names(column: Sequence[Any]) -> Sequence[Any]:
    """Return a column of names: integers and texts unchanged, integral floats as integers, everything else as text."""
    if set(map(type, column)) <= {int, str}:
        return column
    return [value if type(value) in (int, str) else _as_name(value) for value in column]


def _as_name(value: Any) -> int | str:
    if isinstance(value, Decimal | float) and math.isfinite(value) and value == int(value):
        return int(value)
    return bytes(value).hex() if isinstance(value, bytes | bytearray | memoryview) else str(value)


def _as_weights(column: Sequence[Any], first: int) -> npt.NDArray[np.float64]:
    """Return the weights as floats; `first` is the number of earlier rows, for error messages."""
    try:
        weights = np.array(column, dtype=np.float64)
        if weights.ndim != 1:
            raise TypeError
    except (TypeError, ValueError):
        raise SourceError(
            f"the third column of a query is the weight, a number, got {column[0]!r} about row {first + 1:,}"
        ) from None
    bad = np.flatnonzero(~((weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT)))
    if len(bad):
        raise SourceError(
            f"a weight must be {WEIGHT_RULE}, got {weights[bad[0]]:g} about row {first + int(bad[0]) + 1:,}: leave "
            "such rows out by a WHERE"
        )
    return weights


class QuerySource(Source):
    """The rows of a query, each of which is an edge: `own, other[, weight]`, by position; `secret` is the password."""

    def __init__(self, url: str, query: str, secret: str | None) -> None:
        refuse_password(url)
        self.url, self.query, self.secret = url, query, secret
        self._rows = Rows()

    def describe(self) -> str:
        """Return how many rows there were, and how many of them were left out."""
        return self._rows.describe()

    def _explain(self, error: Exception) -> SourceError:
        """Return a driver's error as one line without the password."""
        return SourceError(f"{self.url}: cannot be read: {hide_secret(str(error), self.secret)}")
