"""Rows and draws on a GPU, compiled by Triton: reading tables, random numbers, the choice of an arc."""

# mypy: ignore-errors

import triton
import triton.language as tl

from manela.kernels.randomness import FIRST_FACTOR, GOLDEN, SECOND_FACTOR


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


_GOLDEN = tl.constexpr(GOLDEN)
_FIRST_FACTOR = tl.constexpr(FIRST_FACTOR)
_SECOND_FACTOR = tl.constexpr(SECOND_FACTOR)


@triton.jit
def derive(key, number):
    """Return the draw with this number under this key."""
    z = key + _GOLDEN * (number.to(tl.uint64) + 1)
    z = (z ^ (z >> 30)) * _FIRST_FACTOR
    z = (z ^ (z >> 27)) * _SECOND_FACTOR
    return z ^ (z >> 31)


@triton.jit
def choose(first, degree, drawn, thresholds, aliases, goes, WEIGHTED: tl.constexpr):
    """Return the arc that a draw selects from `degree` arcs from `first` on, for lanes where `goes` is True."""
    place = tl.umulhi(drawn, degree.to(tl.uint64)).to(tl.int64)
    if WEIGHTED:
        remainder = ((drawn * degree.to(tl.uint64)) >> 32).to(tl.uint32)
        limit = tl.load(thresholds + first + place, mask=goes, other=0).to(tl.uint32, bitcast=True)
        alias = tl.load(aliases + first + place, mask=goes, other=0).to(tl.int64)
        place = tl.where(remainder >= limit, alias, place)
    return first + place
