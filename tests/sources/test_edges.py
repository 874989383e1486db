"""Batches of edges."""

import numpy as np
import pytest

from manela.sources.edges import Edges, cut_into_batches


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (2, [2]), (3, [3]), (4, [3, 1]), (7, [3, 3, 1])])
def test_edges_are_cut_into_batches_and_none_is_lost_or_empty(count, sizes):
    batches = list(cut_into_batches(((f"a{i}", i, float(i)) for i in range(count)), 3))
    assert [len(batch.own) for batch in batches] == sizes
    assert [name for batch in batches for name in batch.own] == [f"a{i}" for i in range(count)]
    assert [name for batch in batches for name in batch.other] == list(range(count))
    assert [weight for batch in batches for weight in batch.weights.tolist()] == [float(i) for i in range(count)]
    assert all(batch.weights.dtype == np.float64 for batch in batches)


def test_a_batch_comes_as_soon_as_it_is_full():
    def edges():
        yield "a", "b", 1.0
        yield "b", "c", 1.0
        raise AssertionError("nobody has asked for this yet")

    assert next(cut_into_batches(edges(), 2)).own == ["a", "b"]


def test_a_batch_that_was_given_is_not_changed_by_the_next():
    first, second = cut_into_batches([("a", "b", 1.0), ("c", "d", 2.0)], 1)
    assert (first.own, second.own) == (["a"], ["c"])


def test_edges_without_weights_say_so():
    assert Edges(["a"], ["b"]).weights is None
