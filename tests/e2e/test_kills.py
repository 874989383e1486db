"""Real processes, killed for real."""

import os
import pty
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN = ("embed", "sbm", "--dimensions", "24", "--checkpoint", "run", "--checkpoint-every", "0")
LENGTHS = {
    "messages": ("--pairs", "10000000", "--rounds", "100"),
    "walks": ("--paper", "--pairs", "6000000", "--rounds", "60"),
}
"""Of runs of a few seconds in either edition."""
DEADLINE = 600
"""Seconds that a process may take at most: it may have to compile its kernels again, on a machine that is busy."""


def start(folder, *arguments, **options):
    command = [sys.executable, "-m", "manela", *arguments]
    # a shell that runs tests in the background has them ignore Ctrl-C, which processes inherit
    options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.fixture
def endless(tmp_path):
    """A function that starts a run that never ends by itself, nor outlives the test."""
    (tmp_path / "star.txt").write_text("hub a\nhub b\n")
    started = []

    def start_endless(*arguments):
        # a short run compiles what the other needs, so that this is in its round once it has worked for some seconds
        edition = [word for word in arguments if word == "--paper"]
        short = start(tmp_path, "embed", "star.txt", "-o", "short.npz", "--pairs", "600", "--rounds", "3", *edition)
        _, errors = short.communicate(timeout=DEADLINE)
        assert short.returncode == 0, errors
        (tmp_path / "short.npz").unlink()
        started.append(start(tmp_path, "embed", "star.txt", "-o", "out.npz", "--pairs", str(10**15), "--rounds", "300",
                             "--jobs", "1", *arguments))  # fmt: skip
        return started[0]

    yield start_endless
    for process in started:
        process.kill()
        process.communicate()


def wait_for(path, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.05)


@pytest.fixture(scope="module", params=sorted(LENGTHS))
def run(request):
    """The arguments of a run."""
    return (*RUN, *LENGTHS[request.param])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("undisturbed")
    process = start(folder, *run, "-o", "out.npz")
    assert process.wait(DEADLINE) == 0, process.stderr.read()
    process.communicate()
    return (folder / "out.npz").read_bytes()


def test_a_run_that_was_killed_again_and_again_writes_the_same_bytes(run, undisturbed, tmp_path):
    moments = random.Random(0)
    kills = 0
    while kills < 3:
        process = start(tmp_path, *run, "-o", "out.npz", "--resume", "--jobs", str(moments.randint(1, 3)))
        if kills == 0:
            wait_for(tmp_path / "run" / "checkpoint.npz")
        try:
            # the first one soon, for the run must not be done by then
            process.communicate(timeout=moments.uniform(0.0, 2.0 if kills else 0.3))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            assert not (tmp_path / "out.npz").exists() or (tmp_path / "out.npz").read_bytes() == undisturbed
    assert kills > 0
    process = start(tmp_path, *run, "-o", "out.npz", "--resume")
    _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, errors
    assert (tmp_path / "out.npz").read_bytes() == undisturbed
    assert not (tmp_path / "run" / "checkpoint.npz").exists()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_soon_saves_and_can_be_resumed(run, undisturbed, tmp_path, number, status):
    process = start(tmp_path, *run, "-o", "out.npz")
    wait_for(tmp_path / "run" / "checkpoint.npz")
    process.send_signal(number)
    _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == status
    assert b"Traceback" not in errors
    assert b"--checkpoint run --resume" in errors
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["checkpoint.npz"]
    if number == signal.SIGINT:  # the other one saves the same
        process = start(tmp_path, *run, "-o", "out.npz", "--resume")
        process.communicate(timeout=DEADLINE)
        assert (tmp_path / "out.npz").read_bytes() == undisturbed


@pytest.mark.parametrize("edition", [[], ["--paper"]], ids=["messages", "walks"])
def test_ctrl_c_in_an_endless_round_of_one_node_stops_soon_and_leaves_nothing(endless, tmp_path, edition):
    process = endless(*edition)
    wait_for_work(process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, errors
    assert b"Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["star.txt"]


def test_ctrl_c_does_not_wait_for_the_end_of_an_endless_round_to_save_it(endless, tmp_path):
    process = endless("--checkpoint", "run")
    wait_for_work(process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["star.txt"]


def wait_for_work(process, seconds=12.0):
    """Wait until a process has worked for some seconds on a processor: it has started, and compiled what it needs."""
    ticks = os.sysconf("SC_CLK_TCK")
    used = 0.0
    while used < seconds:
        assert process.poll() is None, process.stderr.read()
        user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        used = (int(user) + int(system)) / ticks
        time.sleep(0.05)


def test_a_terminal_sees_rounds_speed_time_left_rate_and_objective(tmp_path):
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140"}
    command = [sys.executable, "-m", "manela", "embed", "sbm", "-o", "out.npz", "--pairs", "4000000",
               "--rounds", "300"]  # fmt: skip
    process = subprocess.Popen(command, cwd=tmp_path, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    assert process.wait(DEADLINE) == 0
    text = shown.decode()
    for word in ("1,024 nodes", "round 300/300", "pairs/s", "left", "α 0.00000", "objective -", "1,024 vectors"):
        assert word in text
