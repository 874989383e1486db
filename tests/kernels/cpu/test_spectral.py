"""The kernels of the spectral view: eigenvectors, triangular inverses, exact products, and products with a matrix."""

import numpy as np
import pytest

from manela.kernels import moments
from manela.kernels.cpu.draws import factor
from manela.kernels.cpu.spectral import add_products, decompose, invert, multiply


def make_matrix(kind, size):
    random = np.random.default_rng(size)
    rows = random.normal(size=(4 * size, size)) * np.geomspace(1.0, 1e-3, size)
    if kind == "of less than full rank":
        rows[:, size // 2 :] = rows[:, : size - size // 2]
    if kind == "diagonal with repeated numbers":
        return np.diag(random.integers(0, 3, size).astype(float))
    if kind == "all ones":
        return np.ones((size, size))
    if kind == "indefinite":
        return rows[:size] + rows[:size].T
    if kind == "zeros":
        return np.zeros((size, size))
    return rows.T @ rows


KINDS = (
    "definite", "of less than full rank", "diagonal with repeated numbers", "all ones", "indefinite", "zeros"
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 16, 128, 256])
def test_eigenvectors_are_orthogonal_and_give_back_the_matrix(kind, size):
    matrix = make_matrix(kind, size)
    values, vectors = np.zeros(size), np.zeros((size, size))
    assert decompose(matrix.copy(), values, vectors)
    largest = max(1e-300, np.abs(matrix).max())
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(size), atol=1e-12)
    np.testing.assert_allclose((vectors.T * values) @ vectors / largest, matrix / largest, atol=1e-12)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-12 * size * largest)


@pytest.mark.parametrize("size", [1, 5, 128])
def test_a_triangular_matrix_is_inverted(size):
    lower = np.zeros((size, size))
    factor(make_matrix("definite", size), 0.0, lower)
    inverse = np.zeros_like(lower)
    invert(lower, inverse)
    np.testing.assert_allclose(inverse @ lower, np.eye(size), atol=1e-9)


def test_empty_directions_are_left_out_of_an_inverse():
    lower = np.zeros((5, 5))
    factor(make_matrix("all ones", 5), 1e-9, lower)
    inverse = np.zeros_like(lower)
    invert(lower, inverse)
    assert inverse[0, 0] == 1.0
    assert np.count_nonzero(inverse) == 1


UNIT, LARGEST = 2.0**-10, 2.0**10


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 1000])
def test_products_are_exact_sums_of_whole_numbers(rows):
    random = np.random.default_rng(rows)
    left, right = (random.normal(size=(rows, 16)).astype(np.float32) for _ in range(2))
    left[: rows // 7] *= 1e4  # to be clipped
    both = np.concatenate((left, right), axis=1)
    products = np.zeros((32, 32), np.int64)
    for first in range(0, rows, 300):  # in parts, as threads do
        add_products(left, right, False, UNIT, LARGEST, first, min(rows, first + 300), products)
    expected = moments.multiply(both, both, UNIT, LARGEST)
    np.testing.assert_array_equal(np.tril(products * UNIT**2), np.tril(expected))
    alone, apart = np.zeros((16, 16), np.int64), np.zeros((32, 32), np.int64)
    add_products(left, None, False, UNIT, LARGEST, 0, rows, alone)
    np.testing.assert_array_equal(np.tril(alone), np.tril(products[:16, :16]))
    add_products(left, right, True, UNIT, LARGEST, 0, rows, apart)
    np.testing.assert_array_equal(apart[16:, :16] * UNIT**2, expected[16:, :16])
    assert not apart[:, 16:].any()


@pytest.mark.parametrize("rows", [0, 1, 6, 50])
def test_rows_are_multiplied_by_a_matrix_in_place(rows):
    random = np.random.default_rng(rows)
    left, right = (random.normal(size=(rows, 32)).astype(np.float32) for _ in range(2))
    matrix = random.normal(size=(1, 64, 32)).astype(np.float32)
    expected = np.concatenate((left, right), axis=1).astype(float) @ matrix[0]
    multiply(left, right, matrix, 0, rows, left)
    np.testing.assert_allclose(left, expected, atol=2e-5)
