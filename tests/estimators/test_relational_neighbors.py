import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from manela import Graph, RelationalNeighbors
from manela.errors import ParameterError


def test_labels_spread_one_step_an_iteration():
    path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    given = np.zeros((5, 2), dtype=bool)
    given[0, 0] = given[4, 1] = True
    model = RelationalNeighbors().fit(path, sp.csr_array(given))
    assert model.iterations_ == 2
    # the middle has one vote of each side, and the first label wins
    np.testing.assert_array_equal(model.predict()[:, 0], [True, True, True, False, False])
    np.testing.assert_array_equal(model.chances_[2], [0.5, 0.5])


def test_the_most_frequent_labels_of_the_neighbours_are_taken():
    star = Graph.from_edges([0, 0, 0, 0], [1, 2, 3, 4])
    given = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 1, 1], [0, 0, 1]], dtype=bool)
    model = RelationalNeighbors().fit(star, given)
    np.testing.assert_allclose(model.chances_[0], [2 / 6, 1 / 6, 3 / 6])
    assert model.predict()[0].tolist() == [False, False, True]
    assert model.predict(np.array([2, 1, 1, 1, 1]))[0].tolist() == [True, False, True]


def test_weights_are_votes():
    star = Graph.from_edges([0, 0, 0], [1, 2, 3], [1.0, 1.0, 5.0])
    given = np.array([[0, 0], [1, 0], [1, 0], [0, 1]], dtype=bool)
    assert RelationalNeighbors().fit(star, given).predict()[0].tolist() == [False, True]


def test_a_node_that_no_label_reaches_has_the_most_frequent_one():
    graph = Graph.from_edges([0, 1, 3], [1, 2, 4], nodes=range(5))
    given = np.zeros((5, 2), dtype=bool)
    given[0, 1] = given[1, 1] = given[2, 0] = True
    assert RelationalNeighbors().fit(graph, given).predict()[3].tolist() == [False, True]


@pytest.mark.parametrize(
    ("given", "rule"),
    [(np.zeros((2, 2)), "each of 3 nodes"), (np.zeros((3, 2)), "at least one node"), (np.ones(4), "each of 3 nodes")],
)
def test_labels_are_checked(given, rule):
    with pytest.raises(ParameterError, match=rule):
        clone(RelationalNeighbors()).fit(Graph.from_edges([0, 1], [1, 2]), given)


def test_one_label_for_each_node_may_be_of_any_kind():
    path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    assert RelationalNeighbors().fit(path, np.array([7, -1, -1, -1, 3])).predict().tolist() == [7, 7, 7, 3, 3]
    model = RelationalNeighbors().fit(path, ["red", None, float("nan"), None, "blue"])
    assert model.predict().tolist() == ["red", "red", "red", "blue", "blue"]
    assert model.classes_.tolist() == ["red", "blue"]
