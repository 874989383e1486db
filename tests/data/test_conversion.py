import pickle
import types
import warnings

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from manela.data.graph import Graph
from manela.errors import GraphError, ManelaWarning, UnknownNodeError


def edges_of(graph):
    """Edges as a set of (smaller id, larger id, weight), by the ids."""
    matrix = graph.to_scipy().tocoo()
    return {
        (graph.nodes[i], graph.nodes[j], float(w))
        for i, j, w in zip(*matrix.coords, matrix.data, strict=True)
        if graph.directed or i < j
    }


def test_ids_of_any_hashable_type_come_back_with_their_type():
    ids = [1, "1", (2, "x"), 2.5, None, frozenset({3})]
    graph = Graph.from_edges(ids[:-1], ids[1:])
    assert list(graph.nodes) == ids
    assert [type(node) for node in graph.nodes.tolist()] == [type(node) for node in ids]
    assert [type(n) for n in Graph.from_edges(["a"], ["b"]).nodes.tolist()] == [str, str]
    assert [type(n) for n in Graph.from_edges(np.array([5]), np.array([3])).nodes.tolist()] == [int, int]


def test_integer_ids_are_in_order_and_others_as_they_appear():
    assert list(Graph.from_edges([30, 7], [7, -1]).nodes) == [-1, 7, 30]
    assert list(Graph.from_edges(["z", "b"], ["b", "a"]).nodes) == ["z", "b", "a"]


@pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")
def test_self_loops_and_duplicates_are_dropped_and_counted_and_weights_added():
    graph = Graph.from_edges([0, 1, 0, 2, 1], [1, 0, 1, 2, 2], [1.0, 2.0, 3.0, 9.0, 5.0])
    assert (graph.self_loops, graph.duplicates) == (1, 2)
    assert edges_of(graph) == {(0, 1, 6.0), (1, 2, 5.0)}


def test_weights_that_are_all_the_same_are_no_weights():
    assert not Graph.from_edges([0, 1], [1, 2], [3.0, 3.0]).is_weighted
    assert Graph.from_edges([0, 1], [1, 2], [3.0, 4.0]).is_weighted


def test_arrays_are_frozen_also_after_pickling():
    made = Graph.from_edges([0, 1], [1, 2], [1.0, 2.0])
    for graph in (made, pickle.loads(pickle.dumps(made))):
        for array in (graph.indptr, graph.indices, graph.weights, graph.nodes):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def ways_in(pairs):
    """The same arcs in whatever they may come."""
    sources, targets = zip(*pairs, strict=True)
    ones = np.ones(len(pairs))
    return {
        "edges": (sources, targets),
        "digraph": nx.MultiDiGraph(pairs),
        "multigraph": nx.MultiGraph(pairs),
        "igraph": igraph.Graph(edges=pairs, directed=True),
        "coo": sp.coo_array((ones, (sources, targets)), shape=(3, 3)),
        "csr": sp.csr_array((ones, (sources, targets)), shape=(3, 3)),
        "edge_index": np.array(pairs).T,
        "frame": pd.DataFrame(pairs, columns=["source", "target"]),
    }


def read_way(way, data, **options):
    return Graph.from_edges(*data, **options) if way == "edges" else Graph.of(data, **options)


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
def test_repeated_edges_add_up_to_a_weight_whatever_they_come_in():
    pairs = [(0, 1)] * 50 + [(1, 0), (1, 2)]
    graphs = {way: read_way(way, data) for way, data in ways_in(pairs).items()}
    for way, graph in graphs.items():
        assert edges_of(graph) == {(0, 1, 51.0), (1, 2, 1.0)}, way
    assert len({graph.digest for graph in graphs.values()}) == 1


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
@pytest.mark.parametrize("way", ["edges", "digraph", "multigraph", "igraph", "edge_index", "frame"])
def test_repeated_edges_can_count_once_or_be_refused(way):
    data = ways_in([(0, 1), (0, 1), (1, 2)])[way]
    once = read_way(way, data, duplicates="first")
    assert not once.is_weighted
    assert (once.number_of_edges, once.duplicates) == (2, 1)
    with pytest.raises(GraphError, match="edges must be unique, but 0 - 1 "):
        read_way(way, data, duplicates="error")
    with pytest.raises(GraphError, match="duplicates must be one of sum, first, error"):
        Graph.from_edges([0], [1], duplicates="last")


def test_the_first_of_several_weights_can_be_kept():
    graph = Graph.from_edges([0, 1, 0, 1], [1, 0, 1, 2], [1.0, 2.0, 3.0, 5.0], duplicates="first")
    assert edges_of(graph) == {(0, 1, 1.0), (1, 2, 5.0)}


def test_what_adds_up_is_told_and_edges_that_all_stand_twice_are_not():
    with pytest.warns(ManelaWarning, match=r"1 repeated edge .*duplicates='first'"):
        Graph.from_edges([0, 0, 1], [1, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1]).is_weighted


@pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")
@pytest.mark.parametrize("ones", [[1.0, 1.0, 1.0], np.ones(3)])
def test_weights_of_duplicates_are_added_even_if_all_are_one(ones):
    assert edges_of(Graph.from_edges([0, 1, 1], [1, 0, 2], ones)) == {(0, 1, 2.0), (1, 2, 1.0)}


def test_edges_of_a_library_without_the_attribute_weigh_one():
    graph = nx.Graph([(0, 1)])
    graph.add_edge(1, 2, weight=3.0)
    assert edges_of(Graph.of(graph)) == {(0, 1, 1.0), (1, 2, 3.0)}


triples = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.floats(0.1, 10)).filter(lambda e: e[0] != e[1]),
    min_size=1,
    max_size=60,
)


@pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")
@given(triples)
def test_csr_is_symmetric_sorted_and_holds_every_edge(edges):
    sources, targets, weights = zip(*edges, strict=True)
    graph = Graph.from_edges(sources, targets, weights)
    matrix = graph.to_scipy()
    assert (matrix != matrix.T).nnz == 0
    expected = {}
    for u, v, w in edges:
        expected[min(u, v), max(u, v)] = expected.get((min(u, v), max(u, v)), 0) + w
    assert graph.number_of_edges == len(expected)
    assert graph.duplicates == len(edges) - len(expected)
    if graph.is_weighted:
        assert {(u, v): pytest.approx(w) for u, v, w in edges_of(graph)} == expected
        np.testing.assert_allclose(graph.strengths, matrix.sum(axis=1))
    for row in range(graph.number_of_nodes):
        assert np.all(np.diff(graph.indices[graph.indptr[row] : graph.indptr[row + 1]]) > 0)


def test_every_way_in_gives_the_same_network():
    edges = [(0, 1, 2.0), (1, 2, 3.0), (0, 3, 1.5)]
    u, v, w = map(list, zip(*edges, strict=True))
    networkx = nx.Graph()
    networkx.add_nodes_from(range(4))
    networkx.add_weighted_edges_from(edges)
    matrix = sp.coo_array((w + w, (u + v, v + u)), shape=(4, 4))
    ways = [
        Graph.from_edges(u, v, w),
        Graph.of(networkx),
        Graph.of(igraph.Graph(n=4, edges=list(zip(u, v, strict=True)), edge_attrs={"weight": w})),
        Graph.of(matrix),
        Graph.of(sp.csc_matrix(matrix)),
        Graph.of(pd.DataFrame({"source": u, "target": v, "weight": w})),
        Graph.of(pd.DataFrame({"weight": w, "dst": v, "src": u})),
        Graph.from_edge_index(np.array([u + v, v + u]), w + w),
    ]
    for graph in ways:
        assert edges_of(graph) == set(edges)
        assert graph.digest == ways[0].digest
    assert Graph.of(np.array([u + v, v + u])).digest == ways[0].without_weights().digest


def test_ids_of_networkx_and_igraph_are_kept():
    assert list(Graph.of(nx.Graph([("a", ("b", 1))])).nodes) == ["a", ("b", 1)]
    assert list(Graph.of(igraph.Graph.TupleList([("x", "y")])).nodes) == ["x", "y"]


def test_isolated_nodes_are_kept():
    networkx = nx.path_graph(3)
    networkx.add_node("alone")
    graph = Graph.of(networkx)
    assert graph.degrees.tolist() == [1, 2, 1, 0]
    assert graph.strengths.tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize(
    "data",
    [
        nx.DiGraph([(0, 1), (1, 2)]),
        sp.csr_array(([1, 1], ([0, 1], [1, 2])), shape=(3, 3)),
        igraph.Graph(edges=[(0, 1), (1, 2)], directed=True),
        np.array([[0, 1, 1], [1, 2, 1]]),  # with a self-loop, since (2, 2) could be pairs as well
    ],
)
def test_directed_input_is_undirected_with_a_notice_unless_told(data):
    with pytest.warns(ManelaWarning, match="read as undirected"):
        both_ways = Graph.of(data)
    assert edges_of(both_ways) == {(0, 1, 1.0), (1, 2, 1.0)}
    as_given = Graph.of(data, directed=True)
    assert as_given.directed
    assert edges_of(as_given) == {(0, 1, 1.0), (1, 2, 1.0)}
    assert as_given.degrees.tolist() == [1, 1, 0]


def test_an_undirected_library_graph_read_as_directed_has_both_arcs():
    assert Graph.of(nx.path_graph(3), directed=True).degrees.tolist() == [1, 2, 1]


@pytest.mark.parametrize("weight", [0.0, -1.0, np.inf, np.nan, 1e308, 1e-310])
def test_a_weight_that_is_not_finite_and_positive_is_refused(weight):
    with pytest.raises(GraphError, match="finite and above 0"):
        Graph.from_edges([0, 1], [1, 2], [1.0, weight])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Graph.from_edges([0], [0]), r"at least two nodes and an edge.*got 1 node\(s\) and 0 edge"),
        (lambda: Graph.from_edges([], []), "at least two nodes"),
        (lambda: Graph.from_edges([0], [1, 2]), "as many sources as targets"),
        (lambda: Graph.from_edges([0], [1], ["heavy"]), "weights must be numbers"),
        (lambda: Graph.from_edges([0], [1], [1, 2]), "one weight for each edge"),
        (lambda: Graph.from_edges([[0]], [1]), "hashable"),
        (lambda: Graph.from_edges(["a"], ["b"], nodes=["a"]), "'b' is missing"),
        (lambda: Graph.from_edges(["a"], ["b"], nodes=["a", "b", "a"]), "twice"),
        (lambda: Graph.from_scipy(sp.coo_array((2, 3))), "square"),
        (lambda: Graph.of(np.zeros((3, 4, 2))), r"shape \(2, arcs\)"),
        (lambda: Graph.of(np.array([[0, -1, 2], [1, 2, 0]])), "negative"),
        (lambda: Graph.of(np.array([[0], [10**12]])), "renumber"),
        (lambda: Graph.of(pd.DataFrame({"a": [1]})), "two columns"),
        (lambda: Graph.of(pd.DataFrame({"a": ["x", None], "b": ["y", "z"]})), "missing ids"),
        (lambda: Graph.from_pandas(pd.DataFrame({"a": [1], "b": [2]}), weight="c"), "no column 'c'"),
        (lambda: Graph.of(pd.DataFrame({"a": pd.array(["x", pd.NA]), "b": ["y", "z"]})), "missing ids"),
        (lambda: Graph.of(igraph.Graph(edges=[(0, 1)], vertex_attrs={"name": ["a", "a"]})), "must be unique"),
        (lambda: Graph.from_scipy(sp.eye_array(2, k=1), nodes=[3, 3], directed=True), "must be unique"),
        (lambda: Graph.from_edges([(1, [2])], [3]), "hashable"),
        (lambda: Graph.from_edges([0], [1], np.array(1.0)), "one weight for each edge"),
        (lambda: Graph.of(object()), "got object"),
    ],
)
def test_what_is_not_a_network_is_refused(build, message):
    with pytest.raises(GraphError, match=message):
        build()


def test_an_unknown_node_is_named():
    with pytest.raises(UnknownNodeError, match="'zed'"):
        Graph.from_edges(["a"], ["b"]).neighbours("zed")


def test_the_digest_depends_on_edges_weights_ids_and_direction():
    graphs = [
        Graph.from_edges([0, 1], [1, 2]),
        Graph.from_edges([0, 0], [1, 2]),
        Graph.from_edges([0, 1], [1, 2], [1, 2]),
        Graph.from_edges([0, 1], [1, 3]),
        Graph.from_edges(["0", "1"], ["1", "2"]),
        Graph.from_edges([0, 1], [1, 2], directed=True),
    ]
    assert len({graph.digest for graph in graphs}) == len(graphs)


@pytest.mark.parametrize("directed", [False, True])
def test_the_arrays_of_the_caller_stay_theirs(directed):
    rows, columns, ids = np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.array([7, 8, 9])
    weights = np.array([1.0, 2.0])
    names = np.array(["a", "b", "c"], dtype=object)
    built = [
        Graph.from_arcs(rows, columns, weights, ids, directed=directed),
        Graph.from_arcs(rows, columns, None, names, directed=directed),
        Graph.from_edges(rows, columns, weights, nodes=np.arange(3), directed=directed),
        Graph.from_scipy(sp.coo_array((weights, (rows, columns)), shape=(3, 3)), nodes=ids, directed=True),
    ]
    for array in (rows, columns, ids, weights, names):
        assert array.flags.writeable
    ids[0], weights[0], rows[0], names[0] = 100, 100.0, 2, "z"
    assert built[0].nodes.tolist() == [7, 8, 9]
    assert built[1].nodes.tolist() == ["a", "b", "c"]
    for graph in built:
        assert graph.weights is None or graph.weights.max() == 2.0
        for array in (graph.indptr, graph.indices, graph.weights, graph.nodes):
            assert array is None or not array.flags.writeable


def test_arrays_given_to_the_graph_itself_stay_writable():
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0], np.int32)
    graph = Graph(indptr, indices, None, np.arange(2))
    assert indptr.flags.writeable
    assert indices.flags.writeable
    assert not graph.indptr.flags.writeable
    assert np.shares_memory(graph.indices, indices)


def objects():
    """Ways to hold the edges 0 - 1 and 1 - 2 of weights 2 and 3, or without weights."""
    import torch

    matrix = sp.coo_array(([2.0, 3.0], ([0, 1], [1, 2])), shape=(3, 3))
    both = (matrix + matrix.T).tocsr()
    data = types.SimpleNamespace(
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        edge_weight=torch.tensor([2.0, 2.0, 3.0, 3.0]),
        num_nodes=3,
    )
    tensor = torch.sparse_coo_tensor(np.array(both.tocoo().coords), both.tocoo().data, (3, 3))
    weighted = {
        "triples": [(0, 1, 2.0), (1, 2, 3.0)], "lists": [[0, 1, 2.0], [1, 2, 3.0]],
        "networkx tuples": [(0, 1, {"weight": 2.0}), (1, 2, {"weight": 3.0})],
        "dense": both.toarray(), "arrow": pa.table({"source": [0, 1], "target": [1, 2], "weight": [2.0, 3.0]}),
        "dict of dicts": {0: {1: 2.0}, 1: {0: 2.0, 2: 3.0}, 2: {1: 3.0}},
        "networkx dict": {0: {1: {"weight": 2.0}}, 1: {2: {"weight": 3.0}}},
        "PyG": data, "sparse tensor": tensor, "sparse tensor, rows": tensor.to_sparse_csr(),
        "dense tensor": torch.tensor(both.toarray()),
    }  # fmt: skip
    plain = {
        "pairs": [(0, 1), (1, 2)], "array of pairs": np.array([(0, 1), (1, 2), (2, 1)]),
        "edge_index": np.array([[0, 1], [1, 2]]),
        "dict of lists": {0: [1], 1: [0, 2], 2: [1]}, "dict of sets": {0: {1}, 1: {2}},
        "tensor": torch.tensor([[0, 1, 1], [1, 0, 2]]),
    }  # fmt: skip
    return weighted, plain


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
def test_networks_come_in_what_people_have():
    weighted, plain = objects()
    for way, data in weighted.items():
        assert edges_of(Graph.of(data)) == {(0, 1, 2.0), (1, 2, 3.0)}, way
    for way, data in plain.items():
        found = Graph.of(data, duplicates="first")
        assert edges_of(found) == {(0, 1, 1.0), (1, 2, 1.0)}, way
        assert not found.is_weighted


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([(0, 1), (1, 2, 3.0)], "and not both"), ([(0,)], "pairs"), ({0: 1}, "the neighbours of each node"),
        ({"a": "bc"}, "the neighbours of each node"), (np.zeros(4), "edge_index"),
        (7, "got int"), ([1, 2], "got list"),
    ],
)  # fmt: skip
def test_what_is_no_network_says_so(data, words):
    with pytest.raises(GraphError, match=words):
        Graph.of(data)


def test_what_could_be_pairs_or_an_edge_index_is_told():
    with pytest.warns(ManelaWarning, match="read as an edge_index"):
        assert Graph.of(np.array([[0, 1], [2, 3]]), directed=True).neighbours(0).tolist() == [2]


def test_a_biadjacency_matrix_has_rows_and_columns():
    matrix = sp.csr_array(np.array([[1.0, 0, 2], [0, 0, 3]]))
    graph = Graph.of(matrix)
    assert graph.rows == 2
    assert graph.nodes.tolist() == [("row", 0), ("row", 1), ("column", 0), ("column", 1), ("column", 2)]
    assert graph.neighbours(("column", 2)).tolist() == [("row", 0), ("row", 1)]
    assert Graph.from_biadjacency(matrix, rows=["a", "b"], columns=[1, 2, 3]).neighbours("b").tolist() == [3]
    for arguments, words in (
        ({"rows": ["a"]}, "as many row ids"), ({"rows": ["a", "b"], "columns": ["a", "c", "d"]}, "must be unique")
    ):  # fmt: skip
        with pytest.raises(GraphError, match=words):
            Graph.from_biadjacency(matrix, **arguments)
    with pytest.raises(GraphError, match="no direction"):
        Graph.of(matrix, directed=True)


def test_the_weight_that_all_edges_have_counts_when_others_are_added():
    heavy, light = Graph.of([("a", "b", 5.0), ("b", "c", 5.0)]), Graph.of([("c", "d", 2.0)])
    assert not heavy.is_weighted
    both = heavy.add(light)
    assert edges_of(both) == {("a", "b", 5.0), ("b", "c", 5.0), ("c", "d", 2.0)}
    assert not heavy.add(Graph.of([("c", "d", 5.0)])).is_weighted
    assert Graph.of([("a", "b", 2.0), ("b", "c", 20.0)]).add(Graph.of([("c", "d", 10.0)])).weights.max() == 20


def test_arrays_of_edges_are_edges_and_what_else_they_could_be_is_told():
    with pytest.warns(ManelaWarning, match="read as pairs; a biadjacency"):
        assert Graph.of(np.array([[0.0, 1], [1, 2], [2, 3], [3, 0]])).number_of_nodes == 4
    with pytest.warns(ManelaWarning, match="pairs with a weight"):
        assert Graph.of(np.array([[0, 1, 5], [1, 2, 7], [2, 3, 9], [3, 0, 2]])).weights.max() == 9
    assert Graph.of(np.array([[1, 0], [0, 1], [1, 1]], dtype=bool)).rows == 3
    assert Graph.of(np.array([[0.5, 0], [0, 0.25], [1, 1]])).rows == 3


def test_tables_are_read_as_their_columns_are_called():
    with pytest.warns(ManelaWarning, match="using columns a and b as edge endpoints; ignoring year"):
        assert not Graph.of(pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "year": [1999, 2001]})).is_weighted
    with pytest.warns(ManelaWarning, match="using columns a and b as edge endpoints, euros as weight"):
        assert Graph.of(pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "euros": [3, 4]})).is_weighted
    frame = pd.DataFrame({"Unnamed: 0": [0, 1], "a": ["x", "y"], "b": ["y", "z"]})
    with pytest.warns(ManelaWarning, match="a and b"):
        assert Graph.of(frame).nodes.tolist() == ["x", "y", "z"]
    timed = pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "ts": [5, 6]})
    assert not Graph.from_pandas(timed, source="a", target="b").is_weighted
    adjacency = pd.DataFrame([[0, 2, 0], [2, 0, 3], [0, 3, 0]], index=list("xyz"), columns=list("xyz"))
    assert edges_of(Graph.of(adjacency)) == {("x", "y", 2.0), ("y", "z", 3.0)}
    assert Graph.of({"source": ["a", "b"], "target": ["b", "c"]}).nodes.tolist() == ["a", "b", "c"]
    network = nx.path_graph(["a", "b", "c"])
    assert Graph.of(network.edges).digest == Graph.of(network).digest
    with pytest.raises(GraphError, match="two are called 'a'"):
        Graph.of(pd.DataFrame([["x", "y"], ["y", "z"]], columns=["a", "a"]))
    with pytest.raises(GraphError, match="a Series, which has only one column"):
        Graph.of(pd.Series([1, 2]))


def test_the_rule_for_repeated_edges_holds_for_matrices():
    matrix = sp.coo_array(([1.0, 2, 3], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    with pytest.raises(GraphError, match="several entries at one position"):
        Graph.of(matrix, directed=True, duplicates="error")
    assert Graph.of(matrix, directed=True, duplicates="first").weights.tolist() == [1, 3]
    with pytest.raises(GraphError, match="duplicates must be one of"):
        Graph.of(matrix, duplicates="max")


def test_tensors_that_are_learned_are_read():
    weights = torch.tensor([2.0, 3.0], requires_grad=True)
    data = type("Data", (), {"edge_index": torch.tensor([[0, 1], [1, 2]]), "edge_weight": weights, "num_nodes": 3})()
    assert Graph.of(data, directed=True).weights.tolist() == [2, 3]
    assert Graph.of(torch.tensor(np.ones((3, 3)), requires_grad=True)).number_of_edges == 3


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("shape", [(1, 1), (2, 1)])
def test_entries_outside_a_matrix_do_not_end_the_process(form, shape):
    matrix = form(shape)
    rows = shape[0] if form is sp.csr_array else shape[1]
    matrix.indices, matrix.data, matrix.indptr = np.array([5]), np.array([1.0]), np.array([0] * rows + [1])
    with pytest.raises(GraphError, match="within its shape"):
        Graph.of(matrix)
