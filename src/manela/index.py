"""An approximate index of vectors, by usearch: finds nearly all of the nearest in a fraction of the time."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import FormatError, ManelaError, import_extra
from manela.files import replace_file

Vectors = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int64]

_MAGIC = b"manela index 1\n"
_LONGEST_HEADER = 1 << 16
_CONNECTIVITY = 24
"""Links of a vector in the index; more find more and take longer to build."""
_EFFORT_OF_BUILDING = 96
_EFFORT = 96
"""Vectors that a search keeps in view; more find more and take longer."""


class VectorIndex:
    """The nearest rows of a table of vectors by cosine, nearly all of them.

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
        """The k rows with the largest cosine for each query, and the cosines, largest first."""
        k = min(k, len(self))
        if not len(queries):
            return np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=np.float32)
        matches = self._index.search(np.ascontiguousarray(queries, dtype=np.float32), k, threads=threads)
        rows = np.asarray(matches.keys, dtype=np.int64).reshape(len(queries), -1)
        cosines = 1.0 - np.asarray(matches.distances, dtype=np.float32).reshape(len(queries), -1)
        return rows, cosines

    def save(self, path: str | Path) -> None:
        """Write the index, with what tells whose it is; the vectors stay in their own file."""
        content = bytes(self._index.save())
        header = {"vectors": self.digest, "sha256": hashlib.sha256(content).hexdigest()}
        with replace_file(Path(path)) as file:
            file.write(_MAGIC + json.dumps(header).encode() + b"\n")
            file.write(content)

    @classmethod
    def load(cls, path: str | Path, vectors: Vectors) -> VectorIndex | None:
        """The index that was saved at path; None if it is that of other vectors."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                if file.read(len(_MAGIC)) != _MAGIC:
                    raise FormatError(f"{path}: is not an index of manela")
                header = json.loads(file.readline(_LONGEST_HEADER))
                if header["vectors"] != _digest(vectors):
                    return None
                content = file.read()
            if header["sha256"] != hashlib.sha256(content).hexdigest():  # usearch reads whatever it is given
                raise FormatError(f"{path}: is damaged: it does not have the SHA-256 that was written with it")
            index = _make(vectors.shape[1])
            index.load(content)
        except ManelaError:
            raise
        except FileNotFoundError:
            raise FormatError(f"{path}: no such file") from None
        except Exception as error:
            raise FormatError(f"{path}: is damaged or not an index: {error or type(error).__name__}") from error
        return cls(vectors, _index=index)


def _make(dimensions: int) -> Any:
    library = import_extra("usearch.index", "index", "an approximate index")
    return library.Index(
        ndim=dimensions, metric="cos", dtype="f16", connectivity=_CONNECTIVITY, expansion_add=_EFFORT_OF_BUILDING,
        expansion_search=_EFFORT,
    )  # fmt: skip


def _digest(vectors: Vectors) -> str:
    return hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()
