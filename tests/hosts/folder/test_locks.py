"""One daemon in a folder."""

import subprocess
import sys

import pytest

from manela.errors import AgentError, OutputError
from manela.hosts.folder import home as locks
from manela.hosts.folder.home import LOCK, is_running, only_one


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


def test_a_second_one_is_refused_and_the_first_keeps_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_ATTEMPTS", 2)
    with only_one(tmp_path):
        with pytest.raises(AgentError, match=f"{tmp_path}: a daemon is already running there"), only_one(tmp_path):
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
