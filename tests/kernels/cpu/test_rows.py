"""Sums and scales of rows, in any pieces."""

from itertools import pairwise

import numpy as np
import pytest

from manela import Graph
from manela.engines.rounds.neighbours import prepare_arcs
from manela.kernels.cpu import rows
from manela.kernels.cpu import rows as kernels
from manela.kernels.layout import allocate
from manela.kernels.moments import LARGEST, UNIT, measure


@pytest.fixture
def table():
    table = np.random.default_rng(0).normal(size=(30, 16)).astype(np.float32)
    table[3] = 0.0
    table[4, :3] = [50.0, -50.0, 8.0]
    return table


@pytest.fixture
def scales():
    scales = np.random.default_rng(1).uniform(0.1, 2.0, 30)
    scales[[0, 7, 29]] = 0.0
    return scales


@pytest.mark.parametrize("borders", [[0, 30], [0, 1, 2, 17, 30], [0, 0, 29, 30, 30]])
def test_sums_are_those_of_moments_over_the_rows_that_count(table, scales, borders):
    totals, squares = np.zeros(16, np.int64), 0
    for first, last in pairwise(borders):
        squares += rows.add_up(table, scales, first, last, totals)
    expected = measure(table[scales > 0])
    np.testing.assert_array_equal(totals, expected.total)
    assert squares == np.trace(expected.products)


def test_numbers_beyond_the_largest_count_as_it():
    totals = np.zeros(2, np.int64)
    squares = rows.add_up(np.array([[1e30, -np.inf]], np.float32), np.ones(1), 0, 1, totals)
    most = round(LARGEST / UNIT)
    assert totals.tolist() == [most, -most]
    assert squares == 2 * most**2


def test_the_mean_is_taken_from_the_rows_that_count(table, scales):
    before, mean = table.copy(), np.arange(16, dtype=np.float32)
    rows.center(table, scales, mean, 0, 30)
    np.testing.assert_array_equal(table, np.where(scales[:, None] > 0, before - mean, before))


def test_rows_get_their_norm_and_those_of_zeros_or_without_size_stay(table):
    before = table.copy()
    sizes = np.random.default_rng(2).uniform(0.01, 5.0, 30)
    sizes[[5, 6]] = 0.0
    rows.resize(table, sizes, 1, 29)
    np.testing.assert_array_equal(table[[0, 3, 5, 6, 29]], before[[0, 3, 5, 6, 29]])
    scaled = np.setdiff1d(np.arange(1, 29), [3, 5, 6])
    np.testing.assert_allclose(np.linalg.norm(table[scaled], axis=1), sizes[scaled], rtol=1e-6)
    cosines = (table[scaled] * before[scaled]).sum(axis=1) / np.linalg.norm(before[scaled], axis=1) / sizes[scaled]
    np.testing.assert_allclose(cosines, 1.0, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-44, 1e-39, 1e-20, 1e18])
def test_rows_of_any_size_get_their_norm(size):
    table = np.full((1, 16), size, np.float32)
    rows.resize(table, np.ones(1), 0, 1)
    np.testing.assert_allclose(table, 0.25, rtol=1e-6)


NODES, M = 30, 5


@pytest.fixture(scope="module", params=[False, True], ids=["unweighted", "weighted"])
def network(request):
    random = np.random.default_rng(0)
    weights = random.lognormal(size=60) if request.param else None
    graph = Graph.from_edges(
        *random.integers(0, NODES - 2, (2, 60)), weights, nodes=range(NODES), duplicates="first"
    )  # fmt: skip
    assert (graph.degrees[-2:] == 0).all()  # two nodes stand alone
    return prepare_arcs(graph), graph.weights, graph.to_scipy().toarray()


def draw_table(seed):
    table = allocate(NODES, M)
    table[:, :M] = np.random.default_rng(seed).normal(size=(NODES, M))
    return table


def draw_numbers(seed):
    return np.random.default_rng(seed).uniform(0.5, 1.5, NODES).astype(np.float32)


def draw_inverse(matrix):
    """Less than one over the strengths: the share of a neighbour is at most 1."""
    return np.random.default_rng(3).uniform(0.5, 1.0, NODES) / np.maximum(matrix.sum(axis=1), 1e-9)


def both_halves(kernel, *arguments):
    """Call a kernel for the nodes of each half."""
    kernel(*arguments, 0, NODES // 2)
    kernel(*arguments, NODES // 2, NODES)


def test_a_shift_keeps_a_part_and_takes_away_that_of_neighbours(network):
    arcs, weights, matrix = network
    source, target, inverse, kept = draw_table(1), draw_table(2), draw_inverse(matrix), draw_numbers(4)
    both_halves(kernels.shift, source, arcs, weights, inverse, kept, target)
    wanted = kept[:, None] * source - inverse[:, None] * (matrix @ source)
    np.testing.assert_allclose(target, wanted, rtol=1e-4, atol=1e-5)


def test_a_step_mixes_what_is_shifted_with_what_was_there_and_adds_it_up(network):
    arcs, weights, matrix = network
    source, now, before, target, filtered = (draw_table(seed) for seed in range(5))
    inverse, kept, old = draw_inverse(matrix), draw_numbers(4), filtered.copy()
    a, b, c, weight = np.float32([2.0, -0.5, 0.25, 3.0])
    both_halves(
        kernels.step, source, arcs, weights, inverse, kept, a, b, now, c, before, weight, target, filtered
    )  # fmt: skip
    shifted = kept[:, None] * source - inverse[:, None] * (matrix @ source)
    wanted = 2.0 * shifted - 0.5 * now + 0.25 * before
    np.testing.assert_allclose(target, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(filtered, old + 3.0 * wanted, rtol=1e-4, atol=1e-4)


def test_gathering_adds_a_nodes_own_part_and_leaves_nodes_without_neighbours(network):
    arcs, weights, matrix = network
    source, target, inverse, own = draw_table(1), draw_table(2), draw_inverse(matrix), draw_numbers(4)
    old = target.copy()
    both_halves(kernels.gather, source, arcs, weights, inverse, own, target)
    wanted = inverse[:, None] * (matrix @ source) + own[:, None] * source
    alone = np.diff(arcs.indptr) == 0
    np.testing.assert_allclose(target[~alone], wanted[~alone], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(target[alone], old[alone])
    assert alone.any()


def test_what_is_read_is_not_written_and_padding_stays_zero(network):
    arcs, weights, matrix = network
    source, target = draw_table(1), draw_table(2)
    before = source.copy()
    kernels.shift(source, arcs, weights, draw_inverse(matrix), draw_numbers(4), target, 0, NODES)
    np.testing.assert_array_equal(source, before)
    assert not target[:, M:].any()
