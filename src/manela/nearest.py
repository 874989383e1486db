"""The exact search for the nearest vectors by cosine: tile by tile, so that products stay in the cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

Vectors = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int64]

_CANDIDATES = 512
"""Rows whose cosines are found together; more run out of the cache."""
_QUERIES = 1024
_ALONE = 1 << 24
"""Multiplications that are worth a second thread."""


class _Blas:
    """Keeps products to the thread that asks for them while several threads do; the last one sets it back."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._limit: Any = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit = _find_libraries().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limit.restore_original_limits()


@cache
def _find_libraries() -> ThreadpoolController:
    return ThreadpoolController()


_BLAS = _Blas()


def find_nearest(
    vectors: Vectors, queries: Vectors, k: int, among: RowNumbers | None = None, exclude: RowNumbers | None = None
) -> tuple[RowNumbers, Vectors]:
    """The k rows of `vectors` with the largest cosine for each query, and the cosines, largest first.

    Parameters
    ----------
    vectors : array, shape (n, m)
    queries : array, shape (q, m)
    k : int
        At most the number of candidates.
    among : array of int, optional
        The rows that are candidates, in order; all by default.
    exclude : array of int, shape (q, any), optional
        Rows that are not to be found for each query; −1 for none.

    Returns
    -------
    rows, cosines : arrays, shape (q, k)
        A row of −1 and a cosine of −∞ where there are fewer candidates.
    """
    from manela.kernels import nearest as kernels

    rows = np.full((len(queries), k), -1, dtype=np.int64)
    cosines = np.full((len(queries), k), -np.inf, dtype=np.float32)
    if k == 0 or len(queries) == 0:
        return rows, cosines
    candidates = len(vectors) if among is None else len(among)
    unit = np.empty(queries.shape, dtype=np.float32)
    kernels.normalise(np.ascontiguousarray(queries, dtype=np.float32), unit)

    def search(some: slice, begin: int, end: int) -> tuple[RowNumbers, Vectors]:
        """Search a range of candidates for some queries."""
        mine = unit[some]
        best = np.full((len(mine), k), -np.inf, dtype=np.float32)
        found = np.full((len(mine), k), -1, dtype=np.int64)
        tile = np.zeros((_CANDIDATES, vectors.shape[1]), dtype=np.float32)
        scores = np.empty((len(mine), _CANDIDATES), dtype=np.float32)
        for first in range(begin, end, _CANDIDATES):
            last = min(end, first + _CANDIDATES)
            chosen = vectors[first:last] if among is None else vectors[among[first:last]]
            kernels.normalise(chosen, tile[: last - first])
            np.matmul(mine, tile.T, out=scores)
            if exclude is not None:
                _leave_out(scores, exclude[some], first, last, among)
            kernels.keep_best(scores, last - first, first, best, found)
        return found, best

    tiles = -(-candidates // _CANDIDATES)
    workers = os.cpu_count() or 1
    workers = 1 if candidates * unit.size < _ALONE else min(workers, tiles)
    borders = [min(candidates, (tiles * part // workers) * _CANDIDATES) for part in range(workers)] + [candidates]
    with ExitStack() as stack:
        pool = None
        if workers > 1:
            stack.enter_context(_BLAS.alone())
            pool = stack.enter_context(ThreadPoolExecutor(workers))
        for first in range(0, len(unit), _QUERIES):
            some = slice(first, min(len(unit), first + _QUERIES))
            if pool is None:
                parts = [search(some, 0, candidates)]
            else:
                jobs = [pool.submit(search, some, *borders[part : part + 2]) for part in range(workers)]
                parts = [job.result() for job in jobs]
            all_rows, all_best = (np.concatenate([part[which] for part in parts], axis=1) for which in (0, 1))
            order = np.argsort(-all_best, axis=1, kind="stable")[:, :k]
            rows[some] = np.take_along_axis(all_rows, order, axis=1)
            best = np.take_along_axis(all_best, order, axis=1)
            cosines[some] = np.where(np.isfinite(best), np.clip(best, -1.0, 1.0), best)  # rounding goes beyond
    if among is not None:
        rows = np.where(rows >= 0, among[rows], -1)
    return rows, cosines


def _leave_out(scores: Vectors, exclude: RowNumbers, first: int, last: int, among: RowNumbers | None) -> None:
    """Make candidates that are not to be found the worst ones."""
    places = exclude
    if among is not None:
        at = np.minimum(np.searchsorted(among, exclude), len(among) - 1)
        places = np.where(among[at] == exclude, at, -1)
    queries, columns = np.nonzero((places >= first) & (places < last))
    scores[queries, places[queries, columns] - first] = -np.inf
