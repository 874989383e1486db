"""A host's folder: how it is made, read, and exported from."""

import subprocess
import sys

import numpy as np
import pytest

from manela.errors import AgentError, OutputError
from manela.hosts.folder.config import FILE, Config, read_config
from manela.hosts.folder.erasure import erase_nodes
from manela.hosts.folder.home import LOCK, STATUS, export, init, is_running, only_one, read_status
from manela.hosts.folder.identity import CERTIFICATE, KEY, check_key, name_of, read_certificate
from manela.hosts.folder.store import HOST, NAME, SECRET, Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.host import Saved
from manela.hosts.state.neighbourhood import Edge

CONFIG = Config("alpha", "127.0.0.1:7446", {"dimensions": 16})


def test_a_new_folder_has_all_that_a_host_needs_for_its_owner_alone(tmp_path):
    folder = tmp_path / "a" / "host"
    init(folder, CONFIG)
    assert folder.stat().st_mode & 0o077 == 0
    assert {KEY, CERTIFICATE, NAME, FILE} <= {file.name for file in folder.iterdir()}
    assert (folder / KEY).stat().st_mode & 0o077 == 0
    found = read_config(folder / FILE)
    assert (found.name, found.listen, found.parameters["dimensions"]) == ("alpha", "127.0.0.1:7446", 16)
    certificate = read_certificate(folder / CERTIFICATE)
    assert name_of(certificate) == "alpha"
    check_key(folder / KEY, certificate)
    with Store(folder) as store:
        assert (store.get(HOST), store.peers(), list(store.edges())) == ("alpha", {}, [])
        assert 0 <= int(store.get(SECRET)) < 2**63


def test_a_folder_that_holds_a_host_is_left_as_it_is(tmp_path):
    init(tmp_path, CONFIG)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(AgentError, match="already holds a host"):
        init(tmp_path, Config("beta", "127.0.0.1:1", {}))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_attempt_that_did_not_come_to_its_end_is_finished_with_the_same_secret(tmp_path):
    init(tmp_path, CONFIG)
    with Store(tmp_path) as store:
        secret = store.get(SECRET)
    (tmp_path / FILE).unlink()  # it is written last
    (tmp_path / CERTIFICATE).write_text("half of it")
    init(tmp_path, CONFIG)
    with Store(tmp_path) as store:
        assert store.get(SECRET) == secret
    check_key(tmp_path / KEY, read_certificate(tmp_path / CERTIFICATE))


def test_two_hosts_have_different_secrets(tmp_path):
    secrets = set()
    for name in ("one", "two"):
        init(tmp_path / name, CONFIG)
        with Store(tmp_path / name) as store:
            secrets.add(store.get(SECRET))
    assert len(secrets) == 2


def test_the_status_says_whether_a_daemon_runs_whatever_it_said_last(tmp_path):
    assert read_status(tmp_path) == {"running": False}
    (tmp_path / STATUS).write_text('{"round": 3, "running": true}')
    assert read_status(tmp_path) == {"round": 3, "running": False}
    with only_one(tmp_path):
        assert read_status(tmp_path) == {"round": 3, "running": True}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_a_damaged_status_is_told_by_its_file(tmp_path, content):
    (tmp_path / STATUS).write_bytes(content)
    with pytest.raises(AgentError, match="status.json: cannot be read"):
        read_status(tmp_path)


def save(folder, **options):
    vectors = np.arange(24, dtype=np.float32).reshape(3, -1, 4)
    VectorsFile(folder).save(Saved(["x", "y", "z"], vectors, 5, 9, 77, **options))
    return vectors


def test_there_is_nothing_to_export_before_something_was_learned(tmp_path):
    with pytest.raises(AgentError, match="there are no vectors yet"):
        export(tmp_path)


def test_own_vectors_are_exported_with_their_names_and_context(tmp_path):
    vectors = save(tmp_path)
    embedding = export(tmp_path)
    assert embedding.nodes.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(embedding.vectors, vectors[:, 0])
    np.testing.assert_array_equal(embedding.context, vectors[:, 1])
    assert embedding.provenance == {"method": "manela", "pairs_made": 77, "rounds_done": 5}


def test_smoothed_vectors_are_exported_in_place_of_others_with_the_nodes_that_lacked_neighbours(tmp_path):
    smoothed = np.full((3, 4), 7, np.float32)
    save(tmp_path, smoothed=smoothed, whole=np.array([True, False, True]))
    embedding = export(tmp_path)
    np.testing.assert_array_equal(embedding.vectors, smoothed)
    assert embedding.provenance["smoothed"] == 3
    assert embedding.provenance["smoothed_without_some_neighbours"] == ["y"]


def test_a_status_that_is_no_object_is_told(tmp_path):
    (tmp_path / "status.json").write_text("[]")
    with pytest.raises(AgentError, match="status.json: cannot be read: is not an object"):
        read_status(tmp_path)


@pytest.fixture
def host(tmp_path):
    """A host with three nodes and their vectors."""
    init(tmp_path, CONFIG)
    with Store(tmp_path) as store:
        store.add_edges([Edge("x", ("y", "alpha")), Edge("z", None)])
    save(tmp_path, smoothed=np.full((3, 4), 7, np.float32), whole=np.array([True, False, True]))
    return tmp_path


def test_a_removed_node_has_no_vector_left(host):
    assert erase_nodes(host, ["y"]).edges == 1
    assert VectorsFile(host).load().names == ["x", "z"]
    embedding = export(host)
    assert embedding.nodes.tolist() == ["x", "z"]
    assert embedding.vectors.shape == (2, 4)
    assert embedding.provenance["smoothed_without_some_neighbours"] == []
    for name in ("x", "z"):
        erase_nodes(host, [name])
    with pytest.raises(AgentError, match="there are no vectors yet"):
        export(host)
    with pytest.raises(AgentError, match="is not a node of this host"):
        erase_nodes(host, ["x"])


def test_the_vector_of_a_node_that_is_removed_under_a_daemon_is_exported_no_more(host):
    with only_one(host):  # as a daemon does, which saves later
        erase_nodes(host, ["y"])
        assert VectorsFile(host).load().names == ["x", "y", "z"]
        assert export(host).nodes.tolist() == ["x", "z"]


def test_no_host_is_made_where_a_restore_was_interrupted(tmp_path):
    (tmp_path / "before-restore-20260101-000000").mkdir()
    with pytest.raises(AgentError, match="a restore was interrupted there; run `manela agent restore FILE` again"):
        init(tmp_path, CONFIG)
    assert not (tmp_path / KEY).exists()


def test_a_folder_where_nothing_runs_says_so_and_is_left_as_it_is(tmp_path):
    assert not is_running(tmp_path)
    assert not is_running(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_taken_until_the_block_ends_however_it_ends(tmp_path):
    with only_one(tmp_path):
        assert is_running(tmp_path)
        assert is_running(tmp_path)  # looking changes nothing
    assert not is_running(tmp_path)
    with pytest.raises(ZeroDivisionError), only_one(tmp_path):
        raise ZeroDivisionError
    assert not is_running(tmp_path)
    assert (tmp_path / LOCK).stat().st_mode & 0o077 == 0


def test_a_second_one_is_refused_and_the_first_keeps_the_folder(tmp_path):
    with only_one(tmp_path):
        with pytest.raises(AgentError, match=f"{tmp_path}: a daemon is already running there"), only_one(tmp_path, 2):
            pass
        assert is_running(tmp_path)
    with only_one(tmp_path):
        pass


def test_two_folders_do_not_keep_each_other_out(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with only_one(tmp_path / "a"), only_one(tmp_path / "b"):
        assert is_running(tmp_path / "b")


def test_a_process_that_was_killed_leaves_the_folder_free(tmp_path):
    code = "import sys, pathlib, manela.hosts.folder.home as l\nwith l.only_one(pathlib.Path(sys.argv[1])):\n print('in', flush=True)\n input()"  # noqa: E501
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"in\n"
        assert is_running(tmp_path)
        process.kill()
        process.wait(10)
    assert not is_running(tmp_path)


def test_a_lock_that_is_a_link_or_in_no_folder_is_refused(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"), only_one(tmp_path / "nowhere"):
        pass
    (tmp_path / "precious").write_text("text")
    (tmp_path / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(AgentError, match="lock: is a symbolic link"), only_one(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "text"
