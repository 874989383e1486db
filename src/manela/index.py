"""An approximate index of vectors, with usearch: finds nearly all of the nearest in a fraction of the time."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import FormatError, import_extra
from manela.system.arrays import read_arrays, write_arrays
from manela.system.files import replace_file

Vectors = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int64]

_CONTENT, _NOTES = "index", "notes"
_CONNECTIVITY = 24
"""Links per vector in the index; more raise the recall and take longer to build."""
_EFFORT_OF_BUILDING = 96
_EFFORT = 96
"""Candidates that a search keeps; more raise the recall and take longer."""


class VectorIndex:
    """Finds nearly all of the nearest rows of a table of vectors by cosine.

    Parameters
    ----------
    vectors : array of float32, shape (n, m)
    threads : int
        0 for all cores.
    """

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
    """Return an empty index."""
    library = import_extra("usearch.index", "index", "an approximate index")
    return library.Index(
        ndim=dimensions, metric="cos", dtype="f16", connectivity=_CONNECTIVITY, expansion_add=_EFFORT_OF_BUILDING,
        expansion_search=_EFFORT,
    )  # fmt: skip


def _digest(vectors: Vectors) -> str:
    """Return the SHA-256 of the vectors, by which an index and its vectors are matched."""
    return hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()
