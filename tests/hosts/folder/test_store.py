"""What a host keeps."""

import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest

from manela.errors import AgentError
from manela.hosts.folder.store import BACKUP, HOST, NAME, SECRET, Store
from manela.hosts.state.neighbourhood import Edge


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path, create="alpha") as found:
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
    with pytest.raises(AgentError, match="this certificate already belongs to beta"):
        store.add_peer("gamma", "c:1", "PEM")
    assert list(store.peers()) == ["beta"]
    store.add_peer("beta", "b:1", "NEW")
    store.remove_certificate("beta", "PEM")
    assert store.peers()["beta"][1] == ("NEW",)
    store.remove_peer("beta")
    with pytest.raises(AgentError, match="is not a peer"):
        store.remove_peer("beta")


def test_an_edge_that_goes_leaves_its_nodes(store):
    store.add_edges([Edge("x", ("y", "alpha")), Edge("x", ("p", "beta"))])
    assert store.remove_edge(Edge("y", ("x", "alpha"))) == 1
    assert set(store.edges()) == {Edge("x", ("p", "beta")), Edge("y", None)}
    assert store.remove_edge(Edge("x", ("p", "beta"))) == 1
    assert set(store.edges()) == {Edge("x", None), Edge("y", None)}


def test_all_edges_of_a_node_can_go_and_every_node_stays_until_it_is_removed_by_name(store):
    store.add_edges([Edge("a", ("b", "alpha")), Edge("c", ("a", "alpha")), Edge("a", ("p", "beta"))])
    assert store.remove_edge(Edge("a", None)) == 3
    assert store.remove_edge(Edge("a", None)) == 0
    assert set(store.edges()) == {Edge("a", None), Edge("b", None), Edge("c", None)}
    store.add_edges([Edge("a", ("b", "alpha"))])
    assert store.remove_node("a") == 1
    assert set(store.edges()) == {Edge("b", None), Edge("c", None)}
    with pytest.raises(AgentError, match="is not a node of this host"):
        store.remove_node("a")


def test_a_peer_is_removed_with_all_of_it_but_the_evidence(store):
    store.add_peer("beta", "b:1", "PEM", 7)
    store.add_edges([Edge("x", ("p", "beta")), Edge("x", ("q", "gamma"))])
    store.audit([("beta", "flood", "1"), ("gamma", "flood", "1")])
    assert store.remove_peer("beta") == 1
    assert set(store.edges()) == {Edge("x", ("q", "gamma"))}
    assert [peer for _, peer, *_ in store.audited()] == ["gamma", "beta"]  # what was refused stays
    assert (store.peers(), store.sizes()) == ({}, {})
    store.add_peer("gamma", "c:1", "PEM")  # the certificate is free again


def test_one_peer_cannot_push_out_what_others_did(store):
    store.audit([("honest", "too slow", str(i)) for i in range(3)])
    for i in range(50):
        store.audit([("flood", "malformed", str(i))], most_of_one=5)
    found = [(peer, detail) for _, peer, _, detail in store.audited()]
    assert found[:5] == [("flood", str(i)) for i in range(49, 44, -1)]
    assert found[5:] == [("honest", "2"), ("honest", "1"), ("honest", "0")]


def test_the_audit_log_keeps_the_latest(store):
    for i in range(6):
        store.audit([("beta", "flood", str(i))], most=3)
    assert [detail for *_, detail in store.audited()] == ["5", "4", "3"]


def test_another_version_or_no_store_is_refused(tmp_path, store):
    with pytest.raises(AgentError, match="manela agent init"):
        Store(tmp_path / "nowhere")
    database = sqlite3.connect(store.file)
    database.execute("PRAGMA user_version = 9")
    database.close()
    with pytest.raises(AgentError, match="has version 9, but this program reads versions up to 4.*restore"):
        Store(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "store.db").write_bytes(b"no database at all, and long enough to be looked at" * 20)
    with pytest.raises(AgentError, match="cannot be used"):
        Store(tmp_path / "other")


def fill(store):
    store.put(SECRET, "12345")
    for i in range(40):
        store.add_peer(f"peer{i}", f"host{i}.example.org:7446", f"PEM {i} " + "x" * 300, i)
    store.add_edges([Edge(f"node{i % 97}", (f"other{i}", f"peer{i % 40}"), 1.0 + i) for i in range(600)])
    store.add_edges([Edge("alone", None), Edge("node1", ("node2", "alpha"))])


def test_the_digest_goes_with_every_change(tmp_path, store):
    fill(store)
    store.check()
    seen = {store.digest}
    for change in (
        lambda: store.add_edges([Edge("node1", ("other1", "peer1"), 9.0)]),
        lambda: store.remove_edge(Edge("node2", None)),
        lambda: store.remove_node("alone"),
        lambda: store.add_peer("peer1", "elsewhere:1", "PEM new"),
        lambda: store.remove_certificate("peer1", "PEM new"),
        lambda: store.remove_peer("peer3"),
    ):
        change()
        store.check()
        assert store.digest not in seen
        seen.add(store.digest)
    before = store.digest
    store.put("starts", "7")
    store.audit([("peer1", "flood", "x")])
    assert store.digest == before
    with pytest.raises(AgentError, match="a host has one name"):
        store.add_peer("peer5", "x:1", store.peers()["peer4"][1][0])
    assert store.digest == before
    with Store(tmp_path) as again:
        again.check()
        assert again.get(HOST) == "alpha"


def read_all(folder):
    with Store(folder) as store:
        store.check()
        return list(store.edges()), store.peers(), store.sizes(), store.get(SECRET), store.get(HOST)


def test_no_flipped_bit_changes_edges_or_peers_without_a_word(tmp_path, store):
    fill(store)
    store.close()
    whole = (tmp_path / NAME).read_bytes()
    for left in (tmp_path / f"{NAME}-wal", tmp_path / f"{NAME}-shm"):
        left.unlink(missing_ok=True)
    true = read_all(tmp_path)
    random = np.random.default_rng(0)
    told = 0
    for bit in random.integers(0, 8 * len(whole), 250).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        (tmp_path / NAME).write_bytes(bytes(damaged))
        try:
            found = read_all(tmp_path)
        except AgentError as error:
            assert "manela agent restore" in str(error) or "must be of version" in str(error)
            told += 1
        else:
            assert found == true
        for left in (tmp_path / f"{NAME}-wal", tmp_path / f"{NAME}-shm"):
            left.unlink(missing_ok=True)
    assert told > 50


def test_what_another_program_changed_is_told(tmp_path, store):
    fill(store)
    database = sqlite3.connect(store.file)
    database.execute("UPDATE edges SET weight = weight + 1 WHERE own = 'node5'")
    database.commit()
    database.close()
    with Store(tmp_path) as again, pytest.raises(AgentError, match="changed by another program"):
        again.check()


def test_files_are_the_owners_alone(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    with Store(folder, create="alpha") as store:
        fill(store)
        for file in folder.iterdir():
            assert file.stat().st_mode & 0o077 == 0, file
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / NAME).symlink_to(folder / NAME)
    with pytest.raises(AgentError, match="symbolic link"):
        Store(tmp_path / "linked")


def test_the_size_that_an_operator_wrote_down_stays_until_another_is_given(store):
    store.add_peer("beta", "b:1", "PEM 1")
    assert store.sizes() == {}
    store.add_peer("beta", "b:1", "PEM 1", nodes=50)
    store.add_peer("beta", "b:2", "PEM 2")
    assert store.sizes() == {"beta": 50}


def test_threads_that_write_at_once_do_not_end_each_others_transactions(store):
    failures = []

    def write(number):
        try:
            for i in range(60):
                store.audit([(f"peer{number}", "flood", str(i))])
                store.put(f"fact{number}", str(i))
                store.add_edges([Edge(f"n{number}", (f"m{i}", "beta"))])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store.check()
    assert len(list(store.edges())) == 240
    assert [store.get(f"fact{number}") for number in range(4)] == ["59"] * 4


def test_a_flood_of_one_leaves_the_lines_of_others_however_long_it_lasts(store):
    store.audit([("honest", "too slow", str(i)) for i in range(10)])
    for i in range(300):
        store.audit([("evil", "malformed", str(i))], most=50, most_of_one=20)
    assert sum(peer == "honest" for _, peer, *_ in store.audited(1000)) == 10


def test_a_store_that_was_copied_or_restored_lets_others_read_while_one_writes(tmp_path, store):
    fill(store)
    (tmp_path / "copy").mkdir()
    store.copy_to(tmp_path / "copy" / NAME)
    with Store(tmp_path / "copy") as copy, copy.write(), Store(tmp_path / "copy") as reader:
        assert len(reader.peers()) == 40


@pytest.mark.parametrize(
    ("version", "words"),
    [(0, "it is empty or not a store"), (1, "tables of another"), (2, "tables of another"), (3, "tables of another")],
)
def test_a_version_that_does_not_fit_the_tables_is_damage_and_changes_nothing(tmp_path, store, version, words):
    store.add_edges([Edge("a", ("b", "alpha"))])
    store.close()
    (tmp_path / "agent.toml").write_text('name = "alpha"\nlisten = "127.0.0.1:1"\n')
    with closing(sqlite3.connect(store.file)) as database:
        database.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(AgentError, match=f"is damaged: .*{words}.*restore"):
        Store(tmp_path)
    assert not (tmp_path / f"store-{version}.db").exists()


def test_an_empty_or_missing_store_names_the_backup(tmp_path, store):
    store.close()
    (tmp_path / "agent.toml").write_text('name = "alpha"\nlisten = "127.0.0.1:1"\n')
    (tmp_path / BACKUP).touch()
    for file in tmp_path.glob("store.db*"):
        file.unlink()
    with pytest.raises(AgentError, match=f"is missing; restore the last good one with .*{BACKUP}"):
        Store(tmp_path)
    store.file.touch()
    with pytest.raises(AgentError, match=f"is damaged: .*restore the last good one with .*{BACKUP}"):
        Store(tmp_path)


def test_address_and_size_of_a_known_peer_are_changed(store):
    store.add_peer("beta", "b:1", "PEM", 5)
    store.change_peer("beta", "c:2", None)
    assert (store.peers()["beta"], store.sizes()) == (("c:2", ("PEM",)), {"beta": 5})
    store.change_peer("beta", None, 7)
    assert (store.peers()["beta"], store.sizes()) == (("c:2", ("PEM",)), {"beta": 7})
    store.check()
    with pytest.raises(AgentError, match="gamma: is not a peer"):
        store.change_peer("gamma", "c:2", None)
