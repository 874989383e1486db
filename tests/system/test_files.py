"""Files that nobody else may read, and links that are not followed."""

import os
import stat
import subprocess
import sys

import pytest

from manela.errors import AgentError, OutputError
from manela.system.files import check_private, check_writable, make_private_folder, open_private, replace_file


def test_a_file_appears_when_the_block_ends_well(tmp_path):
    with replace_file(tmp_path / "out") as file:
        file.write(b"whole")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_permissions_are_those_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    with replace_file(tmp_path / "out"):
        pass
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "out")}
    assert len(modes) == 1


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_nothing_is_left_when_the_block_fails(tmp_path, error):
    def fail():
        with replace_file(tmp_path / "out") as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_our_error_and_keeps_the_file_before(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"before")

    def fill():
        with replace_file(path):
            raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match=r"out: cannot be written: No space left on device"):
        fill()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_could_not_be_written_is_known_before(tmp_path):
    check_writable(tmp_path / "out")
    with pytest.raises(OutputError, match="no such folder"):
        check_writable(tmp_path / "none" / "out")
    with pytest.raises(OutputError, match="it is a folder"):
        check_writable(tmp_path)
    with pytest.raises(OutputError, match="cannot be written"):
        check_writable(type(tmp_path)("/proc/out.npz"))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_is_being_written_is_not(tmp_path):
    code = f"""
import os, sys
from pathlib import Path
from manela.system.files import replace_file
with replace_file(Path({str(tmp_path)!r}) / "out.npz") as file:
    file.write(b"x" * 1000)
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", code]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        assert writer.stdout.readline() == b"writing\n"
    killed, alive = writers
    killed.kill()
    killed.wait()
    assert len(list(tmp_path.glob(".manela.*.part"))) == 2
    for path in tmp_path.glob(".manela.*.part"):
        os.utime(path, (0, 0))  # what is younger than a minute is left alone
    with replace_file(tmp_path / "other.npz") as file:
        file.write(b"y")
        assert len(list(tmp_path.glob(".manela.*.part"))) == 2  # this one, and that of the one who lives
    alive.communicate(b"")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["other.npz", "out.npz"]
    for writer in writers:
        writer.stdin.close()
        writer.stdout.close()


def test_a_folder_that_others_could_look_into_is_closed(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    make_private_folder(tmp_path / "open")
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o700


def test_what_others_can_read_is_refused(tmp_path):
    file = tmp_path / "key.pem"
    file.write_text("x")
    file.chmod(0o640)
    with pytest.raises(AgentError, match=r"mode 0640.*chmod 600"):
        check_private(file)
    file.chmod(0o600)
    check_private(file)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(AgentError, match="symbolic link"):
        check_private(tmp_path / "link")


def test_a_link_is_not_followed_when_writing(tmp_path):
    (tmp_path / "target").write_text("mine")
    (tmp_path / "trace.jsonl").symlink_to(tmp_path / "target")
    with pytest.raises(OutputError):
        open_private(tmp_path / "trace.jsonl", "a")
    assert (tmp_path / "target").read_text() == "mine"
