"""Moments: the same bits in any order and partition, and draws that have them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from manela.kernels.moments import LARGEST, STEP, UNIT, add, draw, factor, measure
from manela.kernels.randomness import derive

vectors_of_any_kind = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 40), st.integers(1, 9)),
    elements=st.floats(-10.0, 10.0, width=32),
)


def assert_same(one, other):
    assert one.size == other.size
    np.testing.assert_array_equal(one.total, other.total)
    np.testing.assert_array_equal(one.products, other.products)


@given(vectors=vectors_of_any_kind, seed=st.integers(0, 9), parts=st.integers(1, 7))
def test_any_order_and_partition_gives_the_same(vectors, seed, parts):
    whole = measure(vectors)
    shuffled = np.random.default_rng(seed).permutation(vectors)
    assert_same(add([measure(part) for part in np.array_split(shuffled, parts)]), whole)


@given(vectors=vectors_of_any_kind)
def test_sums_are_those_of_whole_numbers(vectors):
    whole = [[round(min(max(float(x), -LARGEST), LARGEST) / UNIT) for x in row] for row in vectors]
    found, m = measure(vectors), vectors.shape[1]
    assert found.size == len(vectors)
    assert found.total.tolist() == [sum(row[k] for row in whole) for k in range(m)]
    assert found.products.tolist() == [[sum(row[j] * row[k] for row in whole) for k in range(m)] for j in range(m)]


def test_sums_are_exact_where_many_of_the_largest_are_added():
    """More vectors than are added in double precision at a time, at the end of what is representable."""
    many = STEP + STEP // 2
    found = measure(np.full((many, 2), 1000.0, np.float32))
    most = round(LARGEST / UNIT)
    assert found.total.tolist() == [many * most] * 2
    assert found.products.tolist() == [[many * most**2] * 2] * 2


def test_the_factor_is_that_of_the_covariance():
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(500, 8)) @ random.normal(size=(8, 8)) / 4 + 0.5).clip(-LARGEST, LARGEST)
    mean, lower = factor(measure(vectors))
    np.testing.assert_allclose(mean, vectors.mean(axis=0), atol=UNIT)
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_allclose(lower @ lower.T, np.cov(vectors.T, bias=True), atol=100 * UNIT)


def test_draws_have_the_moments():
    random = np.random.default_rng(1)
    vectors = random.normal(size=(300, 5)) @ random.normal(size=(5, 5)) / 4 - 0.25
    drawn = draw(measure(vectors), derive(7, np.arange(100_000)))
    assert drawn.dtype == np.float32
    covariance = np.cov(vectors.T, bias=True)
    largest = np.sqrt(covariance.diagonal().max())
    # errors of a mean and of a covariance over N draws are about s/√N and 1.5·s²/√N; five of them are enough
    np.testing.assert_allclose(drawn.mean(axis=0), vectors.mean(axis=0), atol=5 * largest / 316)
    np.testing.assert_allclose(np.cov(drawn.T, bias=True), covariance, atol=7.5 * largest**2 / 316)
    standard = (drawn[:, 0] - drawn[:, 0].mean()) / drawn[:, 0].std()
    assert (standard**3).mean() == pytest.approx(0.0, abs=0.05)
    assert (standard**4).mean() == pytest.approx(3.0, abs=0.15)


def test_a_draw_depends_on_its_key_only():
    found = measure(np.random.default_rng(2).normal(size=(50, 6)))
    keys = derive(3, np.arange(20))
    together = draw(found, keys)
    np.testing.assert_array_equal(np.vstack([draw(found, keys[i : i + 1]) for i in range(20)]), together)
    np.testing.assert_array_equal(draw(found, keys[::-1]), together[::-1])
    assert draw(found, keys[:0]).shape == (0, 6)


@pytest.mark.parametrize("number", [1, 7])
def test_vectors_that_are_all_the_same_give_draws_that_are_it(number):
    vectors = np.tile(np.array([0.5, -0.25, 3.0], np.float32), (number, 1))
    mean, lower = factor(measure(vectors))
    np.testing.assert_array_equal(mean, vectors[0])
    assert not lower.any()
    np.testing.assert_array_equal(draw(measure(vectors), derive(0, np.arange(4))), np.tile(vectors[0], (4, 1)))


def test_directions_without_variance_have_none_in_draws():
    random = np.random.default_rng(4)
    vectors = random.normal(size=(200, 4))
    vectors[:, 1] = 0.75
    vectors[:, 3] = vectors[:, 0]
    drawn = draw(measure(vectors), derive(0, np.arange(500)))
    assert np.isfinite(drawn).all()
    assert (drawn[:, 1] == 0.75).all()
    np.testing.assert_allclose(drawn[:, 3], drawn[:, 0], atol=1e-3)


def test_numbers_beyond_the_largest_count_as_it():
    wild = np.array([[1e30, -1e30, np.inf], [-np.inf, 9.0, -8.5]], np.float32)
    assert_same(measure(wild), measure(np.clip(wild, -LARGEST, LARGEST)))
    assert np.isfinite(draw(measure(wild), derive(0, np.arange(9)))).all()


def test_sums_over_30_million_vectors_at_the_limit_fit_into_64_bits():
    assert 30_000_000 * round(LARGEST / UNIT) ** 2 < 2**63
