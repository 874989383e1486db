"""What must hold for rounds with walks: three of them are those of `kernels/reference.py`."""

import numpy as np
import pytest
from engine_cases import distance, graphs, parameters, run_engine, run_reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from manela.data.graph import Graph
from manela.engines.cpu import CpuEngine
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.settings.parameters import PAPER
from manela.settings.settings import check_all

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


NEAR = {"rtol": 2e-5, "atol": 2e-5}


@settings(max_examples=150)
@given(graph=graphs(), parameters=parameters())
def test_rounds_of_the_cpu_engine_are_those_of_the_reference(graph, parameters):
    check_rounds(graph, parameters, 15 * graph.number_of_nodes)


def check_rounds(graph, parameters, pairs):
    """To the rounding of single precision.

    An example may be further off only if any error grows to ten times its size or more within the three rounds: with
    learning rates of about 0.1 and more a node that has many iterations in a round overshoots. These examples are the
    business of `check_magnified_rounds`.
    """
    expected = run_reference(graph, parameters, pairs, rounds=3)
    tables = run_engine(CpuEngine, graph, PAPER | parameters, pairs, rounds=3).tables
    m = parameters["dimensions"]
    if not all(np.allclose(table[:, :m], wanted, **NEAR) for table, wanted in zip(tables, expected, strict=True)):
        assume(measure_magnification(graph, parameters, pairs, expected) < 10)
    for table, wanted in zip(tables, expected, strict=True):
        np.testing.assert_allclose(table[:, :m], wanted, **NEAR)
        assert not table[:, m:].any()


large_rates = st.floats(0.1, 0.3)


@settings(max_examples=100)
@given(graph=graphs(), parameters=parameters(), learning_rate=large_rates)
def test_rounds_of_the_cpu_engine_that_magnify_errors_are_off_by_no_more_than_that(graph, parameters, learning_rate):
    parameters = {**parameters, "learning_rate": learning_rate}
    check_magnified_rounds(graph, parameters, 15 * graph.number_of_nodes)


def test_a_star_with_a_large_learning_rate_magnifies_errors():
    """What the bound of the property is for is there: here errors grow more than a hundredfold."""
    graph = Graph.from_edges([0] * 14, range(1, 15))
    parameters = {"dimensions": 15, "window": 5, "rounds": 3, "learning_rate": 0.25, "negatives": 5, "n_jobs": 1}
    parameters |= {"random_state": 1, "ratios": (1.0,)}
    check_magnified_rounds(graph, parameters, 40 * 15)
    expected = run_reference(graph, parameters, 40 * 15, rounds=3)
    assert measure_magnification(graph, parameters, 40 * 15, expected) > 100


def check_magnified_rounds(graph, parameters, pairs):
    """To the rounding of single precision times what the rounds make of an error."""
    expected = run_reference(graph, parameters, pairs, rounds=3)
    off = distance(run_engine(CpuEngine, graph, PAPER | parameters, pairs, rounds=3).tables, expected)
    bound = 100 * 2.0**-24
    assert off <= bound or off <= bound * measure_magnification(graph, parameters, pairs, expected)


def measure_magnification(graph, parameters, pairs, expected):
    """How many times larger a small change of the start is after three rounds; the largest of two changes."""
    shaken = [run_reference(graph, parameters, pairs, 3, shaken=2.0**-16, signs=seed) for seed in (0, 1)]
    return max(distance(tables, expected) for tables in shaken) * 2.0**16


def test_rounding_errors_are_those_of_the_reference_in_single_precision():
    """A star's middle makes hundreds of iterations of many rows in a round: sums taken in a bad way show here."""
    ratios = []
    for seed in range(12):
        graph = Graph.from_edges([0] * 21, range(1, 22))
        parameters = {"dimensions": 1, "window": 3, "negatives": 8, "rounds": 3, "random_state": seed}
        parameters |= {"ratios": (1.0,), "learning_rate": 0.1, "n_jobs": 1}
        expected = run_reference(graph, parameters, 40 * 22, 3)
        state = run_engine(CpuEngine, graph, PAPER | parameters, 40 * 22, 3)
        single = run_reference(graph, parameters, 40 * 22, 3, dtype=np.float32)
        ratios.append(distance(state.tables, expected) / distance(single, expected))
    assert np.median(ratios) < 4.0


def test_a_stop_while_a_round_is_committed_counts_after_it():
    """Otherwise its vectors would be saved as those of the round before, and a resumed run would move them twice."""
    graph = Graph.from_edges([0, 1], [1, 2])
    wanted = check_all({**PAPER, "dimensions": 8, "rounds": 4, "pairs": 1000, "n_jobs": 1})
    state = begin(3, 8, False, 0)
    with CpuEngine(graph, wanted, state) as engine:
        commit = engine.rounds.commit

        def stop_and_commit(*arguments):
            engine.stop()
            commit(*arguments)

        engine.rounds.commit = stop_and_commit
        schedule = plan_run(graph, wanted, 1000)
        before = state.vectors.copy()
        assert engine.advance(schedule)
        assert state.round == 1
        assert state.pairs == engine.updates.sum() > 0
        assert not np.array_equal(state.vectors, before)
        assert not engine.advance(schedule)
        assert state.round == 1
