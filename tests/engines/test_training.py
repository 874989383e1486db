import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from manela.datasets.generators import stochastic_block_model
from manela.engines.estimate import estimate
from manela.engines.training import train
from manela.errors import DivergenceError, ManelaWarning
from manela.graph import Graph
from manela.params import PARAMETERS, check_all


def settings(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, "dimensions": 16, "n_jobs": 2, **parameters})


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(nodes=200, seed=2)[0]


def test_a_run_makes_the_pairs_that_were_asked_for_less_the_targets_that_were_dropped(graph):
    run = train(graph, settings(pairs=100_000, rounds=20))
    assert run.state.round == 20
    assert 90_000 < run.state.pairs < 100_000
    none_dropped = train(graph, settings(pairs=100_000, rounds=20, ratios=(1.0,)))
    assert none_dropped.state.pairs == pytest.approx(100_000, rel=0.01)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(graph):
    one, two, other = (train(graph, settings(pairs=20_000, random_state=s)).state.vectors for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_progress_is_told_and_the_objective_grows(graph):
    told = []
    train(graph, settings(pairs=3_000_000, rounds=200), reporter=told.append)
    last = told[-1]
    assert (last.round, last.rounds) == (200, 200)
    assert last.seconds_left == 0
    assert last.learning_rate == pytest.approx(0.025e-4)
    assert last.pairs_per_second > 0
    assert last.objective > -6 * np.log(2) + 0.1


def test_isolated_nodes_are_counted_in_a_warning():
    graph = Graph.from_edges([0, 1], [1, 2], nodes=range(5))
    with pytest.warns(ManelaWarning, match="2 of 5 nodes have no neighbour"):
        train(graph, settings(pairs=100))


def test_vectors_that_stop_being_finite_end_the_run(graph):
    with pytest.raises(DivergenceError, match=r"stopped being finite by round .* learning_rate must be smaller, got"):
        train(graph, settings(learning_rate=1e38, rounds=3))


def test_a_running_time_is_kept_and_says_how_many_pairs_fitted(graph):
    begun = time.perf_counter()
    run = train(graph, settings(max_seconds=1.0))
    assert time.perf_counter() - begun < 5
    assert run.pairs > 10_000
    again = train(graph, settings(pairs=run.pairs))
    if run.state.round == run.schedule.rounds:
        np.testing.assert_array_equal(run.state.vectors, again.state.vectors)


@pytest.mark.parametrize("directed", [False, True])
def test_directed_networks_are_learned_too(directed):
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0], directed=directed)
    vectors = train(graph, settings(pairs=2_000)).state.vectors
    assert np.isfinite(vectors).all()


@pytest.mark.filterwarnings("ignore:max_seconds was over")  # as loading the kernels alone can take so long
def test_speed_is_measured_also_where_every_target_is_dropped():
    graph = Graph.from_edges([0], [1])
    run = train(graph, settings(max_seconds=0.2, ratios=(0.0, 1.0)))
    assert run.state.pairs == 0
    assert estimate(graph, settings(pairs=1, ratios=(0.0, 1.0))).seconds >= 0


def test_no_thread_outlives_its_run(graph):
    before = threading.active_count()
    train(graph, settings(pairs=10_000, n_jobs=3))
    with pytest.raises(DivergenceError):
        train(graph, settings(learning_rate=1e38, rounds=3))
    assert threading.active_count() == before


def test_an_error_in_the_reporter_ends_the_run(graph):
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(graph, settings(pairs=10_000), reporter=fail)


def test_the_estimate_is_of_this_run(graph):
    wanted = settings(pairs=500_000)
    reckoned = estimate(graph, wanted)
    assert reckoned.pairs == 500_000
    assert reckoned.seconds > 0
    tables = 2 * 4 * 16 * graph.number_of_nodes
    assert tables < reckoned.bytes < 20 * tables
    assert estimate(graph, replace(wanted, context=True)).bytes > reckoned.bytes
