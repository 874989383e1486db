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
from manela.engines.gpu import planning, walks
from manela.engines.gpu.card import Card, check_room
from manela.engines.gpu.messages import GpuMessageEngine
from manela.engines.gpu.neighbours import CardNeighbours
from manela.engines.gpu.walks import GpuWalkEngine
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.start import measure_spread
from manela.engines.state import begin
from manela.errors import CheckpointError, DeviceError, ManelaError, MissingExtraError, ParameterError
from manela.formats.datasets import stochastic_block_model
from manela.kernels import reference
from manela.kernels.layout import Arcs, allocate
from manela.kernels.randomness import ROUNDS, derive, derive_key
from manela.settings.parameters import PAPER, PARAMETERS
from manela.settings.schedule import plan
from manela.settings.settings import check_all
from manela.system.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore:1 of 13 nodes", "ignore:edges that are given several times")


def settings(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, **PAPER, "dimensions": 16, "window": 2, "rounds": 4, **parameters})


@pytest.fixture
def graph():
    """A hub with a long chain of iterations, and others with none or few."""
    rng = np.random.default_rng(5)
    ends = rng.integers(1, 12, size=(2, 14))
    return Graph.from_edges(
        np.append(ends[0], [0] * 11), np.append(ends[1], range(1, 12)), nodes=range(13), duplicates="first"
    )


def run(graph, wanted, pairs=400, rounds=4):
    state = begin(graph.number_of_nodes, wanted.dimensions, wanted.context, wanted.seed)
    for table in state.tables:
        table *= 2 * wanted.dimensions
    with GpuWalkEngine(graph, wanted, state) as engine:
        schedule = plan(graph, wanted, pairs)
        for _ in range(rounds):
            assert engine.advance(schedule)
        engine.collect()
    return state


@pytest.mark.parametrize("ratios", [(1.0,), (0.25, 0.25, 0.5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_targets_and_negatives_are_those_of_the_reference(ratios, weighted):
    rng = np.random.default_rng(2)
    ends = rng.integers(20, size=(2, 40))
    graph = Graph.from_edges(
        *ends, rng.uniform(0.1, 9, 40) if weighted else None, nodes=range(21), duplicates="sum" if weighted else "first"
    )
    wanted = settings(ratios=ratios, negatives=3, random_state=2**64 - 1)
    schedule = plan(graph, wanted, 400)
    with GpuWalkEngine(graph, wanted, begin(21, 16, False, 0)) as engine:
        engine.advance(schedule)
        batch = engine._find_batch(schedule, 0)
        drawn = engine._rows.cpu().numpy()[: batch.iterations[-1] * 16].reshape(-1, 4, 4)
        nodes, ends_of, rounds = (part.cpu().numpy() for part in (batch.nodes, batch.ends, batch.rounds))
    aliases = reference.build_aliases(graph.indptr, graph.weights) if weighted else ()
    arcs = Arcs(graph.indptr, graph.indices, *aliases)
    assert len(drawn) > 80
    for slot, node in enumerate(nodes):
        key = derive(derive(derive_key(wanted.seed, ROUNDS), rounds[slot]), node)
        for k, found in enumerate(drawn[ends_of[slot] : ends_of[slot + 1]]):
            rows, _ = reference.draw(int(node), int(derive(key, k)), arcs, wanted.targets_by_hop, 3)
            np.testing.assert_array_equal(found[found[:, 0] >= 0].reshape(-1), rows)
            assert (found[found[:, 0] < 0] == -1).all()


def test_iterations_of_nodes_are_those_of_the_schedule(graph):
    wanted = settings(rounds=7)
    schedule = plan(graph, wanted, 500)
    with GpuWalkEngine(graph, wanted, begin(13, 16, False, 0)) as engine:
        for number in range(7):
            batch = engine._find_batch(schedule, number)
            at = number - batch.first
            slots = slice(batch.borders[at], batch.borders[at + 1])
            counts = np.zeros(13, dtype=np.int64)
            counts[batch.nodes[slots].cpu().numpy()] = batch.counts[slots].cpu().numpy()
            np.testing.assert_array_equal(counts, schedule.counts(number))


def test_pieces_and_batches_of_any_size_give_the_same_bits(graph, monkeypatch):
    wanted = settings(dimensions=20)
    whole = run(graph, wanted)
    monkeypatch.setattr(walks, "MOST_DRAWN", 24 * 12)
    monkeypatch.setattr(planning, "MOST_PLANNED", 2 * 13)
    pieces = run(graph, wanted)
    np.testing.assert_array_equal(pieces.tables[0], whole.tables[0])
    assert pieces.pairs == whole.pairs > 0
    # the same chains by one warp and by many
    monkeypatch.setattr(planning, "_LONG", 1e9)
    np.testing.assert_allclose(run(graph, wanted).tables[0], whole.tables[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("dimensions", "window", "negatives"), [(300, 2, 5), (600, 1, 2), (16, 30, 2)])
def test_long_vectors_and_wide_windows(graph, dimensions, window, negatives):
    wanted = settings(dimensions=dimensions, window=window, negatives=negatives, rounds=1)
    state = run(graph, wanted, pairs=2 * window * 24, rounds=1)
    tables = [2 * dimensions * begin(13, dimensions, False, 0).vectors.astype(np.float64)]
    key = int(derive(derive_key(0, ROUNDS), 0))
    arcs = Arcs(graph.indptr, graph.indices)
    counts = plan(graph, wanted, 2 * window * 24).counts(0)
    expected = reference.advance(tables, arcs, counts, key, wanted.learning_rate, wanted.targets_by_hop, negatives)
    np.testing.assert_allclose(state.vectors, expected[0], rtol=1e-5, atol=1e-5)


def test_a_snapshot_in_bfloat16_is_near(graph):
    exact, near = run(graph, settings()), run(graph, settings(snapshot="bfloat16"))
    moved = np.abs(exact.vectors - 32 * begin(13, 16, False, 0).vectors).max()
    difference = np.abs(exact.vectors - near.vectors).max()
    assert 0 < difference < 0.02 * moved
    with pytest.raises(ParameterError, match="snapshot must be float32 with engine 'cpu', got 'bfloat16'"):
        Manela.paper(snapshot="bfloat16", engine="cpu").fit(graph)


class Stopped(Exception):
    pass


class StopsEarly(Checkpoint):
    def save(self, state, identity, pairs):
        super().save(state, identity, pairs)
        if state.round == 2:
            raise Stopped


def test_by_messages_a_checkpoint_moves_between_engines(graph, tmp_path):
    parameters = {"dimensions": 16, "window": 2, "rounds": 4, "pairs": 400}
    whole = Manela(**parameters, engine="cpu").fit(graph).embedding_
    for first, second in (("gpu", "cpu"), ("cpu", "gpu")):
        folder = tmp_path / first
        with pytest.raises(Stopped):
            Manela(**parameters, engine=first).fit(graph, checkpoint=StopsEarly(folder, every=0.0))
        model = Manela(**parameters, engine=second).fit(graph, checkpoint=Checkpoint(folder, 60.0, resume=True))
        np.testing.assert_allclose(model.embedding_, whole, atol=0.02)


def test_a_checkpoint_moves_between_engines(graph, tmp_path):
    parameters = {"dimensions": 16, "window": 2, "rounds": 4, "pairs": 400}
    whole = Manela.paper(**parameters, engine="cpu").fit(graph).embedding_

    for first, second in (("gpu", "cpu"), ("cpu", "gpu")):
        folder = tmp_path / first
        with pytest.raises(Stopped):
            Manela.paper(**parameters, engine=first).fit(graph, checkpoint=StopsEarly(folder, every=0.0))
        model = Manela.paper(**parameters, engine=second).fit(graph, checkpoint=Checkpoint(folder, 60.0, resume=True))
        assert model.provenance_["engine"].startswith(second)
        np.testing.assert_allclose(model.embedding_, whole, rtol=1e-5, atol=1e-6)
        with pytest.raises(CheckpointError, match="snapshot is bfloat16 and was float32"):
            Manela.paper(**parameters, engine="gpu", snapshot="bfloat16").fit(
                graph, checkpoint=Checkpoint(folder, 60.0, resume=True)
            )


def test_by_messages_a_whole_run_is_near_that_on_processors():
    """From the start over neighbours to the smoothed vectors."""
    graph = stochastic_block_model(nodes=24, inside=0.9, between=0.2, seed=3)[0]
    runs = [Manela(dimensions=8, pairs=24 * 200, engine=engine).fit(graph) for engine in ("cpu", "gpu")]
    cpu, gpu = (model.provenance_ for model in runs)
    assert gpu["engine"].startswith("gpu, ")
    assert cpu["engine"] == "cpu"
    for name in ("rounds", "rounds_done", "rate_fell_at", "pairs_made", "budget"):
        assert cpu[name] == gpu[name]
    np.testing.assert_array_equal(runs[0].updates_, runs[1].updates_)
    np.testing.assert_allclose(runs[0].embedding_, runs[1].embedding_, atol=0.02)
    cosines = (runs[0].embedding_ * runs[1].embedding_).sum(axis=1) / (runs[0].embedding_ ** 2).sum(axis=1)
    assert cosines.min() > 0.999


@pytest.mark.parametrize("size", [0.01, 1.0, 20.0])
def test_how_far_vectors_lie_apart_is_the_same_number_on_processors(graph, size):
    """It decides when the learning rate falls; sums of whole numbers are exact, in any order."""
    table = allocate(13, 20)
    table[:, :20] = np.random.default_rng(1).normal(size=(13, 20)) * size
    arcs, card = prepare_arcs(graph), Card()
    with Threads(1) as threads:
        expected = measure_spread(table, Neighbours.of(graph, arcs, 2, threads))
    assert CardNeighbours(card, graph, arcs, 2).measure_spread(card.send(table)) == expected > 0


def test_by_walks_a_start_over_neighbours_and_smoothing_are_those_on_processors(graph):
    parameters = {"dimensions": 12, "exchange": "walks", "rounds": 3, "pairs": 400}
    cpu, gpu = (Manela(**parameters, engine=engine).fit(graph).embedding_ for engine in ("cpu", "gpu"))
    np.testing.assert_allclose(gpu, cpu, atol=1e-3)


def test_products_in_half_precision_change_little(graph, monkeypatch):
    exact = run_by_messages(graph, monkeypatch, "tf32x3")
    moved = np.abs(exact - 32 * begin(13, 16, False, 0).vectors).max()
    difference = np.abs(exact - run_by_messages(graph, monkeypatch, "float16")).max()
    assert 0 < difference < 0.002 * moved


def run_by_messages(graph, monkeypatch, precision):
    monkeypatch.setattr("manela.engines.gpu.messages.PRECISION", precision)
    wanted = check_all({"dimensions": 16, "window": 2, "rounds": 4, "pairs": 400})
    state = begin(13, 16, False, 0)
    state.tables[0] *= 32
    with GpuMessageEngine(graph, wanted, state) as engine:
        schedule = plan(graph, wanted, 400)
        for _ in range(4):
            assert engine.advance(schedule)
        engine.collect()
    return state.vectors


@pytest.mark.parametrize("planned", [1, 2 * 13])
def test_by_messages_rounds_are_planned_some_at_a_time(graph, monkeypatch, planned):
    whole = run_by_messages(graph, monkeypatch, "float16")
    monkeypatch.setattr("manela.engines.gpu.messages.MOST_PLANNED", planned)
    np.testing.assert_array_equal(run_by_messages(graph, monkeypatch, "float16"), whole)


def test_by_messages_negatives_are_not_chosen_for_all_of_many_rounds_at_once(graph, monkeypatch):
    monkeypatch.setattr("manela.engines.gpu.messages._MOST_CHOSEN", 1000)
    wanted = check_all({"dimensions": 16, "window": 2, "rounds": 3000, "pairs": 60_000})
    schedule = plan(graph, wanted, 60_000)
    with GpuMessageEngine(graph, wanted, begin(13, 16, False, 0)) as engine:
        assert engine.advance(schedule)
        assert engine._chosen.numel() <= 1000
        assert len(engine._planned) > 1


def test_what_a_gpu_cannot_do_is_said(graph):
    with pytest.raises(ParameterError, match="dimensions must be at most 4096 on a GPU, got 5000"):
        Manela.paper(dimensions=5000, engine="gpu").fit(graph)


def test_memory_is_counted_before_a_run():
    graph = Graph.from_edges(range(1000), [*range(1, 1000), 0])
    small, large = (count_gpu_bytes(graph, settings(dimensions=m, rounds=300)) for m in (16, 1024))
    assert 1000 * 1024 * 4 < large - small < 3 * 1000 * 1024 * 4
    check_room(10, 10, "gpu, a card")
    with pytest.raises(DeviceError, match=r"needs 3\.0 GB of GPU memory, and gpu, a card has 2\.0 GB free"):
        check_room(3 * 10**9, 2 * 10**9, "gpu, a card")


def test_without_the_extra_the_install_command_is_named(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"engine 'gpu' needs torch, .* pip install 'manela\[gpu\]'"):
        Manela.paper(engine="gpu").fit(graph)


def test_without_a_card_the_command_says_so_and_auto_goes_on(tmp_path):
    """In processes of their own, where kernels are not interpreted."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    file, out = tmp_path / "graph.csv", tmp_path / "out.npz"
    file.write_text("a,b\nb,c\n")
    code = (
        "from manela.engines import engine\nprint(engine.has_gpu())\n"
        "engine._WORTH = 0.0\nfrom manela import Manela\n"
        f"print(Manela.paper(pairs=100).fit({str(file)!r}).provenance_['engine'])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True, timeout=120
    )
    has_card, engine = found.stdout.split("\n")[:2]
    assert engine.startswith("gpu") == (has_card == "True")
    done = subprocess.run(
        [sys.executable, "-m", "manela", "embed", str(file), "-o", str(out), "--paper", "--engine", "gpu",
         "--pairs", "100"],
        capture_output=True, text=True, env=environment, check=False, timeout=120,
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
