"""How tables lie in memory."""

import numpy as np
import pytest

from manela.kernels.layout import LANES, allocate, pad


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
