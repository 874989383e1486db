"""The memory of a run, counted before it begins."""

import pytest

from manela.data.graph import Graph
from manela.engines.estimate import count_cpu_bytes, count_gpu_bytes, count_store_bytes
from manela.settings.parameters import PAPER
from manela.settings.settings import check_all

COUNTS = [count_cpu_bytes, count_gpu_bytes, count_store_bytes]
ARCS = 8 * 10_001 + 4 * 20_000


@pytest.fixture(scope="module")
def graph():
    return Graph.from_edges(range(10_000), [*range(1, 10_000), 0])


@pytest.mark.parametrize(
    ("count", "edition"), [(count_cpu_bytes, PAPER), *((count, {}) for count in COUNTS)],
    ids=["cpu, walks", "cpu, messages", "gpu", "store"],
)  # fmt: skip
def test_longer_vectors_contexts_and_weights_need_more(graph, count, edition):
    least = count(graph, check_all({**edition, "dimensions": 64}))
    assert least > ARCS
    assert count(graph, check_all({**edition, "dimensions": 128})) > least
    assert count(graph, check_all({**edition, "dimensions": 64, "context": True, "ratios": (0.5, 0.5)})) > least
    ends = range(10_000), [*range(1, 10_000), 0]
    weighted = Graph.from_edges(*ends, [1.0 + (k % 2) for k in range(10_000)])
    assert count(weighted, check_all({**edition, "dimensions": 64})) > least


def test_processors_hold_vectors_and_what_is_shown(graph):
    """Of each node a vector in single precision, and in half precision itself and its mean."""
    found = count_cpu_bytes(graph, check_all({}))
    assert 10_000 * 128 * (4 + 2 + 2) + ARCS < found < 10_000 * 128 * 9 + ARCS + 1_000_000


def test_by_walks_processors_hold_the_vectors_that_move_twice(graph):
    all_move = count_cpu_bytes(graph, check_all({**PAPER, "rounds": 10}))
    few_move = count_cpu_bytes(graph, check_all({**PAPER, "rounds": 10_000}))
    assert all_move - few_move == pytest.approx(10_000 * 128 * 4, rel=0.05)


def test_a_gpu_needs_room_for_smoothing(graph):
    smoothed, not_smoothed = (count_gpu_bytes(graph, check_all({"smooth": smooth})) for smooth in (True, False))
    assert smoothed - not_smoothed > 10_000 * 128 * 4


def test_what_travels_is_half_as_long(graph):
    """Of two rounds, in half precision."""
    assert 10_000 * 128 * 4 < count_store_bytes(graph, check_all({})) < 10_000 * 128 * 4 * 1.2


@pytest.mark.parametrize("count", [count_gpu_bytes, count_store_bytes])
def test_walks_need_no_gpu_and_no_cluster(graph, count):
    assert count(graph, check_all(PAPER)) == 0


def test_a_run_of_some_seconds_is_counted_too(graph):
    assert all(count(graph, check_all({"max_seconds": 10.0})) > ARCS for count in COUNTS)
