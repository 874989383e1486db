"""Converts edges to compressed sparse rows on all cores, with the same result for any number of cores."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manela.system.threads import Threads

Positions = npt.NDArray[np.integer]
Weights = npt.NDArray[np.float64]

_ALONE = 1 << 16
"""Fewest edges for which several threads are used; larger keeps more networks on one thread."""


class CompressedRows(NamedTuple):
    """The sorted neighbours of each node; `repeated` is the number of edges that repeat an earlier one."""

    indptr: npt.NDArray[np.int64]
    indices: Positions
    weights: Weights | None
    repeated: int


def build_rows(
    sources: Positions, targets: Positions, weights: Weights | None, size: int, *, directed: bool, adds: bool
) -> CompressedRows:
    """Build the rows for edges between nodes 0 … size − 1, without self-loops.

    Repeated edges become one. With `adds` their weights are added (1 each if there are no weights), and otherwise the
    first weight is kept. An undirected edge is listed in the rows of both its ends.
    """
    from manela.kernels.tables import csr as kernels

    kind: Any = np.int32 if size < 2**31 else np.int64
    sources, targets = np.ascontiguousarray(sources, dtype=kind), np.ascontiguousarray(targets, dtype=kind)
    cores = 1 if len(sources) < _ALONE else os.cpu_count() or 1
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
