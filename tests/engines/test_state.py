"""The vectors of a run between two rounds."""

import numpy as np
import pytest

from manela.engines.state import State, begin
from manela.kernels.layout import allocate


def test_vectors_begin_uniform_within_half_of_one_over_m_and_their_padding_is_zero():
    state = begin(500, 20, False, seed=3)
    assert state.vectors.shape == (500, 20)
    assert state.tables[0].shape == (500, 32)
    assert not state.tables[0][:, 20:].any()
    assert np.abs(state.vectors).max() <= 0.5 / 20
    assert np.abs(state.vectors).max() > 0.49 / 20
    assert abs(state.vectors.mean()) < 0.001
    assert (state.round, state.pairs, state.falls_at, state.context) == (0, 0, None, None)


def test_context_vectors_are_other_ones_and_do_not_change_the_vectors():
    alone, both = begin(10, 4, False, seed=3), begin(10, 4, True, seed=3)
    np.testing.assert_array_equal(alone.vectors, both.vectors)
    assert both.context.shape == (10, 4)
    assert not np.array_equal(both.context, both.vectors)


def test_a_seed_gives_the_same_bits_for_any_number_of_threads():
    alone = begin(101, 7, True, seed=9)
    for threads in (1, 2, 5):
        shared = begin(101, 7, True, seed=9, threads=threads, shared_from=1)
        for table, wanted in zip(shared.tables, alone.tables, strict=True):
            np.testing.assert_array_equal(table, wanted)
    assert not np.array_equal(begin(101, 7, False, seed=8).vectors, alone.vectors)


def test_a_node_has_the_same_vector_in_a_larger_network():
    np.testing.assert_array_equal(begin(5, 8, False, seed=1).vectors, begin(50, 8, False, seed=1).vectors[:5])


def test_rows_are_copies_without_padding_and_may_come_twice():
    state = begin(5, 3, True, seed=1)
    rows = state.rows(0, np.array([4, 0, 4]))
    np.testing.assert_array_equal(rows, state.vectors[[4, 0, 4]])
    rows[:] = 0
    assert state.vectors.any()
    np.testing.assert_array_equal(state.rows(-1, np.array([2])), state.context[[2]])
    assert state.rows(0, np.zeros(0, np.int64)).shape == (0, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 6])
@pytest.mark.parametrize("table", [0, 1])
def test_one_number_that_is_not_finite_is_found_wherever_it_is(value, row, table):
    state = begin(7, 4, True, seed=1)
    assert state.is_finite(rows=3)
    state.tables[table][row, 3] = value
    assert not state.is_finite(rows=3)


def test_a_state_of_no_nodes_is_finite():
    assert State([allocate(0, 4)], 4).is_finite()
