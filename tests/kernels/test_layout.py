"""How tables lie in memory."""

import numpy as np
import pytest
from numba import njit

from manela.kernels.layout import LANES, Arcs, allocate, find_strengths, normalise_rows, pad


@pytest.mark.parametrize(("dimensions", "columns"), [(1, 16), (15, 16), (16, 16), (17, 32), (128, 128), (65536, 65536)])
def test_rows_are_padded_to_whole_registers(dimensions, columns):
    assert pad(dimensions) == columns
    assert pad(columns) == columns
    assert columns % LANES == 0


@pytest.mark.parametrize("rows", [0, 1, 3, 1000])
@pytest.mark.parametrize("dimensions", [1, 16, 100])
def test_tables_are_zeros_that_begin_on_cache_lines_row_by_row(rows, dimensions):
    tables = [allocate(rows, dimensions) for _ in range(5)]
    for table in tables:
        assert table.shape == (rows, pad(dimensions))
        assert table.dtype == np.float32
        assert table.ctypes.data % 64 == 0 or not rows
        assert table.strides[0] % 64 == 0
        assert table.flags.c_contiguous
        assert table.flags.writeable
        assert not table.any()
    if rows:
        tables[0][:] = 1.0
        assert not tables[1].any()


def test_rows_get_norm_1_whatever_their_size_and_rows_of_zeros_stay():
    vectors = np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0], [1e30, 1e30]], np.float32)
    rows = normalise_rows(vectors)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows.astype(float), axis=1), [1.0, 0.0, 1.0, 1.0], rtol=1e-6)
    np.testing.assert_allclose(rows[0], [0.6, 0.8], rtol=1e-6)
    assert normalise_rows(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_strengths_are_sums_of_weights_and_degrees_without():
    indptr = np.array([0, 2, 2, 3])
    assert find_strengths(indptr, np.array([0.5, 2.0, 4.0])).tolist() == [2.5, 0.0, 4.0]
    assert find_strengths(indptr, None).tolist() == [2.0, 0.0, 1.0]
    assert find_strengths(np.zeros(4, np.int64), np.zeros(0)).tolist() == [0.0] * 3


@njit
def count_out(arcs, node):
    indptr, indices, thresholds, _ = arcs
    return len(indices[indptr[node] : indptr[node + 1]]), thresholds is None


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_kernels_take_arcs_with_and_without_alias_tables(kind):
    indptr, indices = np.array([0, 2, 3]), np.array([1, 0, 0], kind)
    assert count_out(Arcs(indptr, indices), 0) == (2, True)
    tables = np.zeros(3, np.uint32), np.zeros(3, np.int32)
    assert count_out(Arcs(indptr, indices, *tables), 1) == (1, False)


def test_arcs_without_weights_have_no_tables():
    arcs = Arcs(np.array([0]), np.zeros(0, np.int32))
    assert arcs.thresholds is arcs.aliases is None
    assert arcs._fields == ("indptr", "indices", "thresholds", "aliases")  # kernels unpack them in this order
