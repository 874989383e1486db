import warnings

import numpy as np
import pytest

from manela import Graph, Manela
from manela.analysis.edges import find_odd_edges
from manela.errors import GraphError, ManelaWarning, ParameterError
from manela.formats.datasets import stochastic_block_model


def learn(graph):
    return Manela(dimensions=16, random_state=0, n_jobs=1).fit(graph).embedding_


def ends_of(graph):
    sources = np.repeat(np.arange(graph.number_of_nodes), graph.degrees)
    once = sources < graph.indices
    return sources[once], graph.indices[once]


def test_edges_between_communities_are_odder_and_hidden_ones_are_told_from_random_pairs():
    graph, communities = stochastic_block_model(200, 4, 0.3, 0.01, 3)
    found = find_odd_edges(graph, learn, folds=4)
    assert found.judged == graph.number_of_edges
    assert found.auc > 0.8
    across = communities[found.sources] != communities[found.targets]
    assert across[: across.sum()].mean() > 0.8
    assert (np.diff(found.oddness) <= 0).all()
    assert ((found.oddness >= 0) & (found.oddness <= 1)).all()


def test_each_edge_is_judged_by_vectors_that_were_learned_without_it():
    graph, _ = stochastic_block_model(60, 2, 0.3, 0.05, 3)
    trained = []

    def remember(rest):
        trained.append(set(zip(*map(list, map(np.ndarray.tolist, ends_of(rest))), strict=True)))
        return learn(rest)

    found = find_odd_edges(graph, remember, folds=3)
    whole = set(zip(*map(list, map(np.ndarray.tolist, ends_of(graph))), strict=True))
    hidden = [whole - part for part in trained]
    assert set.union(*hidden) == whole
    assert sum(map(len, hidden)) == len(whole)
    assert found.judged <= len(whole)


def test_a_run_is_repeated_by_its_random_state():
    graph, _ = stochastic_block_model(60, 2, 0.3, 0.05, 3)
    one, two = (find_odd_edges(graph, learn, 2, 5) for _ in range(2))
    np.testing.assert_array_equal(one.oddness, two.oddness)
    np.testing.assert_array_equal(one.sources, two.sources)


def test_an_edge_whose_end_has_no_other_is_left_out():
    graph, _ = stochastic_block_model(60, 2, 0.3, 0.05, 3)
    sources, targets = ends_of(graph)
    leaf = Graph.from_edges(np.append(sources, 60), np.append(targets, 0))
    with warnings.catch_warnings(action="ignore", category=ManelaWarning):  # of the node whose only edge is hidden
        found = find_odd_edges(leaf, learn, folds=2)
    assert found.judged < leaf.number_of_edges
    assert 60 not in found.sources
    assert 60 not in found.targets


def test_what_is_too_small_or_complete_is_refused():
    with pytest.raises(ParameterError, match="folds"):
        find_odd_edges(Graph.from_edges([0, 1], [1, 2]), learn, folds=1)
    with pytest.raises(GraphError, match="too small"):
        find_odd_edges(Graph.from_edges([0, 1], [1, 2]), learn)
    everybody = [(one, other) for one in range(8) for other in range(one)]
    with pytest.raises(GraphError, match="every node is joined"):
        find_odd_edges(Graph.from_edges(*zip(*everybody, strict=True)), learn, folds=2)
