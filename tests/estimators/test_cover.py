"""Directed networks have out and in vectors, of which those that no arc leaves learn too."""

import numpy as np
import pytest

from manela import Graph, Manela
from manela.errors import GraphError, ManelaWarning, ParameterError
from manela.formats.datasets import planted_partition


@pytest.fixture(scope="module")
def arcs():
    """Arcs from the first 300 nodes of a network with communities to the other 300, and the communities."""
    graph, communities = planted_partition(600, 3, 16, 2, 0)
    entries = graph.to_scipy().tocoo()
    kept = (entries.coords[0] < 300) & (entries.coords[1] >= 300)
    return np.column_stack([ends[kept] for ends in entries.coords]), communities


def score(vectors, communities):
    """How often the nearest other vector is of the same community."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    return np.mean(communities[cosines.argmax(axis=1)] == communities)


def test_sinks_learn_by_who_leads_to_them(arcs):
    edges, communities = arcs
    model = Manela(dimensions=16, directed=True).fit(edges)
    sources, sinks = model.nodes_ < 300, model.nodes_ >= 300
    assert score(model.embedding_[sources], communities[model.nodes_[sources]]) > 0.9
    assert score(model.context_[sinks], communities[model.nodes_[sinks]]) > 0.9
    assert not model.embedding_[sinks].any()
    assert not model.context_[sources].any()
    assert model.provenance_["graph"]["directed"]
    assert model.updates_.shape == model.nodes_.shape
    assert (model.updates_ > 0).all()


def test_arcs_are_likelier_the_way_they_go():
    draw = np.random.default_rng(0)
    layers = draw.integers(3, size=300)
    pairs = draw.integers(300, size=(6000, 2))
    edges = pairs[layers[pairs[:, 1]] == (layers[pairs[:, 0]] + 1) % 3]
    model = Manela(dimensions=16, directed=True).fit(Graph.from_edges(*edges.T, directed=True, duplicates="first"))
    rows = [np.searchsorted(model.nodes_, edges[:, end]) for end in range(2)]
    forth = np.einsum("ij,ij->i", model.embedding_[rows[0]], model.context_[rows[1]])
    back = np.einsum("ij,ij->i", model.embedding_[rows[1]], model.context_[rows[0]])
    assert np.mean(forth > back) > 0.95


def test_a_saved_model_stays_directed_and_goes_on(arcs, tmp_path):
    edges, _ = arcs
    model = Manela(dimensions=8, directed=True, rounds=10).fit(edges)
    model.save(tmp_path / "model.npz")
    again = Manela.load(tmp_path / "model.npz")
    assert again.directed is True
    np.testing.assert_array_equal(again.context_, model.context_)
    grown = model.partial_fit([(1000, int(edges[0, 1])), (1000, int(edges[1, 1]))])
    assert grown[1000].any()
    assert len(grown.context_) == len(grown.nodes_)


def test_a_network_that_was_read_as_undirected_has_no_arcs():
    with pytest.raises(ParameterError, match="needs a network with arcs"):
        Manela(directed=True).fit(Graph.from_edges([0], [1]))
    with pytest.raises(ParameterError, match="directed must be True or False"):
        Manela(directed="yes").fit(Graph.from_edges([0], [1]))


def test_the_command_writes_both(manela, tmp_path, arcs):
    np.savetxt(tmp_path / "arcs.txt", arcs[0], fmt="%d")
    done = manela(
        "embed", tmp_path / "arcs.txt", "-o", tmp_path / "v.npz", "--directed", "--dimensions", "4", "--rounds", "5"
    )
    assert done.returncode == 0, done.stderr
    assert Manela.load(tmp_path / "v.npz").context_.any()


def test_new_nodes_get_the_ends_that_their_arcs_give_them(arcs, tmp_path):
    edges, communities = arcs
    late = (edges[:, 0] >= 280) | (edges[:, 1] >= 580)
    model = Manela(dimensions=16, directed=True).fit(edges[~late])
    new = edges[late & (edges[:, 0] < 280) & (edges[:, 1] >= 580)]  # sinks that come later
    out = model.transform(new)
    assert not out[Graph.of(new, directed=True).nodes >= 580].any()
    model.save(tmp_path / "model.npz")
    for grown in (model, Manela.load(tmp_path / "model.npz")):
        before = grown.context_.copy()
        grown.partial_fit(new, freeze=True)
        np.testing.assert_array_equal(grown.context_[: len(before)], before)
        ends = grown.to_embedding().by_context()
        sinks = sorted(set(new[:, 1].tolist()))
        found = ends.most_similar(sinks, k=5, among=[n for n in grown.nodes_.tolist() if 300 <= n < 580])
        guesses = [np.bincount(communities[[node for node, _ in some]]).argmax() for some in found]
        assert np.mean(np.array(guesses) == communities[sinks]) > 0.9
    with pytest.raises(GraphError, match="7000 is not"):
        model.transform([(0, 5000), (7000, 8000)])


def test_arcs_that_were_followed_as_given_place_nobody(arcs):
    model = Manela(dimensions=8, directed=True, context=True, rounds=3)
    with pytest.warns(ManelaWarning, match="no neighbour"):
        model.fit(arcs[0])
    with pytest.raises(ParameterError, match="use partial_fit"):
        model.transform([(5000, 300), (5000, 301)])
