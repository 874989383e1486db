"""Workers of a cluster, without the cluster."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.data.graph import Graph
from manela.engines.cpu import CpuEngine
from manela.engines.ray.worker import Topology, Worker, divide
from manela.engines.rounds.neighbours import find_scales, prepare_arcs
from manela.engines.rounds.spread import find_spread, measure_spread
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.kernels import moments
from manela.settings.settings import check_all

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")

NODES = 62


def settings(**parameters):
    return check_all({"dimensions": 20, "rounds": 5, "n_jobs": 1, "window": 3, "ratios": (0.5, 0.5), **parameters})


@pytest.fixture(params=["random", "ring", "weights", "directed"])
def graph(request):
    """Of the ring a worker needs little of others, of the others nearly all."""
    rng = np.random.default_rng(4)
    if request.param == "ring":
        return Graph.from_edges(range(60), [*range(1, 60), 0], nodes=range(NODES))
    weights = rng.uniform(0.1, 9, 200) if request.param == "weights" else None
    ends = rng.integers(60, size=(2, 200))
    return Graph.from_edges(
        *ends,
        weights,
        nodes=range(NODES),
        directed=request.param == "directed",
        duplicates="first" if weights is None else "sum",
    )


def start(graph, wanted, schedule, state, workers, whole):
    """Workers that have begun, with their shares of the nodes; `whole` is whether they show all to all."""
    hops = len(wanted.targets_by_hop)
    scales = find_scales(graph, hops - 1 if graph.directed else 1)
    topology = Topology(prepare_arcs(graph), graph.weights, scales, graph.directed)
    parts = [Worker(wanted) for _ in range(workers)]
    borders = divide(schedule.iterations, workers).tolist()
    needed = [part.begin(1, topology, schedule, borders, k, state.round) for k, part in enumerate(parts)]
    for k, part in enumerate(parts):
        part.serve(None if whole else [of_part[k] for of_part in needed])
        part.expect([whole] * workers)
        for at in range(0, NODES, 7):
            rows = [table[at : at + 7] for table in state.tables]
            part.fill(at, (rows, np.zeros(len(rows[0]), dtype=np.int64)))
        part.ready()
    return parts


def do_round(parts, number, measured, pairs):
    computed = [part.compute(number, measured) for part in parts]
    for k, (_, *given_to) in enumerate(computed):
        for other, worker in enumerate(parts):
            if other != k:
                rows = given_to[0] if len(given_to) == 1 else given_to[other]
                worker.take(1, k, [row.copy() for row in rows])  # as the object store does
    pairs += sum(facts.pairs for facts, *_ in computed)
    for part in parts:
        part.commit(number)
    return pairs, [facts.measured for facts, *_ in computed]


def add(parts):
    return [moments.add(list(of_table)) for of_table in zip(*parts, strict=True)]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("workers", "parameters"),
    [(1, {}), (2, {"context": True}), (3, {"ratios": (0.4, 0.3, 0.3)}), (4, {"negative_source": "moments"}),
     (7, {"ratios": (1.0,)})],
)  # fmt: skip
def test_workers_together_give_the_bits_of_the_cpu_engine(graph, workers, parameters, whole):
    wanted = settings(**parameters)
    schedule = plan_run(graph, wanted, 4000)
    state = begin(NODES, 20, wanted.context, 0)
    parts = start(graph, wanted, schedule, state, workers, whole)
    measured = add([part.measure_moments() for part in parts]) if "negative_source" in parameters else None
    pairs = 0
    with CpuEngine(graph, wanted, state) as engine:
        for number in range(5):
            assert engine.advance(schedule)
            pairs, parts_of_moments = do_round(parts, number, measured, pairs)
            measured = add(parts_of_moments) if measured is not None else None
            assert pairs == state.pairs
        for part in parts:
            first, (tables, updates) = part.own()
            for table, expected in zip(tables, state.tables, strict=True):
                np.testing.assert_array_equal(table, expected[first : first + len(table)])
            np.testing.assert_array_equal(updates, engine.updates[first : first + len(updates)])
            assert part.is_finite()
        totals, squares = zip(*(part.sum_rows() for part in parts), strict=True)
        joined = int(np.count_nonzero(graph.degrees))
        spread = find_spread(np.sum(totals, axis=0), sum(squares), joined)
        assert spread == measure_spread(state.tables[0], engine.neighbours)


def test_a_worker_is_shown_little_where_others_are_far_away():
    graph = Graph.from_edges(range(60), [*range(1, 60), 0], nodes=range(NODES))
    wanted = settings(negatives=0)
    schedule = plan_run(graph, wanted, 4000)
    state = begin(NODES, 20, False, 0)
    parts = start(graph, wanted, schedule, state, 2, False)
    do_round(parts, 0, None, 0)
    # two nodes on either side of each border, of which each half has two, in halves of 32 columns
    assert [part.count_sent() for part in parts] == [4 * 32 * 2] * 2


def test_what_is_of_an_attempt_before_is_not_taken():
    graph = Graph.from_edges(range(60), [*range(1, 60), 0], nodes=range(NODES))
    wanted = settings()
    schedule = plan_run(graph, wanted, 4000)
    (part, _) = start(graph, wanted, schedule, begin(NODES, 20, False, 0), 2, True)
    before = part.rounds.shown[0].copy()
    part.take(0, 1, [np.full((len(before), 32), 7, np.float16)])
    part.commit(0)
    np.testing.assert_array_equal(part.rounds.shown[0], before)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=60), st.integers(1, 9))
def test_nodes_are_shared_out_by_work(work, parts):
    work = np.array(work)
    borders = divide(work, parts)
    assert borders[0] == 0
    assert borders[-1] == len(work)
    assert len(borders) == parts + 1
    assert (np.diff(borders) >= 0).all()
    loads = [work[first:last].sum() for first, last in pairwise(borders)]
    assert max(loads) <= work.sum() / parts + 2 * work.max() + 1e-6
