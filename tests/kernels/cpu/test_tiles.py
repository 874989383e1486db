"""Vector instructions for rounds by messages, against NumPy in double precision."""

import numpy as np
import pytest
from numba import njit

from manela.kernels import reference
from manela.kernels.cpu import tiles
from manela.kernels.cpu.tiles import GROUP, TILE

WIDTHS = [16, 32, 48, 64, 112, 128, 144]
"""Of tables: one register of each size, whole chunks of registers, and chunks with some left over."""


@njit
def multiply(x, transposed, block, products):
    tiles.multiply_tile(x, transposed, block, products)


@njit
def push(products, rates):
    tiles.push_away(products, rates)


@njit
def absorb(coefficients, negatives, block, count, change):
    tiles.absorb_tile(coefficients, negatives, block, count, change)


@njit
def dot(x, node, table, rows, first, products):
    tiles.dot_rows(x, node, table, rows, first, products)


@njit
def add(coefficients, table, rows, count, change, node):
    tiles.add_rows(coefficients, table, rows, count, change, node)


@njit
def weigh(values, shares, used, rate):
    tiles.weigh_targets(values, shares, used, rate)


@njit
def average(table, offset, neighbours, weights, first, last, scale, target, row):
    tiles.average_row(table, offset, neighbours, weights, first, last, scale, target, row)


@njit
def narrow(source, row, target, place):
    tiles.narrow_row(source, row, target, place)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("m", WIDTHS)
@pytest.mark.parametrize("columns", [16, 80, 112])
def test_products_of_a_tile_with_the_negatives_of_a_block(m, columns):
    x, transposed = draw(TILE, m), draw(3, m, columns, seed=1)
    products = np.full((TILE, columns), np.nan, np.float32)
    multiply(x, transposed, 2, products)
    np.testing.assert_allclose(products, x.astype(np.float64) @ transposed[2], rtol=1e-5, atol=1e-4)


def test_a_push_is_the_rate_of_the_node_times_the_sigmoid():
    products, rates = 10 * draw(TILE, 48), np.abs(draw(TILE))
    rates[2] = 0.0
    expected = -rates[:, None] * reference.sigmoid(products.astype(np.float64))
    push(products, rates)
    np.testing.assert_allclose(products, expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("m", WIDTHS)
@pytest.mark.parametrize("count", [0, 1, 15, 33])
def test_only_the_first_negatives_are_absorbed(m, count):
    coefficients, negatives, change = draw(TILE, 48), draw(2, 33, m, seed=1), draw(TILE, m, seed=2)
    expected = change + coefficients[:, :count].astype(np.float64) @ negatives[1, :count]
    coefficients[:, count:] = np.nan
    absorb(coefficients, negatives, 1, count, change)
    np.testing.assert_allclose(change, expected, rtol=1e-5, atol=1e-4)


def as_shown(table, half):
    return table.astype(np.float16).view(np.uint16) if half else table


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("m", WIDTHS)
def test_rows_of_either_precision_are_multiplied_and_added(m, half):
    x, table = draw(TILE, m), draw(9, m, seed=1)
    if half:
        table = table.astype(np.float16).astype(np.float32)
    rows = np.random.default_rng(3).integers(9, size=3 * GROUP)
    products = np.full(3 * GROUP, np.nan, np.float32)
    dot(x, 4, as_shown(table, half), rows, GROUP, products)
    assert np.isnan(products[:GROUP]).all()
    assert np.isnan(products[2 * GROUP :]).all()
    exact = table[rows[GROUP : 2 * GROUP]].astype(np.float64) @ x[4]
    np.testing.assert_allclose(products[GROUP : 2 * GROUP], exact, rtol=1e-5, atol=1e-4)

    coefficients, change = draw(3 * GROUP, seed=4), draw(TILE, m, seed=5)
    expected = change.astype(np.float64)
    expected[4] += coefficients[:11].astype(np.float64) @ table[rows[:11]]
    add(coefficients, as_shown(table, half), rows, 11, change, 4)
    np.testing.assert_allclose(change, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("used", [1, GROUP - 1, GROUP, 2 * GROUP + 3])
def test_targets_are_weighed_without_the_part_that_is_the_nodes_own(used):
    random = np.random.default_rng(0)
    own, rows, x = random.normal(size=(1, 5)), random.normal(size=(used, 5)), random.normal(size=5)
    shares = np.where(random.random(used) < 0.5, random.uniform(0.0, 0.9, used), 0.0)
    width = 4 * GROUP
    values, padded = np.full(width, 7.0, np.float32), np.zeros(width, np.float32)
    values[: used + 1], padded[1 : used + 1] = np.vstack((own, rows)) @ x, shares
    weigh(values, padded, used, np.float32(0.3))
    targets = (rows - shares[:, None] * own) / (1 - shares[:, None])
    pull = 0.3 * (1 - reference.sigmoid(targets @ x))
    np.testing.assert_allclose(values[1 : used + 1], pull / (1 - shares), rtol=1e-4)
    np.testing.assert_allclose(values[: used + 1] @ np.vstack((own, rows)), pull @ targets, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", WIDTHS)
def test_a_mean_is_over_the_arcs_of_a_node(m, weighted, half):
    table, target = draw(14, m), np.full((4, m), np.nan, np.float32)
    if half:
        table = table.astype(np.float16).astype(np.float32)
    neighbours = np.random.default_rng(3).integers(10, size=30).astype(np.int32)
    weights = np.random.default_rng(4).uniform(0.1, 3.0, 30) * 1e90 if weighted else None
    scale = 1 / (weights[5:27].sum() if weighted else 22)
    average(as_shown(table, half), 4, neighbours, weights, 5, 27, scale, target, 2)
    rows = table[4 + neighbours[5:27]].astype(np.float64)
    exact = scale * (weights[5:27] @ rows if weighted else rows.sum(axis=0))
    np.testing.assert_allclose(target[2], exact, rtol=1e-5, atol=1e-5)
    assert np.isnan(target[[0, 1, 3]]).all()
    average(as_shown(table, half), 4, neighbours, weights, 5, 5, 0.0, target, 3)
    assert not target[3].any()


def test_rows_are_narrowed_as_numpy_does():
    source, target = 1e3 * draw(3, 48) ** 5, np.zeros((5, 48), np.uint16)
    with np.errstate(over="ignore"):
        expected = source[1].astype(np.float16)
    narrow(source, 1, target, 3)
    np.testing.assert_array_equal(target[3].view(np.float16), expected)
    assert not target[[0, 1, 2, 4]].any()
