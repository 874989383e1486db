"""The definition itself: what it draws, against what is exact."""

import numpy as np
import pytest
from scipy.stats import chisquare

from manela.data.graph import Graph
from manela.kernels import moments
from manela.kernels.layout import Arcs
from manela.kernels.randomness import derive
from manela.kernels.reference import (
    BLOCKS,
    NOWHERE,
    advance,
    advance_by_messages,
    average,
    build_aliases,
    choose,
    draw,
    draw_negatives,
    draw_targets,
    find_own_shares,
    find_scales,
    show,
    sigmoid,
    smooth,
    walk,
)

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


@pytest.fixture(params=["plain", "weighted"])
def graph(request):
    rng = np.random.default_rng(3)
    ends = rng.integers(12, size=(2, 40))
    weights = rng.uniform(0.2, 5.0, size=40) if request.param == "weighted" else None
    return Graph.from_edges(ends[0], ends[1], weights, duplicates="first" if weights is None else "sum")


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


def surroundings(graph, table, hops):
    """What nodes draw targets from: what is shown, own shares and scales."""
    arcs = arcs_of(graph)
    scales = find_scales(arcs, graph.weights, hops)
    return show(table, arcs, graph.weights, scales), find_own_shares(arcs, graph.weights, scales), scales


@pytest.mark.parametrize("hop", [0, 1, 2, 3])
def test_the_mean_of_targets_is_what_walks_would_find(graph, hop):
    """A neighbour, and the mean over walks from it; at two hops over those that do not come straight back."""
    node, m, drawn = int(np.argmax(graph.degrees)), 3, 30_000
    table = np.random.default_rng(0).normal(size=(graph.number_of_nodes, m)).astype(np.float16).astype(np.float64)
    by_hop = tuple(drawn * (h == hop) for h in range(hop + 1))
    targets = draw_targets(node, 5, arcs_of(graph), by_hop, *surroundings(graph, table, hop + 1))
    steps = step_probabilities(graph)
    exact = np.zeros(m)
    for other in np.flatnonzero(steps[node]):
        ends = steps[other].copy() if hop == 1 else np.linalg.matrix_power(steps, hop)[other]
        if hop == 1:
            ends[node] = 0.0
        assert ends.sum() > 0
        exact += steps[node, other] * (ends / ends.sum()) @ table
    assert len(targets) == drawn
    # five standard errors, and what rounding to half precision leaves of a mean
    np.testing.assert_allclose(targets.mean(axis=0), exact, atol=5 * targets.std() / np.sqrt(drawn) + 2e-3)


def test_a_neighbour_of_one_neighbour_has_nothing_to_tell_at_two_hops_and_is_dropped():
    chain = Graph.from_edges([0, 1], [1, 2])
    table = np.eye(3)
    shown, shares, scales = surroundings(chain, table, 3)
    arcs = arcs_of(chain)
    assert len(draw_targets(1, 9, arcs, (0, 6), shown, shares, scales)) == 0
    np.testing.assert_array_equal(draw_targets(0, 9, arcs, (0, 6), shown, shares, scales), [[0, 0, 1]] * 6)
    assert len(draw_targets(1, 9, arcs, (2, 6), shown, shares, scales)) == 2
    # at three hops a mean holds what it holds: from 0 by 1 to 0 or 2, and back to 1
    np.testing.assert_array_equal(draw_targets(0, 9, arcs, (0, 0, 4), shown, shares, scales), [[0, 1, 0]] * 4)


def test_the_own_part_of_a_mean_is_taken_away():
    star = Graph.from_edges([0, 0, 0], [1, 2, 3], [4.0, 2.0, 2.0])
    table = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float16).astype(np.float64)
    targets = draw_targets(1, 3, arcs_of(star), (0, 4), *surroundings(star, table, 2))
    np.testing.assert_allclose(targets, np.tile((table[2] + table[3]) / 2, (4, 1)), atol=4e-3)


def test_a_way_that_ends_has_no_targets_and_counts_for_nothing_in_means():
    graph = Graph.from_edges([0, 0, 1, 3], [1, 2, 3, 0], directed=True)  # 2 has no way on
    arcs = arcs_of(graph)
    table = np.eye(4)
    shown, shares, scales = surroundings(graph, table, 4)
    assert [scale.tolist() for scale in scales] == [[0.5, 1, 0, 1], [1, 1, 0, 1], [1, 1, 0, 1]]
    np.testing.assert_array_equal(shown[2][0], [0, 0, 0, 1])  # by 1 only
    assert 0 < len(draw_targets(0, 1, arcs, (0, 40), shown, shares, scales)) < 40
    np.testing.assert_array_equal(
        np.unique(draw_targets(0, 1, arcs, (0, 40), shown, shares, scales), axis=0), [[0, 0, 0, 1]]
    )
    assert len(draw_targets(0, 1, arcs, (40,), shown, shares, scales)) == 40


def test_common_negatives_are_of_uniformly_drawn_nodes_or_have_the_moments():
    table = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float16).astype(np.float64)
    nodes = draw_negatives(table, 7, BLOCKS, 300, "nodes")
    assert nodes.shape == (BLOCKS, 300, 4)
    which = np.argmin(((nodes[:, :, None] - table) ** 2).sum(axis=3), axis=2)
    np.testing.assert_array_equal(table[which], nodes)
    assert chisquare(np.bincount(which.reshape(-1), minlength=20)).pvalue > 1e-3
    drawn = draw_negatives(table, 7, BLOCKS, 300, "moments")
    mean, lower = moments.factor(moments.measure(table))
    np.testing.assert_allclose(drawn.mean(axis=(0, 1)), mean, atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.reshape(-1, 4).T), lower @ lower.T, atol=0.1)


@pytest.mark.parametrize("source", ["nodes", "moments"])
def test_without_negatives_there_are_none(source):
    assert draw_negatives(np.eye(3), 7, 2, 0, source).shape == (2, 0, 3)


def test_one_iteration_by_messages_is_the_equation():
    graph = Graph.from_edges([0, 1], [1, 2])
    arcs = arcs_of(graph)
    table = np.array([[0.5, 0.25], [0.25, -0.125], [-0.25, 0.5]])
    negatives = draw_negatives(table, 3, 1, 3 * 4, "nodes")
    moved = advance_by_messages([table], arcs, None, np.array([0, 1, 0]), 17, 0.5, (2, 2), [negatives])[0]
    targets = draw_targets(1, int(derive(derive(17, 1), 0)), arcs, (2, 2), *surroundings(graph, table, 2))
    x, change = table[1], np.zeros(2)
    assert len(targets) == 2  # of four: neither end of the chain knows anybody else
    for target in targets:
        change += (1 - sigmoid(x @ target)) * target
    for negative in negatives[0]:
        change -= 0.5 * sigmoid(x @ negative) * negative
    np.testing.assert_allclose(moved[1], x + 0.5 * change)
    np.testing.assert_array_equal(moved[[0, 2]], table[[0, 2]])


def test_by_messages_each_table_moves_against_the_other_as_it_was():
    graph = Graph.from_edges([0, 1, 0], [1, 2, 2])
    arcs, counts = arcs_of(graph), np.array([1, 2, 0])
    phi, psi = np.random.default_rng(0).normal(size=(2, 3, 4))
    of_phi, of_psi = (draw_negatives(table, 3, 2, 8, "nodes") for table in (phi, psi))
    one = advance_by_messages([phi, psi], arcs, None, counts, 5, 0.1, (3, 1), [of_psi, of_phi])
    two = advance_by_messages([psi, phi], arcs, None, counts, 5, 0.1, (3, 1), [of_phi, of_psi])
    for first, second in zip(one, reversed(two), strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.allclose(one[0][:2], phi[:2])
    np.testing.assert_array_equal(one[0][2], phi[2])


def test_the_filter_is_the_exponential_of_the_papers_laplacian():
    """By eigenvectors, on a network with loops of each node's mean weight."""
    rng = np.random.default_rng(2)
    graph = Graph.from_edges(rng.integers(25, size=80), rng.integers(25, size=80), rng.uniform(0.5, 2, 80))
    table = rng.normal(size=(25, 6))
    adjacency = graph.to_scipy().toarray()
    adjacency += np.diag(adjacency.sum(axis=1) / graph.degrees)
    walks = adjacency / adjacency.sum(axis=1, keepdims=True)
    values, vectors = np.linalg.eig(np.eye(25) - walks)
    z = 0.5 * (values - 0.2) ** 2 - 1.0
    exact = adjacency @ (vectors * (np.exp(-0.5 * z) - 1.0)) @ np.linalg.solve(vectors, table)
    found = smooth(table, arcs_of(graph), graph.weights)
    directions = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (found, exact.real)]
    np.testing.assert_allclose(*directions, atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1).mean(), 2.0)


def test_what_nodes_show_has_half_precision():
    pair = Graph.from_edges([0], [1])
    table = np.array([[1 + 2**-12, 0.1], [2 / 3, -3e-5]])
    shown = show(table, arcs_of(pair), None, find_scales(arcs_of(pair), None, 2))
    halves = table.astype(np.float16).astype(np.float64)
    assert not np.array_equal(halves, table)
    np.testing.assert_array_equal(shown[0], halves)
    np.testing.assert_array_equal(shown[1], halves[::-1])  # the only neighbour's


def test_a_mean_is_weighted(graph):
    table = np.random.default_rng(0).normal(size=(graph.number_of_nodes, 3))
    (scale,) = find_scales(arcs_of(graph), graph.weights, 2)
    np.testing.assert_allclose(average(table, arcs_of(graph), graph.weights, scale), step_probabilities(graph) @ table)


def test_a_draw_that_is_its_arcs_threshold_takes_the_alias():
    arcs = Arcs(np.array([0, 2]), np.array([0, 0]), np.array([2**31, 2**32 - 1], np.uint32), np.array([1, 1], np.int32))
    assert choose(0, 2, (2**31 - 1) << 31, arcs) == 0
    assert choose(0, 2, 2**31 << 31, arcs) == 1
