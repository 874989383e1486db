"""What must hold for engines by messages: their rounds are those of `kernels/reference.py`.

What nodes show is rounded to half precision, and where a mean lies between two halves, single and double precision may
round it to either; so a round is compared in two steps, each of them tight: what is shown, and what nodes make of it.
"""

import threading
from unittest import mock

import numpy as np
import pytest
from engine_cases import (
    BY_MESSAGES,
    arcs_of,
    distance,
    graphs,
    message_parameters,
    run_engine,
    settings_of,
    start_large,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from manela.data.graph import Graph
from manela.engines.cpu import CpuEngine
from manela.engines.gpu import neighbours as gpu_neighbours
from manela.engines.gpu.engine import GpuEngine
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.kernels import reference
from manela.kernels.cpu import messages
from manela.kernels.randomness import NEGATIVES, ROUNDS, derive, derive_key

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


@settings(max_examples=150)
@given(graph=graphs(), parameters=message_parameters())
def test_rounds_of_the_cpu_engine_are_those_of_the_reference(graph, parameters):
    check_rounds(CpuEngine, graph, parameters, 40 * graph.number_of_nodes)


@settings(max_examples=10)
@given(graph=graphs(), parameters=message_parameters(), many=st.sampled_from([1, 3, 256]))
def test_rounds_of_the_gpu_engine_are_those_of_the_reference(graph, parameters, many):
    """With products in single precision; `many` is from how many neighbours on they are summed in pieces."""
    with (
        mock.patch("manela.engines.gpu.engine.PRECISION", "tf32x3"),
        mock.patch.multiple(gpu_neighbours, _MANY=many, _PIECE=min(many, 2)),
    ):
        check_rounds(GpuEngine, graph, parameters, 10 * graph.number_of_nodes)


def check_rounds(engine_class, graph, parameters, pairs):
    """Each of three rounds, from where the engine stood before it.

    What is shown is exact but for rounding to half precision. What nodes make of that is exact but for the rounding of
    single precision, times what a round makes of an error in a node's own vector, times what taking away a node's own
    part makes of one in a mean.
    """
    arcs, wanted = arcs_of(graph), settings_of(engine_class, **parameters)
    scales = reference.find_scales(arcs, graph.weights, len(wanted.targets_by_hop))
    shares = reference.find_own_shares(arcs, graph.weights, scales)
    assume(np.abs(shares - reference.MOST_OWN).min() > 1e-6)
    kept = shares[shares <= reference.MOST_OWN]
    enlarged = 1.0 / (1.0 - kept.max()) if len(kept) else 1.0
    schedule = plan_run(graph, wanted, pairs)
    state, m = start_large(graph, wanted), wanted.dimensions
    with engine_class(graph, wanted, state) as engine:
        for number in range(3):
            before = [table[:, :m].astype(np.float64) for table in state.tables]
            assert engine.advance(schedule)
            engine.collect()
            shown = [read_shown(engine, table) for table in range(len(before))]
            for table, levels in zip(before, shown, strict=True):
                check_shown(table, levels, graph, arcs, scales)
            advance = make_reference(graph, arcs, wanted, schedule, number, before, shown)
            expected = advance(before)
            bounds = [2e-5 * max(1.0, np.abs(moved).max()) * enlarged for moved in expected]
            if any(
                np.abs(a[:, :m] - b).max() > most for a, b, most in zip(state.tables, expected, bounds, strict=True)
            ):
                shaken = advance([table * (1 + 2.0**-16) for table in before])
                bounds = [most * max(1.0, distance(shaken, expected) * 2.0**16) for most in bounds]
            for table, moved, most in zip(state.tables, expected, bounds, strict=True):
                np.testing.assert_allclose(table[:, :m], moved, rtol=0, atol=most)
                assert not table[:, m:].any()


def read_shown(engine, table):
    """What nodes showed of a table in the last round: [Φ, M¹, …] in double precision."""
    on_card = isinstance(engine, GpuEngine)
    shown = engine.shown[table].cpu().numpy() if on_card else engine.rounds.shown[table]
    dimensions, nodes = engine.state.dimensions, len(engine.updates)
    rows = shown.view(np.float16) if shown.dtype == np.uint16 else shown
    assert not rows[:, dimensions:].any()
    return [*rows[:, :dimensions].astype(np.float64).reshape(-1, nodes, dimensions)]


def check_shown(table, levels, graph, arcs, scales):
    """Φ is rounded as NumPy does; a mean of what was shown before to the nearest half, give or take 2^-20 of it."""
    np.testing.assert_array_equal(levels[0], table.astype(np.float16))
    for before, mean, scale in zip(levels, levels[1:], scales, strict=False):
        exact = reference.average(before, arcs, graph.weights, scale)
        sizes = reference.average(np.abs(before), arcs, graph.weights, scale)
        spacing = np.spacing(np.maximum(np.abs(exact), np.abs(mean)).astype(np.float16)).astype(np.float64)
        assert (np.abs(mean - exact) <= spacing / 2 + sizes * 2.0**-20).all()


def make_reference(graph, arcs, wanted, schedule, number, before, shown):
    """A function that takes tables through a round of the reference in which nodes show what they are said to."""
    counts = schedule.counts(number)
    key, negatives_key = (int(derive(derive_key(wanted.seed, purpose), number)) for purpose in (ROUNDS, NEGATIVES))
    blocks = min(reference.BLOCKS, max(1, int(counts.max())))
    amount = wanted.negatives * sum(wanted.targets_by_hop)
    negatives = [
        reference.draw_negatives(table, negatives_key, blocks, amount, wanted.negative_source)
        for table in reversed(before)
    ]

    def advance(tables):
        with mock.patch.object(reference, "show", side_effect=shown):
            return reference.advance_by_messages(
                tables, arcs, graph.weights, counts, key, schedule.rate(number), wanted.targets_by_hop, negatives
            )

    return advance


@settings(max_examples=40)
@given(graph=graphs(), parameters=message_parameters(), learning_rate=st.floats(0.01, 0.05))
def test_three_rounds_are_off_by_no_more_than_half_precision(graph, parameters, learning_rate):
    """Without looking at what is shown: the reference itself differs as much if its start is moved by 2^-11.

    That is the distance of two halves: every vector that is shown is then rounded to another half about every time, and
    by the engine's own rounding hardly ever.
    """
    parameters |= {"learning_rate": learning_rate}
    wanted = settings_of(CpuEngine, **parameters)
    arcs, schedule = arcs_of(graph), plan_run(graph, wanted, 40 * graph.number_of_nodes)
    scales = reference.find_scales(arcs, graph.weights, len(wanted.targets_by_hop))
    assume(np.abs(reference.find_own_shares(arcs, graph.weights, scales) - reference.MOST_OWN).min() > 1e-6)
    state = start_large(graph, wanted)
    start = [table[:, : wanted.dimensions].astype(np.float64) for table in state.tables]

    def run(tables):
        for number in range(3):
            shown = [reference.show(table, arcs, graph.weights, scales) for table in tables]
            tables = make_reference(graph, arcs, wanted, schedule, number, tables, shown)(tables)
        return tables

    expected = run(start)
    signs = np.random.default_rng(0)
    shaken = [run([table * (1 + 2.0**-11 * signs.choice([-1, 1], table.shape)) for table in start]) for _ in range(2)]
    with CpuEngine(graph, wanted, state) as engine:
        for _ in range(3):
            assert engine.advance(schedule)
    assert distance(state.tables, expected) <= max(distance(tables, expected) for tables in shaken)


@pytest.mark.parametrize("engine_class", BY_MESSAGES.values(), ids=BY_MESSAGES.keys())
def test_a_heavy_arc_to_a_dead_end_does_not_drown_a_light_one_that_leads_on(engine_class):
    """The mean over walks that go on is over the light arc alone; by its scale the heavy one weighs 1e90."""
    graph = Graph.from_edges([0, 0, 2], [1, 2, 0], [1.0, 1e-90, 1.0], directed=True)
    parameters = {"dimensions": 4, "window": 2, "ratios": (0.0, 0.0, 1.0), "rounds": 2, "frequency": 0.0}
    state = run_engine(engine_class, graph, parameters, 100, 2)
    assert np.isfinite(state.tables[0]).all()
    with engine_class(graph, settings_of(engine_class, **parameters), state) as engine:
        show(engine)
        shown = read_shown(engine, 0)
    np.testing.assert_array_equal(shown[2][0], shown[1][2])  # by 2, to which all walks of two steps go


def show(engine):
    (engine.show if isinstance(engine, GpuEngine) else engine.rounds.show)()


@pytest.mark.parametrize("source", ["nodes", "moments"])
def test_the_place_of_a_node_among_others_does_not_change_its_bits(source):
    """Nodes are moved in tiles, side by side: each by itself, or in any order and pieces, they go to the same place."""
    rng = np.random.default_rng(5)
    graph = Graph.from_edges(
        rng.integers(50, size=160), rng.integers(50, size=160), rng.uniform(0.1, 9, 160), duplicates="first"
    )
    wanted = settings_of(
        CpuEngine, dimensions=20, window=3, ratios=(0.4, 0.3, 0.3), negative_source=source, frequency=1.0, rounds=1
    )
    schedule = plan_run(graph, wanted, 60 * graph.number_of_nodes)
    counts = schedule.counts(0)
    nodes = np.flatnonzero(counts)
    assert len(set(counts[nodes].tolist())) > 4
    with CpuEngine(graph, wanted, start_large(graph, wanted)) as engine:
        rounds = engine.rounds
        rounds.show()
        shown, negatives = rounds.shown[0], rounds.draw_negatives(0, schedule)[0]

        def move(pieces):
            own, made = engine.state.tables[0].copy(), np.zeros(graph.number_of_nodes, dtype=np.int64)
            for piece in pieces:
                piece = piece[np.argsort(-counts[piece], kind="stable")]
                pairs = np.zeros(len(piece), dtype=np.int64)
                messages.advance(
                    piece, None, counts[piece], own, shown, *negatives, engine.arcs, rounds.own_shares,
                    engine.neighbours.scales, rounds.targets, rounds.amount, np.uint64(77), np.float32(0.05), pairs,
                    np.zeros(1, dtype=np.uint8),
                )  # fmt: skip
                made[piece] = pairs
            return own, made

        together, pairs = move([nodes])
        assert not np.array_equal(together, engine.state.tables[0])
        for cuts in (1, 2, 5, 11, len(nodes)):
            moved, made = move(np.array_split(rng.permutation(nodes), cuts))
            np.testing.assert_array_equal(moved, together)
            np.testing.assert_array_equal(made, pairs)


@pytest.mark.parametrize("source", ["nodes", "moments"])
def test_nodes_that_are_moved_some_at_a_time_go_to_the_same_places(source, monkeypatch):
    rng = np.random.default_rng(5)
    graph = Graph.from_edges(
        rng.integers(50, size=160), rng.integers(50, size=160), nodes=range(52), duplicates="first"
    )
    parameters = {"dimensions": 20, "negative_source": source, "rounds": 3, "context": True, "ratios": (0.5, 0.5)}
    whole = run_engine(CpuEngine, graph, parameters, 60 * 52, 3)
    monkeypatch.setattr("manela.engines.rounds.messages._NODES_AT_ONCE", 7)
    pieces = run_engine(CpuEngine, graph, parameters, 60 * 52, 3)
    assert pieces.pairs == whole.pairs > 0
    for table, expected in zip(pieces.tables, whole.tables, strict=True):
        np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("engine_class", BY_MESSAGES.values(), ids=BY_MESSAGES.keys())
def test_a_round_that_has_begun_is_finished_before_a_stop_counts(engine_class):
    graph = Graph.from_edges([0, 1], [1, 2])
    wanted = settings_of(engine_class, dimensions=8, rounds=4)
    schedule = plan_run(graph, wanted, 1000)
    states = [begin(3, 8, False, 0) for _ in range(2)]
    for state, stops in zip(states, (False, True), strict=True):
        with engine_class(graph, wanted, state) as engine:
            if stops:
                before_showing(engine, engine.stop)
            assert engine.advance(schedule)
            assert engine.advance(schedule) != stops
            assert state.round == (1 if stops else 2)
            engine.collect()
    with engine_class(graph, wanted, begin(3, 8, False, 0)) as engine:
        engine.advance(schedule)
        engine.collect()
        np.testing.assert_array_equal(engine.state.tables[0], states[1].tables[0])


def before_showing(engine, first):
    """Have something done before the agents of an engine show themselves."""
    owner, name = (engine, "show") if isinstance(engine, GpuEngine) else (engine.rounds, "show")
    then = getattr(owner, name)

    def call():
        first()
        then()

    setattr(owner, name, call)


@pytest.mark.parametrize("engine_class", BY_MESSAGES.values(), ids=BY_MESSAGES.keys())
def test_a_round_of_which_nothing_is_kept_ends_at_once(engine_class):
    """One round of a million million pairs, which nobody would see the end of."""
    graph = Graph.from_edges([0, 1], [1, 2])
    wanted = settings_of(engine_class, dimensions=8, rounds=1, n_jobs=2)
    state = begin(3, 8, False, 0)
    begun, returned = threading.Event(), []
    with engine_class(graph, wanted, state) as engine:
        before_showing(engine, begun.set)
        runner = threading.Thread(target=lambda: returned.append(engine.advance(plan_run(graph, wanted, 10**12))))
        runner.start()
        assert begun.wait(60)
        engine.stop(keep=False)
        runner.join(60)
        assert returned == [False]
        assert (state.round, state.pairs) == (0, 0)
        assert not engine.advance(plan_run(graph, wanted, 100))
