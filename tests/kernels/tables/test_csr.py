"""Edges to the neighbours of each node."""

import numpy as np
import pytest

from manela.kernels.tables import rows as kernels

NODES = 12


def draw_edges(seed, count=300):
    random = np.random.default_rng(seed)
    sources, targets = random.integers(0, NODES, (2, count)).astype(np.int32)
    return sources, targets, random.integers(1, 9, count).astype(np.float64)


def list_arcs(sources, targets, both):
    arcs = []
    for edge, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        if source != target:
            arcs += [(source, target, edge), (target, source, edge)][: 1 + both]
    return arcs


def pieces(cuts):
    return zip([0, *cuts], [*cuts, NODES], strict=True)


@pytest.mark.parametrize("cuts", [[], [5], [0, 3, 3, 12]], ids=str)
@pytest.mark.parametrize("both", [False, True])
def test_rows_are_counted_and_filled_in_the_order_of_edges_for_any_pieces(both, cuts):
    sources, targets, weights = draw_edges(0)
    arcs = list_arcs(sources, targets, both)
    counts = np.zeros(NODES, np.int64)
    for first, last in pieces(cuts):
        kernels.count_arcs(sources, targets, both, first, last, counts)
    assert counts.tolist() == [sum(arc[0] == node for arc in arcs) for node in range(NODES)]
    indptr = np.concatenate(([0], np.cumsum(counts)))
    indices, weighted = np.empty((2, len(arcs)), np.int32)
    ends, data = indptr[:-1].copy(), np.empty(len(arcs))
    for first, last in pieces(cuts):
        kernels.fill_rows(sources, targets, both, first, last, ends, indices)
    assert ends.tolist() == indptr[1:].tolist()
    ends = indptr[:-1].copy()
    for first, last in pieces(cuts):
        kernels.fill_weighted_rows(sources, targets, weights, both, first, last, ends, weighted, data)
    for node in range(NODES):
        wanted = [(target, weights[edge]) for source, target, edge in arcs if source == node]
        row = slice(indptr[node], indptr[node + 1])
        assert list(zip(weighted[row].tolist(), data[row].tolist(), strict=True)) == wanted
        assert indices[row].tolist() == [target for target, _ in wanted]


def draw_rows(lengths, seed=1):
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    random = np.random.default_rng(seed)
    return indptr, random.integers(0, 20, indptr[-1]).astype(np.int32), random.permutation(indptr[-1]).astype(float)


# around the length from which rows are sorted in another way
LENGTHS = [0, 1, 2, 47, 48, 49, 200, 0]


def test_rows_are_sorted_and_those_that_stand_there_again_counted():
    indptr, indices, _ = draw_rows(LENGTHS)
    wanted = [np.sort(row) for row in np.split(indices, indptr[1:-1])]
    again = kernels.sort_rows(indptr, indices, 0, len(LENGTHS))
    np.testing.assert_array_equal(indices, np.concatenate(wanted))
    assert again == sum(len(row) - len(set(row.tolist())) for row in wanted)


def test_weights_go_with_their_neighbours_and_of_equal_ones_the_first_stays_first():
    indptr, indices, data = draw_rows(LENGTHS)
    wanted = []
    for row, weights in zip(np.split(indices, indptr[1:-1]), np.split(data, indptr[1:-1]), strict=True):
        order = np.argsort(row, kind="stable")
        wanted += list(zip(row[order].tolist(), weights[order].tolist(), strict=True))
    kernels.sort_weighted_rows(indptr, indices, data, 0, len(LENGTHS))
    assert list(zip(indices.tolist(), data.tolist(), strict=True)) == wanted


def test_only_the_rows_that_are_asked_for_are_sorted():
    indptr = np.array([0, 2, 4, 6])
    indices = np.array([1, 0, 1, 0, 1, 0], np.int32)
    assert kernels.sort_rows(indptr, indices, 1, 2) == 0
    assert indices.tolist() == [1, 0, 0, 1, 1, 0]


def test_neighbours_that_come_again_become_one():
    indptr = np.array([0, 3, 3, 7])
    indices = np.array([1, 1, 2, 0, 0, 0, 1], np.int32)
    data = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    merged, kept = np.empty(4, np.int64), np.empty(4, np.int32)
    counts, sums, firsts = np.empty(4), np.empty(4), np.empty(4)
    for first, last, at in ((0, 2, 0), (2, 3, 2)):  # in two pieces
        kernels.merge_rows(indptr, indices, first, last, at, merged, kept)
        kernels.count_repeated(indptr, indices, first, last, at, counts)
        kernels.merge_weights(indptr, indices, data, True, first, last, at, sums)
        kernels.merge_weights(indptr, indices, data, False, first, last, at, firsts)
    assert merged[:3].tolist() == [0, 2, 2]
    assert kept.tolist() == [1, 2, 0, 1]
    assert counts.tolist() == [2, 1, 3, 1]
    assert sums.tolist() == [3, 4, 56, 64]
    assert firsts.tolist() == [1, 4, 8, 64]


def test_equal_neighbours_of_two_nodes_are_not_one():
    indptr, indices = np.array([0, 1, 2]), np.array([5, 5], np.int32)
    assert kernels.sort_rows(indptr, indices, 0, 2) == 0
    merged, kept = np.empty(3, np.int64), np.empty(2, np.int32)
    kernels.merge_rows(indptr, indices, 0, 2, 0, merged, kept)
    assert kept.tolist() == [5, 5]


def test_no_edges_make_no_rows():
    none, counts = np.zeros(0, np.int32), np.zeros(NODES, np.int64)
    kernels.count_arcs(none, none, True, 0, NODES, counts)
    assert not counts.any()
    assert kernels.sort_rows(np.zeros(NODES + 1, np.int64), none, 0, NODES) == 0
