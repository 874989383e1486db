import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from manela.errors import FormatError, GraphError, ManelaWarning, MissingExtraError, import_extra
from manela.formats.graphs import read_graph
from manela.graph import Graph

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
    with pytest.raises(FormatError, match=r"must have a variable 'net' .*it has network, dense, name"):
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
        ("plain", "got ''"),
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
