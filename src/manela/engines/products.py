"""Products of sparse and dense matrices on several threads."""

from __future__ import annotations

from concurrent.futures import Executor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Dense = npt.NDArray[np.floating]


class ThreadedMatrix(sp.csr_array):  # type: ignore[misc]
    """A sparse matrix whose products with dense matrices are computed by several threads, a block of rows each.

    A row of a product is summed in the same order by any thread, so the number of threads does not change the bits. It
    is a SciPy sparse array only because scikit-learn's randomised SVD requires one: use only products, `T` and reading.

    Parameters
    ----------
    matrix : sparse array, shape (n, k)
    threads : Executor
        Computes the blocks.
    blocks : int
        Number of blocks of rows, with about the same number of entries each.

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
        """Return a range of rows that shares this matrix's arrays."""
        low, high = self.indptr[first], self.indptr[end]
        arrays = (self.data[low:high], self.indices[low:high], self.indptr[first : end + 1] - low)
        return sp.csr_array(arrays, shape=(end - first, self.shape[1]), copy=False)
