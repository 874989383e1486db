"""Rows of tables on a GPU are read whole; without a card they are interpreted."""

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from manela.kernels.gpu import neighbours as rows  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTHS = pytest.mark.parametrize("columns", [16, 11])
"""A power of two, and columns that leave some of the lanes without a number."""


@triton.jit
def fetch(table, numbers, out, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    places, column = tl.arange(0, 4), tl.arange(0, COLUMNS)
    tile = rows.fetch_rows(table, tl.load(numbers + places), columns, COLUMNS, EVEN)
    tl.store(out + places[:, None] * COLUMNS + column[None, :], tile)


@WIDTHS
@pytest.mark.parametrize("precision", [torch.float32, torch.float16])
def test_rows_are_those_of_the_table_and_dropped_ones_are_zeros(columns, precision):
    table = torch.rand(5, columns, device=DEVICE).to(precision)
    numbers = torch.tensor([4, -1, 0, 4], dtype=torch.int32, device=DEVICE)
    out = torch.full((4, 16), 9.0, dtype=precision, device=DEVICE)
    fetch[(1,)](table, numbers, out, columns, 16, columns == 16)
    wanted = torch.zeros_like(out)
    wanted[:, :columns] = table[numbers.long()]
    wanted[1] = 0
    assert torch.equal(out, wanted)
