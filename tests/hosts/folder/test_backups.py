"""Backups: whole, checked before they are used, and of the owner alone."""

import errno
import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from manela.errors import AgentError, OutputError
from manela.hosts.folder.backups import keep_backup, restore_backup, write_backup
from manela.hosts.folder.config import Config
from manela.hosts.folder.edges import FOLDER, import_to_host
from manela.hosts.folder.erasure import allow_node, erase_nodes
from manela.hosts.folder.home import init, only_one
from manela.hosts.folder.store import BACKUP, NAME, Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.host import Saved
from manela.hosts.state.neighbourhood import Edge
from manela.sources.edges import Edges
from manela.sources.source import Source


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "alpha"
    init(folder, Config("alpha", "127.0.0.1:7446", {"dimensions": 4}))
    with Store(folder) as store:
        store.add_edges([Edge("x", ("y", "beta"), 2.0), Edge("alone", None)])
        store.add_peer("beta", "b:1", "PEM", 5)
    VectorsFile(folder).save(Saved(["x"], np.ones((1, 1, 4), np.float32), 3, 3, 9))
    return folder


def contents(folder):
    with Store(folder) as store:
        store.check()
        edges, peers = list(store.edges()), store.peers()
    files = ("agent.toml", "key.pem", "certificate.pem")
    return edges, peers, [(folder / name).read_bytes() for name in files], VectorsFile(folder).load().round


def test_a_host_goes_on_elsewhere_from_its_backup(home, tmp_path):
    before = contents(home)
    write_backup(home, tmp_path / "b.tar")
    assert (tmp_path / "b.tar").stat().st_mode & 0o777 == 0o600
    restore_backup(tmp_path / "b.tar", tmp_path / "elsewhere")
    assert contents(tmp_path / "elsewhere") == before
    for file in (tmp_path / "elsewhere").iterdir():
        assert file.stat().st_mode & 0o077 == 0


def test_a_backup_of_an_open_store_leaves_its_locks_alone(home, tmp_path, manela):
    with Store(home) as store:
        write_backup(home, tmp_path / "b.tar")
        store.put("mine", "1")
        # a process that believes to be the last one takes the log of changes with it
        assert manela("agent", "edges", "add", "x", "z@beta", "--home", home).returncode == 0
        store.put("mine", "2")
        assert manela("agent", "edges", "add", "x", "w@beta", "--home", home).returncode == 0
        store.check()
        assert {edge.other[0] for edge in store.edges() if edge.other} == {"y", "z", "w"}
    with Store(home) as store:
        assert store.get("mine") == "2"


def test_a_damaged_store_names_the_backup_that_puts_it_right(home):
    before = contents(home)
    with Store(home) as store:
        keep_backup(home, store.digest)
        first = (home / BACKUP).stat().st_mtime_ns
        keep_backup(home, store.digest)
        assert (home / BACKUP).stat().st_mtime_ns == first  # of the same store
    (home / NAME).write_bytes(b"rubbish" * 1000)
    with pytest.raises(AgentError, match=r"manela agent restore .*backup\.tar --home"):
        Store(home)
    restore_backup(home / BACKUP, home)
    assert contents(home) == before
    assert [kept.name[:14] for kept in home.iterdir() if kept.is_dir()] == ["before-restore"]


@pytest.mark.parametrize("name", ["agent.toml", "next-certificate.pem"])
def test_the_automatic_backup_is_renewed_with_each_file_that_it_holds(home, name):
    with Store(home) as store:
        keep_backup(home, store.digest)
        with (home / name).open("a") as file:
            file.write("# changed\n")
        keep_backup(home, store.digest)
    changed = (home / name).read_bytes()
    restore_backup(home / BACKUP, home)
    assert (home / name).read_bytes() == changed


def test_the_automatic_backup_has_the_key_in_use_and_never_half_a_renewal(home, manela_here):
    with Store(home) as store:
        keep_backup(home, store.digest)
        assert manela_here("agent", "renew", "--home", home).returncode == 0
        (home / "next-key.pem").replace(home / "key.pem")  # where `renew --use` was interrupted
        before = (home / BACKUP).read_bytes()
        with pytest.raises(AgentError):
            keep_backup(home, store.digest)
        assert (home / BACKUP).read_bytes() == before
        assert manela_here("agent", "renew", "--use", "--home", home).returncode == 0
        keep_backup(home, store.digest)
    renewed = contents(home)
    restore_backup(home / BACKUP, home)
    assert contents(home) == renewed


def test_what_is_no_good_backup_changes_nothing(home, tmp_path):
    write_backup(home, tmp_path / "b.tar")
    whole = (tmp_path / "b.tar").read_bytes()
    before = contents(home)
    place = whole.index(b"SQLite format 3") + 5000
    flipped = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    for wrong in (whole[: len(whole) // 2], b"", b"words" * 1000, flipped):
        (tmp_path / "wrong.tar").write_bytes(wrong)
        with pytest.raises(AgentError):
            restore_backup(tmp_path / "wrong.tar", home)
        assert contents(home) == before


def test_a_backup_cannot_write_elsewhere(home, tmp_path):
    write_backup(home, tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as archive, tarfile.open(tmp_path / "evil.tar", "w") as evil:
        for entry in archive:
            content = archive.extractfile(entry)
            if entry.name == "manifest.json":
                data = content.read().replace(b"agent.toml", b"../outside")
                entry.size = len(data)
                content = io.BytesIO(data)
            evil.addfile(entry, content)
    with pytest.raises(AgentError, match="another version"):
        restore_backup(tmp_path / "evil.tar", tmp_path / "new")
    assert not (tmp_path / "outside").exists()


def test_a_running_host_is_not_restored(home, tmp_path):
    write_backup(home, tmp_path / "b.tar")
    with only_one(home), pytest.raises(AgentError, match="stop it first"):
        restore_backup(tmp_path / "b.tar", Path(home))


def test_a_backup_of_another_host_is_refused(home, tmp_path):
    init(tmp_path / "beta", Config("beta", "127.0.0.1:1", {}))
    before = {file.name: file.read_bytes() for file in (tmp_path / "beta").iterdir()}
    write_backup(home, tmp_path / "b.tar")
    with pytest.raises(AgentError, match="holds the host 'beta', and .* is a backup of 'alpha'; choose another home"):
        restore_backup(tmp_path / "b.tar", tmp_path / "beta")
    assert {file.name: file.read_bytes() for file in (tmp_path / "beta").iterdir()} == before


def test_a_host_whose_configuration_is_damaged_is_restored(home, tmp_path):
    write_backup(home, tmp_path / "b.tar")
    (home / "agent.toml").write_text("name = ")
    restore_backup(tmp_path / "b.tar", home)
    contents(home)


def test_a_full_target_is_what_cannot_be_written(home, tmp_path, monkeypatch):
    def fill_up(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tarfile.TarFile, "addfile", fill_up)
    with pytest.raises(OutputError, match="b.tar: cannot be written: No space left on device"):
        write_backup(home, tmp_path / "b.tar")
    assert not (tmp_path / "b.tar").exists()


class Place(Source):
    """A source whose edges are as a test needs them."""

    key, adds, own_hosts = "place", False, ()

    def __init__(self, edges):
        self.edges = edges

    def read(self, state):
        own, other = zip(*self.edges, strict=True)
        yield Edges(own, other, np.ones(len(own)))

    def describe(self):
        return ""


def pairs_in(home):
    with Store(home) as store:
        return {(edge.own, edge.other[0]) for edge in store.edges() if edge.other is not None}


def rewrite(path, change):
    """Write a backup again with another manifest, and without the entries that are not in it."""
    with tarfile.open(path) as archive:
        contents = {entry.name: archive.extractfile(entry).read() for entry in archive}
    manifest = json.loads(contents.pop("manifest.json"))
    change(manifest, contents)
    contents["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(path, "w") as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize("automatic", [False, True])
def test_imports_go_on_after_a_restore(home, tmp_path, automatic):
    import_to_host(home, Place([("a", "b"), ("a", "c")]))
    with Store(home) as store:
        keep_backup(home, store.digest)
    write_backup(home, tmp_path / "b.tar")
    restore_backup(home / BACKUP if automatic else tmp_path / "b.tar", tmp_path / "elsewhere")
    done = import_to_host(tmp_path / "elsewhere", Place([("a", "b"), ("a", "d")]))
    assert (done.edges, done.removed) == (2, 1)
    assert pairs_in(tmp_path / "elsewhere") == {("x", "y"), ("a", "b"), ("a", "d")}
    for file in (tmp_path / "elsewhere" / FOLDER).iterdir():
        assert file.stat().st_mode & 0o077 == 0


def test_the_automatic_backup_is_renewed_with_the_states_of_imports(home):
    import_to_host(home, Place([("a", "b"), ("a", "unknown@gamma")]))
    with Store(home) as store:
        keep_backup(home, store.digest)
        first = (home / BACKUP).stat().st_mtime_ns
        keep_backup(home, store.digest)
        assert (home / BACKUP).stat().st_mtime_ns == first
    import_to_host(home, Place([("a", "b"), ("a", "unknown@gamma"), ("b", "another@gamma")]))
    with Store(home) as store:
        keep_backup(home, store.digest)
    restore_backup(home / BACKUP, home)
    assert next(home.glob("before-restore-*"), home).joinpath(FOLDER).exists()
    assert import_to_host(home, Place([("a", "b"), ("b", "c")])).edges == 2


def test_a_state_is_copied_while_an_import_writes_to_it(home, tmp_path):
    from manela.sources.state import ImportState

    import_to_host(home, Place([("a", "b")]))
    with ImportState(next((home / FOLDER).iterdir()), None) as state:
        state.add(Edges(["not"], ["committed"]), False)
        write_backup(home, tmp_path / "b.tar")
    restore_backup(tmp_path / "b.tar", tmp_path / "elsewhere")
    with ImportState(next((tmp_path / "elsewhere" / FOLDER).iterdir()), None) as state:
        assert [(batch.own, batch.other) for batch in state.read_edges()] == [(("a",), ("b",))]


def test_a_backup_of_an_older_version_leaves_the_states_of_imports_alone(home, tmp_path):
    import_to_host(home, Place([("a", "b"), ("a", "c")]))
    write_backup(home, tmp_path / "b.tar")

    def make_older(manifest, contents):
        for name in manifest.pop("imports"):
            del contents[name], manifest["files"][name]

    rewrite(tmp_path / "b.tar", make_older)
    restore_backup(tmp_path / "b.tar", home)
    assert import_to_host(home, Place([("a", "b")])).removed == 1
    restore_backup(tmp_path / "b.tar", tmp_path / "elsewhere")
    assert ("a", "c") in pairs_in(tmp_path / "elsewhere")


@pytest.mark.parametrize("name", ["imports/../../escape.db", "imports/.hidden.db", "other/a.db", "imports/a.txt"])
def test_a_name_that_no_state_has_is_refused(home, tmp_path, name):
    write_backup(home, tmp_path / "b.tar")
    rewrite(tmp_path / "b.tar", lambda manifest, contents: manifest["files"].update({name: "0"}))
    with pytest.raises(AgentError, match="another version of manela"):
        restore_backup(tmp_path / "b.tar", tmp_path / "elsewhere")


def test_more_states_than_there_may_be_are_refused(home, tmp_path):
    write_backup(home, tmp_path / "b.tar")
    (home / FOLDER).mkdir()
    names = [f"{FOLDER}/{number}.db" for number in range(1001)]
    for name in names:
        (home / name).touch()
    with pytest.raises(AgentError, match="must have at most 1,000 states of imports, got 1,001"):
        write_backup(home, tmp_path / "c.tar")
    rewrite(tmp_path / "b.tar", lambda manifest, contents: manifest["files"].update(dict.fromkeys(names, "0")))
    with pytest.raises(AgentError, match="another version of manela"):
        restore_backup(tmp_path / "b.tar", tmp_path / "elsewhere")


@pytest.mark.parametrize("has_key", [False, True])
def test_a_restore_does_not_bring_an_erased_node_back(home, tmp_path, has_key):
    import_to_host(home, Place([("x", "b"), ("x", "wolf@gamma")]))
    with Store(home) as store:
        if has_key:
            store.hasher()
        store.add_peer("gamma", "c:1", "PEM gamma")
        store.audit([("gamma", "not adjacent", "wolf@gamma and x are not adjacent by this host's list")])
    write_backup(home, tmp_path / "b.tar")
    erase_nodes(home, ["x"])
    restore_backup(tmp_path / "b.tar", home)
    with Store(home) as store:
        store.check()
        assert "x" not in store.nodes()
        assert " x " not in store.audited(1)[0][3]
        assert VectorsFile(home).load() is None  # x was the only node with a vector
        assert allow_node(store, "x").startswith("#")
    assert not any("wolf@gamma" in str(path.read_bytes()) for path in (home / FOLDER).iterdir())


def test_tombstones_of_another_key_are_told_in_the_audit(home, tmp_path):
    from manela.hosts.folder.audit import read_audit

    with Store(home) as store:
        other = store.hasher().show("x@alpha")
    write_backup(home, tmp_path / "b.tar")
    with Store(home) as store, store.write() as database:
        database.execute("DELETE FROM meta WHERE name = 'hash key'")
    erase_nodes(home, ["x"])
    restore_backup(tmp_path / "b.tar", home)
    with Store(home) as store:
        assert store.hasher().show("x@alpha") == other
        assert next(read_audit(store, 1))["action"] == "tombstones lost"
