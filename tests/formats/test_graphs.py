import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from manela.data.embedding import Embedding
from manela.data.graph import Graph
from manela.errors import FormatError, GraphError, ManelaWarning, MissingExtraError, import_extra
from manela.formats.embeddings import write_embedding
from manela.formats.graphs import read_graph

EDGES = [("a", "b", 2.0), ("b", "c", 3.0)]


@pytest.fixture
def wanted():
    u, v, w = zip(*EDGES, strict=True)
    return Graph.from_edges(u, v, w)


@pytest.fixture
def networkx():
    graph = nx.Graph()
    graph.add_weighted_edges_from(EDGES)
    return graph


def test_graphml_gml_and_parquet_keep_ids_and_weights(tmp_path, wanted, networkx):
    nx.write_graphml(networkx, tmp_path / "g.graphml")
    nx.write_gml(networkx, tmp_path / "g.gml")
    pd.DataFrame(EDGES, columns=["source", "target", "weight"]).to_parquet(tmp_path / "g.parquet")
    for name in ("g.graphml", "g.gml", "g.parquet"):
        assert read_graph(tmp_path / name).digest == wanted.digest
        assert not read_graph(tmp_path / name, unweighted=True).is_weighted


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_a_table_of_vectors_is_no_network(tmp_path, ending):
    write_embedding(Embedding(np.arange(3), np.eye(3, dtype=np.float32)), tmp_path / f"v{ending}")
    with pytest.raises(FormatError, match=rf"v\{ending}: must hold a network, .* but it holds vectors$"):
        read_graph(tmp_path / f"v{ending}")


def test_columns_of_parquet_are_found_by_name(tmp_path):
    pd.DataFrame({"weight": [5.0, 6.0], "source": ["a", "b"], "target": ["b", "c"]}).to_parquet(tmp_path / "g.parquet")
    assert read_graph(tmp_path / "g.parquet", unweighted=True).nodes.tolist() == ["a", "b", "c"]


def test_gml_without_labels_has_the_ids_of_its_nodes(tmp_path):
    (tmp_path / "g.gml").write_text("graph [ node [ id 4 ] node [ id 7 ] edge [ source 4 target 7 ] ]")
    assert read_graph(tmp_path / "g.gml").nodes.tolist() == [4, 7]


def test_directed_graphml_is_read_both_ways_with_a_notice(tmp_path):
    nx.write_graphml(nx.DiGraph([("a", "b"), ("b", "c")]), tmp_path / "g.graphml")
    with pytest.warns(ManelaWarning, match="read as undirected"):
        assert read_graph(tmp_path / "g.graphml").degrees.tolist() == [1, 2, 1]
    assert read_graph(tmp_path / "g.graphml", directed=True).degrees.tolist() == [1, 1, 0]


def test_mat_and_npz_are_adjacency_matrices(tmp_path):
    matrix = sp.csc_array(([1.0, 1, 2, 2], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(4, 4))
    scipy.io.savemat(tmp_path / "g.mat", {"network": matrix, "dense": matrix.toarray(), "name": "text"})
    sp.save_npz(tmp_path / "g.npz", matrix)
    graphs = [
        read_graph(tmp_path / "g.mat"),
        read_graph(tmp_path / "g.mat", matfile_variable="dense"),
        read_graph(tmp_path / "g.npz"),
    ]
    assert {graph.digest for graph in graphs} == {Graph.of(matrix).digest}
    assert graphs[0].degrees.tolist() == [1, 2, 1, 0]
    with pytest.raises(FormatError, match=r"must have a variable .net., but has network, dense, name"):
        read_graph(tmp_path / "g.mat", matfile_variable="net")
    with pytest.raises(FormatError, match="must be a matrix of numbers"):
        read_graph(tmp_path / "g.mat", matfile_variable="name")


def test_a_matrix_with_bad_weights_is_refused_with_the_file(tmp_path):
    sp.save_npz(tmp_path / "g.npz", sp.csr_array(np.array([[0, -1.0], [-1.0, 0]])))
    with pytest.raises(GraphError, match=r"g\.npz: a weight must be finite and above 0 .*, got -1"):
        read_graph(tmp_path / "g.npz")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.txt", "no such file"),
        ("folder", "it is a folder"),
        ("g.xyz", "the format must be one of .* got '.xyz'"),
        ("plain", "got 'plain'"),
        ("g.npz", "save_npz"),
        ("g.mat", "not a readable .mat file"),
        ("g.graphml", "not a readable .graphml file"),
        ("g.parquet", "not a readable .parquet file"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_file(tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    if name not in ("none.txt", "folder"):
        (tmp_path / name).write_bytes(b"\x01nonsense" * 30)
    with pytest.raises(FormatError, match=message) as caught:
        read_graph(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_missing_extra_names_its_install_command():
    with pytest.raises(MissingExtraError, match=r"drawing needs no_such_module.*pip install 'manela\[report\]'"):
        import_extra("no_such_module.part", "report", "drawing")


def test_gexf_pajek_json_and_feather_keep_ids_and_weights(tmp_path, wanted, networkx):
    nx.write_gexf(networkx, tmp_path / "g.gexf")
    nx.write_pajek(networkx, tmp_path / "g.net")
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(networkx)))
    frame = pd.DataFrame(EDGES, columns=["source", "target", "weight"])
    frame.to_feather(tmp_path / "g.feather")
    frame.to_feather(tmp_path / "g.arrow")
    for name in ("g.gexf", "g.net", "g.json", "g.feather", "g.arrow"):
        assert read_graph(tmp_path / name).digest == wanted.digest, name


def test_node_link_json_may_be_directed_and_name_nodes_without_edges(tmp_path):
    graph = nx.DiGraph([(("a", 1), 2), (2, 3)])
    graph.add_node(9)
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(graph)))
    arcs = read_graph(tmp_path / "g.json", directed=True)
    assert (arcs.nodes.tolist(), arcs.degrees.tolist()) == ([("a", 1), 2, 3, 9], [1, 1, 0, 0])
    with pytest.warns(ManelaWarning, match="read as undirected"):
        assert read_graph(tmp_path / "g.json").degrees.tolist() == [1, 2, 1, 0]
    (tmp_path / "u.json").write_text('{"nodes": [], "links": [{"source": 1, "target": 2}]}')
    assert read_graph(tmp_path / "u.json", directed=True).degrees.tolist() == [1, 1]
    for text in ('{"rows": []}', '{"links": [{"source": 1}]}', '{"links": 7}', "[1]"):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(FormatError, match="must be node-link JSON"):
            read_graph(tmp_path / "bad.json")


def test_a_few_bytes_do_not_ask_for_all_memory(tmp_path):
    header = "%%MatrixMarket matrix coordinate real general"
    (tmp_path / "g.mtx").write_text(f"{header}\n2000000000 2000000000 1\n1 2 1.0\n")
    with pytest.raises(FormatError, match="1 entries cannot be a network of 2,000,000,000 nodes"):
        read_graph(tmp_path / "g.mtx")
    (tmp_path / "g.metis").write_text("1000000000000 1\n2\n1\n")
    with pytest.raises(FormatError, match="a line for each of 1,000,000,000,000 nodes"):
        read_graph(tmp_path / "g.metis")
    (tmp_path / "f.metis").write_text("2 1 5555\n2\n1\n")
    with pytest.raises(FormatError, match="three digits of 0 and 1"):
        read_graph(tmp_path / "f.metis")


@pytest.mark.filterwarnings("ignore:a directed network was read")
def test_matrix_market_metis_and_arrays_of_edges(tmp_path):
    pairs = np.array([(0, 1), (1, 2), (2, 3)])
    matrix = sp.coo_array((np.ones(3), pairs.T), shape=(4, 4))
    scipy.io.mmwrite(tmp_path / "g.mtx", matrix + matrix.T, symmetry="symmetric")
    np.save(tmp_path / "g.npy", pairs)
    np.save(tmp_path / "t.npy", pairs.T)
    (tmp_path / "g.metis").write_text("% a comment\n4 3\n2\n1 3\n2 4\n3\n")
    (tmp_path / "w.graph").write_text("3 2 001\n2 5\n1 5 3 7\n2 7\n")
    for name, nodes in (
        ("g.mtx", [0, 1, 2, 3]),
        ("g.npy", [0, 1, 2, 3]),
        ("t.npy", [0, 1, 2, 3]),
        ("g.metis", [1, 2, 3, 4]),
    ):
        graph = read_graph(tmp_path / name)
        assert (graph.nodes.tolist(), graph.degrees.tolist(), graph.is_weighted) == (nodes, [1, 2, 2, 1], False), name
    assert read_graph(tmp_path / "w.graph").strengths.tolist() == [5.0, 12.0, 7.0]
    for name, text in (
        ("a.metis", "x y\n"),
        ("b.metis", "3 2\n2\n"),
        ("c.metis", "2 1\n9\n1\n"),
        ("d.metis", "2 1\nz\n1\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(FormatError):
            read_graph(tmp_path / name)
    np.save(tmp_path / "bad.npy", np.zeros(3))
    with pytest.raises(GraphError, match=r"integers of shape \(2, arcs\)"):
        read_graph(tmp_path / "bad.npy")
