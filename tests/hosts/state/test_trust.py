"""What a host makes of what peers show."""

import numpy as np
import pytest

from manela.errors import MalformedError
from manela.hosts.state.messages import ROUND, Step, Sums
from manela.hosts.state.trust import FEWEST_NODES, Bounded, Likeness, Norms, Trust, measure_norms
from manela.kernels.moments import UNIT, Moments, center, estimate, measure

STEP = Step(ROUND, 5)
NORMS = Norms(np.ones((1, 1)), 0.1)


def draw(rows, m=4, scale=1.0, seed=0, tables=1, levels=1):
    drawn = np.random.default_rng(seed).normal(scale=scale, size=(rows, tables, levels, m))
    return drawn.astype(np.float32)


def bounded(clip=2.0):
    return Bounded(clip)


def lengths_of(rows):
    return np.linalg.norm(rows.astype(np.float64), axis=3)


def test_exact_trust_takes_and_gives_everything_as_it_is():
    exact, rows = Trust(), draw(5, scale=100.0)
    judgement = exact.judge(rows, rows[:, 0, 0], NORMS)
    assert judgement.rows is rows
    assert (judgement.clipped, judgement.alarms) == (0.0, [])
    assert exact.believes(1.0, Likeness(-1.0), 1.0, 100, False)
    assert exact.show_totals(1, 1)
    strengths = np.array([np.inf, -1.0])
    assert exact.bound_strengths(strengths, np.ones(2), np.ones(2)) is strengths
    exact.check_moments(Moments(0, np.zeros(1, np.int64), np.zeros((1, 1), np.int64)))


def test_exact_sums_do_not_depend_on_who_adds_up_what():
    vectors = draw(60)[:, 0, 0]
    parts = [measure(vectors[:10]), measure(vectors[10:40]), measure(vectors[40:])]
    whole = measure(vectors)
    for first in range(3):
        others = {str(i): part for i, part in enumerate(parts) if i != first}
        pooled = Trust().pool_moments(parts[first], others, {})
        assert pooled.size == 60
        np.testing.assert_array_equal(pooled.total, whole.total)
        np.testing.assert_array_equal(pooled.products, whole.products)
    sums = Trust().pool_sums(Sums(1, np.array([5]), 25), {"b": Sums(2, np.array([-3]), 9)}, {})
    assert (sums.count, sums.total.tolist(), sums.squares) == (3, [2], 34)


def test_rows_are_cut_to_the_length_that_they_may_have_and_keep_their_direction():
    rows = draw(200, scale=3.0)
    before = rows.copy()
    judgement = bounded(clip=2.0).judge(rows, np.zeros((200, 4), np.float32), NORMS)
    lengths = lengths_of(before)
    assert lengths_of(judgement.rows).max() <= 2.0 + 1e-5
    short = lengths[:, 0, 0] <= 2.0
    np.testing.assert_array_equal(judgement.rows[short], before[short])
    cosines = (judgement.rows * before).sum(axis=3) / (lengths_of(judgement.rows) * lengths)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-5)
    assert judgement.clipped == pytest.approx(1.0 - short.mean())
    assert judgement.alarms == ["outliers"]


def test_an_alarm_is_raised_for_many_outliers_and_not_for_some():
    for long, alarms in ((25, []), (26, ["outliers"])):
        rows = np.full((100, 1, 1, 4), 0.1, np.float32)
        rows[:long] = 50.0
        assert bounded().judge(rows, np.zeros((100, 4), np.float32), NORMS).alarms == alarms


def test_an_alarm_is_raised_when_vectors_jump_and_not_when_they_are_new():
    rows = np.full((10, 1, 1, 4), 0.5, np.float32)
    assert bounded().judge(rows.copy(), -rows[:, 0, 0], NORMS).alarms == ["jumping"]
    assert bounded().judge(rows.copy(), rows[:, 0, 0], NORMS).alarms == []
    assert bounded().judge(rows.copy(), np.zeros((10, 4), np.float32), NORMS).alarms == []
    # where own vectors move as much, peers may too
    assert bounded().judge(rows.copy(), -rows[:, 0, 0], Norms(np.ones((1, 1)), 1.0)).alarms == []


def test_no_rows_are_judged_without_a_word():
    judgement = bounded().judge(draw(0), np.zeros((0, 4), np.float32), NORMS)
    assert (len(judgement.rows), judgement.clipped, judgement.alarms) == (0, 0.0, [])


def test_a_peer_is_believed_unless_its_nodes_are_unlike_ours_and_must_be_clearly_alike_to_be_believed_again():
    trust = bounded()
    assert trust.believes(0.5, Likeness(0.1), 0.0, 20, trusted=True)
    assert not trust.believes(0.5, Likeness(0.1), 0.0, 20, trusted=False)
    assert trust.believes(0.5, Likeness(0.2), 0.0, 20, trusted=False)
    assert not trust.believes(0.5, Likeness(0.05), 0.0, 20, trusted=True)
    # chance must not decide
    assert trust.believes(0.5, Likeness(0.05, 0.02), 0.0, 20, trusted=True)
    assert not trust.believes(0.5, Likeness(0.1, 0.5), 0.0, 20, trusted=False)
    # where our own are unlike each other, nothing can be said
    assert trust.believes(0.1, Likeness(-1.0), 1.0, 20, trusted=False)


def test_in_the_first_rounds_only_one_whose_vectors_are_also_too_long_is_not_believed():
    assert bounded().believes(0.5, Likeness(-0.5), 0.5, 7, trusted=True)
    assert not bounded().believes(0.5, Likeness(-0.5), 0.51, 7, trusted=True)
    assert not bounded().believes(0.5, Likeness(-0.5), 0.0, 8, trusted=True)


def test_strengths_are_at_least_what_our_own_edges_add_up_to():
    strengths = np.array([10.0, 1.0, np.nan, np.inf, -5.0])
    known, largest = np.full(5, 4.0), np.full(5, 1.0)
    assert bounded().bound_strengths(strengths, known, largest).tolist() == [10.0, 4.0, 4.0, 4.0, 4.0]


def test_a_node_with_hardly_more_than_one_edge_has_just_this_one():
    found = bounded().bound_strengths(np.array([1.2, 1.5]), np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    assert found.tolist() == [1.0, 1.5]


def test_totals_are_shown_only_where_they_tell_nothing_of_single_nodes():
    shows, few = bounded().show_totals, FEWEST_NODES
    assert not shows(few - 1, 0)
    assert shows(few, 0)
    assert not shows(2 * few, 1)
    assert not shows(2 * few, few - 1)
    assert shows(2 * few, few)
    assert not shows(2 * few, 2 * few)  # a peer without edges here


def test_moments_of_vectors_are_taken_and_those_that_no_vectors_have_are_refused():
    vectors = draw(100)[:, 0, 0]
    moments = measure(vectors)
    bounded().check_moments(moments)
    bounded().check_moments(bounded().measure(vectors))
    bounded().check_moments(measure(np.ones((FEWEST_NODES, 4), np.float32)))  # all the same: a variance of nothing
    with pytest.raises(MalformedError, match=f"at least {FEWEST_NODES} nodes, got {FEWEST_NODES - 1}"):
        bounded().check_moments(measure(vectors[: FEWEST_NODES - 1]))
    with pytest.raises(MalformedError, match="variances of at least 0"):
        bounded().check_moments(moments._replace(products=np.zeros_like(moments.products)))
    tied = np.diag(np.diag(moments.products)) + np.fliplr(np.diag(np.full(4, 10 * moments.products[0, 0])))
    with pytest.raises(MalformedError, match="positive covariance"):
        bounded().check_moments(moments._replace(products=tied))


@pytest.mark.parametrize("nodes", [FEWEST_NODES, 50, 127, 3000])
@pytest.mark.parametrize("common", [0.0, 0.1, 1.0])
def test_moments_in_fewer_directions_than_dimensions_are_taken(nodes, common):
    """As of a host with few nodes, or one whose vectors lie in a plane; from this version and from estimates."""
    rng = np.random.default_rng(nodes)
    for size in (0.003, 0.05, 1.0):
        directions = min(nodes, 100)
        vectors = rng.normal(size=(nodes, directions)) @ rng.normal(size=(directions, 128)) * size / directions**0.5
        vectors = (vectors + common * rng.normal(size=128)).astype(np.float32)
        bounded().check_moments(bounded().measure(vectors))
        bounded().check_moments(estimate(vectors))


def test_honest_moments_are_pooled_nearly_as_they_are():
    own, theirs = draw(100, seed=1)[:, 0, 0], draw(50, seed=2)[:, 0, 0]
    pooled = bounded().pool_moments(measure(own), {"b": measure(theirs)}, {"b": 50})
    true = measure(np.concatenate((own, theirs)))
    assert pooled.size == 150
    np.testing.assert_allclose(pooled.total, true.total, atol=2)
    np.testing.assert_allclose(pooled.products, true.products, rtol=1e-6, atol=200)


def test_a_liar_counts_for_no_more_nodes_than_it_has_and_for_no_longer_vectors():
    own = measure(draw(100, seed=1)[:, 0, 0])
    liar = measure(np.full((100_000, 4), 8.0, np.float32) + draw(100_000, seed=3)[:, 0, 0])
    pooled = bounded(clip=2.0).pool_moments(own, {"b": liar}, {"b": 10})
    assert pooled.size == 110
    added = Moments(10, pooled.total - own.total, pooled.products - own.products)
    mean, covariance = center(added)
    square = np.trace(own.products) / own.size
    assert np.sqrt(mean @ mean) == pytest.approx(0.6 * np.sqrt(square), rel=1e-3)
    assert np.trace(covariance) <= 2.0**2 * square * 1.001
    unlisted = bounded().pool_moments(own, {"b": liar}, {})
    assert unlisted.size == 100
    np.testing.assert_array_equal(unlisted.products, own.products)


def test_pooled_sums_hold_a_liar_to_rows_of_norm_1():
    one = int(1 / UNIT)
    own = Sums(4, np.array([4 * one, 0]), 7)
    honest = bounded().pool_sums(own, {"b": Sums(2, np.array([0, one]), 1)}, {"b": 2})
    assert (honest.count, honest.total.tolist(), honest.squares) == (6, [4 * one, one], 7)
    lie = Sums(2, np.array([0, 1000 * one]), 1)
    bound = bounded().pool_sums(own, {"b": lie}, {"b": 1})
    assert (bound.count, bound.total.tolist()) == (5, [4 * one, one])
    nothing = bounded().pool_sums(own, {"b": Sums(0, np.array([9, 9]), 0)}, {"b": 5})
    assert (nothing.count, nothing.total.tolist()) == (4, [4 * one, 0])


def test_norms_are_the_medians_of_own_rows_and_rows_of_nothing_do_not_count():
    rows = np.zeros((4, 1, 2, 4), np.float32)
    rows[:, 0, 0, 0] = [1.0, 2.0, 3.0, 0.0]
    norms = measure_norms(rows, None)
    assert norms.sizes[0, 0] == pytest.approx(2.0)
    assert np.isnan(norms.sizes[0, 1])
    assert norms.moves == 0.0


def test_moves_are_measured_over_the_length_before():
    before = np.ones((3, 1, 1, 4), np.float32)
    assert measure_norms(before * 1.5, before).moves == pytest.approx(0.5)
    assert measure_norms(before, before).moves == 0.0


def test_a_few_long_vectors_are_clipped_and_raise_no_alarm():
    norms = Norms(np.ones((1, 1)), 0.1)
    for nodes, alarms in ((7, []), (8, ["outliers"])):
        rows = np.full((nodes, 1, 1, 4), 10.0, np.float32)
        judged = bounded().judge(rows, np.ones((nodes, 4), np.float32), norms)
        assert judged.alarms == alarms
        assert judged.clipped == 1.0
        assert np.linalg.norm(judged.rows.reshape(nodes, -1), axis=1).max() <= 2.001
