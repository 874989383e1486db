"""The page of a map: what it holds, that it is safe, small and repeats."""

import base64
import hashlib
import json
import re
import zlib

import numpy as np
import pytest

from manela import Graph
from manela.data.embedding import Embedding
from manela.errors import GraphError, ManelaWarning, MissingExtraError, OutputError, ParameterError
from manela.formats.labels import read_labels
from manela.maps import page as module
from manela.maps.page import choose_links, find_all_neighbours, write_map
from manela.maps.points import colour_nodes

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "{{facts}}", "\ud800 \0 \u202e"]


@pytest.fixture
def embedding():
    rng = np.random.default_rng(0)
    planted = np.repeat(np.arange(3), 20)
    nodes = np.empty(60, dtype=object)
    nodes[:] = [f"n{row}" for row in range(56)] + HOSTILE
    vectors = np.eye(3)[planted] + rng.normal(scale=0.1, size=(60, 3))
    return Embedding(nodes, vectors.astype(np.float32))


def read(path):
    return path.read_text(encoding="utf-8")


def unpack(page, name):
    return zlib.decompress(base64.b64decode(re.search(rf'id="data-{name}">([^<]*)<', page)[1]))


def test_a_page_holds_places_groups_names_and_neighbours(embedding, tmp_path):
    write_map(embedding, tmp_path / "map.html", method="pca")
    page = read(tmp_path / "map.html")
    facts = json.loads(unpack(page, "facts"))
    assert [group["size"] for group in facts["groups"]] == [20, 20, 20]
    assert (facts["nodes"], facts["neighbours"], facts["file"]) == (60, 5, "map")
    assert json.loads(unpack(page, "names")) == embedding.nodes.tolist()
    picture = unpack(page, "picture")
    places, groups = np.frombuffer(picture[:240], "<u2").reshape(2, 60), np.frombuffer(picture[240:], np.uint8)
    assert places.max() == 65535
    assert np.bincount(groups).tolist() == [20, 20, 20]
    near = unpack(page, "neighbours")
    rows, cosines = np.frombuffer(near[:1200], "<u4").reshape(60, 5), np.frombuffer(near[1200:], "<u2").reshape(60, 5)
    (other, cosine), *_ = embedding.most_similar("n0", k=1)
    assert embedding.nodes[rows[0, 0]] == other
    assert cosines[0, 0] / 32767.5 - 1 == pytest.approx(cosine, abs=1e-4)


def test_names_are_never_html_and_the_title_is_escaped(embedding, tmp_path):
    labels = dict.fromkeys(embedding.nodes.tolist(), "<b>bold</b>")
    write_map(embedding, tmp_path / "map.html", labels, title="<i>{{names}}</i>", method="pca")
    page = read(tmp_path / "map.html")
    for text in ("<img", "onerror", "alert(", "<b>", "<i>"):
        assert text not in page
    assert "<title>&lt;i&gt;{{names}}&lt;/i&gt;</title>" in page


def test_nothing_is_loaded_and_only_the_own_script_is_run(embedding, tmp_path):
    write_map(embedding, tmp_path / "map.html", method="pca")
    page = read(tmp_path / "map.html")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        text = re.search(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)[1]
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert set(re.findall(r"https?://[^\"'`\s>]+", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"\b(src|href)=\"(?!data:,)", page)


def test_the_same_state_writes_the_same_bytes(embedding, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_map(embedding, tmp_path / name / "map.html", random_state=4)
    assert read(tmp_path / "a" / "map.html") == read(tmp_path / "b" / "map.html")


def test_nodes_have_the_colour_of_their_first_label(embedding, tmp_path):
    (tmp_path / "labels.txt").write_text("n0 red blue\nn1 blue\nn2 blue\nn3 green\n")
    colouring = colour_nodes(embedding, read_labels(tmp_path / "labels.txt"))
    assert colouring.names == ["blue", "red", "green", "no label"]
    assert colouring.groups[:5].tolist() == [1, 0, 0, 2, 3]
    assert colouring.grey == 1


def test_more_labels_than_colours_share_grey(embedding):
    many = Embedding(np.arange(600), np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32))
    colouring = colour_nodes(many, [*range(300), *range(300)])
    assert len(colouring.names) == 251
    assert colouring.names[-1] == "50 smaller ones"
    assert np.bincount(colouring.groups)[250] == 100


def test_links_are_those_of_known_nodes_and_sampled_if_many():
    nodes = np.array([10, 20, 30])
    with pytest.warns(ManelaWarning, match="1 nodes that have no vector"):
        pairs, total = choose_links(nodes, [("10", "20"), ("20", "30"), ("30", "40"), ("20", "10")])
    assert (pairs.tolist(), total) == ([[0, 1], [1, 2]], 2)
    ring = [(node, (node + 1) % 200) for node in range(200)]
    first, second = (choose_links(np.arange(200), ring, 1, most=50) for _ in range(2))
    assert (first[0].shape, first[1]) == ((50, 2), 200)
    np.testing.assert_array_equal(first[0], second[0])
    with pytest.raises(GraphError, match="no edge joins two nodes of the map"):
        choose_links(nodes, [("a", "b")])


def test_what_cannot_be_drawn_is_said(embedding, tmp_path):
    one = Embedding(np.array([1]), np.ones((1, 2), dtype=np.float32))
    with pytest.raises(ParameterError, match="at least 2 nodes"):
        write_map(one, tmp_path / "m.html")
    broken = Embedding(np.arange(3), np.full((3, 2), np.nan, dtype=np.float32))
    with pytest.raises(ParameterError, match="finite"):
        write_map(broken, tmp_path / "m.html")
    with pytest.raises(ParameterError, match="one for each of 60 nodes, got 2"):
        write_map(embedding, tmp_path / "m.html", ["a", "b"])
    with pytest.raises(OutputError, match="no such folder"):
        write_map(embedding, tmp_path / "none" / "m.html")
    assert list(tmp_path.iterdir()) == []
    two = Embedding(np.arange(2), np.eye(2, dtype=np.float32))
    write_map(two, tmp_path / "two.html")
    assert "2 nodes by principal components" in read(tmp_path / "two.html")


def test_the_command_writes_a_page_with_labels_and_links(manela_here, tmp_path):
    from manela.formats.embeddings import write_embedding

    rng = np.random.default_rng(0)
    write_embedding(Embedding(np.arange(30), rng.normal(size=(30, 4)).astype(np.float32)), tmp_path / "v.npz")
    (tmp_path / "e.csv").write_text("".join(f"{node},{(node + 1) % 30}\n" for node in range(30)))
    (tmp_path / "l.csv").write_text("".join(f"{node},{node % 2}\n" for node in range(30)))
    done = manela_here("map", "v.npz", "-o", "map.html", "--labels", "l.csv", "--edges", "e.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    page = read(tmp_path / "map.html")
    assert "<title>Map of v.npz</title>" in page
    assert json.loads(unpack(page, "facts"))["links"] == {"drawn": 30, "total": 30}
    for arguments, words in (
        (["v.npz"], "missing -o/--output"),
        (["v.npz", "-o", "map.png"], "must end in .html"),
        (["v.npz", "-o", "x.html", "--method", "spring"], "method must be one of"),
        (["none.npz", "-o", "x.html"], "no such file"),
    ):
        done = manela_here("map", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert words in done.stderr
    assert not (tmp_path / "x.html").exists()


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


def test_too_many_links_are_a_sample_that_is_the_same_for_the_same_number():
    ends = np.triu_indices(30, 1)
    graph = Graph.from_edges(*ends)
    pairs, total = choose_links(np.arange(30), graph, random_state=1, most=50)
    assert (len(pairs), total) == (50, len(ends[0]))
    everyone = set(zip(*map(np.ndarray.tolist, ends), strict=True))
    drawn = list(map(tuple, pairs.tolist()))
    assert len(set(drawn)) == 50
    assert set(drawn) <= everyone
    assert drawn == sorted(drawn)
    np.testing.assert_array_equal(choose_links(np.arange(30), graph, random_state=1, most=50)[0], pairs)
    assert not np.array_equal(choose_links(np.arange(30), graph, random_state=2, most=50)[0], pairs)


def test_as_many_links_as_may_be_are_all_drawn():
    assert choose_links(NODES, [("a", "b"), ("b", "c")], most=2)[0].tolist() == [[0, 1], [1, 2]]


def draw(nodes, m=8, seed=0):
    return np.random.default_rng(seed).normal(size=(nodes, m)).astype(np.float32)


def find_by_hand(vectors, count):
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1)[:, :count]
    return order, np.take_along_axis(cosines, order, axis=1)


@pytest.fixture(params=["exact", "index"])
def search(request):
    """Both ways to search, and the most nodes for the exact one."""
    if request.param == "index":
        pytest.importorskip("usearch")
        return 1
    return 1000


def test_nearest_nodes_come_first_and_nobody_is_near_itself(search):
    vectors = draw(200)
    rows, cosines = find_all_neighbours(vectors, 5, search)
    assert rows.shape == cosines.shape == (200, 5)
    assert not (rows == np.arange(200)[:, None]).any()
    assert all(len(set(row)) == 5 for row in rows.tolist())
    assert (np.diff(cosines, axis=1) <= 1e-6).all()
    wanted, wanted_cosines = find_by_hand(vectors, 5)
    if search > 1:
        np.testing.assert_array_equal(rows, wanted)
        np.testing.assert_allclose(cosines, wanted_cosines, atol=1e-5)
    else:
        assert np.mean([len(set(a) & set(b)) for a, b in zip(rows.tolist(), wanted.tolist(), strict=True)]) > 4.5


@pytest.mark.parametrize("count", [4, 5, 100])
def test_there_are_no_more_neighbours_than_other_nodes(search, count):
    rows, _ = find_all_neighbours(draw(5), count)
    assert sorted(map(sorted, rows.tolist())) == sorted(sorted(set(range(5)) - {node}) for node in range(5))


def test_many_equal_vectors_have_others_for_neighbours(search):
    vectors = np.ones((30, 4), np.float32)
    rows, cosines = find_all_neighbours(vectors, 3, search)
    assert not (rows == np.arange(30)[:, None]).any()
    assert all(len(set(row)) == 3 for row in rows.tolist())
    assert (np.abs(cosines) <= 1.0).all()


def test_an_index_is_needed_for_very_many_nodes(monkeypatch):
    def missing(name, extra, purpose):
        raise MissingExtraError(f"{purpose}: {name} of {extra}")

    monkeypatch.setattr(module, "import_extra", missing)
    with pytest.raises(MissingExtraError, match="a map of more than 3 nodes: usearch.index of index"):
        find_all_neighbours(draw(4), 2, most_exact=3)
    assert find_all_neighbours(draw(3), 2, most_exact=3)[0].shape == (3, 2)


def test_without_an_index_some_more_nodes_are_searched_exactly(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    np.testing.assert_array_equal(find_all_neighbours(draw(40), 3, exact=1)[0], find_by_hand(draw(40), 3)[0])
