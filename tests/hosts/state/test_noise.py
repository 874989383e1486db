"""What a host adds to what it shows, and the account of it."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from manela.hosts.state.messages import ROUND, SWEEP, Step, Sum, Sums
from manela.hosts.state.noise import (
    Kind,
    Ledger,
    Noise,
    clip_lengths,
    find_delta,
    find_epsilon,
    find_longest,
    find_mu,
    make_positive,
    round_strengths,
)
from manela.hosts.state.terms import PeerOptions
from manela.kernels.moments import UNIT, center, measure

STEP = Step(ROUND, 0)


def make_noise(key=7, **options):
    return Noise(PeerOptions(**options), key)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# the account


@pytest.mark.parametrize("multipliers", [[1.0], [0.5] * 3, [2.0, 3.0, 4.0], [10.0] * 50])
@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_epsilon_is_that_of_dp_accounting(multipliers, delta):
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    for multiplier in multipliers:
        accountant.compose(GaussianDpEvent(multiplier))
    mu = math.sqrt(sum(1.0 / multiplier**2 for multiplier in multipliers))
    assert find_epsilon(mu, delta) == pytest.approx(accountant.get_epsilon(delta), rel=2e-3)
    assert find_mu(find_epsilon(mu, delta), delta) == pytest.approx(mu, rel=1e-6)


def test_delta_is_that_of_two_gaussians():
    """The largest difference of the chances of two normal distributions that are one standard deviation apart."""
    assert find_delta(1.0, 0.0) == pytest.approx(math.erf(0.5 / math.sqrt(2.0)), rel=1e-12)


def test_nothing_shown_costs_nothing_and_everything_shown_costs_all():
    assert find_epsilon(0.0, 1e-5) == 0.0
    assert find_epsilon(math.inf, 1e-5) == math.inf
    assert find_epsilon(1e-9, 1e-5) == 0.0


def test_large_budgets_do_not_overflow():
    for epsilon in (0.01, 1.0, 100.0, 1e4, 1e6):
        assert find_epsilon(find_mu(epsilon, 1e-6), 1e-6) == pytest.approx(epsilon, rel=1e-3)


def test_a_ledger_refuses_what_is_beyond_its_limit_until_the_next_period():
    ledger = Ledger(limit=1.0)
    assert ledger.charge(0.6)
    assert not ledger.charge(0.6)
    assert ledger.charge(0.4)
    ledger.show("b", Kind.MEANS, 1, 0.6)
    ledger.show("b", Kind.MEANS, 1, 0.6)  # the same release again
    ledger.show("c", Kind.MEANS, 1, 0.6)
    assert ledger.by_peer == {"b": 0.6, "c": 0.6}
    ledger.turn(29, 30)
    assert ledger.spent == 1.0
    ledger.turn(30, 30)
    assert (ledger.spent, ledger.by_peer) == (0.0, {})
    assert ledger.charge(1.0)


def test_means_stop_when_the_budget_is_spent():
    noise = make_noise(epsilon=2.0)
    rows, reach, released = draw(5, 1, 1, 8), np.full(5, 0.1), 0
    while noise.blur(rows, reach, Kind.MEANS, STEP, released, 20.0) is not None:
        released += 1
        assert released < 1000
    assert released == 32  # two learnings' worth of four would be 8 if they took all; they take an eighth
    assert find_epsilon(math.sqrt(noise.ledger.spent), 1e-5) == pytest.approx(2.0, rel=1e-3)


def test_an_attack_on_one_edge_finds_no_more_than_epsilon():
    """The best test between two networks that differ in an edge, against the stated ε of as many releases."""
    noise, trials, releases = make_noise(epsilon=3.0), 4000, 4
    # a mean of norm 1 at each end of the edge, which moves it by all of its reach
    reach, move = np.full(2, 0.25), np.zeros((2, 1, 1, 16), np.float32)
    move[:, 0, 0, 0] = 0.25
    sums = np.zeros((2, trials))
    for with_edge in (0, 1):
        for trial in range(trials):
            noise.ledger.spent = 0.0
            for release in range(releases):
                shown, _ = noise.blur(
                    move * with_edge, reach, Kind.MEANS, STEP, 2 * (8 * trial + release) + with_edge, 20.0
                )
                sums[with_edge, trial] += float((shown * move).sum())
    stated, delta = find_epsilon(math.sqrt(noise.ledger.spent), 1e-5), 1e-5
    found = 0.0
    for threshold in np.quantile(sums, np.linspace(0.02, 0.98, 49)):
        hits = [(sums[0] > threshold).sum(), (sums[1] > threshold).sum()]
        most_false = beta.ppf(0.975, hits[0] + 1, trials - hits[0])  # Clopper and Pearson
        least_true = beta.ppf(0.025, hits[1], trials - hits[1] + 1) if hits[1] else 0.0
        if least_true > delta:
            found = max(found, math.log((least_true - delta) / most_false))
    assert 0.2 < found < stated


# what is added


def test_noise_is_in_proportion_to_the_reach_of_an_edge_and_the_same_for_the_same_version():
    rows, reach = draw(3000, 1, 1, 8), np.repeat([0.1, 1.0], 1500)
    noise = make_noise(noise=2.0)
    blurred, cost = noise.blur(rows, reach, Kind.MEANS, STEP, 3, 100.0)
    added = (blurred - rows).reshape(2, -1).std(axis=1)
    np.testing.assert_allclose(added, [0.2, 2.0], rtol=0.05)
    assert cost == pytest.approx(2.0 / 4.0)  # two rows, each with noise of twice its reach
    np.testing.assert_array_equal(make_noise(noise=2.0).blur(rows, reach, Kind.MEANS, STEP, 3, 100.0)[0], blurred)
    for version, step, key in ((4, STEP, 7), (3, Step(SWEEP, 5), 7), (3, STEP, 8)):
        other, _ = make_noise(key, noise=2.0).blur(rows, reach, Kind.MEANS, step, version, 100.0)
        assert not np.array_equal(other, blurred)


def test_without_noise_everything_is_shown_as_it_is():
    noise, rows = make_noise(noise=0.0), draw(40, 64)
    assert noise.is_off
    assert noise.blur(rows, np.ones(40), Kind.ROWS, STEP, 1, 5.0) == (rows, math.inf)
    np.testing.assert_array_equal(noise.coarsen(rows, np.arange(40), 5.0), rows)
    moments = measure(rows)
    assert noise.blur_moments(moments, 1.0, 1) is moments


def test_no_vector_can_be_computed_from_two_sums_of_which_one_holds_it():
    """Also not from the mean of as many as are shown in one frame."""
    m, vectors = 64, draw(200, 64)
    vectors = clip_lengths(vectors, find_longest(vectors, 2.0))
    longest, noise, hidden = find_longest(vectors, 2.0), make_noise(), vectors[0] / np.linalg.norm(vectors[0])
    for releases in (1, 16):
        with_it = [noise.blur_moments(measure(vectors), longest, draw) for draw in range(releases)]
        without = [noise.blur_moments(measure(vectors[1:]), longest, 100 + draw) for draw in range(releases)]
        total = sum(of.total for of in with_it) - sum(of.total for of in without)
        products = sum(of.products for of in with_it) - sum(of.products for of in without)
        values, directions = np.linalg.eigh(products.astype(float))
        found = [total / np.linalg.norm(total), directions[:, np.argmax(np.abs(values))]]
        assert max(abs(float(one @ hidden)) for one in found) < 0.2 + 2.0 / math.sqrt(m)


def test_moments_with_noise_are_those_of_some_vectors_and_near():
    vectors = draw(500, 16)
    moments = make_noise().blur_moments(measure(vectors), find_longest(vectors, 2.0), 1)
    mean, covariance = center(moments)
    assert np.linalg.eigvalsh(covariance).min() > -1e-3 * np.trace(covariance)
    true = np.cov(vectors.T, bias=True)
    assert np.abs(covariance * UNIT**2 - true).max() < 1.0
    assert np.abs(mean * UNIT - vectors.mean(axis=0)).max() < 0.5


def test_a_matrix_is_made_positive_without_adding_to_its_trace():
    random = np.random.default_rng(0)
    noise = random.normal(size=(40, 40))
    true = np.diag(np.concatenate(([60.0, 40.0], np.zeros(38))))
    positive = make_positive(true + (noise + noise.T) / 2)
    assert np.linalg.eigvalsh(positive).min() > -1e-9
    assert np.trace(positive) == pytest.approx(np.trace(true + noise))
    assert np.linalg.norm(positive - true) < np.linalg.norm((noise + noise.T) / 2) / 2
    np.testing.assert_allclose(make_positive(true), true, atol=1e-9)
    np.testing.assert_allclose(make_positive(-true), 0.0, atol=1e-9)


def test_sums_of_numbers_stay_above_zero_and_near():
    sums = [make_noise().blur_sum(Sum(100, (90.0,)), draw).parts[0] for draw in range(200)]
    assert min(sums) > 0
    assert 1.0 < np.std(sums) < 3.0
    rows = make_noise().blur_sums(Sums(50, np.zeros(8, np.int64), 1), 1)
    assert (rows.count, rows.squares) == (50, 1)
    assert rows.total.any()


def test_vectors_are_shown_in_few_directions_on_a_sparse_network_only():
    vectors, shown = draw(300, 64) * np.linspace(3.0, 0.1, 64, dtype=np.float32), np.arange(10, 60)
    noise = make_noise()
    np.testing.assert_array_equal(noise.coarsen(vectors, shown, 100.0), vectors[shown])
    coarse = noise.coarsen(vectors, shown, 10.0)
    assert coarse.shape == (50, 64)
    assert np.linalg.matrix_rank(coarse - vectors.mean(axis=0), tol=1e-3) == 32
    np.testing.assert_array_equal(noise.coarsen(vectors, shown, 10.0), coarse)
    cosines = (coarse * vectors[shown]).sum(axis=1) / np.linalg.norm(coarse, axis=1)
    assert np.median(cosines / np.linalg.norm(vectors[shown], axis=1)) > 0.7


def test_strengths_are_rounded_to_a_factor():
    strengths = np.array([0.0, 1.0, 2.0, 3.0, 14379.27])
    rounded = round_strengths(strengths)
    assert (rounded[:3] == strengths[:3]).all()
    np.testing.assert_allclose(rounded[3:] / strengths[3:], 1.0, atol=0.1)
    assert (np.log2(rounded[1:]) * 4 % 1 == 0).all()


def test_a_budget_also_works_without_an_amount():
    noise = make_noise(noise=0.0, epsilon=5.0)
    rows = draw(20, 1, 1, 8)
    for kind in (Kind.ROWS, Kind.MEANS):
        blurred, _ = noise.blur(rows, np.ones(20), kind, STEP, 1, 10.0)
        assert not np.array_equal(blurred, rows)


def test_the_vector_of_a_host_of_one_node_is_not_shown_as_it_is():
    vector = draw(1, 64)
    coarse = make_noise().coarsen(vector, np.arange(1), 2.0)
    assert float((coarse * vector).sum() / np.linalg.norm(coarse) / np.linalg.norm(vector)) < 0.9


def test_moments_stay_within_what_a_message_may_hold_however_much_noise():
    vectors = draw(33, 16)
    moments = make_noise(noise=100.0).blur_moments(measure(vectors), find_longest(vectors, 2.0), 1)
    largest = 33 * 8.0 / UNIT
    assert np.abs(moments.total).max() <= largest
    assert np.abs(moments.products.astype(float)).max() <= largest * 8.0 / UNIT
