"""The nearest vectors by cosine: an exact search in tiles that stay in the CPU cache, and an approximate index."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from manela.errors import FormatError, import_extra
from manela.kernels.layout import RowNumbers, Vectors
from manela.system.arrays import read_arrays, write_arrays
from manela.system.files import replace_file
from manela.system.threads import count_cores

_CANDIDATES = 512
"""Candidates in a tile; more would not fit the cache."""
_QUERIES = 1024
"""Queries that are searched together; more take more memory."""
_ALONE = 1 << 24
"""Fewest multiplications for which several threads are used; larger keeps more searches on one thread."""


class _Blas:
    """Limits BLAS to one thread while searches run their own threads; the last search restores the limit."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._limit: Any = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within this block, let BLAS use one thread; blocks may overlap."""
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
    """Return the BLAS libraries of this process; searching for them takes a while."""
    return ThreadpoolController()


_BLAS = _Blas()


def find_nearest(
    vectors: Vectors,
    queries: Vectors,
    k: int,
    among: RowNumbers | None = None,
    exclude: RowNumbers | None = None,
    *,
    shared_from: int = _ALONE,
    queries_at_once: int = _QUERIES,
) -> tuple[RowNumbers, Vectors]:
    """Return the k rows of `vectors` with the largest cosine for each query, and the cosines, largest first.

    Both are of shape (q, k), with a row of −1 and a cosine of −∞ where there are fewer candidates. `among` are the rows
    of the candidates, in ascending order, all by default; `exclude`, (q, any), are rows to exclude from the results of
    each query, −1 for none.
    `shared_from` are the products, n·q·m, from which threads share the work.
    """
    from manela.kernels.tables import rows as kernels

    rows = np.full((len(queries), k), -1, dtype=np.int64)
    cosines = np.full((len(queries), k), -np.inf, dtype=np.float32)
    if k == 0 or len(queries) == 0:
        return rows, cosines
    candidates = len(vectors) if among is None else len(among)
    unit = np.empty(queries.shape, dtype=np.float32)
    kernels.normalise(np.ascontiguousarray(queries, dtype=np.float32), unit)

    def search(batch: slice, begin: int, end: int) -> tuple[RowNumbers, Vectors]:
        """Search the candidates begin … end − 1 for a slice of the queries."""
        batch_queries = unit[batch]
        best = np.full((len(batch_queries), k), -np.inf, dtype=np.float32)
        best_rows = np.full((len(batch_queries), k), -1, dtype=np.int64)
        tile = np.zeros((_CANDIDATES, vectors.shape[1]), dtype=np.float32)
        scores = np.empty((len(batch_queries), _CANDIDATES), dtype=np.float32)
        for first in range(begin, end, _CANDIDATES):
            last = min(end, first + _CANDIDATES)
            chosen = vectors[first:last] if among is None else vectors[among[first:last]]
            kernels.normalise(chosen, tile[: last - first])
            np.matmul(batch_queries, tile.T, out=scores)
            if exclude is not None:
                _exclude(scores, exclude[batch], first, last, among)
            kernels.keep_best(scores, last - first, first, best, best_rows)
        return best_rows, best

    tiles = -(-candidates // _CANDIDATES)
    workers = count_cores()
    workers = 1 if candidates * unit.size < shared_from else min(workers, tiles)
    borders = [min(candidates, (tiles * part // workers) * _CANDIDATES) for part in range(workers)] + [candidates]
    with ExitStack() as stack:
        pool = None
        if workers > 1:
            stack.enter_context(_BLAS.alone())
            pool = stack.enter_context(ThreadPoolExecutor(workers))
        for first in range(0, len(unit), queries_at_once):
            batch = slice(first, min(len(unit), first + queries_at_once))
            if pool is None:
                parts = [search(batch, 0, candidates)]
            else:
                jobs = [pool.submit(search, batch, *borders[part : part + 2]) for part in range(workers)]
                parts = [job.result() for job in jobs]
            all_rows, all_best = (np.concatenate([part[which] for part in parts], axis=1) for which in (0, 1))
            order = np.argsort(-all_best, axis=1, kind="stable")[:, :k]
            rows[batch] = np.take_along_axis(all_rows, order, axis=1)
            best = np.take_along_axis(all_best, order, axis=1)
            cosines[batch] = np.where(np.isfinite(best), np.clip(best, -1.0, 1.0), best)  # rounding can exceed 1
    if among is not None:
        rows = np.where(rows >= 0, among[rows], -1)
    return rows, cosines


def _exclude(scores: Vectors, exclude: RowNumbers, first: int, last: int, among: RowNumbers | None) -> None:
    excluded = exclude
    if among is not None:
        position = np.minimum(np.searchsorted(among, exclude), len(among) - 1)
        excluded = np.where(among[position] == exclude, position, -1)
    queries, columns = np.nonzero((excluded >= first) & (excluded < last))
    scores[queries, excluded[queries, columns] - first] = -np.inf


_CONTENT, _NOTES = "index", "notes"
_CONNECTIVITY = 24
"""Links per vector in the index; more raise the recall and take longer to build."""
_EFFORT_OF_BUILDING = 96
_EFFORT = 96
"""Candidates that a search keeps; more raise the recall and take longer."""


class VectorIndex:
    """Finds nearly all of the nearest rows of a table of vectors by cosine, on all cores if `threads` is 0."""

    def __init__(self, vectors: Vectors, threads: int = 0, _index: Any = None) -> None:
        self.digest = _digest(vectors)
        if _index is None:
            _index = _make(vectors.shape[1])
            _index.add(np.arange(len(vectors)), np.ascontiguousarray(vectors), threads=threads)
        self._index = _index

    def __len__(self) -> int:
        return len(self._index)

    def find_nearest(self, queries: Vectors, k: int, threads: int = 0) -> tuple[RowNumbers, Vectors]:
        """Return the k rows with the largest cosine for each query, and the cosines, largest first."""
        k = min(k, len(self))
        if not len(queries):
            return np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=np.float32)
        matches = self._index.search(np.ascontiguousarray(queries, dtype=np.float32), k, threads=threads)
        rows = np.asarray(matches.keys, dtype=np.int64).reshape(len(queries), -1)
        cosines = 1.0 - np.asarray(matches.distances, dtype=np.float32).reshape(len(queries), -1)
        return rows, cosines

    def save(self, path: str | Path) -> None:
        """Write the index, with the digest of its vectors but without the vectors."""
        content = np.frombuffer(self._index.save(), dtype=np.uint8)
        with replace_file(Path(path)) as file:
            write_arrays(file, {_CONTENT: content}, {"vectors": self.digest}, _NOTES)

    @classmethod
    def load(cls, path: str | Path, vectors: Vectors) -> VectorIndex | None:
        """Load the index from a file; return None if it belongs to other vectors."""
        arrays, notes = read_arrays(Path(path), _NOTES)  # checks the SHA-256, as usearch does not check its input
        if _CONTENT not in arrays or "vectors" not in notes:
            raise FormatError(f"{path}: is not an index of manela")
        if notes["vectors"] != _digest(vectors):
            return None
        index = _make(vectors.shape[1])
        index.load(arrays[_CONTENT].tobytes())
        return cls(vectors, _index=index)


def _make(dimensions: int) -> Any:
    library = import_extra("usearch.index", "index", "an approximate index")
    return library.Index(
        ndim=dimensions, metric="cos", dtype="f16", connectivity=_CONNECTIVITY, expansion_add=_EFFORT_OF_BUILDING,
        expansion_search=_EFFORT,
    )  # fmt: skip


def _digest(vectors: Vectors) -> str:
    return hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()
