"""Sums, centring and scaling of the rows of a table on processors, compiled by Numba.

Rows are summed as integers (fixed point), as in `moments`: any number of threads, in any order, gets the same result.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.moments import LARGEST, UNIT


@njit(cache=True, nogil=True)
def add_up(table, scales, first, last, totals):
    """Add rows v = first … last − 1 with scales[v] > 0 to totals, in units of UNIT; return Σ squares in UNIT²."""
    squares = np.int64(0)
    for row in range(first, last):
        if scales[row] > 0.0:
            for k in range(table.shape[1]):
                value = np.float64(min(max(table[row, k], -LARGEST), LARGEST)) / UNIT
                number = np.int64(np.rint(value))
                totals[k] += number
                squares += number * number
    return squares


@njit(cache=True, nogil=True)
def center(table, scales, mean, first, last):
    """Subtract the mean, (m,), from the rows v = first … last − 1 with scales[v] > 0."""
    for row in range(first, last):
        if scales[row] > 0.0:
            for k in range(table.shape[1]):
                table[row, k] -= mean[k]


@njit(cache=True, nogil=True)
def resize(table, sizes, first, last):
    """Scale rows v = first … last − 1 to norm sizes[v]; zero rows, and rows with sizes[v] = 0, are unchanged."""
    for row in range(first, last):
        if sizes[row] > 0.0:
            squares = 0.0
            for k in range(table.shape[1]):
                squares += np.float64(table[row, k]) * np.float64(table[row, k])
            if squares > 0.0:
                factor = sizes[row] / np.sqrt(squares)  # for a tiny row this exceeds float32
                for k in range(table.shape[1]):
                    table[row, k] = np.float32(np.float64(table[row, k]) * factor)
