import warnings

import numpy as np
import pytest

from manela import Graph, Manela
from manela.analysis.edges import find_odd_edges, measure_recall, recommend
from manela.analysis.links import hide_edges, sample_nodes, score_vectors
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


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(200, 4, 0.3, 0.01, 3)[0]


def learn_hidden(graph):
    return Manela(dimensions=16, random_state=0, n_jobs=1).fit(graph).embedding_


def test_nobody_is_recommended_to_themselves_or_their_neighbours_and_the_best_come_first(graph):
    vectors = learn_hidden(graph)
    rows = np.array([5, 0, 199])
    for row, (places, scores) in zip(rows, recommend(graph, score_vectors(vectors), rows, 20), strict=True):
        known = {row, *graph.neighbours(row).tolist()}
        products = vectors @ vectors[row]
        best = [place for place in np.argsort(-products, kind="stable") if place not in known][:20]
        assert set(places.tolist()) == set(best)
        np.testing.assert_allclose(scores, products[places], rtol=1e-4)
        assert (np.diff(scores) <= 0).all()


def test_more_than_there_are_gives_all_there_are(graph):
    (places, _), *_ = recommend(graph, score_vectors(learn_hidden(graph)), np.array([0]), 10_000)
    assert len(places) == 200 - 1 - graph.degrees[0]
    with pytest.raises(ParameterError, match="count"):
        list(recommend(graph, score_vectors(learn_hidden(graph)), np.array([0]), 0))


def test_hidden_edges_are_found_far_above_chance(graph):
    recall = measure_recall(graph, learn_hidden, 20)
    assert recall.hidden == round(0.1 * graph.number_of_edges)
    assert recall.by_vectors > 2 * 20 / 200
    assert 0 < recall.by_neighbours < 1
    # what learns nothing finds as many as chance does
    blind = measure_recall(graph, lambda rest: np.random.default_rng(1).normal(size=(len(rest.nodes), 16)), 20)
    assert blind.by_vectors == pytest.approx(20 / 190, abs=0.05)


def test_hidden_edges_of_sampled_nodes_are_counted_once(graph, monkeypatch):
    split = hide_edges(graph, 0.1, 0)
    sampled = set(sample_nodes(split, 30, 0).tolist())
    pairs = {frozenset(pair) for pair in zip(*map(np.ndarray.tolist, split.hidden.nonzero()), strict=True)}
    of_sample = {pair for pair in pairs if pair & sampled}
    assert any(pair <= sampled for pair in of_sample)
    assert any(not pair <= sampled for pair in of_sample)
    assert measure_recall(graph, learn_hidden, 20, most_asked=30).hidden == len(of_sample)
