"""The Ray engine on a real cluster of several nodes on this machine."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import pytest
import ray

from manela import Manela
from manela.data.graph import Graph
from manela.engines.ray.connection import check_store, share_out
from manela.engines.ray.engine import RayEngine
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.errors import ClusterError, MissingExtraError
from manela.formats.datasets import stochastic_block_model
from manela.formats.embeddings import read_embedding
from manela.settings.parameters import PARAMETERS
from manela.settings.settings import check_all

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)

PARAMETERS_OF_RUN = {"dimensions": 20, "rounds": 12, "pairs": 40_000, "ratios": (0.5, 0.5)}
ROUNDS_ALONE = {"start": "random", "views": "rounds", "smooth": False}
"""Parameters with which vectors are those of rounds alone."""


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(8)
    ends = rng.integers(300, size=(2, 2000))
    return Graph.from_edges(ends[0], ends[1], rng.uniform(0.1, 9, 2000), duplicates="first")


def test_without_a_cluster_ray_starts_on_this_machine_and_ends(manela, tmp_path):
    file = tmp_path / "graph.csv"
    file.write_text("a,b\nb,c\nc,a\n")
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    options = "--engine", "ray", "--pairs", 1000, "--rounds", 5
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:  # a socket's path must be short
        # what a cluster that is gone leaves behind
        (Path(folder) / "ray").mkdir()
        (Path(folder) / "ray" / "ray_current_cluster").write_text("127.0.0.1:9")
        done = manela("embed", file, "-o", tmp_path / "out.npz", *options, env={**environment, "RAY_TMPDIR": folder})
    assert done.returncode == 0, done.stderr
    assert len(read_embedding(tmp_path / "out.npz").nodes) == 3


MARK = "MANELA_TEST_CLUSTER"
"""A variable that processes of this cluster inherit, by which they are told from those of other tests."""


@pytest.fixture(scope="module")
def ray_cluster():
    """A head with two cores that nobody kills, and room for nodes beside it."""
    from ray.cluster_utils import Cluster

    os.environ[MARK] = str(os.getpid())
    started = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 3, "object_store_memory": 80 * 2**20, "include_dashboard": False},
    )
    yield started
    started.shutdown()
    del os.environ[MARK]


@pytest.fixture(scope="module")
def connected(ray_cluster):
    ray_cluster.add_node(num_cpus=2, object_store_memory=80 * 2**20)
    ray_cluster.wait_for_nodes()
    ray.init(address=ray_cluster.address, log_to_driver=False)
    yield ray_cluster
    ray.shutdown()


def settings(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, **PARAMETERS_OF_RUN, "engine": "ray", **parameters})


@pytest.mark.parametrize(
    ("source", "workers", "context"), [("nodes", 2, True), ("nodes", 3, False), ("moments", 1, False)]
)
def test_any_number_of_workers_gives_the_bits_of_the_cpu_engine(connected, graph, workers, context, source):
    parameters = {**PARAMETERS_OF_RUN, "context": context, "negative_source": source}
    one = Manela(**parameters, engine="cpu").fit(graph)
    model = Manela(**parameters, engine="ray", workers=workers).fit(graph)
    np.testing.assert_array_equal(model.embedding_, one.embedding_)
    if context:
        np.testing.assert_array_equal(model.context_, one.context_)
    np.testing.assert_array_equal(model.updates_, one.updates_)
    assert model.provenance_["pairs_made"] == one.provenance_["pairs_made"] > 30_000
    assert model.provenance_["engine"].startswith(f"ray, {workers} worker")
    wait_until_nothing_is_left()


def left_behind():
    """Workers of this cluster that run, and bytes in its object stores."""
    from ray._private.internal_api import node_stats

    workers, mark = [], f"{MARK}={os.getpid()}\0".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            title, environment = path.read_bytes(), path.with_name("environ").read_bytes()
            if title.startswith(b"ray::Worker") and mark in environment + b"\0":
                workers.append(path.parent.name)
    used = 0
    for node in ray.nodes():
        with contextlib.suppress(grpc.RpcError):  # one that was killed may pass for alive a while longer
            if node["Alive"]:
                stats = node_stats(node["NodeManagerAddress"], node["NodeManagerPort"])
                used += stats.store_stats.object_store_bytes_used
    return workers, used


def wait_until_nothing_is_left():
    until = time.monotonic() + 180
    while left_behind() != ([], 0):
        gc.collect()  # errors that were caught hold what their frames held
        assert time.monotonic() < until, left_behind()
        time.sleep(0.2)


def test_a_long_round_of_which_nothing_is_kept_is_stopped_soon(connected, graph):
    wanted = settings(workers=2, n_jobs=1, rounds=1, pairs=40_000_000_000)
    state = begin(graph.number_of_nodes, 20, False, 0)
    with RayEngine(graph, wanted, state) as engine:
        schedule = plan_run(graph, wanted, 40_000_000_000)
        stopping = threading.Timer(1.5, engine.stop, kwargs={"keep": False})
        stopping.start()
        assert not engine.advance(schedule)
        stopping.join()
        assert state.round == 0
    wait_until_nothing_is_left()


def test_a_stop_while_workers_begin_is_not_lost(connected, graph, monkeypatch):
    wanted = settings(workers=2, n_jobs=1, rounds=1, pairs=40_000_000_000)
    hand_out = RayEngine._hand_out

    def stop_and_hand_out(self, read):
        self.stop(keep=False)
        hand_out(self, read)

    monkeypatch.setattr(RayEngine, "_hand_out", stop_and_hand_out)
    with RayEngine(graph, wanted, begin(graph.number_of_nodes, 20, False, 0)) as engine:
        computed = []
        monkeypatch.setattr(engine, "_do", computed.append)
        assert not engine.advance(plan_run(graph, wanted, 40_000_000_000))
        assert computed == []
    wait_until_nothing_is_left()


@pytest.mark.filterwarnings("ignore:a worker was lost", "ignore:only .* started")
def test_a_run_goes_on_with_the_same_bits_when_workers_and_nodes_are_killed(connected, graph):
    wanted = settings(**ROUNDS_ALONE, workers=3, n_jobs=1)
    whole = Manela(**PARAMETERS_OF_RUN, **ROUNDS_ALONE, engine="cpu").fit(graph)
    extra = connected.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    connected.wait_for_nodes()
    state = begin(graph.number_of_nodes, 20, False, 0)
    schedule = plan_run(graph, wanted, 40_000)
    seen = 0
    with RayEngine(graph, wanted, state) as engine:
        while state.round < 12:
            assert engine.advance(schedule)
            if state.round <= seen:  # once more, after some were lost
                continue
            seen = state.round
            if state.round == 3:
                victim = engine.workers[1]
                os.kill(ray.get(victim.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
            if state.round == 6:
                connected.remove_node(extra, allow_graceful=False)
            if state.round == 8:
                for victim in engine.workers:  # nobody is left: it goes on from what was kept
                    ray.kill(victim)
        engine.collect()
        np.testing.assert_array_equal(engine.updates, whole.updates_)
        assert engine.is_finite()
    np.testing.assert_array_equal(state.vectors, whole.embedding_)
    assert state.pairs == whole.provenance_["pairs_made"]


@pytest.mark.filterwarnings("ignore:a worker was lost", "ignore:only .* started")
def test_a_worker_killed_while_vectors_are_handed_out_changes_nothing(connected, graph, monkeypatch):
    monkeypatch.setattr("manela.engines.ray.engine.LARGE_PIECE", 4000)
    read, calls = RayEngine._read_state, []

    def read_and_kill(self, first, last):
        calls.append(first)
        if len(calls) == 3:
            os.kill(ray.get(self.workers[0].__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
        return read(self, first, last)

    monkeypatch.setattr(RayEngine, "_read_state", read_and_kill)
    model = Manela(**PARAMETERS_OF_RUN, **ROUNDS_ALONE, engine="ray", workers=2, n_jobs=1).fit(graph)
    assert len(calls) > 3
    np.testing.assert_array_equal(
        model.embedding_, Manela(**PARAMETERS_OF_RUN, **ROUNDS_ALONE, engine="cpu").fit(graph).embedding_
    )


@pytest.mark.filterwarnings("ignore:a worker was lost", "ignore:only .* started")
def test_workers_that_are_all_lost_after_the_last_round_do_not_take_the_result_with_them(connected, graph, monkeypatch):
    look, lost = RayEngine.is_finite, []

    def lose_all(self):
        if self.state.round == 12 and not lost:
            lost.append(True)
            for worker in self.workers:
                ray.kill(worker)
        return look(self)

    monkeypatch.setattr(RayEngine, "is_finite", lose_all)
    model = Manela(**PARAMETERS_OF_RUN, **ROUNDS_ALONE, engine="ray", workers=1, n_jobs=1).fit(graph)
    assert lost
    np.testing.assert_array_equal(
        model.embedding_, Manela(**PARAMETERS_OF_RUN, **ROUNDS_ALONE, engine="cpu").fit(graph).embedding_
    )


def test_what_does_not_fit_a_cluster_is_said(connected, graph):
    with pytest.raises(ClusterError, match=r"99 workers with 1 thread each do not fit: .* room for"):
        Manela(engine="ray", workers=99).fit(graph)
    assert share_out([{"CPU": 8.0}, {"CPU": 4.0}], None, None) == (2, 4)
    assert share_out([{"CPU": 8.0}, {"CPU": 4.0}], 3, None) == (3, 4)
    assert share_out([{"CPU": 8.0}, {"CPU": 4.0}], None, 2) == (6, 2)
    with pytest.raises(ClusterError, match="no machine of the Ray cluster has a free CPU"):
        share_out([], None, None)
    check_store([{"object_store_memory": 10.0}], 10)
    with pytest.raises(
        ClusterError, match=r"must hold 20 MB on every machine, and one has 10 MB: .*--object-store-memory"
    ):
        check_store([{"object_store_memory": 3e7}, {"object_store_memory": 1e7}], 20_000_000)
    large = Graph.from_edges(range(60_000), [*range(1, 60_000), 0])
    with pytest.raises(ClusterError, match="object store must hold"):
        Manela(engine="ray", dimensions=512, rounds=10).fit(large)
    wait_until_nothing_is_left()


def test_without_the_extra_the_install_command_is_named(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"engine 'ray' needs ray, .* pip install 'manela\[cluster\]'"):
        Manela(engine="ray").fit(graph)


def test_an_address_where_nobody_is_ends_the_command_in_one_line(manela, tmp_path):
    file = tmp_path / "graph.csv"
    file.write_text("a,b\nb,c\n")
    done = manela("embed", file, "-o", tmp_path / "out.npz", "--engine", "ray", "--address", "127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: no Ray cluster answers at 127.0.0.1:1")
    assert "Traceback" not in done.stderr


def test_a_driver_that_is_stopped_or_killed_leaves_nothing_and_can_be_resumed(connected, tmp_path, manela):
    graph, _ = stochastic_block_model(nodes=300, seed=2)
    file, out, folder = tmp_path / "graph.csv", tmp_path / "out.npz", tmp_path / "run"
    sources = np.repeat(np.arange(300), graph.degrees)
    file.write_text("".join(f"{a},{b}\n" for a, b in zip(sources, graph.indices, strict=True) if a < b))
    arguments = ["embed", file, "-o", out, "--dimensions", "16", "--pairs", "1500000", "--rounds", "200",
                 "--checkpoint", folder, "--checkpoint-every", "0"]  # fmt: skip
    command = [sys.executable, "-m", "manela", *map(str, arguments), "--engine", "ray", "--workers", "2",
               "--address", connected.address]  # fmt: skip
    for number, resume in ((signal.SIGINT, []), (signal.SIGKILL, ["--resume"])):
        process = subprocess.Popen(
            [*command, *resume],
            stderr=subprocess.PIPE,
            # it takes Ctrl-C even where the tests do not, as in the background of a shell
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        before = (folder / "checkpoint.npz").stat().st_mtime_ns if resume else 0
        until = time.monotonic() + 300
        while not (folder / "checkpoint.npz").exists() or (folder / "checkpoint.npz").stat().st_mtime_ns == before:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(number)
        process.communicate(timeout=180)
        assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
        wait_until_nothing_is_left()
    done = manela(*arguments, "--resume", "--engine", "cpu")
    assert done.returncode == 0, done.stderr
    expected = Manela(dimensions=16, pairs=1_500_000, rounds=200).fit(file)
    found = read_embedding(out)
    np.testing.assert_array_equal(found.vectors, expected.embedding_)
