"""Scores of possible links from neighbours alone."""

import math

import numpy as np
import pytest

from manela import Graph
from manela.analysis.links import HEURISTICS

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
