"""What must hold for every engine, by walks and by messages."""

import logging

import numpy as np
import pytest
import ray
from engine_cases import arcs_of, run_engine, settings_of

from manela.data.graph import Graph
from manela.engines.cpu import CpuEngine
from manela.engines.gpu.engine import GpuEngine
from manela.engines.ray.engine import RayEngine
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.kernels import reference
from manela.kernels.randomness import ROUNDS, derive, derive_key
from manela.settings.parameters import PAPER

CASES = {
    "cpu, walks": (CpuEngine, PAPER),
    "cpu, messages": (CpuEngine, {}),
    "gpu, messages": (GpuEngine, {}),
    "ray, messages": (RayEngine, {}),
}

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning",
    "ignore:[0-9,]+ repeated edge",
)  # fmt: skip


@pytest.fixture(params=sorted(CASES), scope="module")
def case(request):
    """An engine, and the parameters by which it is asked for an exchange."""
    if request.param.startswith("ray"):
        request.getfixturevalue("connected")
    return CASES[request.param]


@pytest.fixture(scope="module")
def connected():
    """Ray on this machine, started once for all engines on a cluster."""
    ray.init("local", num_cpus=2, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    yield
    ray.shutdown()


@pytest.mark.parametrize("edition", [PAPER, {}], ids=["walks", "messages"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("context", [False, True])
def test_every_number_of_threads_gives_the_same_bits(edition, weighted, context):
    rng = np.random.default_rng(8)
    ends = rng.integers(400, size=(2, 3000))
    graph = Graph.from_edges(
        ends[0], ends[1], rng.uniform(0.1, 9, 3000) if weighted else None, duplicates="sum" if weighted else "first"
    )
    states = [
        run_engine(
            CpuEngine,
            graph,
            {**edition, "dimensions": 20, "context": context, "n_jobs": jobs, "rounds": 5},
            pairs=200 * 400,
            rounds=5,
        )
        for jobs in (1, 2, 3)
    ]
    for state in states[1:]:
        assert state.pairs == states[0].pairs > 0
        for table, first in zip(state.tables, states[0].tables, strict=True):
            np.testing.assert_array_equal(table, first)


def test_a_stopped_round_moves_nothing(case):
    engine_class, edition = case
    graph = Graph.from_edges([0, 1], [1, 2])
    wanted = settings_of(engine_class, **edition, dimensions=8, rounds=4)
    state = begin(3, 8, False, 0)
    before = state.tables[0].copy()
    with engine_class(graph, wanted, state) as engine:
        engine.stop()
        assert not engine.advance(plan_run(graph, wanted, 1000))
    np.testing.assert_array_equal(state.tables[0], before)
    assert state.round == 0


def test_a_node_without_neighbours_keeps_its_vector(case):
    engine_class, edition = case
    graph = Graph.from_edges([0, 1], [1, 2], nodes=range(4))
    state = run_engine(engine_class, graph, {**edition, "dimensions": 8, "rounds": 5}, 2000, 5)
    start = begin(4, 8, False, 0)
    np.testing.assert_array_equal(state.vectors[3], 16 * start.vectors[3])
    assert not np.array_equal(state.vectors[:3], 16 * start.vectors[:3])


@pytest.mark.parametrize("directed", [False, True])
def test_update_pairs_are_counted_for_each_node(case, directed):
    engine_class, edition = case
    rng = np.random.default_rng(3)
    ends = np.hstack((rng.integers(30, size=(2, 60)), [[30, 31], [4, 5]]))
    graph = Graph.from_edges(*ends, nodes=range(33), directed=directed, duplicates="first")
    wanted = settings_of(engine_class, **edition, dimensions=4, rounds=4, n_jobs=2, ratios=(0.2, 0.5, 0.3))
    state = begin(33, 4, False, 0)
    schedule = plan_run(graph, wanted, 33 * 100)
    expected = np.zeros(33, dtype=np.int64)
    with engine_class(graph, wanted, state) as engine:
        for number in range(4):
            assert engine.advance(schedule)
            key = int(derive(derive_key(0, ROUNDS), number))
            for node, count in enumerate(schedule.counts(number)):
                for iteration in range(count):
                    drawn = int(derive(derive(key, node), iteration))
                    expected[node] += count_targets(graph, node, drawn, wanted)
        np.testing.assert_array_equal(engine.updates, expected)
        engine.collect()
    assert state.pairs == engine.pairs == expected.sum() > 0
    planned = sum(wanted.targets_by_hop) * sum(int(schedule.counts(number).sum()) for number in range(4))
    assert state.pairs < planned  # as some targets are dropped


def count_targets(graph, node, key, wanted):
    """The targets of one iteration that the reference does not drop."""
    arcs = arcs_of(graph)
    if wanted.exchange == "walks":
        return int(reference.draw(node, key, arcs, wanted.targets_by_hop, wanted.negatives)[1].sum())
    scales = reference.find_scales(arcs, graph.weights, len(wanted.targets_by_hop))
    shares = reference.find_own_shares(arcs, graph.weights, scales)
    shown = [np.zeros((graph.number_of_nodes, 1))] * len(wanted.targets_by_hop)
    return len(reference.draw_targets(node, key, arcs, wanted.targets_by_hop, shown, shares, scales))


def test_rows_are_those_of_the_tables_and_what_is_not_finite_is_seen(case):
    engine_class, edition = case
    graph = Graph.from_edges([0, 1], [1, 2])
    wanted = settings_of(engine_class, **edition, dimensions=20, rounds=2, context=True)
    state = begin(3, 20, True, 0)
    with engine_class(graph, wanted, state) as engine:
        assert engine.advance(plan_run(graph, wanted, 200))
        assert engine.is_finite()
        engine.collect()
        for k, table in enumerate(state.tables):
            np.testing.assert_array_equal(engine.rows(k, np.array([2, 0, 2])), table[[2, 0, 2], :20])
    state.tables[1][1, 3] = np.inf
    with engine_class(graph, wanted, state) as engine:
        assert not engine.is_finite()


def test_speed_is_measured_without_moving_anything(case):
    engine_class, edition = case
    graph = Graph.from_edges([0, 1], [1, 2])
    wanted = settings_of(engine_class, **edition, dimensions=8, rounds=4)
    state = begin(3, 8, False, 0)
    before = state.tables[0].copy()
    with engine_class(graph, wanted, state) as engine:
        assert engine.measure(plan_run(graph, wanted, 400), 0.05) > 0
        engine.collect()
    np.testing.assert_array_equal(state.tables[0], before)
    assert (state.round, state.pairs) == (0, 0)
