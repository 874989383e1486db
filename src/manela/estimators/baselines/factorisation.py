"""What NetMF and ProNE share: products with sparse matrices on all threads, and a randomised factorisation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from manela.data.graph import Graph
from manela.errors import ManelaWarning
from manela.kernels.layout import Vectors
from manela.system.progress import Progress, Reporter

_POWER_ITERATIONS = 5
"""Power iterations of the randomised SVD, as many as ProNE's authors use; more are slower and more exact."""


class Parts:
    """Times the parts of a run, in `seconds`, and reports each finished part as a round."""

    def __init__(self, names: Sequence[str], reporter: Reporter | None) -> None:
        self.seconds: dict[str, float] = {}
        self._names = list(names)
        self._reporter = reporter
        self._begun = self._last = time.perf_counter()

    def finish(self, name: str) -> None:
        """Record that a part is finished, and report it."""
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
        if self._reporter is not None:
            done, total, seconds = len(self.seconds), len(self._names), now - self._begun
            seconds_left = seconds / done * (total - done)
            self._reporter(Progress(done, total, 0, seconds, seconds_left, float("nan"), float("nan")))


def symmetric_adjacency(graph: Graph, method: str) -> sp.csr_array:
    """Return the adjacency matrix in float64; for a directed network A + Aᵀ, with a warning."""
    adjacency = graph.to_scipy()
    if not graph.directed:
        return adjacency
    warnings.warn(f"{method} takes the arcs of a directed network both ways", ManelaWarning, stacklevel=4)
    return sp.csr_array(adjacency + adjacency.T)


def factorise(matrix: Any, dimensions: int, seed: int) -> Vectors:
    """Return U·√Σ, (n, min(dimensions, n)), of the randomised SVD of a matrix of float32, (n, n).

    Power iterations are normalised by LU: vectors reach the same F1 as with QR, in half the time on PPI and Wikipedia.
    Without normalisation, float32 loses two points of F1 on BlogCatalog.
    """
    left, values, _ = randomized_svd(
        matrix,
        min(dimensions, matrix.shape[0]),
        n_iter=_POWER_ITERATIONS,
        power_iteration_normalizer="LU",
        random_state=np.random.RandomState(np.random.PCG64(seed)),
    )
    vectors: Vectors = (left * np.sqrt(values)).astype(np.float32, copy=False)
    return vectors


def pad_columns(vectors: Vectors, dimensions: int) -> Vectors:
    """Pad vectors with zeros to the full length, for a network with fewer nodes than dimensions."""
    return np.pad(vectors, ((0, 0), (0, dimensions - vectors.shape[1]))) if vectors.shape[1] < dimensions else vectors


Dense = npt.NDArray[np.floating]


class ThreadedMatrix(sp.csr_array):  # type: ignore[misc]
    """A sparse matrix whose products with dense matrices are computed by several threads, a block of rows each.

    A row of a product is summed in the same order by any thread, so the number of threads does not change the bits. It
    is a SciPy sparse array only because scikit-learn's randomised SVD requires one: use only products, `T` and reading.
    Blocks have about the same number of entries each.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as threads:
    ...     matrix = ThreadedMatrix(sp.csr_array([[1.0, 2.0], [0.0, 3.0]]), threads, blocks=2)
    ...     print((matrix @ np.eye(2)).tolist(), (matrix.T @ np.eye(2)).tolist())
    [[1.0, 2.0], [0.0, 3.0]] [[1.0, 0.0], [2.0, 3.0]]
    """

    def __init__(self, matrix: Any, threads: Executor, blocks: int) -> None:
        super().__init__(matrix)
        self._threads = threads
        self._number_of_blocks = blocks
        self._transposed: ThreadedMatrix | None = None
        cuts = np.searchsorted(self.indptr, np.linspace(0, self.nnz, blocks + 1)[1:-1])
        bounds = [0, *cuts.tolist(), self.shape[0]]
        self._blocks = [(slice(*rows), self._cut(*rows)) for rows in pairwise(bounds)]

    def transpose(self, axes: Any = None, copy: bool = False) -> ThreadedMatrix:
        """Return the transposed matrix as compressed rows; it is computed once."""
        if axes is not None or copy:
            raise ValueError(f"a ThreadedMatrix is transposed without axes and copies, got {axes!r} and {copy!r}")
        if self._transposed is None:
            plain = sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)
            self._transposed = ThreadedMatrix(plain.T.tocsr(), self._threads, self._number_of_blocks)
        return self._transposed

    def __matmul__(self, other: Any) -> Dense:
        """Return the product with a dense matrix, shape (n, columns)."""
        product: Dense = np.empty((self.shape[0], other.shape[1]), dtype=np.result_type(self.dtype, other.dtype))

        def multiply(block: tuple[slice, sp.csr_array]) -> None:
            rows, matrix = block
            product[rows] = matrix @ other

        list(self._threads.map(multiply, self._blocks))
        return product

    def __rmatmul__(self, other: Any) -> Dense:
        """Return the product of a dense matrix with this one."""
        product: Dense = (self.transpose() @ other.T).T
        return product

    def _cut(self, first: int, end: int) -> sp.csr_array:
        low, high = self.indptr[first], self.indptr[end]
        arrays = (self.data[low:high], self.indices[low:high], self.indptr[first : end + 1] - low)
        return sp.csr_array(arrays, shape=(end - first, self.shape[1]), copy=False)
