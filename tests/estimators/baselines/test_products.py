from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from manela.estimators.baselines.factorisation import ThreadedMatrix


@pytest.mark.parametrize("blocks", [1, 2, 3, 50])
def test_products_have_the_bits_of_scipy_for_any_number_of_blocks(blocks):
    rng = np.random.default_rng(0)
    matrix = sp.csr_array(np.where(rng.random((40, 30)) < 0.1, rng.random((40, 30)), 0).astype(np.float32))
    right, left = (rng.normal(size=shape).astype(np.float32) for shape in ((30, 7), (7, 40)))
    with ThreadPoolExecutor(2) as threads:
        shared = ThreadedMatrix(matrix, threads, blocks)
        np.testing.assert_array_equal(shared @ right, matrix @ right)
        np.testing.assert_array_equal(shared.T @ left.T, matrix.T.tocsr() @ left.T)
        np.testing.assert_array_equal(left @ shared, (matrix.T.tocsr() @ left.T).T)
        assert (shared @ right).dtype == np.float32


def test_other_transpositions_are_refused():
    with ThreadPoolExecutor(1) as threads, pytest.raises(ValueError, match="without axes and copies"):
        ThreadedMatrix(sp.eye_array(3, format="csr"), threads, 1).transpose(copy=True)
