"""Scores of possible links from neighbours alone."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import average_precision_score, roc_auc_score

from manela import Graph
from manela.analysis.links import (
    HEURISTICS,
    LinkScores,
    Split,
    average_precision,
    hide_edges,
    rank_links,
    sample_nodes,
    score_vectors,
)
from manela.errors import GraphError, ParameterError
from manela.formats.datasets import stochastic_block_model

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(nodes=150, inside=0.2, between=0.02, seed=4)[0]


def edges_of(graph):
    u, v = sp.triu(graph.to_scipy(), k=1).nonzero()
    return {frozenset(pair) for pair in zip(graph.nodes[u].tolist(), graph.nodes[v].tolist(), strict=True)}


def hidden_of(split):
    u, v = sp.triu(split.hidden, k=1).nonzero()
    ids = split.graph.nodes
    return {frozenset(pair) for pair in zip(ids[u].tolist(), ids[v].tolist(), strict=True)}


def test_no_edge_is_in_both_parts(graph):
    split = hide_edges(graph, 0.2, random_state=3)
    training, hidden, all_edges = edges_of(split.graph), hidden_of(split), edges_of(graph)
    assert not training & hidden
    assert training | hidden <= all_edges
    assert len(hidden) == split.hidden.nnz // 2
    # nothing is lost but what hangs outside of the largest component
    outside = set(graph.nodes.tolist()) - set(split.graph.nodes.tolist())
    assert all(edge & outside for edge in all_edges - training - hidden)
    assert len(hidden) <= round(0.2 * len(all_edges))


def test_what_is_left_is_connected_and_keeps_its_weights():
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(60, size=150), rng.integers(60, size=150), rng.uniform(1, 9, 150))
    split = hide_edges(graph, 0.3, random_state=1)
    assert connected_components(split.graph.to_scipy(), directed=False)[0] == 1
    rows = np.searchsorted(graph.nodes, split.graph.nodes)
    whole, left = graph.to_scipy().toarray()[np.ix_(rows, rows)], split.graph.to_scipy().toarray()
    np.testing.assert_allclose(left[left > 0], whole[left > 0])


def test_a_seed_hides_the_same_edges_and_another_hides_others(graph):
    assert hidden_of(hide_edges(graph, 0.2, 5)) == hidden_of(hide_edges(graph, 0.2, 5))
    assert hidden_of(hide_edges(graph, 0.2, 5)) != hidden_of(hide_edges(graph, 0.2, 6))


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_is_between_nothing_and_all(graph, share):
    with pytest.raises(ParameterError, match="share must be"):
        hide_edges(graph, share)


def test_arcs_and_tiny_networks_are_refused():
    with pytest.raises(GraphError, match="undirected"):
        hide_edges(Graph.from_edges([0, 1], [1, 2], directed=True))
    with pytest.raises(GraphError, match="too small"):
        hide_edges(Graph.from_edges([0, 1], [1, 2]), 0.5)


def test_average_precision_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    scores, wanted = rng.normal(size=(20, 30)), rng.random((20, 30)) < 0.2
    wanted[0] = False
    expected = [average_precision_score(w, s) if w.any() else 0.0 for s, w in zip(scores, wanted, strict=True)]
    np.testing.assert_allclose(average_precision(scores, wanted), expected)


def test_average_precision_by_hand():
    """Wanted at places 1 and 3 of a list of four: (1/1 + 2/3)/2; what is left out of the list counts for nothing."""
    scores = np.array([[4.0, 3.0, 2.0, 1.0], [-np.inf, 3.0, 2.0, 1.0]])
    wanted = np.array([[True, False, True, False], [True, False, True, False]])
    np.testing.assert_allclose(average_precision(scores, wanted), [5 / 6, 1 / 2])


@pytest.fixture
def small():
    """A path 0-1-2-3-4 to learn from; 0-2 and 1-4 are hidden."""
    hidden = np.zeros((5, 5), dtype=bool)
    hidden[0, 2] = hidden[2, 0] = hidden[1, 4] = hidden[4, 1] = True
    return Split(Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4]), sp.csr_array(hidden))


def test_rankings_by_hand(small):
    """Candidates: 02 03 04 13 14 24. Scored 6 to 1 in this order, so hidden ones are first and fifth."""
    table = np.zeros((5, 5))
    for score, (u, v) in zip(range(6, 0, -1), [(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)], strict=True):
        table[u, v] = table[v, u] = score
    table[0, 1] = table[1, 0] = 99.0  # an edge of the training part must not count
    scores = rank_links(lambda rows: table[rows], small, np.arange(5))
    # 0: 2 3 4, first -> 1; 1: 3 4, second -> 1/2; 2: 0 4 -> 1; 3: none; 4: 0 1 2, second -> 1/2
    assert scores.over_all == pytest.approx((1 + 1 / 2 + 1 + 0 + 1 / 2) / 5)
    assert scores.mean_average_precision == pytest.approx((1 + 1 / 2 + 1 + 1 / 2) / 4)
    assert scores.precision[1] == 1.0
    assert scores.precision[3] == pytest.approx(1 / 3)
    assert 0.3 < scores.auc < 0.9


def test_only_pairs_among_the_nodes_asked_for_are_ranked_unless_told(small):
    """Asked for 0, 1 and 3, nothing hidden lies among them: 03 and 13 are candidates. With any other, 02 and 14 too."""
    table = np.arange(25.0).reshape(5, 5)
    nodes = np.array([0, 1, 3])
    scores = rank_links(lambda rows: table[rows], small, nodes)
    assert scores.mean_average_precision == scores.over_all == scores.precision[1] == 0.0
    # 0: 4 3 2, third -> 1/3; 1: 4 3, first -> 1; 3: nothing hidden
    scores = rank_links(lambda rows: table[rows], small, nodes, among=False)
    assert scores.mean_average_precision == pytest.approx((1 / 3 + 1) / 2)
    assert scores.over_all == pytest.approx((1 / 3 + 1) / 3)
    # the one list, by score: 31 is 13 and in it once, as 13 with 8; 14 scores 9
    assert scores.precision[1] == 1.0


def test_a_list_is_no_longer_than_there_are_pairs(graph):
    """Each hidden edge is found once, and no precision is told beyond the end of the list."""
    split = hide_edges(graph, 0.2)
    nodes = sample_nodes(split, 40, random_state=1)
    vectors = np.random.default_rng(3).normal(size=(split.graph.number_of_nodes, 4))
    found = rank_links(score_vectors(vectors), split, nodes)
    known = (split.graph.to_scipy() != 0).toarray()[np.ix_(nodes, nodes)]
    pairs = 40 * 39 // 2 - known.sum() // 2
    assert max(found.precision) <= pairs < 1000
    hidden = split.hidden[nodes][:, nodes].nnz // 2
    assert all(k * precision <= hidden for k, precision in found.precision.items())


def test_auc_is_that_of_scikit_learn(graph):
    split = hide_edges(graph, 0.2)
    vectors = np.random.default_rng(2).normal(size=(split.graph.number_of_nodes, 4))
    found = rank_links(score_vectors(vectors), split, sample_nodes(split, None))
    assert isinstance(found, LinkScores)
    known = split.graph.to_scipy().toarray() != 0
    hidden = split.hidden.toarray()
    upper = np.triu(~known, k=1)
    expected = roc_auc_score(hidden[upper], (vectors @ vectors.T)[upper])
    assert found.auc == pytest.approx(expected, abs=0.015)


def test_a_perfect_score_finds_everything(graph):
    split = hide_edges(graph, 0.2)
    found = rank_links(lambda rows: split.hidden[rows].toarray(), split, sample_nodes(split, None))
    assert found.mean_average_precision == pytest.approx(1.0)
    assert found.auc == pytest.approx(1.0)
    assert found.precision[100] == 1.0


def test_samples_are_nodes_without_repetition(graph):
    split = hide_edges(graph, 0.2)
    rows = sample_nodes(split, 40, random_state=1)
    assert len(set(rows.tolist())) == 40
    assert len(sample_nodes(split, None)) == len(sample_nodes(split, 10_000)) == split.graph.number_of_nodes


def test_heuristics_are_those_of_networkx():
    networkx = pytest.importorskip("networkx")
    other = networkx.gnp_random_graph(30, 0.2, seed=1)
    graph = Graph.of(other)
    rows = np.arange(30)
    pairs = [(u, v) for u in range(30) for v in range(u + 1, 30)]
    u, v = np.array(pairs).T
    for name, function in (
        ("adamic-adar", networkx.adamic_adar_index),
        ("preferential-attachment", networkx.preferential_attachment),
    ):
        expected = [score for *_, score in function(other, pairs)]
        np.testing.assert_allclose(HEURISTICS[name](graph)(rows)[u, v], expected)
    common = [len(list(networkx.common_neighbors(other, a, b))) for a, b in pairs]
    np.testing.assert_allclose(HEURISTICS["common-neighbours"](graph)(rows)[u, v], common)


EDGES = [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("b", "e"), ("c", "f")]
NODES = list("abcdefg")
GRAPH = Graph.from_edges(*zip(*EDGES, strict=True), nodes=NODES)


def neighbours(node):
    return {v for edge in EDGES for v in edge if node in edge} - {node}


def compare(name, formula, graph=GRAPH):
    scores = HEURISTICS[name](graph)(np.arange(7))
    for i, one in enumerate(NODES):
        for j, other in enumerate(NODES):
            assert scores[i, j] == pytest.approx(formula(neighbours(one), neighbours(other))), (one, other)


def test_common_neighbours_are_counted():
    compare("common-neighbours", lambda one, other: len(one & other))


def test_adamic_and_adar_count_rare_acquaintances_for_more():
    def formula(one, other):
        return sum(1 / math.log(max(2, len(neighbours(w)))) for w in one & other)

    compare("adamic-adar", formula)


def test_preferential_attachment_is_the_product_of_degrees():
    compare("preferential-attachment", lambda one, other: len(one) * len(other))


def test_weights_do_not_matter():
    weighted = Graph.from_edges(*zip(*EDGES, strict=True), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], nodes=NODES)
    compare("common-neighbours", lambda one, other: len(one & other), weighted)
    compare("preferential-attachment", lambda one, other: len(one) * len(other), weighted)


@pytest.mark.parametrize("name", HEURISTICS)
def test_scores_are_finite_numbers_of_some_nodes_against_all(name):
    score = HEURISTICS[name](GRAPH)
    rows = np.array([6, 1, 1])
    found = score(rows)
    assert isinstance(found, np.ndarray)
    assert found.shape == (3, 7)
    assert np.isfinite(found).all()
    assert not found[0].any()  # it has no neighbours
    np.testing.assert_array_equal(found[1], found[2])
    assert score(np.zeros(0, np.int64)).shape == (0, 7)
