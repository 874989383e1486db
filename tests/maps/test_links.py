"""The links that a map draws."""

import numpy as np
import pytest

from manela import Graph
from manela.errors import GraphError, ManelaWarning
from manela.maps import page as module
from manela.maps.page import choose_links

NODES = np.array(["a", "b", "c", "d"], dtype=object)


def test_an_edge_is_drawn_once_however_often_and_whichever_way_it_comes():
    pairs, total = choose_links(NODES, [("b", "a"), ("a", "b"), ("c", "b"), ("c", "b")])
    assert (pairs.tolist(), total) == ([[0, 1], [1, 2]], 2)
    assert pairs.dtype == np.uint32


def test_arcs_both_ways_are_one_link():
    graph = Graph.from_edges(["a", "b", "d"], ["b", "a", "a"], directed=True)
    assert choose_links(NODES, graph)[0].tolist() == [[0, 1], [0, 3]]


def test_ids_are_compared_as_text_and_the_order_of_the_map_holds():
    pairs, _ = choose_links(np.array([30, 10, 20]), [("10", "20"), ("20", "30")])
    assert pairs.tolist() == [[0, 2], [1, 2]]


def test_edges_of_nodes_without_a_vector_are_left_out_with_a_warning():
    with pytest.warns(ManelaWarning, match="edges of 2 nodes that have no vector are left out of the map"):
        pairs, total = choose_links(NODES, [("a", "b"), ("a", "x"), ("x", "y")])
    assert (pairs.tolist(), total) == ([[0, 1]], 1)


def test_edges_of_another_network_are_refused():
    with pytest.raises(GraphError, match="no edge joins two nodes of the map"):
        choose_links(NODES, [("x", "y"), ("a", "z")])


def test_too_many_links_are_a_sample_that_is_the_same_for_the_same_number(monkeypatch):
    monkeypatch.setattr(module, "_MOST_LINKS", 50)
    ends = np.triu_indices(30, 1)
    graph = Graph.from_edges(*ends)
    pairs, total = choose_links(np.arange(30), graph, random_state=1)
    assert (len(pairs), total) == (50, len(ends[0]))
    everyone = set(zip(*map(np.ndarray.tolist, ends), strict=True))
    drawn = list(map(tuple, pairs.tolist()))
    assert len(set(drawn)) == 50
    assert set(drawn) <= everyone
    assert drawn == sorted(drawn)
    np.testing.assert_array_equal(choose_links(np.arange(30), graph, random_state=1)[0], pairs)
    assert not np.array_equal(choose_links(np.arange(30), graph, random_state=2)[0], pairs)


def test_as_many_links_as_may_be_are_all_drawn(monkeypatch):
    monkeypatch.setattr(module, "_MOST_LINKS", 2)
    assert choose_links(NODES, [("a", "b"), ("b", "c")])[0].tolist() == [[0, 1], [1, 2]]
