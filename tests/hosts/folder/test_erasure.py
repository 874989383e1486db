"""Nodes that are erased: from every file, for good, and at peers."""

import io
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from manela.errors import AgentError, FormatError, SourceError, TooLargeError, TooSlowError
from manela.hosts.folder.audit import read_audit, record
from manela.hosts.folder.backups import keep_backup
from manela.hosts.folder.config import Config
from manela.hosts.folder.edges import FOLDER, import_to_host
from manela.hosts.folder.erasure import (
    allow_node,
    erase_nodes,
    find_leftovers,
    find_requests,
    forget_for_peer,
    keep_receipt,
    list_requests,
    make_private,
    read_names,
    show_node,
)
from manela.hosts.folder.home import STARTS, init
from manela.hosts.folder.store import BACKUP, NAME, Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.erasure import MOST_ERASED, Receipt
from manela.hosts.state.host import Saved
from manela.hosts.state.neighbourhood import Edge
from manela.sources.edges import Edges
from manela.sources.source import Source
from manela.sources.state import ImportState

NODE = "anna.wintermute"
"""A name that stands nowhere by chance."""


class Place(Source):
    """A source that remembers names besides its edges."""

    key, adds, own_hosts = "place", False, ()

    def __init__(self, edges):
        self.edges = edges

    def read(self, state):
        state.put("open", {"q1": f"{NODE}@alpha", "q2": "bob@alpha"})
        own, other = zip(*self.edges, strict=True)
        yield Edges(own, other, np.ones(len(own)))

    def describe(self):
        return ""


EDGES = [(f"{NODE}@alpha", "bob@alpha"), ("bob@alpha", "carl@alpha"), (NODE, "x@beta"), ("carl", "x@beta")]


@pytest.fixture
def home(tmp_path):
    """A host that has run, with a peer beta, imported edges, refusals, vectors and a backup."""
    init(tmp_path / "alpha", Config("alpha", "127.0.0.1:7446", {"dimensions": 4}))
    with Store(tmp_path / "alpha") as store:
        store.add_peer("beta", "b:1", "PEM")
        store.put(STARTS, "1")
        store.audit([("beta", "not adjacent", f"x@beta and {NODE} are not adjacent by this host's list")])
        store.audit([("beta", "not adjacent", f"{'3 edges, such as ' * 20}"[:291] + NODE[:9])])
        record(store, "test", f"about {NODE}@alpha")
    import_to_host(tmp_path / "alpha", Place(EDGES))
    VectorsFile(tmp_path / "alpha").save(Saved([NODE, "bob"], np.ones((2, 1, 4), np.float32), 3, 3, 9))
    with Store(tmp_path / "alpha") as store:
        keep_backup(tmp_path / "alpha", store.digest)
    return tmp_path / "alpha"


def edges_in(home):
    with Store(home) as store:
        return {(edge.own, edge.other) for edge in store.edges()}


def find_bytes(home, text):
    """Return the files in which a text stands, as it is or in the encodings of SQLite and JSON."""
    return {path.name for path in home.rglob("*") if path.is_file() and text.encode() in path.read_bytes()}


def test_no_file_has_a_removed_name(home):
    with Store(home) as daemon:  # a second connection, as a daemon has one, keeps the log of changes
        assert {NAME, BACKUP, "vectors.npz"} <= find_bytes(home, NODE) | find_bytes(home, f"{NODE}@alpha")
        assert any(name.startswith("place") for name in find_bytes(home, NODE))
        assert erase_nodes(home, [NODE])[:2] == (1, 2)
        with Store(home) as store:
            keep_receipt(store, "beta", [NODE], Receipt("abc", 0))
            keep_backup(home, store.digest)  # as the daemon does
        assert find_bytes(home, NODE) == set()
        assert find_bytes(home, NODE[:9]) == set()
        assert (home / BACKUP).exists()
        daemon.check()


def test_no_import_brings_a_removed_node_back(home):
    erase_nodes(home, [NODE])
    done = import_to_host(home, Place(EDGES))
    assert (done.edges, done.erased) == (2, 2)
    assert "2 left out, of nodes that were erased" in str(done)
    with Store(home) as store:
        assert store.add_edges([Edge(NODE, None), Edge("bob", (NODE, "alpha")), Edge("bob", None)]) == (1, 2)
        assert store.nodes() == {"bob", "carl"}
        keep_receipt(store, "beta", [NODE], Receipt("abc", 0))
        keep_backup(home, store.digest)  # as the daemon does
    assert find_bytes(home, NODE) == set()


def test_a_node_erased_during_an_import_is_not_left_in_its_state(home):
    class Slow(Place):
        key = "slow"

        def read(self, state):
            yield from super().read(state)
            state.commit()
            with Store(home) as store, store.write() as database:  # as an erasure that found the state in use
                hasher = store.hasher()
                database.execute("INSERT INTO erased VALUES (?, ?)", (hasher.hash(NODE, "alpha"), "alpha"))
                database.execute("DELETE FROM edges WHERE own = ?", (NODE,))

    with Store(home) as store:
        store.hasher()
    import_to_host(home, Slow(EDGES))
    for path in (home / FOLDER).glob("slow*"):
        with ImportState(path, None) as state:
            assert all(NODE not in name for batch in state.read_edges() for name in (*batch.own, *batch.other))
            assert state.get("open") == {"q2": "bob@alpha"}


def test_a_node_that_is_allowed_again_is_taken_again(home):
    erase_nodes(home, [NODE])
    with Store(home) as store:
        shown = show_node(store, NODE)
        assert allow_node(store, NODE) == shown
        with pytest.raises(AgentError, match="was not erased or denied here"):
            allow_node(store, NODE)
    assert import_to_host(home, Place(EDGES)).erased == 0
    assert (NODE, ("bob", "alpha")) in edges_in(home)


def test_only_the_hash_is_in_the_audit(home):
    erase_nodes(home, [NODE])
    with Store(home) as store:
        shown, lines = show_node(store, NODE), [str(line) for line in read_audit(store, 100)]
    assert sum(shown in line for line in lines) == 4
    assert any("node removed" in line and f"{shown}: 1 nodes and 2 edges, 1 messages" in line for line in lines)


def test_a_list_is_denied_before_its_nodes_have_ever_come(home, tmp_path):
    (tmp_path / "list").write_text(f"# of today\n{NODE}\n\n  never.seen\n", encoding="utf-8-sig")
    names = read_names(tmp_path / "list")
    assert names == [NODE, "never.seen"]
    assert erase_nodes(home, names, must_exist=False) == (1, 2, 1)
    with Store(home) as store:
        assert store.add_edges([Edge("bob", ("never.seen", "alpha"))]).erased == 1
        store.check()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"a\xff", "must be text in UTF-8"), (b"a\nb\x07\n", "line 2: a name must be"), (b"x" * 257, "line 1: a name")],
)
def test_a_list_that_cannot_be_meant_is_refused(tmp_path, content, words):
    (tmp_path / "list").write_bytes(content)
    with pytest.raises(FormatError, match=words):
        read_names(tmp_path / "list")


def test_a_list_is_read_from_stdin_and_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ann\n")))
    assert read_names(Path("-")) == ["ann"]
    with (tmp_path / "large").open("wb") as file:
        file.truncate((1 << 26) + 1)  # a file with a hole takes no room
    with pytest.raises(FormatError, match="must have at most"):
        read_names(tmp_path / "large")
    with pytest.raises(FormatError, match="cannot be read"):
        read_names(tmp_path / "nowhere")


def test_what_only_the_operator_may_remove_is_named(home):
    (home / "before-restore-20260101-000000").mkdir()
    (home / "trace.jsonl").touch()
    assert [path.name for path in find_leftovers(home)] == ["before-restore-20260101-000000", "trace.jsonl"]


def test_an_import_that_runs_stops_an_erasure_before_anything_is_changed(home):
    path = next((home / FOLDER).glob("place*"))
    with ImportState(path, None), pytest.raises(SourceError, match="another import is using it"):
        erase_nodes(home, [NODE], patience=0.01)
    assert (NODE, ("bob", "alpha")) in edges_in(home)
    assert erase_nodes(home, [NODE]).nodes == 1


# peers


def test_peers_with_edges_are_asked_until_their_receipt_comes(home):
    with Store(home) as store:
        store.add_peer("gamma", "c:1", "PEM gamma")
    erase_nodes(home, [NODE, "bob"])
    with Store(home) as store:
        assert find_requests(store) == {"beta": [NODE]}
        assert [request.receipt for request in list_requests(store)] == [""]
        keep_receipt(store, "beta", [NODE], Receipt("abc", 86400))
        assert find_requests(store) == {}
        (request,) = list_requests(store)
        assert (request.peer, request.shown, request.receipt) == ("beta", show_node(store, NODE), "abc")
        assert request.answered == "1970-01-02T00:00:00Z"
        keep_receipt(store, "beta", [NODE], Receipt("def", 0))  # a late answer to an earlier call
        assert list_requests(store) == [request]


def test_what_no_peer_was_shown_no_peer_is_told(home):
    with Store(home) as store:
        store.put(STARTS, "1")
        assert make_private(store, ["carl"], True) == 1  # it was shown until now
        keep_receipt(store, "beta", ["carl"], Receipt("abc", 0))
    assert erase_nodes(home, ["carl"]).messages == 0
    with Store(home) as store, store.write() as database:
        database.execute("DELETE FROM meta WHERE name = ?", (STARTS,))
    assert erase_nodes(home, [NODE]).messages == 0  # of a host that has never run


def test_one_message_names_so_many(home):
    with Store(home) as store:
        store.add_edges(Edge(f"n{i}", ("x", "beta")) for i in range(MOST_ERASED + 5))
    erase_nodes(home, [f"n{i}" for i in range(MOST_ERASED + 5)])
    with Store(home) as store:
        (names,) = find_requests(store).values()
        assert len(names) == MOST_ERASED
        keep_receipt(store, "beta", names, Receipt("abc", 0))
        assert [len(names) for names in find_requests(store).values()] == [5]


def test_names_for_a_peer_that_is_removed_are_not_kept(home):
    erase_nodes(home, [NODE])
    with Store(home) as store:
        store.remove_peer("beta")
        assert find_requests(store) == {}
        assert len(list_requests(store)) == 1
        keep_backup(home, store.digest)
    assert find_bytes(home, NODE) == set()


def test_a_peers_node_is_forgotten_everywhere_and_does_not_come_back(home):
    with Store(home) as store:
        store.audit([("beta", "not adjacent", "wolf.x@beta and bob are not adjacent by this host's list")])
    import_to_host(home, Place([("bob", "wolf.x@beta"), ("bob", "carl")]))
    with Store(home) as store:
        receipt = forget_for_peer(home, store, "beta", ["wolf.x", "never.seen"])
        assert len(receipt.id) == 32
        again = forget_for_peer(home, store, "beta", ["wolf.x"])  # as after a receipt that was lost
        assert again.id != receipt.id
        assert "again" in next(read_audit(store, 1))["detail"]
        assert receipt.time > 0
        assert store.add_edges([Edge("bob", ("wolf.x", "beta")), Edge("bob", ("wolf.x", "gamma"))]) == (1, 1)
        assert [line["user"] for line in read_audit(store, 2)] == ["peer beta"] * 2
        assert receipt.id in list(read_audit(store, 2))[1]["detail"]
        keep_backup(home, store.digest)
        store.remove_edge(Edge("bob", ("wolf.x", "gamma")))
        store.scrub()
        keep_backup(home, store.digest)
        assert import_to_host(home, Place([("bob", "wolf.x@beta"), ("bob", "carl")])).erased == 1
        assert find_bytes(home, "wolf.x") == set()
        assert allow_node(store, "wolf.x@beta") == show_node(store, "wolf.x@beta")


def test_a_peer_has_so_many_tombstones(home):
    with Store(home) as store:
        forget_for_peer(home, store, "beta", ["a", "b"], most=3)
        forget_for_peer(home, store, "beta", ["a", "b", "c"], most=3)
        forget_for_peer(home, store, "gamma", ["a"], most=3)
        with pytest.raises(TooLargeError, match="3 nodes of a peer may be erased"):
            forget_for_peer(home, store, "beta", ["d"], most=3)


def test_a_peer_asks_again_after_an_import(home):
    path = next((home / FOLDER).glob("place*"))
    with Store(home) as store, ImportState(path, None), pytest.raises(TooSlowError, match="ask again later"):
        forget_for_peer(home, store, "beta", ["x"], patience=0.01)


# private nodes


def test_a_private_node_is_made_before_or_after_it_has_edges(home):
    with Store(home) as store:
        assert make_private(store, ["new"], True) == 0
        store.add_edges([Edge("new", ("x", "beta"))])
        assert make_private(store, ["bob", "carl"], True) == 1
        assert store.private() == {"new", "bob", "carl"}
        assert make_private(store, ["bob"], False) == 0
        assert store.private() == {"new", "carl"}
        store.check()
        with pytest.raises(AgentError, match="is not a node of this host"):
            make_private(store, ["nobody"], False)
        with pytest.raises(AgentError, match="a name must be 1 to 256"):
            make_private(store, [""], True)
    erase_nodes(home, [NODE])
    with Store(home) as store, pytest.raises(AgentError, match="was erased; allow it first"):
        make_private(store, [NODE], True)


# older stores


def test_an_older_store_is_upgraded_and_its_copy_goes_with_the_first_erasure(home):
    (home / BACKUP).unlink()
    with closing(sqlite3.connect(home / NAME)) as database:
        for table in ("erased", "erasures", "actions"):
            database.execute(f"DROP TABLE {table}")
        database.execute("CREATE TABLE n (name TEXT PRIMARY KEY) WITHOUT ROWID")
        database.execute("INSERT INTO n SELECT name FROM nodes")
        database.execute("DROP TABLE nodes")
        database.execute("ALTER TABLE n RENAME TO nodes")
        database.execute("PRAGMA user_version = 3")
        database.commit()
    with Store(home) as store:
        store.check()
        assert NODE in store.nodes()
        assert store.private() == set()
    assert (home / "store-3.db").exists()
    erase_nodes(home, [NODE])
    assert not (home / "store-3.db").exists()
    with Store(home) as store:
        keep_receipt(store, "beta", [NODE], Receipt("abc", 0))
        keep_backup(home, store.digest)  # as the daemon does
    assert find_bytes(home, NODE) == set()
