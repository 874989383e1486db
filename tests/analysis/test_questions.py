import json

import numpy as np
import pytest

from manela.analysis import answers as module
from manela.analysis.answers import PAGE, AnswerBook, Questions, describe_api


@pytest.fixture
def book():
    vectors = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    vectors[:15] += 4 * np.eye(4, dtype=np.float32)[0]
    vectors[15:] -= 4 * np.eye(4, dtype=np.float32)[0]
    indices = np.concatenate([[(i + 1) % 30, (i - 1) % 30] for i in range(30)])
    return AnswerBook([f"n{i}" for i in range(30)], vectors, 30, np.arange(0, 61, 2), indices)


@pytest.fixture
def asked(book):
    found = Questions("alpha", lambda: book)
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


def test_what_is_asked_is_answered(asked, book):
    assert read(asked("/api/names", start="n2", count="2")) == {"of": "alpha", "nodes": 30, "names": ["n2", "n20"]}
    near = read(asked("/api/near", node="n0"))["near"]
    assert [one["node"] for one in near] == [one.node for one in book.find_near("n0")]
    recommended = read(asked("/api/recommend", node="n0", count="30"))["recommended"]
    assert not {"n0", "n1", "n29"} & {one["node"] for one in recommended}
    assert read(asked("/api/edge", node="n0", other="n1"))["is_edge"]
    assert read(asked("/api/odd", count="2"))["odd"][0]["similarity"] < 0


def test_groups_are_found_beside_and_then_told(asked, book):
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
