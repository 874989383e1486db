"""Networks as frozen arrays; reading and learning from them is in tests/data/test_graph.py."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from manela import Graph
from manela.data.conversion import is_symmetric
from manela.data.csr import as_ids, check_weights
from manela.errors import GraphError, ManelaWarning, UnknownNodeError


def edges_of(graph):
    sources = np.repeat(np.arange(graph.number_of_nodes), graph.degrees)
    nodes = graph.nodes.tolist()
    return {(nodes[v], nodes[u]) for v, u in zip(sources.tolist(), graph.indices.tolist(), strict=True)}


def test_integer_ids_are_put_in_order_and_others_stand_as_they_first_appear():
    assert Graph.from_edges([30, 10], [20, 30]).nodes.tolist() == [10, 20, 30]
    assert Graph.from_edges(["c", "a"], ["b", "c"]).nodes.tolist() == ["c", "a", "b"]
    assert Graph.from_edges(["c", "a"], ["b", "c"], nodes=["a", "x", "b", "c"]).nodes.tolist() == ["a", "x", "b", "c"]


def test_an_edge_stands_with_both_its_ends_and_an_arc_with_its_source_alone():
    assert edges_of(Graph.from_edges(["a"], ["b"])) == {("a", "b"), ("b", "a")}
    assert edges_of(Graph.from_edges(["a"], ["b"], directed=True)) == {("a", "b")}


def test_self_loops_are_dropped_and_counted():
    graph = Graph.from_edges([1, 1, 2], [1, 2, 2])
    assert (graph.self_loops, graph.number_of_edges) == (2, 1)


def test_an_edge_and_its_reverse_are_one_unless_the_network_is_directed():
    with pytest.warns(ManelaWarning, match=r"1 repeated edge was merged and turned into weights"):
        graph = Graph.from_edges([1, 2, 2], [2, 1, 3])
    assert (graph.number_of_edges, graph.duplicates) == (2, 1)
    assert graph.strengths.tolist() == [2.0, 3.0, 1.0]
    directed = Graph.from_edges([1, 2, 2], [2, 1, 3], directed=True)
    assert (directed.number_of_edges, directed.duplicates) == (3, 0)


def test_of_edges_that_come_twice_the_first_counts_they_add_up_or_they_are_refused():
    ends = ([1, 1, 2], [2, 2, 3])
    first = Graph.from_edges(*ends, [2.0, 5.0, 3.0], duplicates="first")
    assert first.strengths.tolist() == [2.0, 5.0, 3.0]
    with pytest.warns(ManelaWarning, match="and their weights added"):
        assert Graph.from_edges(*ends, [2.0, 5.0, 3.0]).strengths.tolist() == [7.0, 10.0, 3.0]
    with pytest.raises(GraphError, match="edges must be unique, but 1 - 2 "):
        Graph.from_edges(*ends, duplicates="error")
    with pytest.raises(GraphError, match="duplicates must be one of sum, first, error, got 'last'"):
        Graph.from_edges(*ends, duplicates="last")


def test_weights_that_are_all_the_same_are_no_weights_and_remembered_as_the_unit():
    graph = Graph.from_edges([1, 2], [2, 3], [4.0, 4.0])
    assert not graph.is_weighted
    assert graph.unit == 4.0
    assert graph.strengths.tolist() == [1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("sources", "targets"), [([], []), ([1], [1]), (["a", "b"], ["a", "b"])], ids=["nothing", "a loop", "loops"]
)
def test_a_network_without_an_edge_is_refused(sources, targets):
    with pytest.raises(GraphError, match="at least two nodes and an edge between different nodes"):
        Graph.from_edges(sources, targets)


def test_as_many_sources_as_targets_and_weights_are_needed():
    with pytest.raises(GraphError, match="got 2 and 1"):
        Graph.from_edges([1, 2], [3])
    with pytest.raises(GraphError, match=r"there must be one weight for each edge, got \(1,\) for 2 edges"):
        Graph.from_edges([1, 2], [2, 3], [1.0])


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf, 1e101, 1e-101])
def test_a_weight_that_is_not_finite_and_positive_is_told_with_its_edge(weight):
    with pytest.raises(GraphError, match="finite and above 0 .* for edge number 2"):
        check_weights([1.0, weight], 2)


def test_weights_must_be_numbers():
    with pytest.raises(GraphError, match="weights must be numbers"):
        check_weights(["a"], 1)
    assert check_weights(None, 5) is None
    assert check_weights([1, True], 2).tolist() == [1.0, 1.0]


def test_nodes_must_name_every_node_once():
    with pytest.raises(GraphError, match="'c' is missing"):
        Graph.from_edges(["a"], ["c"], nodes=["a", "b"])
    with pytest.raises(GraphError, match="nodes must be unique"):
        Graph.from_edges(["a"], ["b"], nodes=["a", "b", "a"])


def test_nothing_of_a_network_can_be_written_to_even_after_a_journey():
    graph = Graph.from_edges([1, 2], [2, 3], [1.0, 2.0])
    for one in (graph, pickle.loads(pickle.dumps(graph))):
        for array in (one.indptr, one.indices, one.weights, one.nodes):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    assert pickle.loads(pickle.dumps(graph)).digest == graph.digest


def test_whose_arrays_a_network_was_made_of_may_still_write_them():
    nodes = np.array(["a", "b"], dtype=object)
    graph = Graph.from_arcs(np.array([0]), np.array([1]), None, nodes)
    nodes[0] = "z"
    assert graph.nodes.tolist() == ["a", "b"]


def test_the_digest_goes_with_edges_weights_ids_and_direction():
    graphs = [
        Graph.from_edges([1, 2], [2, 3]),
        Graph.from_edges([1, 1], [2, 3]),
        Graph.from_edges([1, 2], [2, 3], [1.0, 2.0]),
        Graph.from_edges([1, 2], [2, 4]),
        Graph.from_edges(["1", "2"], ["2", "3"]),
        Graph.from_edges([1, 2], [2, 3], directed=True),
        Graph.from_edges([1, 2], [2, 3], nodes=[1, 2, 3, 4]),
    ]
    assert len({graph.digest for graph in graphs}) == len(graphs)
    assert Graph.from_edges([2, 3], [1, 2]).digest == graphs[0].digest


def test_a_node_without_edges_has_no_neighbours_and_an_unknown_one_is_told():
    graph = Graph.from_edges(["a", "a"], ["b", "c"], [1.0, 2.0], nodes=["a", "b", "c", "alone"])
    assert graph.neighbours("alone").tolist() == []
    assert graph.neighbours("a").tolist() == ["b", "c"]
    assert graph.strengths.tolist() == [3.0, 1.0, 2.0, 0.0]
    with pytest.raises(UnknownNodeError, match="no node has the id 'x'"):
        graph.neighbours("x")


def test_without_weights_every_edge_counts_alike():
    graph = Graph.from_edges([1, 2], [2, 3], [1.0, 2.0])
    assert graph.without_weights().strengths.tolist() == [1.0, 2.0, 1.0]
    assert graph.is_weighted
    plain = Graph.from_edges([1], [2])
    assert plain.without_weights() is plain


def test_two_networks_are_added_with_their_weights():
    one = Graph.from_edges(["a", "b"], ["b", "c"], [1.0, 2.0])
    two = Graph.from_edges(["c", "c"], ["b", "d"], [10.0, 20.0])
    both = one.add(two)
    assert both.nodes.tolist() == ["a", "b", "c", "d"]
    assert both.strengths.tolist() == [1.0, 13.0, 32.0, 20.0]
    assert (one.number_of_edges, both.number_of_edges) == (2, 3)


def test_networks_without_weights_have_none_together_however_often_an_edge_comes():
    both = Graph.from_edges([1, 2], [2, 3]).add(Graph.from_edges([2, 3], [1, 4]))
    assert (both.number_of_edges, both.is_weighted) == (3, False)
    assert both.add(both).digest == both.digest


def test_networks_of_different_units_keep_their_weights():
    both = Graph.from_edges([1], [2], [5.0]).add(Graph.from_edges([2], [3]))
    assert both.strengths.tolist() == [5.0, 6.0, 1.0]


def test_directed_and_undirected_networks_cannot_be_added():
    with pytest.raises(GraphError, match="cannot be added"):
        Graph.from_edges([1], [2]).add(Graph.from_edges([1], [2], directed=True))


def test_a_matrix_goes_there_and_back():
    matrix = sp.csr_array(np.array([[0, 2, 0], [2, 0, 3], [0, 3, 0]], dtype=float))
    graph = Graph.from_scipy(matrix)
    np.testing.assert_array_equal(graph.to_scipy().toarray(), matrix.toarray())
    assert graph.nodes.tolist() == [0, 1, 2]
    assert Graph.from_scipy(matrix, nodes=["a", "b", "c"]).neighbours("b").tolist() == ["a", "c"]


def test_a_matrix_that_is_not_symmetric_is_directed_or_its_arcs_become_edges_with_a_warning():
    matrix = sp.csr_array(np.array([[0, 1], [0, 0]]))
    assert edges_of(Graph.from_scipy(matrix, directed=True)) == {(0, 1)}
    with pytest.warns(ManelaWarning, match="directed network was read as undirected"):
        assert edges_of(Graph.from_scipy(matrix)) == {(0, 1), (1, 0)}


def test_entries_of_one_place_add_up_and_zeros_are_no_edges():
    rows, columns, data = [0, 0, 1, 0, 2], [1, 1, 0, 2, 0], [1.0, 2.0, 3.0, 0.0, 0.0]
    graph = Graph.from_scipy(sp.coo_array((data, (rows, columns)), shape=(3, 3)))
    assert (graph.number_of_edges, graph.unit) == (1, 3.0)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.ones((2, 3)), r"must be square, got shape \(2, 3\)"),
        (np.ones((2, 2), complex), "must be real, got complex128"),
        (np.array([[0, -1], [-1, 0]]), "a weight must be finite and above 0"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "a weight must be finite"),
        (np.zeros((2, 2)), "an edge between different nodes"),
    ],
)
def test_a_matrix_that_is_no_network_is_refused(matrix, words):
    with warnings.catch_warnings(action="ignore", category=ManelaWarning), pytest.raises(GraphError, match=words):
        Graph.from_scipy(sp.csr_array(matrix) if matrix.ndim == 2 else matrix)


def test_entries_outside_of_a_matrix_are_refused():
    matrix = sp.csr_array(np.array([[0, 1], [1, 0]]))
    matrix.indices = np.array([1, 7], dtype=matrix.indices.dtype)
    with pytest.raises(GraphError, match="must have its entries within its shape"):
        Graph.from_scipy(matrix)


@pytest.mark.parametrize("nodes", [["a"], ["a", "b", "c"]])
def test_as_many_nodes_as_rows_are_needed(nodes):
    with pytest.raises(GraphError, match=f"got {len(nodes)} nodes and 2 rows"):
        Graph.from_scipy(sp.csr_array(np.array([[0, 1], [1, 0]])), nodes=nodes)


@pytest.mark.parametrize("nodes", [["a", "a"], [1, 1], [1, 1.0]])
def test_one_id_cannot_stand_for_two_rows(nodes):
    with pytest.raises(GraphError, match="node ids must be unique"):
        Graph.from_scipy(sp.csr_array(np.array([[0, 1], [1, 0]])), nodes=nodes)


def test_rows_and_columns_of_a_biadjacency_matrix_are_nodes():
    graph = Graph.from_biadjacency(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))
    assert (graph.rows, graph.number_of_nodes, graph.number_of_edges) == (2, 5, 3)
    assert graph.neighbours(("row", 0)).tolist() == [("column", 0), ("column", 2)]
    assert graph.neighbours(("column", 1)).tolist() == []
    with pytest.raises(GraphError, match="as many column ids as columns are needed, got 1 for 3"):
        Graph.from_biadjacency(np.ones((2, 3)), columns=["x"])
    with pytest.raises(GraphError, match="must be unique"):
        Graph.from_biadjacency(np.ones((2, 3)), rows=["x", "y"], columns=["a", "x", "b"])
    with pytest.raises(GraphError, match="two dimensions"):
        Graph.from_biadjacency(np.ones(3))


def test_ids_keep_the_type_that_they_came_with():
    assert as_ids(np.array([1, 2], np.uint8)).dtype == np.int64
    assert as_ids([1, 2]).dtype == np.int64
    for values in ([1, "a"], [1.5, 2.0], [True, False], [2**63, 0], [(1, 2), None]):
        ids = as_ids(values)
        assert ids.dtype == object
        assert [(type(one), one) for one in ids.tolist()] == [(type(one), one) for one in values]
    assert as_ids(np.array([2**63], np.uint64)).tolist() == [2**63]
    assert as_ids([]).tolist() == []
    with pytest.raises(GraphError, match="an id must be hashable, got list"):
        as_ids([[1]])
    with pytest.raises(GraphError, match="an id must be hashable"):
        Graph.from_edges([([],)], [1])


def test_a_network_tells_its_size_and_kind():
    assert repr(Graph.from_edges([1, 2], [2, 3])) == "Graph(3 nodes, 2 edges)"
    assert (
        repr(Graph.from_edges([1, 2], [2, 3], [1.0, 2.0], directed=True))
        == "Graph(3 nodes, 2 arcs, directed, weighted)"
    )
    assert "mean degree" in Graph.from_edges([1, 2], [2, 3])._repr_html_()


def test_symmetry_is_that_of_sums():
    assert is_symmetric(sp.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2)))
    assert not is_symmetric(sp.csr_array(np.array([[0, 1], [2, 0]])))


def test_equal_entries_of_a_biadjacency_matrix_are_the_unit():
    graph = Graph.from_biadjacency(np.array([[2.0, 2.0], [0.0, 2.0]]))
    assert not graph.is_weighted
    assert graph.unit == 2.0


@pytest.mark.parametrize("weight", [np.inf, 1e200, 1e-200, -1.0])
def test_equal_entries_must_be_weights_too(weight):
    with pytest.raises(GraphError, match="a weight must be"):
        Graph.from_scipy(sp.csr_array(np.array([[0, weight], [weight, 0]])))
    with pytest.raises(GraphError, match="a weight must be"):
        Graph.from_biadjacency(np.array([[weight, weight]]))


def test_ids_that_hold_what_cannot_be_hashed_are_refused():
    with pytest.raises(GraphError, match="an id must be hashable"):
        Graph.from_scipy(sp.csr_array((1, 1)), nodes=[([],)])
    with pytest.raises(GraphError, match="an id must be hashable"):
        Graph.from_edges([1], [2], nodes=[1, 2, ([],)])
    with pytest.raises(GraphError, match="an id must be hashable"):
        Graph.from_biadjacency(np.eye(1), rows=[([],)])
