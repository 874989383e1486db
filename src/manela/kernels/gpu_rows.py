"""Rows of tables on a GPU, read and written by Triton."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def fetch_rows(table, row, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    """Return rows of a table in its precision; a dropped row, −1, is zeros.

    Rows have `columns` numbers; COLUMNS is the next power of two, and equal to `columns` if EVEN.
    """
    column = tl.arange(0, COLUMNS)
    mask = (row >= 0)[:, None]
    if not EVEN:
        mask = mask & (column < columns)[None, :]
    return tl.load(table + row.to(tl.int64)[:, None] * columns + column[None, :], mask=mask, other=0.0)


@triton.jit
def read_row(table, row, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    """Return one row of a table."""
    column = tl.arange(0, COLUMNS)
    at = table + row.to(tl.int64) * columns + column
    if EVEN:
        return tl.load(at)
    return tl.load(at, mask=column < columns, other=0.0)


@triton.jit
def write_row(table, row, x, columns, COLUMNS: tl.constexpr, EVEN: tl.constexpr):
    """Write x to one row of a table."""
    column = tl.arange(0, COLUMNS)
    at = table + row * columns + column
    if EVEN:
        tl.store(at, x)
    else:
        tl.store(at, x, mask=column < columns)
