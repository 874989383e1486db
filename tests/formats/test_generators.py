import numpy as np
import pytest

from manela.errors import ParameterError
from manela.formats.datasets import draw_random, planted_partition, stochastic_block_model


def test_the_block_model_has_the_papers_size_and_probabilities():
    graph, communities = stochastic_block_model()
    assert graph.number_of_nodes == 1024
    assert 20_000 < graph.number_of_edges < 22_000
    same = communities[:, None] == communities[None, :]
    matrix = graph.to_scipy().toarray()
    np.fill_diagonal(same, False)
    assert matrix[same].mean() == pytest.approx(0.1, abs=0.005)
    assert matrix[communities[:, None] != communities[None, :]].mean() == pytest.approx(0.01, abs=0.001)


def test_the_same_seed_gives_the_same_network():
    assert stochastic_block_model(nodes=50, seed=3)[0].digest == stochastic_block_model(nodes=50, seed=3)[0].digest
    assert stochastic_block_model(nodes=50, seed=3)[0].digest != stochastic_block_model(nodes=50, seed=4)[0].digest
    assert draw_random(100, 300, 1).digest == draw_random(100, 300, 1).digest


def test_what_is_no_probability_is_refused():
    with pytest.raises(ParameterError, match="inside must be a probability, got 1.5"):
        stochastic_block_model(inside=1.5)


def test_planted_communities_have_the_edges_that_were_asked_for():
    graph, communities = planted_partition(2000, 20, inside=3, outside=3, seed=1)
    assert graph.number_of_nodes == len(communities) == 2000
    assert 0.95 * 12_000 < graph.number_of_edges <= 12_000
    rows, columns = graph.to_scipy().nonzero()
    inside = np.mean(communities[rows] == communities[columns])
    assert inside == pytest.approx(0.5 + 0.5 / 20, abs=0.02)


def test_planted_communities_without_edges_are_refused():
    with pytest.raises(ParameterError, match="inside and outside"):
        planted_partition(10, 2, inside=0, outside=0)
