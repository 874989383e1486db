import numpy as np
import pytest
from scipy.stats import chisquare

from manela.datasets.generators import stochastic_block_model
from manela.errors import ParameterError
from manela.graph import Graph
from manela.params import PARAMETERS, check_all
from manela.schedule import FINAL_RATE, count_pairs, plan


def settings(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, **parameters})


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
        count_pairs(graph, settings(updates=1e30))


def test_a_large_network_has_more_rounds():
    small, large = (Graph.from_edges([0], [1], nodes=range(n)) for n in (10, 100_000))
    assert plan(small, settings(), 100).rounds == 300
    assert plan(large, settings(), 100).rounds == 1000
    assert plan(large, settings(rounds=7), 100).rounds == 7
