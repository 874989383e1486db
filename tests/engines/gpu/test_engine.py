"""The GPU engine; without a card its kernels are interpreted."""

import os
import subprocess
import sys

import numpy as np
import pytest

from manela import Manela
from manela.data.graph import Graph
from manela.engines.checkpoint import Checkpoint
from manela.engines.estimate import count_gpu_bytes
from manela.engines.gpu.card import Card, check_room
from manela.engines.gpu.engine import GpuEngine
from manela.engines.gpu.neighbours import CardNeighbours
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.spread import measure_spread
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.errors import DeviceError, ManelaError, MissingExtraError, ParameterError
from manela.formats.datasets import stochastic_block_model
from manela.kernels.layout import allocate
from manela.settings.settings import check_all
from manela.system.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore:1 of 13 nodes", "ignore:edges that are given several times")


@pytest.fixture
def graph():
    """A hub with a long chain of iterations, and others with none or few."""
    rng = np.random.default_rng(5)
    ends = rng.integers(1, 12, size=(2, 14))
    return Graph.from_edges(
        np.append(ends[0], [0] * 11), np.append(ends[1], range(1, 12)), nodes=range(13), duplicates="first"
    )


class Stopped(Exception):
    pass


class StopsEarly(Checkpoint):
    def save(self, state, identity, pairs):
        super().save(state, identity, pairs)
        if state.round == 2:
            raise Stopped


def test_a_checkpoint_moves_between_engines(graph, tmp_path):
    parameters = {"dimensions": 16, "window": 2, "rounds": 4, "pairs": 400}
    whole = Manela(**parameters, engine="cpu").fit(graph).embedding_
    for first, second in (("gpu", "cpu"), ("cpu", "gpu")):
        folder = tmp_path / first
        with pytest.raises(Stopped):
            Manela(**parameters, engine=first).fit(graph, checkpoint=StopsEarly(folder, every=0.0))
        model = Manela(**parameters, engine=second).fit(graph, checkpoint=Checkpoint(folder, 60.0, resume=True))
        products = model.embedding_ @ model.embedding_.T  # with fewer nodes than dimensions, some turns are free
        np.testing.assert_allclose(products, whole @ whole.T, atol=0.03)


def test_a_whole_run_is_near_that_on_processors():
    """From the sweeps to the joined vectors."""
    graph = stochastic_block_model(nodes=24, inside=0.9, between=0.2, seed=3)[0]
    runs = [Manela(dimensions=8, pairs=24 * 200, engine=engine).fit(graph) for engine in ("cpu", "gpu")]
    cpu, gpu = (model.provenance_ for model in runs)
    assert gpu["engine"].startswith("gpu, ")
    assert cpu["engine"] == "cpu"
    for name in ("rounds", "rounds_done", "rate_fell_at", "pairs_made", "budget"):
        assert cpu[name] == gpu[name]
    np.testing.assert_array_equal(runs[0].updates_, runs[1].updates_)
    one, other = (model.embedding_ for model in runs)
    # which directions a join keeps may depend on the last bits
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("size", [0.01, 1.0, 20.0])
def test_how_far_vectors_lie_apart_is_the_same_number_on_processors(graph, size):
    """It decides when the learning rate falls; sums of whole numbers are exact, in any order."""
    table = allocate(13, 20)
    table[:, :20] = np.random.default_rng(1).normal(size=(13, 20)) * size
    arcs, card = prepare_arcs(graph), Card()
    with Threads(1) as threads:
        expected = measure_spread(table, Neighbours.of(graph, arcs, 2, threads))
    assert CardNeighbours(card, graph, arcs, 2).measure_spread(card.send(table)) == expected > 0


def test_products_in_half_precision_change_little(graph, monkeypatch):
    exact = run(graph, monkeypatch, "tf32x3")
    moved = np.abs(exact - 32 * begin(13, 16, False, 0).vectors).max()
    difference = np.abs(exact - run(graph, monkeypatch, "float16")).max()
    assert 0 < difference < 0.002 * moved


def run(graph, monkeypatch, precision):
    monkeypatch.setattr("manela.engines.gpu.engine.PRECISION", precision)
    wanted = check_all({"dimensions": 16, "window": 2, "rounds": 4, "pairs": 400})
    state = begin(13, 16, False, 0)
    state.tables[0] *= 32
    with GpuEngine(graph, wanted, state) as engine:
        schedule = plan_run(graph, wanted, 400)
        for _ in range(4):
            assert engine.advance(schedule)
        engine.collect()
    return state.vectors


@pytest.mark.parametrize("planned", [1, 2 * 13])
def test_rounds_are_planned_some_at_a_time(graph, monkeypatch, planned):
    whole = run(graph, monkeypatch, "float16")
    monkeypatch.setattr("manela.engines.gpu.engine.MOST_PLANNED", planned)
    np.testing.assert_array_equal(run(graph, monkeypatch, "float16"), whole)


def test_negatives_are_not_chosen_for_all_of_many_rounds_at_once(graph, monkeypatch):
    monkeypatch.setattr("manela.engines.gpu.engine._MOST_CHOSEN", 1000)
    wanted = check_all({"dimensions": 16, "window": 2, "rounds": 3000, "pairs": 60_000})
    schedule = plan_run(graph, wanted, 60_000)
    with GpuEngine(graph, wanted, begin(13, 16, False, 0)) as engine:
        assert engine.advance(schedule)
        assert engine.chosen.numel() <= 1000
        assert len(engine.planned) > 1


def test_what_a_gpu_cannot_do_is_said(graph):
    with pytest.raises(ParameterError, match="dimensions must be at most 4096 on a GPU, got 5000"):
        Manela(dimensions=5000, engine="gpu").fit(graph)


def test_memory_is_counted_before_a_run():
    graph = Graph.from_edges(range(1000), [*range(1, 1000), 0])
    small, large = (count_gpu_bytes(graph, check_all({"dimensions": m, "rounds": 300})) for m in (16, 1024))
    # the vectors, and four tables for smoothing
    assert 4 * 1000 * 1024 * 4 < large - small < 6 * 1000 * 1024 * 4
    check_room(10, 10, "gpu, a card")
    with pytest.raises(DeviceError, match=r"needs 3\.0 GB of GPU memory, and gpu, a card has 2\.0 GB free"):
        check_room(3 * 10**9, 2 * 10**9, "gpu, a card")


def test_without_the_extra_the_install_command_is_named(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"engine 'gpu' needs torch, .* pip install 'manela\[gpu\]'"):
        Manela(engine="gpu").fit(graph)


def test_without_a_card_the_command_says_so_and_auto_goes_on(tmp_path):
    """In processes of their own, where kernels are not interpreted."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    file, out = tmp_path / "graph.csv", tmp_path / "out.npz"
    file.write_text("a,b\nb,c\n")
    code = (
        "from manela.engines import engine\nprint(engine.has_gpu())\n"
        "engine._WORTH = 0.0\nfrom manela import Manela\n"
        f"print(Manela(pairs=100).fit({str(file)!r}).provenance_['engine'])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True, timeout=300
    )
    has_card, engine = found.stdout.split("\n")[:2]
    assert engine.startswith("gpu") == (has_card == "True")
    done = subprocess.run(
        [sys.executable, "-m", "manela", "embed", str(file), "-o", str(out), "--engine", "gpu",
         "--pairs", "100"],
        capture_output=True, text=True, env=environment, check=False, timeout=300,
    )  # fmt: skip
    if has_card == "True":
        assert done.returncode == 0
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("error: engine 'gpu' needs")
        assert len(done.stderr.splitlines()) == 1
        assert not out.exists()


def test_errors_are_of_one_family():
    assert issubclass(DeviceError, ManelaError)
