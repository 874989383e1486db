import numpy as np
import pytest
from scipy.stats import chisquare

from manela.data.graph import Graph
from manela.engines.training import plan_run as plan
from manela.errors import ParameterError
from manela.formats.datasets import stochastic_block_model
from manela.settings.budget import MOST_PAIRS_PER_ROUND, STEADY, Sizes, count_pairs_per_round, resolve
from manela.settings.parameters import PAPER, PARAMETERS
from manela.settings.schedule import FINAL_RATE
from manela.settings.settings import check_all


def find_budget(graph, settings, pairs=None):
    return resolve(settings, Sizes.of(graph.indptr), pairs)


def count_pairs(graph, settings):
    return find_budget(graph, settings).expected_pairs


def by_messages(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, **parameters})


def from_random(**parameters):
    """By messages with a start from which vectors have to grow first."""
    return by_messages(start="random", **parameters)


def settings(**parameters):
    return by_messages(**{**PAPER, **parameters})


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(nodes=300, seed=1)[0]


def total(schedule):
    return sum(schedule.counts(t) for t in range(schedule.rounds))


def test_iterations_are_in_proportion_to_degree(graph):
    schedule = plan(graph, settings(), count_pairs(graph, settings()))
    done = total(schedule)
    np.testing.assert_allclose(done, schedule.iterations, atol=1)
    assert chisquare(done, graph.degrees * (done.sum() / graph.degrees.sum())).pvalue > 1e-3


def test_iterations_are_in_proportion_to_strength_where_there_are_weights():
    graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3], [1.0, 2.0, 5.0, 4.0])
    schedule = plan(graph, settings(), 20_000)
    np.testing.assert_allclose(schedule.iterations / schedule.iterations.sum(), np.array([5, 3, 7, 9]) / 24)


def test_all_pairs_are_planned_and_rounds_are_even(graph):
    wanted = 200_000
    schedule = plan(graph, settings(rounds=50), wanted)
    per_round = [20 * int(schedule.counts(t).sum()) for t in range(50)]
    assert abs(sum(per_round) - wanted) <= 20 * graph.number_of_nodes
    assert max(per_round) < 1.2 * wanted / 50


def test_rate_falls_linearly_to_its_last_value(graph):
    schedule = plan(graph, settings(rounds=11, learning_rate=0.1), 1000)
    rates = [schedule.rate(t) for t in range(11)]
    assert rates[0] == 0.1
    assert rates[-1] == pytest.approx(0.1 * FINAL_RATE)
    np.testing.assert_allclose(np.diff(rates), np.diff(rates)[0])
    assert plan(graph, settings(rounds=1), 1000).rate(0) == 0.025


def test_budgets_say_the_same_in_other_words(graph):
    assert count_pairs(graph, settings()) == 7450 * 300
    assert count_pairs(graph, settings(pairs=123)) == 123
    once = plan(graph, settings(), count_pairs(graph, settings(updates=3.0)))
    np.testing.assert_allclose(once.iterations, 3 * graph.degrees / 10, rtol=1e-6)


def test_a_budget_beyond_counting_is_refused(graph):
    with pytest.raises(ParameterError, match="updates must come to at most 1e\\+15 update pairs, got"):
        find_budget(graph, settings(updates=1e30))


def test_a_large_network_has_more_rounds():
    small, large = (Graph.from_edges([0], [1], nodes=range(n)) for n in (10, 100_000))
    assert plan(small, settings(), 100).rounds == 300
    assert plan(large, settings(), 100).rounds == 1000
    assert plan(large, settings(rounds=7), 100).rounds == 7


@pytest.mark.parametrize("frequency", [0.0, 0.25, 0.5, 1.0, 2.0])
def test_iterations_are_in_proportion_to_a_power_of_strength(frequency):
    graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 3], [1.0, 2.0, 5.0, 4.0], nodes=range(5))
    for wanted in (by_messages(frequency=frequency), settings(frequency=frequency)):
        schedule = plan(graph, wanted, 20_000)
        expected = np.append(np.array([5.0, 3.0, 7.0, 9.0]) ** frequency, 0.0)
        np.testing.assert_allclose(schedule.iterations / schedule.iterations.sum(), expected / expected.sum())
        assert schedule.iterations.sum() * 20 == pytest.approx(20_000)
        assert total(schedule)[4] == 0  # a node without neighbours does nothing, also where all do the same


def test_by_messages_the_rate_stays_for_half_of_a_known_number_of_rounds(graph):
    schedule = plan(graph, from_random(rounds=12, learning_rate=0.1), 1000)
    rates = [schedule.rate(t) for t in range(12)]
    assert rates[:7] == [0.1] * 7
    assert rates[-1] == pytest.approx(0.1 * FINAL_RATE)
    np.testing.assert_allclose(np.diff(rates)[6:], np.diff(rates)[6])
    assert plan(graph, by_messages(rounds=1), 1000).rate(0) == 0.025


def test_a_rate_that_falls_earlier_ends_a_run_earlier_only_if_its_length_is_not_given(graph):
    fixed = plan(graph, from_random(rounds=12), 1000).fall(2)
    assert (fixed.rounds, fixed.falls_at) == (12, 2)
    assert fixed.rate(2) == 0.025 > fixed.rate(3)
    free = plan(graph, from_random(), None)
    fallen = free.fall(5)
    assert fallen.rounds == 5 + free.falling < free.rounds
    rates = [fallen.rate(t) for t in range(fallen.rounds)]
    assert rates[:6] == [0.025] * 6
    assert rates[-1] == pytest.approx(0.025 * FINAL_RATE)
    np.testing.assert_allclose(np.diff(rates)[5:], np.diff(rates)[5])
    for number in range(fallen.rounds):  # what nodes do does not depend on when the rate falls
        np.testing.assert_array_equal(fallen.counts(number), free.counts(number))


def test_while_the_rate_does_not_fall_the_rounds_are_those_if_it_fell_now(graph):
    free = plan(graph, from_random(), None)
    assert free.expect_rounds(0) == free.falling
    assert free.expect_rounds(3) == 3 + free.falling
    assert free.expect_rounds(10**6) == free.rounds
    assert plan(graph, from_random(rounds=12), 1000).expect_rounds(3) == 12


def ring(neighbours):
    """400 nodes with as many neighbours each."""
    nodes = np.arange(400)
    ends = [(nodes, (nodes + step) % 400) for step in range(1, neighbours // 2 + 1)]
    return Graph.from_edges(*(np.concatenate(side) for side in zip(*ends, strict=True)))


BY_START = pytest.mark.parametrize(
    "by_start", [lambda **more: from_random(**more), lambda **more: by_messages(**more)], ids=["random", "spectral"]
)


def count_falling(graph, wanted):
    """Rounds in which the rate falls."""
    schedule = plan(graph, wanted, None)
    return schedule.falling or schedule.rounds


@BY_START
def test_a_dense_network_learns_longer(by_start):
    lengths = [count_falling(ring(degree), by_start()) for degree in (2, 20, 60, 100, 300, 390)]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) >= 3
    assert lengths[-1] == lengths[-2]
    isolated = Graph.from_edges([0], [1], nodes=range(1000))
    assert count_falling(isolated, by_start()) == lengths[0]


@BY_START
def test_patience_learns_longer_and_more_so_on_dense_networks(by_start):
    sparse, dense = (
        [count_falling(ring(degree), by_start(patience=patience)) for patience in (0.01, 0.5, 1.0, 4.0, 16.0)]
        for degree in (2, 100)
    )
    assert sparse == sorted(sparse)
    assert dense == sorted(dense)
    assert min(sparse) >= 1
    assert dense[3] == pytest.approx(4 * dense[2], rel=0.05)
    assert sparse[3] == pytest.approx(2 * sparse[2], rel=0.1)
    budget = by_start(rounds=7, patience=4.0)
    assert plan(ring(2), budget, count_pairs(ring(2), budget)).rounds == 7  # a budget is a budget


def test_vectors_that_start_from_the_spectral_view_need_fewer_rounds_and_no_time_to_grow():
    for degree in (2, 20, 100, 390):
        long, short = (plan(ring(degree), wanted, None) for wanted in (from_random(), by_messages()))
        assert short.rounds < long.falling
        assert short.falls_at == 0
        assert short.rate(0) == 0.025 > short.rate(1)


def test_the_spectral_view_alone_needs_no_rounds(graph):
    budget = find_budget(graph, by_messages(views="spectral"))
    assert (budget.pairs, budget.rounds) == (0, 0)


def test_by_messages_a_round_without_budget_has_the_same_work(graph):
    schedule = plan(graph, from_random(), None)
    work = [20 * int(schedule.counts(t).sum()) for t in range(30)]
    a_round = count_pairs_per_round(by_messages()) * 300
    np.testing.assert_allclose(work, a_round, rtol=0.15)
    assert np.mean(work) == pytest.approx(a_round, rel=0.01)


@pytest.mark.parametrize(("rate", "negatives"), [(0.025, 5), (0.05, 5), (0.025, 20), (0.4, 50)])
def test_by_messages_a_round_pushes_the_common_mean_back_by_less_than_twice_itself(rate, negatives):
    pairs = count_pairs_per_round(by_messages(learning_rate=rate, negatives=negatives))
    assert 1 <= pairs <= MOST_PAIRS_PER_ROUND
    assert pairs == 1 or pairs * rate * (negatives - 1) / 2 <= STEADY + 1e-6 < 2


def test_by_messages_without_negatives_a_round_has_the_most_pairs():
    assert count_pairs_per_round(by_messages(negatives=0)) == MOST_PAIRS_PER_ROUND


def test_by_messages_budgets_say_the_same_in_other_words(graph):
    assert count_pairs(graph, by_messages(pairs=123)) == 123
    a_round = count_pairs_per_round(by_messages()) * 300
    assert count_pairs(graph, by_messages(rounds=7)) == 7 * a_round
    assert count_pairs(graph, by_messages(updates=3.0)) == count_pairs(graph, settings(updates=3.0))
    usual = count_pairs(graph, from_random())
    free = plan(graph, from_random(), None)
    assert free.falling < usual / a_round < free.rounds
    rounds = plan(graph, by_messages(), round(10 * a_round) + 1).rounds
    assert rounds == 11
    assert plan(graph, by_messages(), 1).rounds == 1
    assert plan(graph, by_messages(rounds=3), 10**6).rounds == 3


def test_only_without_a_budget_and_where_vectors_have_to_grow_is_the_length_open(graph):
    assert find_budget(graph, from_random()).pairs is None
    assert find_budget(graph, by_messages()).pairs == plan(graph, by_messages()).rounds * 30 * 300
    assert find_budget(graph, settings()).pairs == 7450 * 300
    for wanted in ({"pairs": 5}, {"updates": 1.0}, {"rounds": 3}):
        budget = find_budget(graph, by_messages(**wanted))
        assert budget.pairs == budget.expected_pairs >= 5


@pytest.mark.parametrize("edition", [by_messages, settings])
def test_pairs_that_were_measured_are_the_budget_of_a_running_time(graph, edition):
    wanted = edition(max_seconds=2.0)
    assert find_budget(graph, wanted).seconds == 2.0
    measured = find_budget(graph, wanted, 123_456)
    assert measured.pairs == measured.expected_pairs == 123_456
    assert measured.pairs_per_round == 123_456 / measured.rounds


def test_a_share_scales_the_iterations_of_each_node(graph):
    share = np.linspace(0.0, 1.0, 300)
    for wanted, pairs in ((by_messages(), None), (by_messages(), 10_000), (settings(), 10_000)):
        whole, part = plan(graph, wanted, pairs), plan(graph, wanted, pairs, share)
        np.testing.assert_allclose(part.iterations, share * whole.iterations)


@pytest.mark.parametrize(
    ("nodes", "degree", "pairs"),
    [(1000, 4, 480), (10_000, 4, 240), (10_000, 12, 300), (10_000, 40, 480), (10_000, 64, 660), (10_000, 900, 1200)],
)
def test_from_the_spectral_view_a_large_and_sparse_network_learns_for_less_time(nodes, degree, pairs):
    budget = resolve(check_all({}), Sizes(nodes, degree * nodes, nodes))
    assert budget.pairs == pairs * nodes
    assert budget.rounds == pairs // 30
