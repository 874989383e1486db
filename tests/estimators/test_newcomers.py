"""Vectors for nodes that an embedding does not know yet."""

import numpy as np
import pytest

from manela import Embedding, Graph, Manela
from manela.errors import GraphError, ParameterError
from manela.estimators.newcomers import add_placement, place_newcomers
from manela.formats.datasets import stochastic_block_model


def two_circles(directed=False, context=False):
    """Two rings of nodes with vectors that point to two sides, and an embedding of them."""
    sources = np.concatenate((np.repeat(np.arange(40), 3), np.arange(0, 40, 4)))  # some with more edges than others
    targets = sources // 20 * 20 + (sources + np.concatenate((np.tile([1, 2, 3], 40), np.full(10, 6)))) % 20
    graph = Graph.from_edges(sources, targets, directed=directed, duplicates="first")
    vectors = np.random.default_rng(0).normal(scale=0.05, size=(40, 4)).astype(np.float32)
    vectors[:20, 0] += 1.0
    vectors[20:, 1] += 1.0
    return graph, Embedding(graph.nodes, vectors, -vectors if context else None, {}, {"kept": np.ones(3)})


def joined(graph, *edges, directed=False):
    """The network with some more edges."""
    sources, targets = zip(*edges, strict=True)
    return graph.add(Graph.from_edges(list(sources), list(targets), directed=directed))


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_newcomer_is_placed_beside_its_neighbours():
    graph, embedding = two_circles()
    embedding = add_placement(embedding, graph)
    larger = joined(graph, (100, 1), (100, 2), (100, 5), (101, 30), (101, 31))
    [vectors], names = place_newcomers(embedding, larger)
    assert names.tolist() == [100, 101]
    assert vectors.dtype == np.float32
    for vector, side in zip(vectors, (embedding.vectors[:20], embedding.vectors[20:]), strict=True):
        assert cosine(vector, side.mean(axis=0)) > 0.9


def test_how_to_place_is_added_beside_what_is_there_and_the_embedding_stays_as_it_is():
    graph, embedding = two_circles()
    added = add_placement(embedding, graph)
    assert set(embedding.further) == {"kept"}
    assert set(added.further) == {"kept", "placement", "placement_norms"}
    assert added.further["placement"].shape == (1, 8, 4)
    assert added.further["placement_norms"].shape == (1, 2)
    assert added.vectors is embedding.vectors


def test_context_vectors_are_placed_too():
    graph, embedding = two_circles(context=True)
    tables, _ = place_newcomers(add_placement(embedding, graph), joined(graph, (100, 1), (100, 2)))
    assert len(tables) == 2
    assert cosine(tables[0][0], tables[1][0]) == pytest.approx(-1.0, abs=1e-3)


def test_newcomers_that_know_only_newcomers_are_placed_by_them():
    graph, embedding = two_circles()
    larger = joined(graph, (100, 1), (100, 2), (101, 100), (102, 101))
    [vectors], names = place_newcomers(add_placement(embedding, graph), larger)
    assert names.tolist() == [100, 101, 102]
    assert all(cosine(vector, embedding.vectors[:20].mean(axis=0)) > 0.5 for vector in vectors)


def test_a_newcomer_that_is_joined_to_nobody_known_is_refused_by_name():
    graph, embedding = two_circles()
    larger = joined(graph, (100, 1), (200, 201))
    with pytest.raises(GraphError, match="a new node must be joined to known ones, 200 is not"):
        place_newcomers(add_placement(embedding, graph), larger)


def test_a_model_that_does_not_say_how_is_told_with_what_to_do():
    graph, embedding = two_circles()
    with pytest.raises(
        ParameterError, match="100 was not in the training network, and this model cannot place new nodes"
    ):
        place_newcomers(embedding, joined(graph, (100, 1)))


def test_an_embedding_of_arcs_followed_as_given_does_not_say_how():
    graph, embedding = two_circles(directed=True)
    assert add_placement(embedding, graph) is embedding


def covered():
    """Out and in vectors of a directed network, as they are learned by its cover."""
    graph, embedding = two_circles(directed=True, context=True)
    provenance = {"graph": {"directed": True}, "parameters": {"exchange": "messages", "context": False}}
    return graph, Embedding(embedding.nodes, embedding.vectors, embedding.vectors.copy(), provenance)


def test_out_and_in_vectors_go_by_arcs_that_lead_out_and_in():
    graph, embedding = covered()
    embedding = add_placement(embedding, graph)
    larger = joined(graph, (100, 1), (100, 2), (30, 101), (31, 101), directed=True)
    (outs, ins), names = place_newcomers(embedding, larger)
    assert names.tolist() == [100, 101]
    assert cosine(outs[0], embedding.vectors[:20].mean(axis=0)) > 0.9
    assert cosine(ins[1], embedding.vectors[20:].mean(axis=0)) > 0.9
    assert not ins[0].any()  # no arc leads to it
    assert not outs[1].any()


def test_a_newcomer_with_arcs_to_nobody_known_is_refused_by_name():
    graph, embedding = covered()
    larger = joined(graph, (100, 1), (200, 201), directed=True)
    with pytest.raises(GraphError, match="a new node must be joined to known ones, 200 is not"):
        place_newcomers(add_placement(embedding, graph), larger)


def test_known_nodes_of_a_real_embedding_are_found_near_where_they_were():
    graph, _ = stochastic_block_model(nodes=120, seed=1)
    model = Manela(dimensions=8, rounds=30, pairs=200_000, random_state=1, n_jobs=1).fit(graph)
    embedding = add_placement(Embedding(graph.nodes, model.embedding_), graph)
    rows = {node: row for row, node in enumerate(graph.nodes.tolist())}
    node = int(graph.nodes[np.argmax(graph.degrees)])
    larger = joined(graph, *((1000, other) for other in graph.neighbours(node).tolist()))
    [vectors], _ = place_newcomers(embedding, larger)
    assert cosine(vectors[0], embedding.vectors[rows[node]]) > 0.8
