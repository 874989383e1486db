"""Batches of edges as a network."""

import numpy as np
import pytest

from manela import Graph
from manela.errors import GraphError
from manela.sources.edges import Edges
from manela.sources.gathering import gather_graph

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


class Batches:
    """A source that has these batches."""

    key, adds = "batches", False

    def __init__(self, *batches):
        self.batches = batches

    def read(self, state):
        yield from self.batches

    def describe(self):
        return "some batches"


def same(one, other):
    assert one.digest == other.digest
    assert one.nodes.dtype == other.nodes.dtype


@pytest.mark.parametrize("scale", [1, 10**12])
@pytest.mark.parametrize("least", [0, -5, 2**40])
def test_whole_numbers_become_the_network_that_from_edges_makes(scale, least):
    draw = np.random.default_rng(1)
    ends = draw.integers(50, size=(2, 400)) * scale + least
    weights = draw.random(400) + 0.5
    halves = [
        Edges(ends[0, some].tolist(), ends[1, some].tolist(), weights[some]) for some in (slice(150), slice(150, None))
    ]
    for directed in (False, True):
        expected = Graph.from_edges(ends[0], ends[1], weights, directed=directed)
        same(gather_graph(Batches(*halves), directed=directed), expected)


def test_numbers_from_one_end_of_the_range_to_the_other_are_told_apart():
    graph = gather_graph(Batches(Edges([-(2**63), 0], [2**63 - 1, 2**63 - 1])))
    assert graph.nodes.tolist() == [-(2**63), 0, 2**63 - 1]


def test_texts_stand_in_the_order_in_which_they_came_however_batches_are_cut():
    whole = gather_graph(Batches(Edges(["b", "a"], ["c", "b"])))
    cut = gather_graph(Batches(Edges(["b"], ["c"]), Edges(("a",), ("b",))))
    same(whole, cut)
    assert whole.nodes.tolist() == ["b", "c", "a"]


def test_numbers_among_texts_are_texts():
    graph = gather_graph(Batches(Edges([1, 2], [2, 3]), Edges(["1"], ["ann"]), Edges([2**70], [1])))
    assert graph.nodes.tolist() == ["1", "2", "3", "ann", str(2**70)]


def test_weights_of_one_are_no_weights_and_others_begin_late():
    assert gather_graph(Batches(Edges([1, 2], [2, 3], np.ones(2)))).weights is None
    graph = gather_graph(Batches(Edges([1], [2]), Edges([2], [3], np.array([2.0]))), directed=True)
    assert graph.weights is not None
    assert graph.weights.tolist() == [1.0, 2.0]


def test_repeated_edges_do_as_they_are_told():
    source = Batches(Edges([1, 1, 2], [2, 2, 3]))
    assert gather_graph(source, duplicates="first").weights is None
    assert gather_graph(source).is_weighted
    with pytest.raises(GraphError, match="occurs twice"):
        gather_graph(source, duplicates="error")


def test_a_source_without_edges_is_told():
    with pytest.raises(GraphError, match="no edges were found: some batches"):
        gather_graph(Batches())


def test_columns_grow_over_many_batches():
    batches = [Edges(list(range(first, first + 1000)), [first + 1000] * 1000) for first in range(0, 200_000, 1000)]
    assert gather_graph(Batches(*batches)).number_of_nodes == 200_001
