import numpy as np
import pytest

from manela import Manela
from manela.analysis import edges as missing_edges
from manela.analysis.edges import measure_recall, recommend
from manela.analysis.links import hide_edges, sample_nodes, score_vectors
from manela.errors import ParameterError
from manela.formats.datasets import stochastic_block_model


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(200, 4, 0.3, 0.01, 3)[0]


def learn(graph):
    return Manela(dimensions=16, random_state=0, n_jobs=1).fit(graph).embedding_


def test_nobody_is_recommended_to_themselves_or_their_neighbours_and_the_best_come_first(graph):
    vectors = learn(graph)
    rows = np.array([5, 0, 199])
    for row, (places, scores) in zip(rows, recommend(graph, score_vectors(vectors), rows, 20), strict=True):
        known = {row, *graph.neighbours(row).tolist()}
        products = vectors @ vectors[row]
        best = [place for place in np.argsort(-products, kind="stable") if place not in known][:20]
        assert set(places.tolist()) == set(best)
        np.testing.assert_allclose(scores, products[places], rtol=1e-4)
        assert (np.diff(scores) <= 0).all()


def test_more_than_there_are_gives_all_there_are(graph):
    (places, _), *_ = recommend(graph, score_vectors(learn(graph)), np.array([0]), 10_000)
    assert len(places) == 200 - 1 - graph.degrees[0]
    with pytest.raises(ParameterError, match="count"):
        list(recommend(graph, score_vectors(learn(graph)), np.array([0]), 0))


def test_hidden_edges_are_found_far_above_chance(graph):
    recall = measure_recall(graph, learn, 20)
    assert recall.hidden == round(0.1 * graph.number_of_edges)
    assert recall.by_vectors > 2 * 20 / 200
    assert 0 < recall.by_neighbours < 1
    # what learns nothing finds as many as chance does
    blind = measure_recall(graph, lambda rest: np.random.default_rng(1).normal(size=(len(rest.nodes), 16)), 20)
    assert blind.by_vectors == pytest.approx(20 / 190, abs=0.05)


def test_hidden_edges_of_sampled_nodes_are_counted_once(graph, monkeypatch):
    monkeypatch.setattr(missing_edges, "_MOST_ASKED", 30)
    split = hide_edges(graph, 0.1, 0)
    sampled = set(sample_nodes(split, 30, 0).tolist())
    pairs = {frozenset(pair) for pair in zip(*map(np.ndarray.tolist, split.hidden.nonzero()), strict=True)}
    of_sample = {pair for pair in pairs if pair & sampled}
    assert any(pair <= sampled for pair in of_sample)
    assert any(not pair <= sampled for pair in of_sample)
    assert measure_recall(graph, learn, 20).hidden == len(of_sample)
