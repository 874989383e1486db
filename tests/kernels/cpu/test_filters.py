"""Steps of a polynomial filter, beside the same by matrices."""

import numpy as np
import pytest

from manela import Graph
from manela.engines.rounds.neighbours import prepare_arcs
from manela.kernels.cpu import rows as kernels
from manela.kernels.layout import allocate

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
