"""The command outside a Ray cluster, which it reaches by Ray's client (`ray://`)."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from manela import Manela
from manela.engines.ray.engine import RayEngine
from manela.errors import ClusterError
from manela.formats.embeddings import read_embedding

RUN = ["--workers", "2", "--dimensions", "16", "--pairs", "40000", "--rounds", "20"]
IMPATIENT = {
    "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "2",
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "1",
    "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "1",
}


@pytest.fixture(scope="module")
def environment():
    """Variables of whoever may use the cluster."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    own = {"RAY_AUTH_TOKEN": "b" * 40, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    return {**inherited, **own, **IMPATIENT}


@pytest.fixture(scope="module")
def address(environment):
    """A head of a cluster as `ray start` makes it, which asks for a token."""
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        port, client = first.getsockname()[1], second.getsockname()[1]
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:  # a socket's path must be short
        command = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--num-cpus", "2",
                   "--node-ip-address", "127.0.0.1", "--port", str(port), "--ray-client-server-port", str(client),
                   "--object-store-memory", "80000000", "--include-dashboard", "false",
                   "--temp-dir", folder]  # fmt: skip
        head = subprocess.Popen(
            list(map(str, command)),
            # with its support for forks gRPC crashes at times where Ray starts a process for a client
            env={**environment, "RAY_AUTH_MODE": "token", "GRPC_ENABLE_FORK_SUPPORT": "0"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: is_open(client), head)
            yield f"ray://127.0.0.1:{client}"
        finally:
            head.terminate()
            try:
                head.wait(60)
            finally:
                head.kill()


def is_open(port):
    with socket.socket() as knocking:
        return knocking.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition, process=None):
    until = time.monotonic() + 180
    while not condition():
        assert process is None or process.poll() is None, process.returncode
        assert time.monotonic() < until
        time.sleep(0.05)


def running(name):
    """Processes of this cluster, which has a token, of which the command line holds this."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name in path.read_bytes() and b"RAY_AUTH_TOKEN=" in path.with_name("environ").read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.csv"
    rng = np.random.default_rng(3)
    once = {(min(a, b), max(a, b)): (a, b) for a, b in rng.integers(200, size=(800, 2)).tolist()}
    path.write_text("".join(f"{a},{b}\n" for a, b in once.values()))
    return path


@pytest.fixture
def start(file, address):
    """A function that starts the command, which takes Ctrl-C even where the tests do not; it ends with the test."""
    started = []

    def run(environment, folder, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "manela", "embed", file, "-o", folder / "out.npz", "--engine", "ray",
             "--address", address, *arguments],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    killed = [process for process in started if process.poll() is None]
    for process in killed:
        process.kill()
        process.communicate()
    if killed:  # the cluster ends the workers of a client that is gone
        wait_until(lambda: not running(b"ray::Worker"))


def test_from_outside_the_vectors_are_the_same(start, file, environment, tmp_path):
    process = start(environment, tmp_path, *RUN)
    _, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    expected = Manela(dimensions=16, pairs=40_000, rounds=20).fit(file).embedding_
    np.testing.assert_array_equal(read_embedding(tmp_path / "out.npz").vectors, expected)
    wait_until(lambda: not running(b"ray::Worker"))


def test_ctrl_c_leaves_no_worker(start, environment, tmp_path):
    process = start(environment, tmp_path, "--workers", "2", "--rounds", "5000", "--pairs", "10000000",
                    "--checkpoint", tmp_path / "run", "--checkpoint-every", "0")  # fmt: skip
    wait_until((tmp_path / "run" / "checkpoint.npz").exists, process)
    assert len(running(b"ray::Worker")) == 2
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=180)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert not (tmp_path / "out.npz").exists()
    wait_until(lambda: not running(b"ray::Worker"))


def test_a_lost_connection_is_told_from_other_troubles():
    engine = RayEngine.__new__(RayEngine)
    engine.is_client = True
    with pytest.raises(ClusterError, match="connection to the Ray cluster is lost; a run with a checkpoint"):
        engine.translate(ConnectionError("Request can't be sent because the Ray client has already been disconnected"))
    engine.translate(BrokenPipeError("of a terminal that was closed"))
    engine.translate(None)


def test_a_connection_lost_before_the_first_round_ends_in_one_line(file, address, environment, tmp_path):
    code = (
        "import os, signal, sys\n"
        "from manela.cli.main import run\n"
        "from manela.engines.ray import engine\n"
        "def lose(*_):\n"
        "    for process in set(filter(str.isdigit, os.listdir('/proc'))) - {str(os.getpid())}:\n"
        "        if b'--mode=specific-server' in open(f'/proc/{process}/cmdline', 'rb').read():\n"
        "            os.kill(int(process), signal.SIGKILL)\n"
        "engine.check_store = lose\n"  # what is asked last before the network is sent
        "sys.exit(run(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "embed", file, "-o", tmp_path / "out.npz", "--address", address]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 2, done.stderr
    assert done.stderr == "error: the connection to the Ray cluster is lost; a run with a checkpoint can be resumed\n"


def test_without_the_token_its_variables_are_named(start, address, environment, tmp_path):
    without_token = {name: value for name, value in environment.items() if name != "RAY_AUTH_TOKEN"}
    process = start({**without_token, "HOME": str(tmp_path)}, tmp_path, *RUN)
    _, said = process.communicate(timeout=180)
    assert process.returncode == 2
    assert len(said.splitlines()) == 1
    assert said.startswith(f"error: no Ray cluster answers at {address}: ")
    assert "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN" in said
