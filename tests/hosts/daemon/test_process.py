"""How the process of a daemon is started, and how it ends."""

import os
import subprocess
import sys

import pytest

from manela.hosts.daemon.process import make_command
from manela.hosts.folder.config import Config
from manela.hosts.folder.home import init, only_one


def test_a_command_names_the_folder_and_only_what_is_asked_for(tmp_path):
    start = [sys.executable, "-P", "-m", "manela.hosts.daemon.process", str(tmp_path)]
    assert make_command(tmp_path)[0] == start
    assert make_command(tmp_path, trace=True)[0] == [*start, "--trace"]
    assert make_command(tmp_path, while_stdin=True)[0] == [*start, "--while-stdin"]
    assert make_command(tmp_path, trace=True, while_stdin=True)[0] == [*start, "--trace", "--while-stdin"]


def test_libraries_of_linear_algebra_get_one_thread_where_the_user_has_not_said_otherwise(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("SOMETHING", "else")
    _, environment = make_command(tmp_path)
    assert (environment["OMP_NUM_THREADS"], environment["OPENBLAS_NUM_THREADS"]) == ("7", "1")
    assert environment["SOMETHING"] == "else"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def run_daemon(folder):
    command, environment = make_command(folder, while_stdin=True)
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.parametrize("trouble", ["no host", "a daemon runs"])
def test_trouble_is_one_line_and_status_2(tmp_path, trouble):
    folder = tmp_path / "alpha"
    if trouble == "no host":
        done = run_daemon(folder)
        words = f"{folder}: does not hold a host"
    else:
        init(folder, Config("alpha", "127.0.0.1:0", {}))
        with only_one(folder):
            done = run_daemon(folder)
        words = f"{folder}: a daemon is already running there"
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {words}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["agent", "status"], ["agent", "run"], ["federate", "sbm", "-o", "x.npz"]])
def test_without_the_extra_the_install_command_is_named(tmp_path, arguments):
    code = (
        "import sys\n"
        "sys.modules.update({'google': None, 'google.protobuf': None})\n"
        "from manela.cli.main import run\n"
        "from manela.hosts.daemon import process\n"
        "process.exec_daemon = lambda home, **_: __import__('manela.hosts.daemon.daemon')\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == "error: a host needs protobuf, which is not installed: pip install 'manela[agents]'\n"


def test_what_lies_where_it_is_started_is_not_imported(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    command, environment = make_command(tmp_path / "host")
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 2
    assert "host: does not hold a host" in done.stderr
