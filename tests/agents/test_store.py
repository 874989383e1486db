"""What a host keeps."""

import sqlite3

import numpy as np
import pytest

from manela.agents.host import Saved
from manela.agents.neighbourhood import Edge
from manela.agents.store import Store, parse_edge, read_edges, read_numbers
from manela.errors import AgentError, FormatError


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path, create=True) as found:
        yield found


def edges_of(store):
    return sorted(store.edges(), key=repr)


def test_facts_peers_and_edges_last(tmp_path, store):
    store.put("a", "1")
    store.put("a", "2")
    store.add_peer("beta", "b:1", "PEM 1")
    store.add_peer("beta", "b:2", "PEM 2")
    store.add_edges([Edge("x", ("y", "beta"), 2.0), Edge("x", ("z", "alpha")), Edge("alone", None)])
    store.add_edges([Edge("x", ("y", "beta"), 3.0)])
    with Store(tmp_path) as again:
        assert again.get("a") == "2"
        assert again.get("b") is None
        assert again.peers() == {"beta": ("b:2", ("PEM 1", "PEM 2"))}
        assert set(again.edges()) == {Edge("x", ("y", "beta"), 3.0), Edge("x", ("z", "alpha")), Edge("alone", None)}


def test_writing_by_another_is_seen(tmp_path, store):
    before = store.changes
    assert store.changes == before
    with Store(tmp_path) as other:
        other.put("a", "1")
    assert store.changes != before


def test_a_certificate_has_one_name(store):
    store.add_peer("beta", "b:1", "PEM")
    with pytest.raises(AgentError, match="this certificate is that of beta"):
        store.add_peer("gamma", "c:1", "PEM")
    assert list(store.peers()) == ["beta"]
    store.add_peer("beta", "b:1", "NEW")
    store.remove_peer("beta", "PEM")
    assert store.peers()["beta"][1] == ("NEW",)
    store.remove_peer("beta")
    with pytest.raises(AgentError, match="no such peer"):
        store.remove_peer("beta")


def test_an_edge_that_goes_leaves_its_nodes(store):
    store.add_edges([Edge("x", ("y", "alpha")), Edge("x", ("p", "beta"))])
    assert store.remove_edge(Edge("y", ("x", "alpha")), "alpha") == 1
    assert set(store.edges()) == {Edge("x", ("p", "beta")), Edge("y", None)}
    assert store.remove_edge(Edge("x", ("p", "beta")), "alpha") == 1
    assert set(store.edges()) == {Edge("x", None), Edge("y", None)}
    assert store.remove_edge(Edge("x", None), "alpha") == 1
    assert store.remove_edge(Edge("x", None), "alpha") == 0
    assert set(store.edges()) == {Edge("y", None)}


def test_the_audit_log_keeps_the_latest(store, monkeypatch):
    monkeypatch.setattr("manela.agents.store._MOST_AUDITED", 3)
    for i in range(6):
        store.audit([("beta", "flood", str(i))])
    assert [detail for *_, detail in store.audited()] == ["5", "4", "3"]


def test_vectors_come_back_and_damage_is_told(store):
    assert store.load() is None
    vectors = np.random.default_rng(0).normal(size=(2, 1, 4)).astype(np.float32)
    store.save(Saved(["x", "ÿ y"], vectors, 3, 7, 99))
    found = store.load()
    assert (found.names, found.round, found.version, found.pairs) == (["x", "ÿ y"], 3, 7, 99)
    np.testing.assert_array_equal(found.vectors, vectors)
    content = store.vectors_file.read_bytes()
    for wrong in (content[:-100], content[:200], b"", content.replace("ÿ".encode(), b"__")):
        store.vectors_file.write_bytes(wrong)
        with pytest.raises(AgentError):
            store.load()


def test_another_version_or_no_store_is_refused(tmp_path, store):
    with pytest.raises(AgentError, match="manela agent init"):
        Store(tmp_path / "nowhere")
    database = sqlite3.connect(store.file)
    database.execute("PRAGMA user_version = 9")
    database.close()
    with pytest.raises(AgentError, match="must be of version 2, got 9"):
        Store(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "store.db").write_bytes(b"no database at all, and long enough to be looked at" * 20)
    with pytest.raises(AgentError, match="cannot be used"):
        Store(tmp_path / "other")


def test_edges_are_read_from_a_file(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text(
        '# comment\nann,bob\nann, cem@beta , 2.5\n\n"o, brien",dora@example@beta\nalone\n', encoding="utf-8"
    )
    assert read_edges(file, "alpha") == [
        Edge("ann", ("bob", "alpha")), Edge("ann", ("cem", "beta"), 2.5),
        Edge("o, brien", ("dora@example", "beta")), Edge("alone", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "got 0 fields"),
        (["a", "b", "1", "2"], "got 4 fields"),
        (["", "b"], "a name must be"),
        (["a\x07", "b"], "a name must be"),
        (["x" * 300, "b"], "a name must be"),
        (["a", "b", "heavy"], "a weight must be a number"),
        (["a", "b", "0"], "a weight must be finite and above 0"),
        (["a", "b", "nan"], "a weight must be finite and above 0"),
    ],
)
def test_wrong_edges_are_refused(fields, words):
    with pytest.raises(FormatError, match=words):
        parse_edge(fields, "alpha", "line 1")
    with pytest.raises(AgentError, match="a host's name"):
        parse_edge(["a", "b@Not A Host"], "alpha", "line 1")


def test_numbers_of_a_lock_step_run(tmp_path):
    file = tmp_path / "numbers.csv"
    file.write_text("x@alpha,0\nb,c@beta,7\n", encoding="utf-8")
    assert read_numbers(file) == {("x", "alpha"): 0, ("b,c", "beta"): 7}
    file.write_text("x@alpha\n", encoding="utf-8")
    with pytest.raises(AgentError, match="name@host,number"):
        read_numbers(file)


def test_smoothed_vectors_are_kept_beside_those_to_go_on_from(store):
    vectors = np.ones((2, 1, 4), np.float32)
    saved = Saved(["x", "y"], vectors, 3, 7, 99, 2, vectors[:, 0] * 2, np.array([True, False]))
    store.save(saved)
    loaded = store.load()
    assert (loaded.round, loaded.falls_at) == (3, 2)
    np.testing.assert_array_equal(loaded.vectors, vectors)
    np.testing.assert_array_equal(loaded.smoothed, saved.smoothed)
    assert loaded.whole.tolist() == [True, False]


def test_the_size_that_an_operator_wrote_down_stays_until_another_is_given(store):
    store.add_peer("beta", "b:1", "PEM 1")
    assert store.sizes() == {}
    store.add_peer("beta", "b:1", "PEM 1", nodes=50)
    store.add_peer("beta", "b:2", "PEM 2")
    assert store.sizes() == {"beta": 50}
