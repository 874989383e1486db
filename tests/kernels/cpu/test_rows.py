"""Sums and scales of rows, in any pieces."""

from itertools import pairwise

import numpy as np
import pytest

from manela.kernels.cpu import rows
from manela.kernels.moments import LARGEST, UNIT, measure


@pytest.fixture
def table():
    table = np.random.default_rng(0).normal(size=(30, 16)).astype(np.float32)
    table[3] = 0.0
    table[4, :3] = [50.0, -50.0, 8.0]
    return table


@pytest.fixture
def scales():
    scales = np.random.default_rng(1).uniform(0.1, 2.0, 30)
    scales[[0, 7, 29]] = 0.0
    return scales


@pytest.mark.parametrize("borders", [[0, 30], [0, 1, 2, 17, 30], [0, 0, 29, 30, 30]])
def test_sums_are_those_of_moments_over_the_rows_that_count(table, scales, borders):
    totals, squares = np.zeros(16, np.int64), 0
    for first, last in pairwise(borders):
        squares += rows.add_up(table, scales, first, last, totals)
    expected = measure(table[scales > 0])
    np.testing.assert_array_equal(totals, expected.total)
    assert squares == np.trace(expected.products)


def test_numbers_beyond_the_largest_count_as_it():
    totals = np.zeros(2, np.int64)
    squares = rows.add_up(np.array([[1e30, -np.inf]], np.float32), np.ones(1), 0, 1, totals)
    most = round(LARGEST / UNIT)
    assert totals.tolist() == [most, -most]
    assert squares == 2 * most**2


def test_the_mean_is_taken_from_the_rows_that_count(table, scales):
    before, mean = table.copy(), np.arange(16, dtype=np.float32)
    rows.center(table, scales, mean, 0, 30)
    np.testing.assert_array_equal(table, np.where(scales[:, None] > 0, before - mean, before))


def test_rows_get_their_norm_and_those_of_zeros_or_without_size_stay(table):
    before = table.copy()
    sizes = np.random.default_rng(2).uniform(0.01, 5.0, 30)
    sizes[[5, 6]] = 0.0
    rows.resize(table, sizes, 1, 29)
    np.testing.assert_array_equal(table[[0, 3, 5, 6, 29]], before[[0, 3, 5, 6, 29]])
    scaled = np.setdiff1d(np.arange(1, 29), [3, 5, 6])
    np.testing.assert_allclose(np.linalg.norm(table[scaled], axis=1), sizes[scaled], rtol=1e-6)
    cosines = (table[scaled] * before[scaled]).sum(axis=1) / np.linalg.norm(before[scaled], axis=1) / sizes[scaled]
    np.testing.assert_allclose(cosines, 1.0, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-44, 1e-39, 1e-20, 1e18])
def test_rows_of_any_size_get_their_norm(size):
    table = np.full((1, 16), size, np.float32)
    rows.resize(table, np.ones(1), 0, 1)
    np.testing.assert_allclose(table, 0.25, rtol=1e-6)
