"""The definition itself: what it draws, against what is exact."""

import numpy as np
import pytest
from scipy.stats import chisquare

from manela.graph import Graph
from manela.kernels.arcs import Arcs
from manela.kernels.reference import NOWHERE, advance, build_aliases, draw, sigmoid, walk
from manela.randomness import derive


@pytest.fixture(params=["plain", "weighted"])
def graph(request):
    rng = np.random.default_rng(3)
    ends = rng.integers(12, size=(2, 40))
    weights = rng.uniform(0.2, 5.0, size=40) if request.param == "weighted" else None
    return Graph.from_edges(ends[0], ends[1], weights)


def arcs_of(graph):
    tables = build_aliases(graph.indptr, graph.weights) if graph.is_weighted else ()
    return Arcs(graph.indptr, graph.indices, *tables)


def step_probabilities(graph):
    matrix = graph.to_scipy().toarray()
    return matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-300)


def test_aliases_give_the_probabilities_of_the_weights():
    graph = Graph.from_edges([0, 0, 0, 0, 1], [1, 2, 3, 4, 2], [1.0, 0.5, 100.0, 3.0, 7.0])
    thresholds, aliases = build_aliases(graph.indptr, graph.weights)
    for node in range(5):
        first, last = graph.indptr[node], graph.indptr[node + 1]
        chances = np.zeros(last - first)
        for place in range(last - first):
            kept = thresholds[first + place] / (2**32 - 1)
            chances[place] += kept / (last - first)
            chances[aliases[first + place]] += (1 - kept) / (last - first)
        weights = graph.weights[first:last]
        np.testing.assert_allclose(chances, weights / weights.sum(), atol=1e-8)


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_walks_end_with_the_exact_probabilities(graph, steps):
    arcs, start, walks = arcs_of(graph), int(np.argmax(graph.degrees)), 20_000
    exact = np.linalg.matrix_power(step_probabilities(graph), steps)[start]
    ends = [walk(start, int(key), steps, arcs) for key in derive(11, np.arange(walks))]
    counts = np.bincount(ends, minlength=len(exact))
    possible = exact > 0
    assert counts[~possible].sum() == 0
    assert chisquare(counts[possible], exact[possible] * walks).pvalue > 1e-3


def test_negatives_are_uniform_over_all_nodes(graph):
    arcs = arcs_of(graph)
    drawn = np.concatenate([draw(2, key, arcs, (10, 10), 5)[0] for key in range(300)])
    labels = np.concatenate([draw(2, key, arcs, (10, 10), 5)[1] for key in range(300)])
    counts = np.bincount(drawn[labels == 0], minlength=graph.number_of_nodes)
    assert chisquare(counts).pvalue > 1e-3


def test_targets_are_never_the_node_and_have_their_hops_in_the_right_shares(graph):
    rows, labels = draw(3, 99, arcs_of(graph), (8, 0, 2), 5)
    targets = rows[labels == 1]
    assert 3 not in targets
    assert len(targets) <= 10
    assert set(targets[:8]) <= set(graph.indices[graph.indptr[3] : graph.indptr[4]])
    assert len(rows) == 6 * len(targets)


def test_a_walk_that_meets_a_dead_end_is_dropped():
    graph = Graph.from_edges([0, 0], [1, 2], directed=True)
    assert walk(0, 5, 2, arcs_of(graph)) == NOWHERE
    assert len(draw(0, 5, arcs_of(graph), (0, 4), 3)[0]) == 0


def test_one_iteration_is_the_equation_of_the_paper():
    graph = Graph.from_edges([0, 1], [1, 2])
    arcs = arcs_of(graph)
    table = np.array([[0.1, 0.2], [0.3, -0.1], [-0.2, 0.4]])
    moved = advance([table], arcs, np.array([0, 0, 1]), 17, 0.5, (2,), 1)[0]
    rows, labels = draw(2, int(derive(derive(17, 2), 0)), arcs, (2,), 1)
    x = table[2].copy()
    change = np.zeros(2)
    for row, label in zip(rows, labels, strict=True):
        logit = x @ table[row]
        change += ((1 - sigmoid(logit)) if label else -sigmoid(logit)) * table[row]
    np.testing.assert_allclose(moved[2], x + 0.5 * change)
    np.testing.assert_array_equal(moved[:2], table[:2])


def test_singly_each_update_is_applied_before_the_next():
    graph = Graph.from_edges([0, 1], [1, 2])
    arcs = arcs_of(graph)
    table = np.array([[0.1, 0.2], [0.3, -0.1], [-0.2, 0.4]])
    moved = advance([table], arcs, np.array([0, 0, 1]), 17, 0.5, (2,), 1, singly=True)[0]
    x = table[2].copy()
    for row, label in zip(*draw(2, int(derive(derive(17, 2), 0)), arcs, (2,), 1), strict=True):
        x += 0.5 * (label - sigmoid(x @ table[row])) * table[row]
    np.testing.assert_allclose(moved[2], x)
    np.testing.assert_array_equal(moved[:2], table[:2])
    together = advance([table], arcs, np.array([0, 0, 1]), 17, 0.5, (2,), 1)[0]
    assert not np.allclose(moved[2], together[2])


def test_with_context_each_table_moves_against_the_other_as_it_was():
    graph = Graph.from_edges([0, 1, 0], [1, 2, 2])
    rng = np.random.default_rng(0)
    phi, psi = rng.normal(size=(2, 3, 4))
    counts = np.array([1, 2, 0])
    new_phi, new_psi = advance([phi, psi], arcs_of(graph), counts, 5, 0.1, (3, 1), 2)
    swapped_psi, swapped_phi = advance([psi, phi], arcs_of(graph), counts, 5, 0.1, (3, 1), 2)
    np.testing.assert_array_equal(new_phi, swapped_phi)
    np.testing.assert_array_equal(new_psi, swapped_psi)
    assert not np.allclose(new_phi[:2], phi[:2])
    np.testing.assert_array_equal(new_phi[2], phi[2])
