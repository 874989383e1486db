"""Turns edges into compressed sparse rows (CSR) on all cores, and checks their ids and weights first."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manela.errors import GraphError
from manela.system.threads import Threads, count_cores

Positions = npt.NDArray[np.integer]
Weights = npt.NDArray[np.float64]

LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100
WEIGHT_RULE = "finite and above 0 (from 1e-100 to 1e100)"
"""Limits of an edge weight: sums and quotients of weights within them are finite."""
_ALONE = 1 << 16
"""Fewest edges for which several threads are used; larger keeps more networks on one thread."""


class CompressedRows(NamedTuple):
    """The sorted neighbours of each node; `repeated` is the number of edges that repeat an earlier one."""

    indptr: npt.NDArray[np.int64]
    indices: Positions
    weights: Weights | None
    repeated: int


def build_rows(
    sources: Positions,
    targets: Positions,
    weights: Weights | None,
    size: int,
    *,
    directed: bool,
    adds: bool,
    shared_from: int = _ALONE,
) -> CompressedRows:
    """Build the rows for edges between nodes 0 … size − 1, without self-loops.

    Repeated edges become one. With `adds` their weights are added (1 each if there are no weights), and otherwise the
    first weight is kept. An undirected edge is listed in the rows of both its ends.
    """
    from manela.kernels.tables import rows as kernels

    kind: Any = np.int32 if size < 2**31 else np.int64
    sources, targets = np.ascontiguousarray(sources, dtype=kind), np.ascontiguousarray(targets, dtype=kind)
    cores = 1 if len(sources) < shared_from else count_cores()
    counts = np.zeros(size + 1, dtype=np.int64)
    both = not directed
    with Threads(cores) as threads:
        even = np.linspace(0, size, cores + 1).astype(np.int64)
        threads.share(lambda first, last: kernels.count_arcs(sources, targets, both, first, last, counts[1:]), even)
        indptr = np.cumsum(counts)
        pieces = np.searchsorted(indptr, np.linspace(0, indptr[-1], cores + 1)[1:-1])
        borders = np.unique(np.concatenate(([0], pieces, [size])))
        ends, indices = indptr[:-1].copy(), np.empty(indptr[-1], dtype=kind)
        data = None if weights is None else np.empty(indptr[-1])
        repeats = np.zeros(size + 1, dtype=np.int64)

        def fill(first: int, last: int) -> None:
            if data is None:
                kernels.fill_rows(sources, targets, both, first, last, ends, indices)
                repeats[last] = kernels.sort_rows(indptr, indices, first, last)
            else:
                kernels.fill_weighted_rows(sources, targets, weights, both, first, last, ends, indices, data)
                repeats[last] = kernels.sort_weighted_rows(indptr, indices, data, first, last)

        threads.share(fill, borders)
        repeated = int(repeats.sum())
        if not repeated:
            return CompressedRows(indptr, indices, data, 0)
        merged_indptr, merged_indices = np.empty_like(indptr), np.empty(len(indices) - repeated, dtype=kind)
        merged_indptr[-1] = len(merged_indices)
        merged_data = np.empty(len(merged_indices)) if data is not None or adds else None
        dropped = np.cumsum(repeats)

        def merge(first: int, last: int) -> None:
            start = indptr[first] - dropped[first]
            kernels.merge_rows(indptr, indices, first, last, start, merged_indptr, merged_indices)
            if data is not None:
                kernels.merge_weights(indptr, indices, data, adds, first, last, start, merged_data)
            elif adds:
                kernels.count_repeated(indptr, indices, first, last, start, merged_data)

        threads.share(merge, borders)
        return CompressedRows(merged_indptr, merged_indices, merged_data, repeated if directed else repeated // 2)


DUPLICATES = ("sum", "first", "error")
"""The rules for edges that are given more than once."""


def check_rule(duplicates: str) -> None:
    """Raise GraphError unless `duplicates` is a known rule for repeated edges."""
    if duplicates not in DUPLICATES:
        raise GraphError(f"duplicates must be one of {', '.join(DUPLICATES)}, got {duplicates!r}")


def as_ids(values: Any) -> npt.NDArray[Any]:
    """Convert ids to an array of int64 or of objects; objects keep their Python type."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if np.issubdtype(values.dtype, np.integer) and values.dtype != np.uint64:
            return values.astype(np.int64)
        if values.dtype != object:
            values = values.tolist()
    items = list(values)
    if items and all(type(item) is int and -(2**63) <= item < 2**63 for item in items):
        return np.array(items, dtype=np.int64)
    ids = np.empty(len(items), dtype=object)
    for row, item in enumerate(items):
        try:
            hash(item)
        except TypeError as error:
            raise GraphError(f"an id must be hashable, got {type(item).__name__}: {error}") from error
        ids[row] = item.item() if isinstance(item, np.generic) else item
    return ids


def number_ids(ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Return a number for each id, and the distinct ids in the order of their numbers."""
    if ids.dtype != object:
        distinct, codes = np.unique(ids, return_inverse=True)
        return codes.astype(np.int64, copy=False), distinct
    numbers: dict[Hashable, int] = {}
    try:
        codes = np.fromiter((numbers.setdefault(node, len(numbers)) for node in ids), dtype=np.int64, count=len(ids))
    except TypeError as error:
        raise GraphError(f"an id must be hashable: {error}") from error
    distinct = np.empty(len(numbers), dtype=object)
    distinct[:] = list(numbers)
    return codes, distinct


def check_weights(weights: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float64] | None:
    """Check edge weights and return them as float64; None stays None."""
    if weights is None:
        return None
    try:
        data = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"weights must be numbers: {error}") from error
    if data.shape != (count,):
        raise GraphError(f"there must be one weight for each edge, got {data.shape} for {count:,} edges")
    bad = np.flatnonzero(~((data >= LEAST_WEIGHT) & (data <= MOST_WEIGHT)))
    if len(bad):
        raise GraphError(f"a weight must be {WEIGHT_RULE}, got {data[bad[0]]:g} for edge number {bad[0] + 1:,}")
    return data
