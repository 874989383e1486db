"""The nearest are those that all cosines say, however they are asked for; an index finds nearly all of them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from manela.data.embedding import Embedding
from manela.data.nearest import VectorIndex, find_nearest
from manela.errors import FormatError, ParameterError
from manela.system.arrays import write_arrays


@pytest.fixture(scope="module")
def vectors():
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(40, 16))
    return (centres[draw.integers(40, size=3000)] + 0.5 * draw.normal(size=(3000, 16))).astype(np.float32)


@pytest.fixture
def embedding(vectors):
    return Embedding(np.arange(3000), vectors, provenance={"graph": {"rows": 1000}})


def cosines_of(vectors, queries):
    unit = [table / np.linalg.norm(table, axis=1, keepdims=True) for table in (queries, vectors)]
    return unit[0] @ unit[1].T


@pytest.mark.parametrize("alone", [0, 1 << 60])
def test_rows_and_cosines_are_those_of_all_products(vectors, alone):
    options = {"shared_from": alone, "queries_at_once": 7}
    rows, cosines = find_nearest(vectors, vectors[:20], 5, None, np.arange(20)[:, None], **options)
    wanted = cosines_of(vectors, vectors[:20])
    wanted[np.arange(20), np.arange(20)] = -2
    order = np.argsort(-wanted, axis=1)[:, :5]
    np.testing.assert_allclose(cosines, np.take_along_axis(wanted, order, axis=1), atol=1e-5)
    assert (rows == order).mean() > 0.98  # but for ties of rounding
    among = np.arange(500, 3000, 3)
    rows, _ = find_nearest(vectors, vectors[:20], 5, among, **options)
    np.testing.assert_array_equal(rows, among[np.argsort(-wanted[:, among], axis=1)[:, :5]])


def test_batches_vectors_and_single_nodes_agree(embedding, vectors):
    batch = embedding.most_similar([3, 700], k=4)
    alone = embedding.most_similar(3, k=4)
    assert [node for node, _ in batch[0]] == [node for node, _ in alone]
    np.testing.assert_allclose([cosine for _, cosine in batch[0]], [cosine for _, cosine in alone], rtol=1e-5)
    assert batch == embedding.most_similar(np.array([3, 700]), k=4)
    by_vector = embedding.most_similar(vectors[3], k=5)
    assert by_vector[0][0] == 3
    assert by_vector[0][1] <= 1.0
    assert [node for node, _ in by_vector[1:]] == [node for node, _ in batch[0]]
    assert [n for n, _ in embedding.most_similar(vectors[[3, 700]], k=5)[0]] == [n for n, _ in by_vector]


def test_positive_and_negative_nodes_are_left_out(embedding, vectors):
    found = embedding.most_similar(positive=[3, 5], negative=8, k=20)
    assert not {3, 5, 8} & {node for node, _ in found}
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    wanted = cosines_of(vectors, (unit[3] + unit[5] - unit[8])[None])[0]
    wanted[[3, 5, 8]] = -2
    assert found[0][0] == int(np.argmax(wanted))


def test_who_may_be_found_can_be_said(embedding):
    for among in (
        [4, 9, 2000],
        {4, 9, 2000},
        np.isin(np.arange(3000), [4, 9, 2000]),
        lambda node: node in (4, 9, 2000),
    ):
        assert {node for node, _ in embedding.most_similar(4, among=among)} == {9, 2000}
    assert all(node >= 1000 for node, _ in embedding.most_similar(4, among="columns"))
    assert all(node < 1000 for node, _ in embedding.most_similar(4, among="rows"))
    assert (embedding.row_vectors.shape, embedding.column_vectors.shape) == ((1000, 16), (2000, 16))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "needs either a node"),
        ({"node": 1, "positive": 2}, "or positive and negative nodes"),
        ({"node": 1, "k": 1.5}, "k must be at least 1"),
        ({"node": 1, "among": "leaves"}, "among must be"),
        ({"node": 1, "among": 5}, "among must be"),
        ({"node": 1, "among": np.array([True])}, "a boolean for each"),
        ({"node": np.zeros(3)}, "must have 16 numbers"),
        ({"positive": []}, "must not be empty"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(embedding, arguments, words):
    with pytest.raises(ParameterError, match=words):
        embedding.most_similar(**arguments)


def test_an_index_finds_nearly_all_and_is_saved_beside_the_vectors(embedding, vectors, tmp_path):
    path = tmp_path / "vectors.index"
    index = embedding.index(path)
    nodes = list(range(100))
    wanted, found = embedding.most_similar(nodes, k=10), index.most_similar(nodes, k=10)
    shared = [len({n for n, _ in one} & {n for n, _ in other}) / 10 for one, other in zip(wanted, found, strict=True)]
    assert np.mean(shared) > 0.95
    assert all(len(some) == 10 and node not in dict(some) for node, some in zip(nodes, found, strict=True))
    assert embedding.index(path).most_similar(nodes, k=10) == found
    assert {n for n, _ in index.most_similar(positive=[3], negative=[5], k=5)} & {3, 5} == set()
    other = Embedding(np.arange(3000), vectors[::-1].copy())
    assert other.index(path).most_similar(0, k=1)[0][0] == other.most_similar(0, k=1)[0][0]  # made anew
    assert VectorIndex.load(path, vectors) is None
    assert index.most_similar([], k=3) == embedding.most_similar([], k=3) == []
    assert {n for n, _ in index.most_similar(4, among=[9, 2000])} == {9, 2000}
    embedding.index(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match="damaged"):
        embedding.index(path)
    path.write_bytes(b"something else")
    with pytest.raises(FormatError, match="not a file of manela"):
        embedding.index(path)
    with path.open("wb") as file:
        write_arrays(file, {"nodes": np.arange(3)}, {}, "notes")
    with pytest.raises(FormatError, match="not an index"):
        embedding.index(path)


def test_edges_have_vectors(embedding, vectors):
    one, other = vectors[[1, 2]], vectors[[5, 6]]
    for name, wanted in (
        ("hadamard", one * other), ("average", (one + other) / 2), ("l1", abs(one - other)), ("l2", (one - other) ** 2)
    ):  # fmt: skip
        np.testing.assert_allclose(embedding.edge_vectors([(1, 5), (2, 6)], name), wanted, rtol=1e-6)
    with pytest.raises(ParameterError, match="operator must be one of"):
        embedding.edge_vectors([(1, 2)], "sum")
    for edges in ([1, 2], 5):
        with pytest.raises(ParameterError, match="pairs of ids"):
            embedding.edge_vectors(edges)


def test_many_threads_leave_products_as_they_were(vectors):
    before = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: find_nearest(vectors, vectors[:50], 3, shared_from=0), range(40)))
    for rows, _ in found:
        np.testing.assert_array_equal(rows, found[0][0])
    assert [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"] == before


def test_a_node_of_zeros_is_told_from_others_and_context_can_be_searched():
    nodes, zeros = np.arange(3), np.array([[1, 0], [0, 1], [0, 0]], dtype=np.float32)
    embedding = Embedding(nodes, zeros, np.ones((3, 2), dtype=np.float32))
    with pytest.raises(ParameterError, match=r"2 is zero in all dimensions.*by_context"):
        embedding.most_similar(2)
    assert [node for node, _ in embedding.by_context().most_similar(2, k=1)] == [0]


def test_vectors_in_a_list_and_ids_that_are_tuples(embedding, vectors):
    assert embedding.most_similar([vectors[3], vectors[5]], k=1)[1][0][0] == 5
    ids = np.empty(3, dtype=object)
    ids[:] = [("row", 1), ("x",), "y"]
    named = Embedding(ids, vectors[:3])
    assert {node for node, _ in named.most_similar("y", among=[("row", 1), ("x",)])} == {("row", 1), ("x",)}


def test_what_cannot_be_an_id_is_nobodys(embedding):
    assert ("x", ["a"]) not in embedding
    assert [1] not in embedding
