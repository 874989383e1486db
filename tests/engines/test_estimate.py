"""What a run will take, told before it begins."""

import pytest

from manela import Graph
from manela.engines import estimate as module
from manela.engines.estimate import count_cpu_bytes, count_gpu_bytes, count_store_bytes, estimate
from manela.engines.training import plan_run
from manela.settings.budget import Sizes, resolve
from manela.settings.settings import check_all


@pytest.fixture(scope="module")
def graph():
    return Graph.from_edges(list(range(40)), [(i + 1) % 40 for i in range(40)])


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_TRIAL", 0.02)


def check(**parameters):
    return check_all({"dimensions": 8, "n_jobs": 1, "random_state": 1, **parameters})


@pytest.mark.parametrize("parameters", [{"pairs": 50_000}, {"exchange": "walks", "pairs": 7_000}, {"updates": 2.0}, {}])
def test_pairs_and_rounds_are_those_that_the_run_makes(graph, parameters):
    settings = check(**parameters)
    found = estimate(graph, settings)
    assert found.pairs == resolve(settings, Sizes.of(graph.indptr)).expected_pairs
    assert found.rounds == plan_run(graph, settings, found.pairs).rounds
    assert found.seconds > 0


def test_more_pairs_take_longer_and_no_more_room_on_a_processor(graph):
    short, long = (estimate(graph, check(pairs=pairs)) for pairs in (10_000, 10_000_000))
    assert long.seconds > short.seconds
    assert long.bytes == short.bytes


def test_room_is_counted_as_before_a_run(graph):
    settings = check(pairs=1000)
    found = estimate(graph, settings)
    assert found.bytes == count_cpu_bytes(graph, settings) > 0
    assert found.gpu_bytes == count_gpu_bytes(graph, settings)
    assert found.store_bytes == count_store_bytes(graph, settings)


def test_a_running_time_is_how_long_it_takes(graph):
    found = estimate(graph, check(max_seconds=2.0))
    assert found.seconds == pytest.approx(2.0, rel=0.01)
    assert found.pairs > 0
