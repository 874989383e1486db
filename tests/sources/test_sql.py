"""Databases: streamed, read-only, and errors in one line without the password."""

import sqlite3
import uuid

import pytest
from benchmarks.postgres import GUARDED

from manela.errors import SourceError
from manela.sources.sql import MastodonDatabaseSource, SqlSource
from manela.sources.state import ImportState


def read(source):
    with ImportState(None, source.key) as state:
        return list(source.read(state))


def edges(source):
    return [
        edge
        for batch in read(source)
        for edge in zip(
            batch.own,
            batch.other,
            [1.0] * len(batch.own) if batch.weights is None else batch.weights.tolist(),
            strict=True,
        )
    ]


@pytest.fixture
def sqlite_url(tmp_path):
    path = tmp_path / "it is % odd#.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE ties (own, other, weight)")
    rows = [(1, "ann", 2.5), (None, "ann", 1.0), ("", "bob", 1.0), (b"\x01\xff", 2.0, 1), ("ann", 0.5, None)]
    database.executemany("INSERT INTO ties VALUES (?, ?, ?)", rows)
    database.commit()
    database.close()
    return f"sqlite:///{path}"


def test_rows_with_gaps_are_left_out_and_counted(sqlite_url):
    source = SqlSource(sqlite_url, "SELECT own, other, weight FROM ties;")
    assert edges(source) == [(1, "ann", 2.5), ("01ff", 2, 1.0)]
    assert source.describe().startswith("5 rows, of which 3 were left out")


def test_what_looks_like_a_parameter_in_a_query_is_none(sqlite_url):
    assert edges(SqlSource(sqlite_url, "SELECT 'a:b', '100%s' || ' ?' WHERE '%' = '%'")) == [("a:b", "100%s ?", 1.0)]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT own FROM ties", "two columns"),
        ("SELECT own, other, weight, 1 FROM ties", "got 4: own, other, weight, 1"),
        ("SELECT absent, own FROM ties", "no such column"),
        ("DELETE FROM ties", "readonly|SELECT"),
        ("CREATE TABLE more (x)", "readonly|SELECT"),
        ("SELECT 1, 2, -1.0", "above 0.*got -1 about row 1"),
        ("SELECT 1, 2, 'heavy'", "a number, got 'heavy'"),
        ("SELECT 1, 2, 9e999", "got inf"),
        ("", "SELECT"),
    ],
)
def test_a_query_that_gives_no_edges_is_told_in_a_line(sqlite_url, query, words):
    with pytest.raises(SourceError, match=words) as caught:
        edges(SqlSource(sqlite_url, query))
    assert str(caught.value).isprintable()
    assert len(edges(SqlSource(sqlite_url, "SELECT own, other, weight FROM ties"))) == 2


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("nonsense", "parse"),
        ("martian://x/y", "martian"),
        ("oracle+cx_oracle://x/y", "cx_Oracle.*pip install"),
    ],
)
def test_a_url_that_leads_nowhere_is_told_in_a_line(url, words):
    with pytest.raises(SourceError, match=words):
        read(SqlSource(url, "SELECT 1, 2"))


def test_postgresql_types_become_numbers_and_texts(postgres):
    one = uuid.UUID(int=7)
    source = SqlSource(postgres.url, f"SELECT 5::numeric, '{one}'::uuid, 2::int4 UNION ALL SELECT 1.5, NULL, 1")
    assert edges(source) == [(5, str(one), 2.0)]
    assert edges(SqlSource(postgres.url, "SELECT '%s :x', 3 -- a remark")) == [("%s :x", 3, 1.0)]


def test_rows_arrive_before_the_last_one_is_made(postgres):
    source = SqlSource(postgres.url, "SELECT i, 1 / (i - 150000) + i FROM generate_series(1, 200000) AS i")
    with ImportState(None, source.key) as state:
        batches = source.read(state)
        assert len(next(batches).own) < 10_000
        with pytest.raises(SourceError, match="division by zero"):
            list(batches)


def test_nothing_can_be_written_to_postgresql(postgres):
    postgres.execute(
        "CREATE TABLE IF NOT EXISTS kept (x int); CREATE OR REPLACE FUNCTION sneak() RETURNS int LANGUAGE sql AS "
        "'INSERT INTO kept VALUES (1) RETURNING x';"
    )
    with pytest.raises(SourceError, match="read-only transaction"):
        edges(SqlSource(postgres.url, "SELECT sneak(), 2"))
    with pytest.raises(SourceError, match="cannot be read"):
        edges(SqlSource(postgres.url, "INSERT INTO kept VALUES (1) RETURNING x, x"))
    with pytest.raises(SourceError, match="cannot be read"):
        edges(SqlSource(postgres.url, "SELECT 1, 2; DROP TABLE kept"))
    assert edges(SqlSource(postgres.url, "SELECT count(*), 1 FROM kept")) == [(0, 1, 1.0)]


def test_a_password_is_used_and_never_told(postgres):
    postgres.execute(f"CREATE ROLE {GUARDED} LOGIN PASSWORD 'open sesame'")
    url = postgres.url.replace("manela@", f"{GUARDED}@")
    assert edges(SqlSource(url, "SELECT 1, 2", "open sesame")) == [(1, 2, 1.0)]
    for secret in ("wrong sesame", None):
        with pytest.raises(SourceError, match="password") as caught:
            edges(SqlSource(url, "SELECT 1, 2", secret))
        assert "sesame" not in str(caught.value)
    with pytest.raises(SourceError) as caught:
        edges(SqlSource(url, "SELECT 'open sesame'::int, 2", "open sesame"))
    assert "sesame" not in str(caught.value)
    assert "sesame" not in SqlSource(url, "SELECT 1, 2", "open sesame").key


SCHEMA = """
CREATE TABLE accounts (id bigint PRIMARY KEY, username varchar NOT NULL, domain varchar, suspended_at timestamp);
CREATE TABLE follows (id bigserial PRIMARY KEY, account_id bigint NOT NULL, target_account_id bigint NOT NULL);
INSERT INTO accounts VALUES (1, 'Ann', NULL, NULL), (2, 'bob', 'Other.Example', NULL), (3, 'cem', NULL, NULL),
    (4, 'spam', NULL, now());
INSERT INTO follows (account_id, target_account_id) VALUES (1, 2), (3, 1), (2, 3), (4, 1), (1, 4);
"""


def test_follows_become_edges_between_addresses(postgres):
    postgres.execute(SCHEMA)
    source = MastodonDatabaseSource(postgres.url, "Home.Example")
    with ImportState(None, source.key) as state:
        found = {edge for batch in source.read(state) for edge in zip(batch.own, batch.other, strict=True)}
    assert found == {
        ("ann@home.example", "bob@other.example"),
        ("cem@home.example", "ann@home.example"),
        ("bob@other.example", "cem@home.example"),
    }
    assert source.describe() == "3 rows"


@pytest.mark.parametrize("domain", ["", "home.example'; DROP TABLE follows; --", "a b"])
def test_a_domain_that_is_none_never_reaches_the_database(domain):
    with pytest.raises(SourceError, match="host"):
        MastodonDatabaseSource("postgresql://mastodon@/mastodon", domain)


def test_a_database_that_is_not_mastodons_is_told_in_a_line(tmp_path):
    (tmp_path / "empty.db").touch()
    source = MastodonDatabaseSource(f"sqlite:///{tmp_path / 'empty.db'}", "home.example")
    with ImportState(None, source.key) as state, pytest.raises(SourceError, match="no such table: follows"):
        list(source.read(state))
