import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from manela.kernels.randomness import (
    PHASES,
    ROUNDS,
    VECTORS,
    derive,
    derive_key,
    draw_phases,
    draw_vectors,
    mix,
    scale_to,
    seed_of,
)

words = st.integers(0, 2**64 - 1)


def plain_mix(z):
    """The same in Python's integers."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


@given(words)
def test_mix_is_the_finaliser_of_splitmix64(word):
    assert int(mix(word)) == plain_mix(word)


def test_draws_under_key_zero_are_the_published_splitmix64_sequence_of_seed_zero():
    assert [hex(int(x)) for x in derive(0, np.arange(3))] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


@given(words, words.filter(lambda n: n > 0))
def test_scale_to_is_the_high_half_of_the_product(draw, size):
    assert int(scale_to(draw, size)) == draw * size >> 64


def test_scaled_draws_are_uniform():
    drawn = scale_to(derive(7, np.arange(100_000)), 97)
    assert chisquare(np.bincount(drawn.astype(int), minlength=97)).pvalue > 1e-3


def test_keys_of_different_purposes_and_seeds_differ():
    keys = {derive_key(seed, purpose) for seed in range(50) for purpose in (ROUNDS, PHASES, VECTORS)}
    assert len(keys) == 150


def test_phases_are_uniform():
    assert kstest(draw_phases(3, np.arange(20_000)), "uniform").pvalue > 1e-3


def test_first_vectors_are_uniform_within_half_over_m_and_belong_to_their_node():
    out = np.empty((5_000, 12), dtype=np.float32)
    draw_vectors(1, np.arange(5_000), out, VECTORS)
    assert kstest((out.ravel() * 12 + 0.5), "uniform").pvalue > 1e-3
    one = np.empty((1, 12), dtype=np.float32)
    draw_vectors(1, np.array([4_321]), one, VECTORS)
    np.testing.assert_array_equal(one[0], out[4_321])


@pytest.mark.parametrize("generator", [np.random.default_rng, np.random.RandomState])
def test_a_numpy_generator_gives_a_seed_that_it_gives_again(generator):
    assert seed_of(generator(5)) == seed_of(generator(5))
    assert seed_of(generator(5)) != seed_of(generator(6))


def test_none_gives_a_new_seed_each_time():
    assert seed_of(None) != seed_of(None)
