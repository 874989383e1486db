"""Every source, ready to be read, with the edges that it must find; a new source needs an entry in SOURCES."""

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from benchmarks.postgres import find_programs, start_postgres
from bolt_server import Bolt, serve_bolt
from key_ring import fill_key_ring, open_key_ring
from mastodon_server import TOKEN, Mastodon, serve_mastodon

from manela.sources.gpg import GnupgSource
from manela.sources.mail import MailSource
from manela.sources.mail_log import MailLogSource
from manela.sources.mastodon_api import MastodonApiSource
from manela.sources.mastodon_archive import MastodonArchiveSource
from manela.sources.neo4j import Neo4jSource
from manela.sources.rdf import RdfSource
from manela.sources.source import Source
from manela.sources.sql import MastodonDatabaseSource, SqlSource

HOSTILE = 'eve\n"x",\x1b[31m;=1+1\x00🦉'
"""A name that means something to files, terminals, spreadsheets and C."""


class Case(NamedTuple):
    """A source, its edges, the folder in which it is, and a source of its kind whose place is not there."""

    source: Source
    edges: set[tuple[object, object, float]]
    folder: Path
    missing: Source


def make_database(path: Path, statements: str, rows: list[tuple[object, ...]] = []) -> None:  # noqa: B006
    """A SQLite file."""
    database = sqlite3.connect(path)
    database.executescript(statements)
    if rows:
        database.executemany(f"INSERT INTO ties VALUES ({', '.join('?' * len(rows[0]))})", rows)
    database.commit()
    database.close()


@contextmanager
def sqlite(folder: Path) -> Iterator[Case]:
    rows = [("ann", "bob", 2.0), ("bob", "cem", 1.0), (HOSTILE, "ann", 0.5)]
    make_database(folder / "ties.db", "CREATE TABLE ties (own TEXT, other TEXT, weight REAL);", [*rows, (None, "x", 1)])
    query = "SELECT own, other, weight FROM ties;"
    missing = SqlSource(f"sqlite:///{folder / 'none.db'}", query)
    yield Case(SqlSource(f"sqlite:///{folder / 'ties.db'}", query), set(rows), folder, missing)


@contextmanager
def postgresql(folder: Path) -> Iterator[Case]:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    with start_postgres(programs) as server:
        hostile = HOSTILE.replace("\0", "")
        server.execute(
            "CREATE TABLE ties (own text, other text, weight numeric);"
            f"INSERT INTO ties VALUES ('ann', 'bob', 2), ('bob', $${hostile}$$, 1.5), (NULL, 'bob', 1);"
        )
        query = "SELECT own, other, weight FROM ties"
        missing = SqlSource(f"postgresql://manela@/postgres?host={folder / 'none'}", query)
        yield Case(SqlSource(server.url, query), {("ann", "bob", 2.0), ("bob", hostile, 1.5)}, folder, missing)


@contextmanager
def mastodon_database(folder: Path) -> Iterator[Case]:
    make_database(
        folder / "mastodon.db",
        """CREATE TABLE accounts (id INTEGER, username TEXT, domain TEXT, suspended_at TEXT);
        CREATE TABLE follows (account_id INTEGER, target_account_id INTEGER);
        INSERT INTO accounts VALUES (1, 'Ann', NULL, NULL), (2, 'bob', 'Other.Example', NULL), (3, 'cem', NULL, NULL),
            (4, 'spam', NULL, '2026-01-01'), (5, 'e"v
e', NULL, NULL);
        INSERT INTO follows VALUES (1, 2), (3, 1), (4, 1), (1, 4), (1, 5);""",
    )
    edges = {
        ("ann@home.example", "bob@other.example", 1.0),
        ("cem@home.example", "ann@home.example", 1.0),
        ("ann@home.example", 'e"v\ne@home.example', 1.0),
    }
    missing = MastodonDatabaseSource(f"sqlite:///{folder / 'none.db'}", "home.example")
    yield Case(MastodonDatabaseSource(f"sqlite:///{folder / 'mastodon.db'}", "Home.example"), edges, folder, missing)


OUTBOX = {
    "@context": "https://www.w3.org/ns/activitystreams",
    "id": "outbox.json",
    "type": "OrderedCollection",
    "totalItems": 4,
    "orderedItems": [
        {
            "type": "Create",
            "actor": "https://home.example/users/Ann",
            "object": {
                "type": "Note",
                "content": "<p>]}</p>",
                "tag": [
                    {"type": "Mention", "href": "https://other.example/users/bob", "name": "@Bob@other.example"},
                    {"type": "Mention", "href": "https://home.example/users/cem", "name": "@cem"},
                    {"type": "Mention", "href": "javascript:alert(1)", "name": HOSTILE},
                    {"type": "Hashtag", "href": "https://home.example/tags/owls", "name": "#owls"},
                ],
            },
        },
        {
            "type": "Announce",
            "actor": "https://home.example/users/Ann",
            "object": "https://other.example/users/bob/statuses/7",
        },
        {"type": "Announce", "object": "https://elsewhere.example/notes/1"},
        "nonsense",
    ],
}
ACTOR = {"type": "Person", "id": "https://home.example/users/Ann", "preferredUsername": "Ann"}
FOLLOWING = (
    "Account address,Show boosts,Notify on new posts,Languages\nbob@other.example,true,false,\nDan,true,false,\n"
)
ARCHIVE_EDGES = {
    ("ann@home.example", "bob@other.example", 3.0),
    ("ann@home.example", "cem@home.example", 1.0),
    ("ann@home.example", "dan@home.example", 1.0),
}


@contextmanager
def mastodon_archive(folder: Path) -> Iterator[Case]:
    with zipfile.ZipFile(folder / "archive.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("outbox.json", json.dumps(OUTBOX))
        packed.writestr("actor.json", json.dumps(ACTOR))
        packed.writestr("following_accounts.csv", FOLLOWING)
        packed.writestr("media_attachments/files/1.png", b"\x89PNG")
    missing = MastodonArchiveSource(folder / "none.zip")
    yield Case(MastodonArchiveSource(folder / "archive.zip"), ARCHIVE_EDGES, folder, missing)


ACCOUNTS = {
    "1": ("Ann", None),
    "2": ("bob", "Other.Example"),
    "3": ("cem", None),
    "4": ("dan", "other.example"),
    "5": (HOSTILE, "x.example"),
}
FOLLOWS = [("1", "2"), ("1", "3"), ("1", "4"), ("3", "1"), ("2", "1"), ("1", "5"), ("3", "4")]


@contextmanager
def mastodon_api(folder: Path) -> Iterator[Case]:
    edges = {
        ("ann@home.example", "bob@other.example", 1.0),
        ("ann@home.example", "cem@home.example", 1.0),
        ("ann@home.example", "dan@other.example", 1.0),
        ("cem@home.example", "ann@home.example", 1.0),
        ("bob@other.example", "ann@home.example", 1.0),
    }
    with serve_mastodon(Mastodon(ACCOUNTS, FOLLOWS)) as server:
        missing = MastodonApiSource("http://127.0.0.1:1", TOKEN, sleep=lambda _: None)
        yield Case(MastodonApiSource(server.url, TOKEN, sleep=lambda _: None), edges, folder, missing)


@contextmanager
def gpg(folder: Path) -> Iterator[Case]:
    if shutil.which("gpg") is None:
        pytest.skip("gpg is not installed")
    with open_key_ring() as ring:
        edges = fill_key_ring(ring)
        yield Case(GnupgSource(ring.folder), edges, ring.folder, GnupgSource(folder / "none"))


@contextmanager
def neo4j(folder: Path) -> Iterator[Case]:
    records = [("ann", "bob", 2.0), ("bob", 7, 1), (HOSTILE, "ann", 0.5), ("ann", None, 1.0)]
    edges = {("ann", "bob", 2.0), ("bob", 7, 1.0), (HOSTILE, "ann", 0.5)}
    with serve_bolt(Bolt(["own", "other", "weight"], records)) as server:
        missing = Neo4jSource("bolt://127.0.0.1:1", secret="x")
        yield Case(Neo4jSource(server.url, secret=server.password), edges, folder, missing)


@contextmanager
def rdf(folder: Path) -> Iterator[Case]:
    (folder / "people.nt").write_text(
        '<http://a/ann> <http://a/knows> <http://a/bob> .\n<http://a/ann> <http://a/name> "Ann <http://a/x>" .\n'
        "# a remark\n<http://a/bob> <http://a/knows> _:cem .\n"
        "<http://a/e\\u000Av\\u0022e> <http://a/knows> <http://a/ann> .\n"
        "<http://a/ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://a/Person> .\n"
    )
    (folder / "more.ttl").write_text("@prefix a: <http://a/> .\na:bob a:knows a:ann ; a:age 7 .\n[] a:knows a:bob .\n")
    edges = {
        ("http://a/ann", "http://a/bob", 1.0),
        ("http://a/bob", "_:cem", 1.0),
        ('http://a/e\nv"e', "http://a/ann", 1.0),
        ("http://a/bob", "http://a/ann", 1.0),
        ("_:2.b0", "http://a/bob", 1.0),
    }
    source = RdfSource([folder / "people.nt", folder / "more.ttl"])
    yield Case(source, edges, folder, RdfSource([folder / "none.nt"]))


LETTER = "From x Mon Nov 16 10:00:00 2026\nMessage-ID: <{0}@x>\nFrom: {1}\nTo: {2}\n\nhello\n\n"


@contextmanager
def mail(folder: Path) -> Iterator[Case]:
    (folder / "box").write_text(
        LETTER.format(1, "ann@example.org", "bob@x.net, <cem@example.org>")
        + LETTER.format(2, f"{HOSTILE.split()[0]} <bob@x.net>", "ann@example.org")
        + LETTER.format(3, "no-reply@x.net", "ann@example.org")
    )
    edges = {("ann@example.org", "bob@x.net", 2.0), ("ann@example.org", "cem@example.org", 1.0)}
    source = MailSource([folder / "box"], ["example.org"], half_life=0.0)
    yield Case(source, edges, folder, MailSource([folder / "none"], ["none.example"]))


@contextmanager
def mail_log(folder: Path) -> Iterator[Case]:
    (folder / "mainlog").write_text(
        "2026-11-16 10:00:00 1abcde-0001Ab-CD <= ann@example.org H=x\n"
        "2026-11-16 10:00:01 1abcde-0001Ab-CD => bob@x.net R=x\n"
        "2026-11-16 10:00:01 1abcde-0001Ab-CD -> cem <cem@example.org> R=x\n"
    )
    edges = {("ann@example.org", "bob@x.net", 1.0), ("ann@example.org", "cem@example.org", 1.0)}
    source = MailLogSource([folder / "mainlog"], ["example.org"], half_life=0.0)
    yield Case(source, edges, folder, MailLogSource([folder / "none"], ["none.example"]))


SOURCES: dict[str, Callable[[Path], AbstractContextManager[Case]]] = {
    "mail": mail,
    "mail-log": mail_log,
    "sql, SQLite": sqlite,
    "sql, PostgreSQL": postgresql,
    "mastodon-database": mastodon_database,
    "mastodon-archive": mastodon_archive,
    "mastodon-api": mastodon_api,
    "gpg": gpg,
    "neo4j": neo4j,
    "rdf": rdf,
}
