import numpy as np
import pytest

from manela import Graph, NetMF
from manela.analysis.classification import classify
from manela.errors import GraphError, ManelaWarning, ParameterError
from manela.estimators.baselines.netmf import approximate_matrix, edge_matrix, exact_matrix, invert, largest_eigenpairs
from manela.formats.datasets import stochastic_block_model
from manela.formats.loading import load_labels
from manela.settings.settings import NetMFSettings


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(nodes=60, inside=0.4, between=0.05, seed=1)[0]


def count_pairs(adjacency, window, negatives):
    """The matrix of the paper, by its equation."""
    dense = adjacency.toarray()
    inverse = np.diag(1 / dense.sum(axis=1))
    powers = [np.linalg.matrix_power(inverse @ dense, power) for power in range(1, window + 1)]
    return dense.sum() / (negatives * window) * sum(powers) @ inverse


@pytest.mark.parametrize(
    ("name", "window", "published", "tolerance"),
    # ours were 42.4, 23.6 and 57.2 over these shuffles, and 50.8 for wikipedia with a window of 10: the window of 1
    # suits a network in which most nodes are near each other
    [("ppi", 10, 23.7, 0.7), ("wikipedia", 1, 57.4, 1.0)],
)
def test_f1_is_that_of_cogdl(real, name, window, published, tolerance):
    path = real(name)
    model = NetMF(window=window).fit(path)
    scores = classify(model.embedding_, load_labels(path).of(model.nodes_), shuffles=3)
    assert 100 * scores.micro.mean() == pytest.approx(published, abs=tolerance)


@pytest.mark.parametrize(("window", "negatives"), [(2, 1), (10, 5)])
def test_the_exact_matrix_is_the_papers(graph, window, negatives):
    adjacency = graph.to_scipy()
    strengths = adjacency.sum(axis=1)
    steps = (adjacency * invert(strengths)[:, None]).astype(np.float32)
    expected = count_pairs(adjacency, window, negatives)
    np.testing.assert_allclose(exact_matrix(steps, strengths, window, negatives), expected, rtol=1e-4)


def test_for_a_window_of_1_it_is_sparse_and_has_the_logarithm(graph):
    adjacency = graph.to_scipy()
    expected = np.log(np.maximum(count_pairs(adjacency, 1, 2), 1))
    matrix = edge_matrix(adjacency, adjacency.sum(axis=1), 2)
    np.testing.assert_allclose(matrix.toarray(), expected, rtol=1e-5, atol=1e-6)
    assert matrix.nnz <= adjacency.nnz


def test_from_all_eigenpairs_comes_the_matrix_without_its_negative_means_of_powers(graph):
    adjacency = graph.to_scipy()
    settings = NetMFSettings(dimensions=8, window=2, negatives=1, rank=60, seed=0, threads=1)
    strengths = adjacency.sum(axis=1)
    inverse = np.sqrt(invert(strengths))
    values, vectors = np.linalg.eigh(adjacency.toarray() * inverse[:, None] * inverse)
    kept = np.maximum((values + values**2) / 2, 0)
    expected = strengths.sum() * (inverse[:, None] * vectors * kept) @ (vectors.T * inverse)
    np.testing.assert_allclose(approximate_matrix(adjacency, strengths, settings), expected, rtol=1e-4, atol=1e-4)


def test_the_largest_eigenpairs_of_a_large_matrix_are_those_of_all():
    graph, _ = stochastic_block_model(nodes=1200, inside=0.02, between=0.002, seed=1)
    matrix = graph.to_scipy()
    values, vectors = largest_eigenpairs(matrix, 5, seed=3)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix.toarray())[-5:], rtol=1e-5)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-4)
    np.testing.assert_array_equal(largest_eigenpairs(matrix, 5, seed=3)[1], vectors)


@pytest.mark.parametrize("parameters", [{"window": 1}, {"window": 3, "rank": None}, {"window": 3, "rank": 16}])
def test_each_way_gives_the_same_bits_for_any_number_of_threads(graph, parameters):
    one, three = (NetMF(dimensions=16, n_jobs=jobs, **parameters).fit(graph).embedding_ for jobs in (1, 3))
    np.testing.assert_array_equal(one, three)
    assert np.isfinite(one).all()


def test_a_network_whose_dense_matrix_would_not_fit_is_refused():
    path = Graph.from_edges(np.arange(40_000), np.arange(1, 40_001))
    with pytest.raises(GraphError, match=r"at most 32,768 nodes, got 40,001, whose dense matrix has 6.0 GiB"):
        NetMF().fit(path)
    assert NetMF(dimensions=2, window=1).fit(path).embedding_.shape == (40_001, 2)


def test_without_negatives_it_is_refused(graph):
    with pytest.raises(ParameterError, match="negatives must be at least 1 for NetMF, got 0"):
        NetMF(negatives=0).fit(graph)


def test_arcs_are_taken_both_ways_with_a_warning():
    directed = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2], [1.0, 2.0, 1.0, 4.0], directed=True)
    with pytest.warns(ManelaWarning, match="NetMF takes the arcs of a directed network both ways"):
        vectors = NetMF(dimensions=4).fit(directed).embedding_
    both = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2], [1.0, 2.0, 1.0, 4.0])
    np.testing.assert_array_equal(vectors, NetMF(dimensions=4).fit(both).embedding_)
