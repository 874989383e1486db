"""Nodes that come later get vectors near those of their communities, and change nobody else's."""

import numpy as np
import pytest

from manela import Graph, Manela
from manela.errors import GraphError, ParameterError
from manela.formats.datasets import planted_partition


@pytest.fixture(scope="module")
def network():
    """A network, its communities, and the model of all but the last hundred nodes."""
    graph, communities = planted_partition(1000, 5, 12, 2, 0)
    matrix = graph.to_scipy()
    early = Graph.from_scipy(matrix[:900][:, :900])
    return matrix, communities, early


@pytest.fixture
def model(network):
    return Manela(dimensions=16).fit(network[2])


def edges_to_known(matrix):
    """The edges of the last hundred nodes to others before them."""
    entries = matrix[900:][:, :900].tocoo()
    return np.column_stack((entries.coords[0] + 900, entries.coords[1]))


def find_communities(vectors, model, communities):
    """The community that the nearest known nodes of each vector have."""
    batches = model.most_similar(vectors, k=5, among=list(range(900)))
    return np.array([np.bincount(communities[[node for node, _ in some]]).argmax() for some in batches])


def test_newcomers_are_placed_in_their_communities(network, model):
    matrix, communities, _ = network
    before = model.embedding_.copy()
    edges = edges_to_known(matrix)
    nodes = Graph.of(edges).nodes
    vectors = model.transform(edges)
    np.testing.assert_array_equal(vectors[nodes < 900], before[nodes[nodes < 900]])
    found = find_communities(vectors[nodes >= 900], model, communities)
    assert np.mean(found == communities[nodes[nodes >= 900]]) > 0.95
    np.testing.assert_array_equal(model.embedding_, before)
    assert 950 not in model


def test_one_alone_gets_what_it_gets_among_others(network, model):
    edges = edges_to_known(network[0])
    nodes = Graph.of(edges).nodes
    own = edges[edges[:, 0] == nodes[-1]]
    alone = model.transform(own)[-1]
    np.testing.assert_allclose(alone, model.transform(edges)[-1], rtol=1e-4, atol=1e-5)


def test_freezing_adds_newcomers_and_changes_nobody(network, model):
    before, edges = model.embedding_.copy(), edges_to_known(network[0])
    vectors = model.transform(edges)
    model.partial_fit(edges, freeze=True)
    np.testing.assert_array_equal(model.embedding_[:900], before)
    new = Graph.of(edges).nodes[Graph.of(edges).nodes >= 900]
    np.testing.assert_array_equal(model[new], vectors[-len(new) :])
    assert model.nodes_.dtype == np.int64
    assert model.provenance_["nodes_placed"] == len(new)
    after = model.embedding_.copy()
    model.partial_fit(edges, freeze=True)
    np.testing.assert_array_equal(model.embedding_, after)
    with pytest.raises(ParameterError, match="at most one of freeze and replace"):
        model.partial_fit(edges, freeze=True, replace=True)


def test_a_model_that_was_saved_places_newcomers_alike(network, model, tmp_path, manela):
    edges = edges_to_known(network[0])
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(Manela.load(tmp_path / "model.npz").transform(edges), model.transform(edges))
    (tmp_path / "edges.txt").write_text("a b\nb c\nc a\nc d\n")
    manela("embed", tmp_path / "edges.txt", "-o", tmp_path / "v.npz", "--dimensions", "4")
    assert Manela.load(tmp_path / "v.npz").transform([("new", "a"), ("new", "b")]).shape == (3, 4)


def test_who_knows_only_newcomers_is_placed_by_them_and_who_knows_nobody_is_named(model):
    vectors = model.transform([(5000, 1), (5000, 2), (6000, 5000)])
    assert np.isfinite(vectors).all()
    assert vectors[-1].any()
    with pytest.raises(GraphError, match="must be joined to known ones, 7000 is not"):
        model.transform([(5000, 1), (7000, 8000)])


def test_context_vectors_are_placed_too(network):
    model = Manela(dimensions=8, context=True, rounds=20).fit(network[2])
    model.partial_fit(edges_to_known(network[0]), freeze=True)
    assert model.context_.shape == model.embedding_.shape
    assert np.abs(model.context_[900:]).max(axis=1).min() > 0


def test_weights_of_any_size_are_taken_in_proportion(model):
    wanted = model.transform([("x", 1, 1.0), ("x", 2, 2.0), ("x", 3, 2.0)])[0]
    for scale in (1e50, 1e-50):
        found = model.transform([("x", 1, scale), ("x", 2, 2 * scale), ("x", 3, 2 * scale)])[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_edges_between_known_nodes_are_learned_by_later(model):
    before = model._graph.number_of_edges
    model.partial_fit([(0, 899)], freeze=True)
    assert model._graph.number_of_edges - before in (0, 1)
    assert 899 in model._graph.neighbours(0)


@pytest.mark.parametrize("degree", [2, 3, 4, 6, 8])
def test_new_nodes_of_a_regular_network_get_finite_vectors(degree):
    sources = np.repeat(np.arange(20), degree)
    targets = (sources + np.tile(np.arange(1, degree + 1), 20)) % 20
    model = Manela(dimensions=8, random_state=0).fit(Graph.from_edges(sources, targets, duplicates="first"))
    assert np.isfinite(model.transform([(999, 0), (999, 1)])).all()
