"""What a run will take, told before it begins."""

import pytest

from manela.data.graph import Graph
from manela.engines.estimate import count_cpu_bytes, count_gpu_bytes, count_store_bytes, estimate
from manela.engines.training import plan_run, train
from manela.formats.datasets import planted_partition
from manela.settings.budget import Sizes, resolve
from manela.settings.parameters import PAPER
from manela.settings.settings import check_all


@pytest.fixture(scope="module")
def graph():
    return Graph.from_edges(list(range(40)), [(i + 1) % 40 for i in range(40)])


TRIAL = 0.02
"""Seconds to measure the speed."""


def check(**parameters):
    return check_all({"dimensions": 8, "n_jobs": 1, "random_state": 1, **parameters})


@pytest.mark.parametrize("parameters", [{"pairs": 50_000}, {"exchange": "walks", "pairs": 7_000}, {"updates": 2.0}, {}])
def test_pairs_and_rounds_are_those_that_the_run_makes(graph, parameters):
    settings = check(**parameters)
    found = estimate(graph, settings, TRIAL)
    assert found.pairs == resolve(settings, Sizes.of(graph.indptr)).expected_pairs
    assert found.rounds == plan_run(graph, settings, found.pairs).rounds
    assert found.seconds > 0


def test_more_pairs_take_longer_and_no_more_room_on_a_processor(graph):
    short, long = (estimate(graph, check(pairs=pairs)) for pairs in (10_000, 10_000_000))
    assert long.seconds > short.seconds
    assert long.bytes == short.bytes


def test_room_is_counted_as_before_a_run(graph):
    settings = check(pairs=1000)
    found = estimate(graph, settings, TRIAL)
    assert found.bytes == count_cpu_bytes(graph, settings) > 0
    assert found.gpu_bytes == count_gpu_bytes(graph, settings)
    assert found.store_bytes == count_store_bytes(graph, settings)


def test_a_running_time_is_how_long_it_takes(graph):
    found = estimate(graph, check(max_seconds=2.0))
    assert found.seconds == pytest.approx(2.0, rel=0.01)
    assert found.pairs > 0


COUNTS = [count_cpu_bytes, count_gpu_bytes, count_store_bytes]
ARCS = 8 * 10_001 + 4 * 20_000


@pytest.fixture(scope="module")
def large():
    return Graph.from_edges(range(10_000), [*range(1, 10_000), 0])


@pytest.mark.parametrize(
    ("count", "edition"), [(count_cpu_bytes, PAPER), *((count, {}) for count in COUNTS)],
    ids=["cpu, walks", "cpu, messages", "gpu", "store"],
)  # fmt: skip
def test_longer_vectors_contexts_and_weights_need_more(large, count, edition):
    least = count(large, check_all({**edition, "dimensions": 64}))
    assert least > ARCS
    assert count(large, check_all({**edition, "dimensions": 128})) > least
    assert count(large, check_all({**edition, "dimensions": 64, "context": True, "ratios": (0.5, 0.5)})) > least
    ends = range(10_000), [*range(1, 10_000), 0]
    weighted = Graph.from_edges(*ends, [1.0 + (k % 2) for k in range(10_000)])
    assert count(weighted, check_all({**edition, "dimensions": 64})) > least


def test_processors_hold_vectors_and_what_is_shown(large):
    """Of each node a vector in single precision, and in half precision itself, its mean, and its spectral view."""
    for views, halves in (("both", 3), ("rounds", 2)):
        found = count_cpu_bytes(large, check_all({"views": views}))
        least = 10_000 * 128 * (4 + 2 * halves) + ARCS
        assert least < found < least + 10_000 * 128 + 1_000_000


def test_by_walks_processors_hold_the_vectors_that_move_twice(large):
    all_move = count_cpu_bytes(large, check_all({**PAPER, "rounds": 10}))
    few_move = count_cpu_bytes(large, check_all({**PAPER, "rounds": 10_000}))
    assert all_move - few_move == pytest.approx(10_000 * 128 * 4, rel=0.05)


def test_a_gpu_needs_room_for_smoothing(large):
    smoothed, not_smoothed = (count_gpu_bytes(large, check_all({"smooth": smooth})) for smooth in (True, False))
    assert smoothed - not_smoothed > 10_000 * 128 * 4


def test_what_travels_is_half_as_long(large):
    """Of two rounds, in half precision."""
    assert 10_000 * 128 * 4 < count_store_bytes(large, check_all({})) < 10_000 * 128 * 4 * 1.2


@pytest.mark.parametrize("count", [count_gpu_bytes, count_store_bytes])
def test_walks_need_no_gpu_and_no_cluster(large, count):
    assert count(large, check_all(PAPER)) == 0


def test_a_run_of_some_seconds_is_counted_too(large):
    assert all(count(large, check_all({"max_seconds": 10.0})) > ARCS for count in COUNTS)


def test_the_spectral_view_alone_has_no_rounds_with_and_without_a_running_time(graph):
    for seconds in (None, 1.0):
        found = estimate(graph, check(views="spectral", max_seconds=seconds), TRIAL)
        assert (found.pairs, found.rounds) == (0, 0)
        assert found.seconds > 0
        run = train(graph, check(views="spectral", max_seconds=seconds))
        assert (run.state.round, run.state.pairs) == (0, 0)


def test_a_third_view_takes_longer_and_more_room_in_main_memory_and_on_a_card(large):
    both, three = (check(dimensions=64, start="random", views=views) for views in ("both", "all"))
    assert estimate(large, three, TRIAL).seconds > estimate(large, both, TRIAL).seconds
    assert count_cpu_bytes(large, three) >= count_cpu_bytes(large, both) + 2 * 64 * 10_000
    assert count_gpu_bytes(large, three) > count_gpu_bytes(large, both)


@pytest.mark.parametrize("parameters", [{}, {"learning_rate": 0.0125}, {"context": True, "ratios": (1.0,)}])
def test_the_rounds_of_a_random_start_are_told_within_a_third(parameters):
    graph = planted_partition(1000, 10, inside=6, outside=4)[0]
    settings = check(start="random", views="rounds", smooth=False, **parameters)
    assert train(graph, settings).state.round == pytest.approx(estimate(graph, settings, TRIAL).rounds, rel=0.34)
