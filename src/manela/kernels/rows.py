"""Rows of a table on processors, compiled by Numba: their norms, their sums in fixed point, their scaling.

Sums over rows are of whole numbers, as in `moments`: any number of threads, in any order, gets the same.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.moments import LARGEST, UNIT


@njit(cache=True, nogil=True)
def add_up(table, scales, first, last, totals):
    """Add the rows v = first … last − 1 with scales[v] > 0 to totals, in units of UNIT; returns Σ squares in UNIT²."""
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
    """Take the mean, (m,), from the rows v = first … last − 1 with scales[v] > 0."""
    for row in range(first, last):
        if scales[row] > 0.0:
            for k in range(table.shape[1]):
                table[row, k] -= mean[k]


@njit(cache=True, nogil=True)
def resize(table, sizes, first, last):
    """Give the rows v = first … last − 1 the norm sizes[v]; a row of zeros stays, and one whose size is 0."""
    for row in range(first, last):
        if sizes[row] > 0.0:
            squares = 0.0
            for k in range(table.shape[1]):
                squares += np.float64(table[row, k]) * np.float64(table[row, k])
            if squares > 0.0:
                factor = sizes[row] / np.sqrt(squares)  # of a very short row, more than a float32 holds
                for k in range(table.shape[1]):
                    table[row, k] = np.float32(np.float64(table[row, k]) * factor)
