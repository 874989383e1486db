import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from manela import Graph, ProNE
from manela.analysis.classification import classify
from manela.errors import ManelaWarning
from manela.estimators.baselines.prone import divide_rows, filter_vectors, proximity_matrix
from manela.formats.datasets import stochastic_block_model
from manela.formats.loading import load_labels


@pytest.mark.parametrize(
    ("name", "published", "tolerance"),
    # ours were 40.9, 24.2 and 57.2 over these shuffles; the splits of CogDL are others
    [("blogcatalog", 41.1, 0.6), ("ppi", 24.6, 0.8), ("wikipedia", 56.1, 1.5)],
)
def test_f1_is_that_of_cogdl(real, name, published, tolerance):
    path = real(name)
    model = ProNE().fit(path)
    scores = classify(model.embedding_, load_labels(path).of(model.nodes_), shuffles=3)
    assert 100 * scores.micro.mean() == pytest.approx(published, abs=tolerance)


def test_the_matrix_has_the_entries_of_the_paper():
    adjacency = Graph.from_edges([0, 0, 1], [1, 2, 2], [1.0, 3.0, 2.0]).to_scipy()
    steps = adjacency.toarray() / adjacency.toarray().sum(axis=1, keepdims=True)
    chances = steps.sum(axis=0) ** 0.75
    expected = np.log(steps, where=steps > 0, out=np.zeros((3, 3))) - np.log(chances / chances.sum()) * (steps > 0)
    np.testing.assert_allclose(proximity_matrix(adjacency).toarray(), expected, rtol=1e-6)


@pytest.mark.parametrize(("theta", "mu", "order"), [(0.5, 0.2, 10), (3.0, 0.0, 20), (0.1, 2.0, 10)])
def test_the_filter_is_the_exponential_of_the_laplacian(theta, mu, order):
    graph, _ = stochastic_block_model(nodes=60, inside=0.4, between=0.05, seed=1)
    steps = divide_rows(sp.csr_array(graph.to_scipy() + sp.eye_array(60)))
    shifted = (1 - mu) * np.eye(60) - steps.toarray()
    vectors = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    expected = scipy.linalg.expm(-theta * (0.5 * shifted @ shifted - np.eye(60))) @ vectors
    filtered = filter_vectors(steps.astype(np.float32), vectors, order, theta, mu)
    assert filtered.dtype == np.float32
    np.testing.assert_allclose(filtered, expected, atol=1e-5 * np.abs(expected).max())


def test_terms_beyond_float32_are_not_computed():
    class Counted:
        products = 0

        def __matmul__(self, table):
            Counted.products += 1
            return table.copy()

    filter_vectors(Counted(), np.ones((3, 2), dtype=np.float32), order=1000, theta=0.5, mu=0.2)
    assert Counted.products < 20


def test_the_number_of_threads_does_not_change_the_bits():
    graph, _ = stochastic_block_model(nodes=120, inside=0.3, between=0.02, seed=1)
    one, three = (ProNE(dimensions=16, n_jobs=jobs).fit(graph).embedding_ for jobs in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_vectors_have_length_1_and_those_of_nodes_without_neighbours_0():
    vectors = ProNE(dimensions=8).fit(Graph.from_edges([1, 2, 3, 1], [2, 3, 4, 3], nodes=range(6))).embedding_
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [0, 1, 1, 1, 1, 0], atol=1e-6)


def test_arcs_are_taken_both_ways_with_a_warning():
    directed = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2], [1.0, 2.0, 1.0, 4.0], directed=True)
    both = Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2], [1.0, 2.0, 1.0, 4.0])
    with pytest.warns(ManelaWarning, match="ProNE takes the arcs of a directed network both ways"):
        vectors = ProNE(dimensions=4).fit(directed).embedding_
    np.testing.assert_array_equal(vectors, ProNE(dimensions=4).fit(both).embedding_)
