"""Neo4j, by its own driver, over a socket."""

import pytest
from bolt_server import Bolt, serve_bolt

from manela.errors import SourceError
from manela.sources.neo4j import QUERY, Neo4jSource
from manela.sources.state import ImportState


def read(source):
    with ImportState(None, source.key) as state:
        return list(source.read(state))


def test_records_are_fetched_in_batches_and_only_read():
    records = [(number, number + 1, 1.5) for number in range(3500)]
    with serve_bolt(Bolt(["own", "other", "weight"], records)) as server:
        batches = read(Neo4jSource(server.url, secret=server.password))
        assert [len(batch.own) for batch in batches] == [1000, 1000, 1000, 500]
        assert server.queries == [QUERY]
        assert server.modes == ["r"]
        assert set(server.pulls) == {1000}


def test_a_server_without_passwords_is_asked_without_one():
    with serve_bolt(Bolt(["a", "b"], [("ann", "bob")])) as server:
        [batch] = read(Neo4jSource(server.url, "MATCH (a)--(b) RETURN a.id, b.id"))
        assert (batch.own, batch.other, batch.weights) == (("ann",), ("bob",), None)


def test_a_wrong_password_is_told_in_a_line_without_it():
    with (
        serve_bolt(Bolt(["a", "b"], [])) as server,
        pytest.raises(SourceError, match="cannot be read") as caught,
    ):
        read(Neo4jSource(server.url, secret="wrong sesame"))
    assert "sesame" not in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_query_that_fails_or_gives_no_edges_is_told_in_a_line():
    with serve_bolt(Bolt(["a"], [("ann",)])) as server:
        with pytest.raises(SourceError, match="two columns.*got 1: a"):
            read(Neo4jSource(server.url))
        server.failure = "Invalid input 'MATSCH'\nmore"
        with pytest.raises(SourceError, match="MATSCH") as caught:
            read(Neo4jSource(server.url, "MATSCH"))
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("url", ["nonsense", "http://127.0.0.1:1"])
def test_a_url_of_another_kind_is_refused(url):
    with pytest.raises(SourceError, match=r"must begin with one of neo4j://"):
        Neo4jSource(url)


def test_a_server_that_is_not_there_is_told_in_a_line():
    with pytest.raises(SourceError, match="cannot be read"):
        read(Neo4jSource("bolt://127.0.0.1:1"))


def test_a_password_in_the_url_is_refused():
    with pytest.raises(SourceError, match="MANELA_SECRET"):
        Neo4jSource("neo4j://ann:xyzzy@db")
