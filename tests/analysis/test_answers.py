import json

import numpy as np
import pytest

from manela import Embedding
from manela.analysis import answers as module
from manela.analysis.answers import PAGE, AnswerBook, Questions, describe_api
from manela.errors import ParameterError, UnknownNodeError


@pytest.fixture
def book():
    """Two communities of own nodes, a node elsewhere in each, and one elsewhere that has not been shown."""
    rng = np.random.default_rng(1)
    centres = np.repeat(np.eye(8, dtype=np.float32)[:2], 10, axis=0)
    own = centres + 0.1 * rng.normal(size=(20, 8)).astype(np.float32)
    elsewhere = np.eye(8, dtype=np.float32)[:2] + 0.01
    vectors = np.concatenate((own, elsewhere, np.zeros((1, 8), np.float32)))
    names = [*(f"n{number}" for number in range(20)), "p@beta", "q@beta", "unseen@beta"]
    # each own node with the next one; n0 with p and the unseen one, n1 with q, which is of the other community
    ends = [*((i, (i + 1) % 20) for i in range(20)), *(((i + 1) % 20, i) for i in range(20)), (0, 20), (0, 22), (1, 21)]
    sources, targets = np.array(sorted(ends)).T
    indptr = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=20))))
    return AnswerBook(names, vectors, 20, indptr, targets)


def test_near_are_own_nodes_by_cosine(book):
    own = Embedding(np.array(book.names[:20], dtype=object), book.vectors[:20])
    found = book.find_nearest("n3", 5)
    assert [near.node for near in found] == [node for node, _ in own.most_similar("n3", 5)]
    np.testing.assert_allclose(
        [near.similarity for near in found], [c for _, c in own.most_similar("n3", 5)], rtol=1e-5
    )


def test_recommended_are_own_and_visible_nodes_that_are_no_neighbours(book):
    found = {near.node for near in book.recommend("n2", 1000)}
    assert found == set(book.names) - {"n2", "n1", "n3", "unseen@beta"}
    assert "p@beta" not in {near.node for near in book.recommend("n0", 1000)}
    assert "p@beta" in [near.node for near in book.recommend("n2", 9)]


def test_only_own_nodes_can_be_asked_for(book):
    for name in ("p@beta", "unseen@beta", "nobody"):
        with pytest.raises(UnknownNodeError, match="no node here"):
            book.recommend(name)
    with pytest.raises(UnknownNodeError, match="can be seen from here"):
        book.judge_edge("n0", "unseen@beta")


def test_an_edge_inside_a_community_is_expected_and_one_across_is_odd(book):
    inside, across = book.judge_edge("n2", "n3"), book.judge_edge("n1", "q@beta")
    assert inside.is_edge
    assert across.is_edge
    assert inside.oddness < 0.5 < across.oddness
    assert not book.judge_edge("n2", "n5").is_edge
    with pytest.raises(ParameterError, match="twice"):
        book.judge_edge("n1", "n1")


def test_odd_edges_come_first_and_each_once(book):
    found = book.find_odd_edges(1000)
    assert len(found) == 22
    assert {frozenset(edge[:2]) for edge in found[:3]} == {
        frozenset({"n9", "n10"}), frozenset({"n19", "n0"}), frozenset({"n1", "q@beta"}),
    }  # fmt: skip
    assert [edge[2] for edge in found] == sorted(edge[2] for edge in found)


def test_without_edges_everybody_can_be_recommended(book):
    bare = AnswerBook(book.names[:20], book.vectors[:20], 20)
    assert len(bare.recommend("n0", 100)) == 19
    assert bare.find_odd_edges() == []


def test_better_vectors_of_own_nodes_are_used_among_own_nodes(book):
    better = AnswerBook(book.names, book.vectors, 20, book.indptr, book.indices, own_vectors=book.vectors[:20][::-1])
    assert better.find_nearest("n0", 3) != book.find_nearest("n0", 3)
    assert better.recommend("n0", 3) == book.recommend("n0", 3)


@pytest.mark.parametrize("count", [0, -1, 10**9])
def test_a_count_out_of_bounds_is_refused(book, count):
    with pytest.raises(ParameterError, match="count"):
        book.find_nearest("n0", count)


def test_names_are_found_by_their_begin_first(book):
    assert book.find_names("N1", 3) == ["n1", "n10", "n11"]
    assert book.find_names("9", 5) == ["n9", "n19"]
    assert book.find_names("p@", 5) == []


@pytest.fixture
def asked_book():
    vectors = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    vectors[:15] += 4 * np.eye(4, dtype=np.float32)[0]
    vectors[15:] -= 4 * np.eye(4, dtype=np.float32)[0]
    indices = np.concatenate([[(i + 1) % 30, (i - 1) % 30] for i in range(30)])
    return AnswerBook([f"n{i}" for i in range(30)], vectors, 30, np.arange(0, 61, 2), indices)


@pytest.fixture
def asked(asked_book):
    found = Questions("alpha", lambda: asked_book)
    return lambda path, **query: found.find(path, query)


def read(reply, status=200):
    assert reply.status == status, reply.text
    return json.loads(reply.text)


def matches(value, schema):
    """Whether a value is as its description says; enough of JSON Schema for what we describe."""
    kinds = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool}
    if not isinstance(value, kinds[schema["type"]]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if schema["type"] == "array":
        return all(matches(item, schema["items"]) for item in value)
    if schema["type"] == "object":
        return set(schema["required"]) <= set(value) <= set(schema["properties"]) and all(
            matches(item, schema["properties"][name]) for name, item in value.items()
        )
    return True


@pytest.mark.parametrize("path", list(describe_api()["paths"]))
def test_answers_are_as_the_description_says(asked, path):
    described = describe_api()["paths"][path]["get"]
    query = {"node": "n0", "other": "n5", "start": "n1", "count": "3"}
    known = {field["name"] for field in described["parameters"]}
    found = read(asked(path, **{name: value for name, value in query.items() if name in known}))
    assert matches(found, described["responses"]["200"]["content"]["application/json"]["schema"])
    for field in described["parameters"]:
        if field["required"]:
            without = {name: value for name, value in query.items() if name in known - {field["name"]}}
            assert field["name"] in read(asked(path, **without), 400)["error"]


def test_what_is_asked_is_answered(asked, asked_book):
    assert read(asked("/api/names", start="n2", count="2")) == {"of": "alpha", "nodes": 30, "names": ["n2", "n20"]}
    near = read(asked("/api/near", node="n0"))["near"]
    assert [one["node"] for one in near] == [one.node for one in asked_book.find_nearest("n0")]
    recommended = read(asked("/api/recommend", node="n0", count="30"))["recommended"]
    assert not {"n0", "n1", "n29"} & {one["node"] for one in recommended}
    assert read(asked("/api/edge", node="n0", other="n1"))["is_edge"]
    assert read(asked("/api/odd", count="2"))["odd"][0]["similarity"] < 0


def test_groups_are_found_beside_and_then_told(asked, asked_book):
    state = read(asked("/api/groups"))
    assert state == {"state": "working", "groups": []}
    for thread in module.threading.enumerate():
        if thread.name == "groups":
            thread.join()
    found = read(asked("/api/groups"))
    assert found["state"] == "done"
    assert sum(group["size"] for group in found["groups"]) == 30
    of_one = read(asked("/api/groups", node="n0", count="1000"))
    assert {f"n{i}" for i in range(15)} == set(of_one["names"])


@pytest.mark.parametrize(
    ("path", "query", "status", "words"),
    [
        ("/api/near", {"node": "nobody"}, 404, "nobody"),
        ("/api/near", {"node": "n0", "count": "0"}, 400, "count"),
        ("/api/near", {"node": "n0", "count": "9" * 5000}, 400, "count"),
        ("/api/near", {"node": "n0", "count": "²"}, 400, "count"),
        ("/api/names", {"start": "", "count": "0000000010000"}, 400, "count"),
        ("/api/edge", {"node": "n0", "other": "n0"}, 400, "twice"),
        ("/api/edge", {"node": "n0", "other": "\ud800"}, 404, "seen"),
    ],
)
def test_bad_questions_get_one_line(asked, path, query, status, words):
    assert words in read(asked(path, **query), status)["error"]


def test_before_there_are_vectors_that_is_said():
    reply = Questions("alpha", lambda: None).find("/api/near", {"node": "a"})
    assert "no vectors yet" in read(reply, 503)["error"]


def test_the_page_and_nothing_else_is_there(asked):
    assert "Who is near?" in asked(PAGE).text
    assert asked("/etc/passwd") is None
    assert asked("/answers/../status.json") is None
