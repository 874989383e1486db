"""Sixty-odd ways in which people have networks: each is read right, or refused in one line.

All that are read are the network ann - bob (2) - cem (3), or the same with the ids 0, 1 and 2, or without weights.
"""

import bz2
import gzip
import io
import json
import lzma
import uuid
import zipfile

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse as sp
import torch

from manela import Graph, ManelaError, read_graph
from manela.formats.loading import load_graph

NAMES = [("ann", "bob", 2.0), ("bob", "cem", 3.0)]
NUMBERS = [(0, 1, 2.0), (1, 2, 3.0)]
MATRIX = np.array([[0, 2, 0], [2, 0, 3], [0, 3, 0]], dtype=float)
PLAIN = (MATRIX > 0).astype(float)


def named(frame):
    return frame({"source": ["ann", "bob"], "target": ["bob", "cem"], "weight": [2.0, 3.0]})


def networkx_graph(kind=nx.Graph):
    graph = kind()
    graph.add_weighted_edges_from(NAMES)
    return graph


class Data:
    """What PyTorch Geometric calls a network."""

    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    edge_weight = torch.tensor([2.0, 2.0, 3.0, 3.0])
    num_nodes = 3


OBJECTS = {
    "SciPy CSR": lambda: sp.csr_array(MATRIX),
    "SciPy COO with entries given in parts": lambda: sp.coo_array(
        (np.array([1.0, 1, 2, 3, 3]), ([0, 0, 1, 1, 2], [1, 1, 0, 2, 1])), shape=(3, 3)
    ),
    "SciPy matrix of the old kind": lambda: sp.csc_matrix(MATRIX),
    "dense square array": lambda: MATRIX,
    "NetworkX": networkx_graph,
    "NetworkX multigraph": lambda: nx.MultiGraph([("ann", "bob"), ("bob", "ann")] + [("bob", "cem")] * 3),
    "igraph": lambda: igraph.Graph.TupleList(NAMES, weights=True),
    "pandas, named columns": lambda: named(pd.DataFrame),
    "pandas, other order and names": lambda: pd.DataFrame(
        {"value": [2.0, 3.0], "to": ["bob", "cem"], "from": ["ann", "bob"]}
    ),
    "polars": lambda: named(pl.DataFrame),
    "Arrow": lambda: named(pa.table),
    "list of triples": lambda: NAMES,
    "list of edges as NetworkX has them": lambda: [(u, v, {"weight": w}) for u, v, w in NAMES],
    "list of pairs, some repeated": lambda: [("ann", "bob")] * 2 + [("bob", "cem")] * 3,
    "array of pairs, some repeated": lambda: np.array([[0, 1]] * 2 + [[1, 2]] * 3),
    "edge_index, some repeated": lambda: np.array([[0, 0, 1, 1, 1], [1, 1, 2, 2, 2]]),
    "dict of dicts": lambda: {"ann": {"bob": 2.0}, "bob": {"cem": 3.0}},
    "PyG Data": Data,
    "torch, dense": lambda: torch.tensor(MATRIX),
    "torch, sparse COO": lambda: torch.tensor(MATRIX).to_sparse(),
    "torch, sparse CSR": lambda: torch.tensor(MATRIX).to_sparse_csr(),
    "Graph": lambda: Graph.from_scipy(sp.csr_array(MATRIX)),
}
UNWEIGHTED_OBJECTS = {
    "dict of lists": lambda: {"ann": ["bob"], "bob": ["ann", "cem"]},
    "list of pairs": lambda: [("ann", "bob"), ("bob", "cem")],
    "booleans": lambda: PLAIN.astype(bool),
    "biadjacency": lambda: sp.csr_array(np.array([[1.0], [1.0]])),
    "UUIDs": lambda: [(uuid.UUID(int=0), uuid.UUID(int=1)), (uuid.UUID(int=1), uuid.UUID(int=2))],
    "pairs as ids": lambda: {("a", 1): [("b", 2)], ("b", 2): [("c", 3)]},
    "missing weights": lambda: nx.path_graph(["ann", "bob", "cem"]),
}  # fmt: skip
BAD_OBJECTS = {
    "number": (lambda: 7, "got int"),
    "None": (lambda: None, "got NoneType"),
    "triples and pairs": (lambda: [("a", "b"), ("b", "c", 1.0)], "and not both"),
    "negative weight": (lambda: [("a", "b", -1.0)], "above 0"),
    "NaN in a frame": (lambda: pd.DataFrame({"source": ["a", None], "target": ["b", "c"]}), "missing ids"),
    "words for weights": (lambda: [("a", "b", "heavy"), ("b", "c", "light")], "weights must be numbers"),
    "complex matrix": (lambda: sp.csr_array(MATRIX * 1j), "real"),
    "three dimensions": (lambda: np.zeros((2, 2, 2)), "edge_index"),
    "negative positions": (lambda: np.array([[0, -1, 2], [1, 2, 0]]), "negative"),
    "a dict of words": (lambda: {"ann": "bob"}, "neighbours of each node"),
    "empty list": (list, "got list"),
    "no edges": (lambda: sp.csr_array((3, 3)), "0 edge"),
}
EDGES = "ann bob 2\nbob cem 3\n"
TEXTS = {
    "white space.txt": EDGES,
    "comments of SNAP.txt": "# Nodes: 3\n# FromNodeId ToNodeId\n" + EDGES,
    "comments of KONECT.edges": "% sym weighted\n" + EDGES,
    "many comments.csv": "# a long comment\n" * 5000 + EDGES.replace(" ", ","),
    "tabs.tsv": EDGES.replace(" ", "\t"),
    "commas.csv": EDGES.replace(" ", ","),
    "semicolons.csv": EDGES.replace(" ", ";"),
    "header of pandas.csv": ",source,target,weight\n0,ann,bob,2\n1,bob,cem,3\n",
    "header of Gephi.csv": "Source,Target,Type,Id,Label,Weight\nann,bob,Undirected,0,,2\nbob,cem,Undirected,1,,3\n",
    "header of people.csv": "payer,payee,amount\nann,bob,2\nbob,cem,3\n",
    "header of Windows.csv": "\ufeffsource,target,weight\r\nann,bob,2\r\nbob,cem,3\r\n",
    "quotation marks.csv": '"source","target","weight"\n"ann","bob","2"\n"bob","cem","3"\n',
    "events.csv": "from,to\n" + "ann,bob\n" * 2 + "bob,cem\n" * 3,
    "attributes of NetworkX.edgelist": "ann bob {'weight': 2}\nbob cem {'weight': 3}\n",
    "no ending at all": EDGES,
    "unknown ending.dat": EDGES,
    "numbers.txt": "0 1 2\n1 2 3\n",
    "Matrix Market.mtx": "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 2\n3 2 3\n",
    "Pajek.net": '*Vertices 3\n1 "ann"\n2 "bob"\n3 "cem"\n*Edges\n1 2 2\n2 3 3\n',
    "METIS.metis": "3 2 001\n2 2\n1 2 3 3\n2 3\n",
    "node-link.json": json.dumps({"nodes": [{"id": name} for name in ("ann", "bob", "cem")],
                                  "links": [{"source": u, "target": v, "weight": w} for u, v, w in NAMES]}),
}  # fmt: skip
PACKINGS = {
    "edges.txt.gz": gzip.compress, "edges.csv.bz2": bz2.compress, "edges.txt.xz": lzma.compress,
    "edges.txt.zst": lambda data: pa.compress(data, "zstd", asbytes=True), "packed without saying so": gzip.compress,
}  # fmt: skip
BAD_TEXTS = {
    "empty.txt": ("", "empty"),
    "one column.txt": ("ann bob\ncem\n", "two columns"),
    "words.txt": ("ann bob heavy\nbob cem light\n", "weight"),
    "page.html": ("<html><body>404</body></html>", "format must be one of"),
    "prose": ("once upon\na time there was\n", "format must be one of"),
    "binary.txt": ("a b\0\n", "must be text"),
    "table.json": ("[1, 2]", "node-link"),
    "cut.graphml": ("<graphml><graph>", "not a readable .graphml"),
    "text.parquet": ("a b\n", "not a readable .parquet|cannot be read"),
    "text.npz": ("a b\n", "sparse matrix"),
}


def write_others(folder):
    """The networks that libraries write, by the name of the file."""
    graph = networkx_graph()
    nx.write_graphml(graph, folder / "g.graphml")
    nx.write_gml(graph, folder / "g.gml")
    nx.write_gexf(graph, folder / "g.gexf")
    named(pd.DataFrame).to_parquet(folder / "g.parquet")
    pyarrow.feather.write_feather(named(pa.table), folder / "g.feather")
    scipy.io.savemat(folder / "g.mat", {"network": sp.csc_array(MATRIX)})
    sp.save_npz(folder / "g.npz", sp.csr_array(MATRIX))
    np.savez_compressed(folder / "ogb.npz", edge_index=np.array([[0, 0, 1, 1, 1], [1, 1, 2, 2, 2]]), num_nodes_list=[3])
    matrix = sp.csr_array(MATRIX)
    np.savez(
        folder / "adj.npz", adj_data=matrix.data, adj_indices=matrix.indices, adj_indptr=matrix.indptr, adj_shape=(3, 3)
    )
    np.save(folder / "pairs.npy", np.array([[0, 1]] * 2 + [[1, 2]] * 3))
    with zipfile.ZipFile(folder / "edges.zip", "w") as archive:
        archive.writestr("edges.txt", EDGES)
    (folder / "g.mat.gz").write_bytes(gzip.compress((folder / "g.mat").read_bytes()))
    return sorted(path.name for path in folder.iterdir())


OTHERS = [
    "adj.npz", "edges.zip", "g.feather", "g.gexf", "g.gml", "g.graphml", "g.mat", "g.mat.gz", "g.npz", "g.parquet",
    "ogb.npz", "pairs.npy",
]  # fmt: skip


def check(graph, is_weighted=True):
    """That this is the network that all of them are."""
    assert graph.number_of_nodes == 3
    matrix = graph.to_scipy().toarray()
    np.testing.assert_array_equal(matrix, MATRIX if is_weighted else PLAIN)
    if {type(node) for node in graph.nodes.tolist()} == {str}:
        assert graph.nodes.tolist() == ["ann", "bob", "cem"]


def test_there_are_sixty():
    assert len(OBJECTS) + len(UNWEIGHTED_OBJECTS) + len(BAD_OBJECTS) >= 35
    assert len(TEXTS) + len(PACKINGS) + len(OTHERS) + len(BAD_TEXTS) >= 35


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")  # of what adds up
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_with_weights_is_read_right(name):
    check(Graph.of(OBJECTS[name]()))


@pytest.mark.parametrize("name", UNWEIGHTED_OBJECTS)
def test_an_object_without_weights_is_read_right(name):
    if name == "biadjacency":
        graph = Graph.of(UNWEIGHTED_OBJECTS[name]())
        assert graph.nodes.tolist() == [("row", 0), ("row", 1), ("column", 0)]
        assert graph.rows == 2
        assert graph.number_of_edges == 2
    else:
        check(Graph.of(UNWEIGHTED_OBJECTS[name]()), is_weighted=False)


@pytest.mark.parametrize("name", BAD_OBJECTS)
def test_what_is_no_network_is_refused_in_one_line(name):
    build, words = BAD_OBJECTS[name]
    with pytest.raises(ManelaError, match=words) as caught:
        load_graph(build())
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")  # of columns that were taken for something
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_read_right(tmp_path, name):
    (tmp_path / name).write_text(TEXTS[name], encoding="utf-8")
    check(read_graph(tmp_path / name))


@pytest.mark.parametrize("name", PACKINGS)
def test_what_is_packed_is_read_right(tmp_path, name):
    text = EDGES.replace(" ", ",") if ".csv" in name else EDGES
    (tmp_path / name).write_bytes(PACKINGS[name](text.encode()))
    check(read_graph(tmp_path / name))


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_what_libraries_write_is_read_right(tmp_path, name):
    assert write_others(tmp_path) == OTHERS
    check(read_graph(tmp_path / name))
    renamed = tmp_path / "without an ending"
    (tmp_path / name).rename(renamed)
    check(read_graph(renamed))


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_what_is_no_network_file_is_refused_in_one_line(tmp_path, name):
    text, words = BAD_TEXTS[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(ManelaError, match=words) as caught:
        read_graph(tmp_path / name)
    assert len(str(caught.value).splitlines()) == 1
    assert str(tmp_path / name) in str(caught.value)


def test_standard_input_is_read_right(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(EDGES.encode()))))
    check(read_graph("-"))
