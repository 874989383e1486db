"""The GPU engine on one card: checked against the reference, then timed beside a copy from device to device.

Needs an NVIDIA GPU and the extra `gpu`. The large network is made here; the paper's are taken from MANELA_DATA.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import torch
import triton

from benchmarks.table import spread, table
from manela import Graph, Manela
from manela.datasets.catalogue import fetch, find
from manela.datasets.loading import load_graph
from manela.engines.gpu import GpuEngine
from manela.engines.state import begin
from manela.errors import DatasetError
from manela.evaluation.classification import classify
from manela.kernels import reference
from manela.kernels.arcs import Arcs
from manela.params import PARAMETERS
from manela.randomness import ROUNDS, derive, derive_key
from manela.schedule import Schedule, count_pairs, plan
from manela.settings import Settings, check_all

TURNS = 5
NODES, EDGES = 1_140_000, 4_950_000
ROUNDS_TIMED = 100


def main() -> None:
    if not torch.cuda.is_available():
        print("not run: it needs an NVIDIA GPU, and torch finds none")
        return
    copy = copy_speed()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}; ", end="")
    print(f"a copy from device to device reads and writes {copy / 1e12:.2f} TB a second\n")
    check()
    beyond()
    first_calls()
    networks()
    large(copy)


def settings(**parameters: Any) -> Settings:
    return check_all({**{name: one.default for name, one in PARAMETERS.items()}, **parameters})


def copy_speed() -> float:
    """Bytes read and written a second."""
    source = torch.empty(1 << 30, dtype=torch.float32, device="cuda").normal_()
    target = torch.empty_like(source)
    times = []
    for _ in range(12):
        begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begun.record()
        target.copy_(source)
        ended.record()
        torch.cuda.synchronize()
        times.append(begun.elapsed_time(ended) / 1e3)
    return 2 * source.nbytes / sorted(times[2:])[5]


def check() -> None:
    """Against the reference in double precision, and against itself."""
    rng = np.random.default_rng(1)
    ends = rng.integers(300, size=(2, 2000))
    runs: list[tuple[str, bool, dict[str, Any]]] = [
        ("as by default", False, {}),
        ("weights, m = 100, context vectors, 3 hops", True,
         {"dimensions": 100, "context": True, "ratios": (0.4, 0.3, 0.3)}),
        ("m = 16, no negatives, 1 hop", False, {"dimensions": 16, "negatives": 0, "ratios": (1.0,)}),
        ("m = 256, 60 targets", False, {"dimensions": 256, "window": 30}),
        ("m = 512", False, {"dimensions": 512}),
        ("m = 1024", True, {"dimensions": 1024}),
    ]  # fmt: skip
    heads = ("checked: 300 nodes, 6 rounds", "largest difference from the reference", "of", "same bits again")
    with table(*heads) as rows:
        for name, weighted, parameters in runs:
            graph = Graph.from_edges(*ends, rng.uniform(0.1, 9.0, 2000) if weighted else None)
            wanted = settings(**parameters, rounds=6, pairs=60_000)
            found, again = (run(graph, wanted)[0].state.tables for _ in range(2))
            expected = by_reference(graph, wanted)
            m = wanted.dimensions
            off = max(float(np.abs(a[:, :m] - b).max()) for a, b in zip(found, expected, strict=True))
            assert off < 1e-5, off
            same = all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))
            assert same
            rows.row(name, f"{off:.1e}", f"{max(float(np.abs(b).max()) for b in expected):.2f}", "yes")
    print()


def beyond() -> None:
    """A network of more than 2³¹ arcs: everyone knows everyone."""
    nodes = 47_000
    others = np.arange(nodes - 1, dtype=np.int32)
    indices = np.empty((nodes, nodes - 1), dtype=np.int32)
    for node in range(nodes):
        np.add(others, others >= node, out=indices[node], casting="unsafe")
    indptr = np.arange(nodes + 1, dtype=np.int64) * (nodes - 1)
    graph = Graph(indptr, indices.reshape(-1), None, np.arange(nodes))
    wanted = settings(rounds=1, pairs=20 * nodes)
    engine, _, _ = run(graph, wanted)
    arcs, key = Arcs(indptr, graph.indices), int(derive(derive_key(wanted.seed, ROUNDS), 0))
    rows = engine._rows.cpu().numpy()[: nodes * 120].reshape(-1, 120)
    batch = engine._batch
    assert batch is not None
    slots = np.flatnonzero(batch.nodes.cpu().numpy() >= nodes - 100)
    for slot in slots:
        node, first = int(batch.nodes[slot]), int(batch.ends[slot])
        drawn, _ = reference.draw(
            node, int(derive(derive(key, node), 0)), arcs, wanted.targets_by_hop, wanted.negatives
        )
        found = rows[first][rows[first] >= 0]
        assert np.array_equal(found, drawn), node
    print(f"{len(graph.indices):,} arcs: {len(slots)} iterations of the last 100 nodes are drawn as by the reference\n")


def by_reference(graph: Graph, wanted: Settings) -> list[Any]:
    state = begin(graph.number_of_nodes, wanted.dimensions, wanted.context, wanted.seed)
    tables: Any = [table[:, : wanted.dimensions].astype(np.float64) for table in state.tables]
    aliases = reference.build_aliases(graph.indptr, graph.weights) if graph.weights is not None else ()
    arcs = Arcs(graph.indptr, graph.indices, *aliases)
    schedule = plan(graph, wanted, count_pairs(graph, wanted))
    for number in range(schedule.rounds):
        key = int(derive(derive_key(wanted.seed, ROUNDS), number))
        tables = reference.advance(
            tables, arcs, schedule.counts(number), key, schedule.rate(number), wanted.targets_by_hop, wanted.negatives
        )
    return list(tables)


def run(graph: Graph, wanted: Settings, rounds: int | None = None) -> tuple[GpuEngine, Schedule, float]:
    """Some rounds, or all, and the seconds that they took once vectors and arcs were on the card."""
    schedule = plan(graph, wanted, count_pairs(graph, wanted))
    state = begin(graph.number_of_nodes, wanted.dimensions, wanted.context, wanted.seed)
    with GpuEngine(graph, wanted, state) as engine:
        torch.cuda.synchronize()
        begun = time.perf_counter()
        while state.round < (rounds or schedule.rounds):
            engine.advance(schedule)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begun
        engine.collect()
    return engine, schedule, seconds


def first_calls() -> None:
    """A process that has everything to compile, and one that finds it compiled."""
    code = (
        "import time, numpy as np; begun = time.perf_counter()\n"
        "from manela import Graph, Manela\n"
        "rng = np.random.default_rng(0)\n"
        "graph = Graph.from_edges(*rng.integers(10_000, size=(2, 300_000)))\n"
        "Manela.paper(engine='gpu', pairs=1_000_000).fit(graph)\n"
        "print(time.perf_counter() - begun)"
    )
    with table("a new process: imports, a network of 10,000 nodes, 1 M pairs", "seconds") as rows, \
            tempfile.TemporaryDirectory() as folder:  # fmt: skip
        for name in ("Triton's kernels compiled", "found in its cache"):
            environment = {**os.environ, "TRITON_CACHE_DIR": folder}
            found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
            assert found.returncode == 0, found.stderr
            rows.row(name, f"{float(found.stdout):.1f}")
    print()


def networks() -> None:
    with table(
        "default budget, kernels warm; median (least to most)", "fit, s", "of it rounds, s", "M pairs/s of rounds",
        "micro-F1 at 50 %, seeds from 0 on",
    ) as rows:  # fmt: skip
        for name, ratios in (("blogcatalog", (0.7, 0.3)), ("wikipedia", (0.3, 0.7))):
            try:
                graph = load_graph(name, unweighted=True)
            except DatasetError:
                rows.row(name, "not here", "", "", "")
                continue
            labels = scipy.io.loadmat(fetch(find(name)))["group"]
            for snapshot in ("float32", "bfloat16"):
                parameters = {"ratios": ratios, "engine": "gpu", "snapshot": snapshot}
                scores = []
                for seed in (0, 1, 2) if snapshot == "float32" else (0,):
                    model = Manela.paper(**parameters, random_state=seed).fit(graph)
                    scores.append(classify(model.embedding_, labels).micro.mean())
                fits = [timed(partial(Manela.paper(**parameters).fit, graph)) for _ in range(TURNS)]
                rounds = [run(graph, settings(**parameters))[2] for _ in range(TURNS)]
                pairs = count_pairs(graph, settings(**parameters)) / np.median(rounds) / 1e6
                rows.row(
                    f"{name}, {snapshot}", spread(fits, ".3f"), spread(rounds, ".3f"), f"{pairs:.0f}",
                    ", ".join(f"{score:.4f}" for score in scores),
                )  # fmt: skip
    print()


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def large(copy: float) -> None:
    sources, targets = draw_power_law(NODES, EDGES)
    graph = Graph.from_edges(sources, targets, nodes=range(NODES))
    print(f"{graph.number_of_nodes:,} nodes, {graph.number_of_edges:,} edges, largest degree {graph.degrees.max():,}\n")
    with table(
        f"power law, m = 128, {ROUNDS_TIMED} of 1,000 rounds", "M pairs/s", "GB/s by 512 bytes a vector read",
        "of the copy's", "GB/s as they are",
    ) as rows:  # fmt: skip
        for snapshot, size in (("float32", 512), ("bfloat16", 256)):
            wanted = settings(engine="gpu", snapshot=snapshot)
            run(graph, wanted, 3)
            engine, schedule, seconds = run(graph, wanted, ROUNDS_TIMED)
            iterations = sum(int(schedule.counts(number).sum()) for number in range(0, ROUNDS_TIMED, 10)) * 10
            pairs = iterations * sum(wanted.targets_by_hop)
            vectors = pairs * (1 + wanted.negatives)
            rows.row(
                snapshot, f"{pairs / seconds / 1e6:,.0f}", f"{512 * vectors / seconds / 1e9:,.0f}",
                f"{512 * vectors / seconds / copy:.0%}", f"{size * vectors / seconds / 1e9:,.0f}",
            )  # fmt: skip
            del engine
    print()
    with table("power law, the whole default budget", "load, s", "fit, s", "together, s") as rows, \
            tempfile.TemporaryDirectory() as folder:  # fmt: skip
        path = Path(folder) / "edges.txt"
        np.savetxt(path, np.stack((sources, targets), axis=1), fmt="%d")
        load_graph(path)
        for snapshot in ("float32", "bfloat16"):
            begun = time.perf_counter()
            graph = load_graph(path)
            loaded = time.perf_counter()
            model = Manela.paper(engine="gpu", snapshot=snapshot).fit(graph)
            ended = time.perf_counter()
            assert np.isfinite(model.embedding_).all()
            rows.row(
                f"edge list as text, {snapshot}", f"{loaded - begun:.1f}", f"{ended - loaded:.1f}",
                f"{ended - begun:.1f}",
            )  # fmt: skip


def draw_power_law(nodes: int, edges: int) -> tuple[Any, Any]:
    """Ends of distinct edges: node i has a weight of (i + 3.5)^-0.75, and edges join nodes by their weights."""
    rng = np.random.default_rng(0)
    shares = np.cumsum((np.arange(nodes) + 3.5) ** -0.75)
    names = rng.permutation(nodes)
    drawn = np.zeros(0, np.int64)
    while len(drawn) < edges:
        ends = np.searchsorted(shares, rng.random((2, edges // 2)) * shares[-1])
        ends = np.sort(ends[:, ends[0] != ends[1]], axis=0)
        drawn = np.unique(np.append(drawn, ends[0] * nodes + ends[1]))
    drawn = rng.permutation(drawn)[:edges]
    return names[drawn // nodes], names[drawn % nodes]
