"""Workers of a cluster for rounds by walks, without the cluster."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.data.graph import Graph
from manela.engines.cpu import WalkEngine
from manela.engines.ray.walk_worker import WalkWorker
from manela.engines.ray.worker import divide
from manela.engines.rounds.neighbours import prepare_arcs
from manela.engines.state import begin
from manela.settings.parameters import PAPER, PARAMETERS
from manela.settings.schedule import plan
from manela.settings.settings import check_all


def settings(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, **PAPER, "dimensions": 20, "rounds": 5, "n_jobs": 1, **parameters})


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(4)
    return Graph.from_edges(rng.integers(60, size=200), rng.integers(60, size=200), nodes=range(62), duplicates="first")


def start(graph, wanted, schedule, workers):
    """Workers that have begun, with their shares of the nodes."""
    state = begin(graph.number_of_nodes, wanted.dimensions, wanted.context, wanted.seed)
    parts = [WalkWorker(wanted) for _ in range(workers)]
    borders = divide(schedule.iterations, workers)
    for part, first, last in zip(parts, borders[:-1], borders[1:], strict=True):
        part.begin(1, prepare_arcs(graph), schedule, int(first), int(last))
        for at in range(0, graph.number_of_nodes, 7):
            rows = [table[at : at + 7] for table in state.tables]
            part.fill(at, (rows, np.zeros(len(rows[0]), dtype=np.int64)))
        assert part.where() is None  # until it is told that these are all
        part.ready((0, 0))
    return parts


def do_round(parts, number, pieces):
    for piece in range(pieces):
        for part in parts:
            nodes, made, rows = part.compute(number, piece, pieces)
            copied = nodes.copy(), made.copy(), [row.copy() for row in rows]  # as the object store does
            for other in parts:
                if other is not part:
                    other.take(1, number, copied)
    return [part.commit(number) for part in parts]


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize(("workers", "pieces"), [(1, 1), (2, 1), (3, 3), (7, 2)])
def test_workers_together_give_the_bits_of_the_cpu_engine(graph, workers, pieces, context):
    wanted = settings(context=context)
    schedule = plan(graph, wanted, 4000)
    state = begin(62, 20, context, 0)
    parts = start(graph, wanted, schedule, workers)
    with WalkEngine(graph, wanted, state) as engine:
        for number in range(5):
            assert engine.advance(schedule)
            assert set(do_round(parts, number, pieces)) == {state.pairs}
        for part in parts:
            tables, updates = part.read(0, 62)
            for table, expected in zip(tables, state.tables, strict=True):
                np.testing.assert_array_equal(table, expected)
            np.testing.assert_array_equal(updates, engine.updates)
            assert part.where() == (5, state.pairs)
            assert part.is_finite()
            assert part.count_sent() > 0


def test_in_half_precision_others_read_what_was_sent_and_the_own_rows_are_whole(graph):
    wanted = settings(snapshot="float16")
    schedule = plan(graph, wanted, 4000)
    parts = start(graph, wanted, schedule, 2)
    do_round(parts, 0, 1)
    (tables, _), (other, _) = parts[0].read(0, 62), parts[1].read(0, 62)
    first, (own, _) = parts[0].own()
    assert first == 0
    moved = np.flatnonzero(schedule.counts(0)[: len(own[0])])
    np.testing.assert_array_equal(other[0][moved], tables[0][moved].astype(np.float16).astype(np.float32))
    assert not np.array_equal(other[0][moved], tables[0][moved])


def test_pieces_of_an_attempt_before_are_void_and_a_worker_that_is_alone_tells_nobody(graph):
    wanted = settings()
    schedule = plan(graph, wanted, 4000)
    parts = start(graph, wanted, schedule, 2)
    moved = parts[0].compute(0, 0, 1)
    parts[1].take(0, 0, moved)
    before = parts[1].read(0, 62)[0][0].copy()
    parts[1].compute(0, 0, 1)
    parts[1].commit(0)
    first = int(divide(schedule.iterations, 2)[1])
    np.testing.assert_array_equal(parts[1].read(0, 62)[0][0][:first], before[:first])
    alone = start(graph, wanted, schedule, 1)[0]
    assert alone.compute(0, 0, 1, alone=True) is None
    assert alone.commit(0) > 0
    assert alone.count_sent() == 0


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
