"""The GPU engine on one card: checked against the reference, then timed beside a copy from device to device.

Needs an NVIDIA GPU and the extra `gpu`. The large networks are made here; the paper's are taken from MANELA_DATA.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.io
import torch
import triton

from benchmarks.table import spread, table
from manela import Graph, Manela, ManelaWarning
from manela.analysis.classification import classify
from manela.engines.gpu.engine import GpuEngine
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.errors import DatasetError
from manela.formats.datasets import fetch, find
from manela.formats.loading import load_graph
from manela.kernels import reference
from manela.kernels.layout import Arcs
from manela.kernels.randomness import NEGATIVES, ROUNDS, derive, derive_key
from manela.settings.budget import Sizes, resolve
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings, check_all
from manela.system.threads import count_cores

TURNS = 5
NODES, EDGES = 1_140_000, 4_950_000
SCALE, RMAT_EDGES = 23, 100_000_000
PRECISIONS = ("float16", "bfloat16", "tf32", "tf32x3")
ROUNDS_ONLY: dict[str, Any] = {"start": "random", "views": "rounds"}
"""Rounds that are checked and timed by themselves."""
NETWORKS = ("blogcatalog", "ppi", "wikipedia")


def main() -> None:
    if not torch.cuda.is_available():
        print("not run: it needs an NVIDIA GPU, and torch finds none")
        return
    warnings.simplefilter("ignore", ManelaWarning)
    copy = copy_speed()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}; ", end="")
    print(f"a copy from device to device reads and writes {copy / 1e12:.2f} TB a second\n")
    check()
    first_calls()
    compare()
    ends = draw_power_law(NODES, EDGES)
    graph = Graph.from_edges(*ends, nodes=range(NODES))
    print(f"{graph.number_of_nodes:,} nodes, {graph.number_of_edges:,} edges, largest degree {graph.degrees.max():,}\n")
    choose_precision(graph)
    large(graph, ends, copy)
    rmat()
    beyond()


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
        ("moments", False, {"negative_source": "moments"}),
        ("m = 256, 60 targets", False, {"dimensions": 256, "window": 30}),
        ("m = 1024", True, {"dimensions": 1024}),
    ]  # fmt: skip
    heads = ("checked: 300 nodes, 6 rounds", "largest difference from the reference", "of", "same bits again")
    with table(*heads) as rows:
        for name, weighted, parameters in runs:
            graph = Graph.from_edges(*ends, rng.uniform(0.1, 9.0, 2000) if weighted else None)
            wanted = check_all({**ROUNDS_ONLY, **parameters, "rounds": 6, "pairs": 60_000})
            found, again = (run(graph, wanted)[0].state.tables for _ in range(2))
            expected = by_reference(graph, wanted)
            m = wanted.dimensions
            off = max(float(np.abs(a[:, :m] - b).max()) for a, b in zip(found, expected, strict=True))
            most = max(float(np.abs(b).max()) for b in expected)
            assert off < 2e-3 * most, off
            assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))
            rows.row(name, f"{off:.1e}", f"{most:.2f}", "yes")
    print()


def by_reference(graph: Graph, wanted: Settings) -> list[Any]:
    state = begin(graph.number_of_nodes, wanted.dimensions, wanted.context, wanted.seed)
    tables: Any = [table[:, : wanted.dimensions].astype(np.float64) for table in state.tables]
    aliases = reference.build_aliases(graph.indptr, graph.weights) if graph.weights is not None else ()
    arcs = Arcs(graph.indptr, graph.indices, *aliases)
    schedule = plan_run(graph, wanted, resolve(wanted, Sizes.of(graph.indptr)).expected_pairs)
    for number in range(schedule.rounds):
        key = int(derive(derive_key(wanted.seed, ROUNDS), number))
        counts, rate = schedule.counts(number), schedule.rate(number)
        negative_key = int(derive(derive_key(wanted.seed, NEGATIVES), number))
        amount, blocks = wanted.negatives * sum(wanted.targets_by_hop), min(reference.BLOCKS, int(counts.max()))
        negatives = [
            reference.draw_negatives(table, negative_key, blocks, amount, wanted.negative_source)
            for table in reversed(tables)
        ]
        tables = reference.advance_by_messages(
            tables, arcs, graph.weights, counts, key, rate, wanted.targets_by_hop, negatives
        )
    return list(tables)


def run(graph: Graph, wanted: Settings, rounds: int | None = None) -> tuple[Any, Schedule, float]:
    """Some rounds from random vectors, or all, and the seconds that they took once vectors were on the card."""
    schedule = plan_run(graph, wanted, resolve(wanted, Sizes.of(graph.indptr)).expected_pairs)
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
        "Manela(engine='gpu').fit(graph)\n"
        "print(time.perf_counter() - begun)"
    )
    with table("a new process: imports, and a default fit of a network of 10,000 nodes", "seconds") as rows, \
            tempfile.TemporaryDirectory() as folder:  # fmt: skip
        for name in ("Triton's kernels compiled", "found in its cache"):
            environment = {**os.environ, "TRITON_CACHE_DIR": folder}
            found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
            assert found.returncode == 0, found.stderr
            rows.row(name, f"{float(found.stdout):.1f}")
    print()


def compare() -> None:
    """Whole fits of the paper's networks on the card, and the same on processors."""
    with table(
        "default settings", "fit, s; median (least to most)", "rounds", "micro-F1 at 50 %, mean of seeds 0, 1, 2",
        "the CPU engine's", "difference",
    ) as rows:  # fmt: skip
        for name in NETWORKS:
            try:
                graph, labels = load(name)
            except DatasetError:
                rows.row(name, "not here", "", "", "", "")
                continue
            scores = {engine: score(graph, labels, engine=engine) for engine in ("gpu", "cpu")}
            fits = [timed(lambda: Manela(engine="gpu").fit(graph)) for _ in range(TURNS)]  # noqa: B023
            rounds = Manela(engine="gpu").fit(graph).provenance_["rounds"]
            difference = scores["gpu"] - scores["cpu"]
            assert abs(difference) < 0.003, difference
            rows.row(
                name, spread(fits, ".3f"), rounds, f"{scores['gpu']:.4f}", f"{scores['cpu']:.4f}", f"{difference:+.4f}"
            )
    print()


def load(name: str) -> tuple[Graph, Any]:
    labels = scipy.io.loadmat(fetch(find(name)))["group"]
    return load_graph(name, unweighted=name != "wikipedia"), labels


def score(graph: Graph, labels: Any, seeds: int = 3, **parameters: Any) -> float:
    """Micro-F1 at 50 %, the mean of some seeds."""
    fitted = [Manela(**parameters, random_state=seed).fit(graph).embedding_ for seed in range(seeds)]
    return float(np.mean([classify(vectors, labels, jobs=count_cores()).micro.mean() for vectors in fitted]))


def choose_precision(graph: Graph) -> None:
    """What nodes and negatives are multiplied in."""
    networks = {}
    for name in NETWORKS:
        try:
            networks[name] = load(name)
        except DatasetError:
            continue
    heads = ("products in", "M pairs/s of rounds, power law", *(f"micro-F1, {name}, seed 0" for name in networks))
    with table(*heads) as rows:
        for precision in PRECISIONS:
            with patch("manela.engines.gpu.engine.PRECISION", precision):
                speed = measure_rounds(graph, check_all(ROUNDS_ONLY), 20)[0]
                scores = [score(*network, seeds=1, engine="gpu") for network in networks.values()]
            rows.row(precision, f"{speed / 1e6:,.0f}", *(f"{value:.4f}" for value in scores))
    print()


def measure_rounds(graph: Graph, wanted: Settings, rounds: int) -> tuple[float, Schedule]:
    """Update pairs a second of some rounds, with what nodes show and all, once kernels are there."""
    run(graph, wanted, 3)
    _, schedule, seconds = run(graph, wanted, rounds)
    iterations = sum(int(schedule.counts(number).sum()) for number in range(rounds))
    return iterations * sum(wanted.targets_by_hop) / seconds, schedule


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def large(graph: Graph, ends: tuple[Any, Any], copy: float) -> None:
    """Rounds of a large network, and the whole way from its edges as text to vectors in a file."""
    with table("power law, m = 128, rounds", "M pairs/s", "GB/s of rows read", "of the copy's") as rows:
        size, (speed, _) = 256, measure_rounds(graph, check_all(ROUNDS_ONLY), 30)
        rows.row("by messages", f"{speed / 1e6:,.0f}", f"{speed * size / 1e9:,.0f}", f"{speed * size / copy:.0%}")
    print()
    with table(
        "power law, edge list as text to vectors in a file, default settings", "load, s", "fit, s", "save, s",
        "together, s",
    ) as rows, tempfile.TemporaryDirectory() as folder:  # fmt: skip
        path = Path(folder) / "edges.txt"
        np.savetxt(path, np.stack(ends, axis=1), fmt="%d")
        for turn in ("first turn", "second turn"):
            moments = [time.perf_counter()]
            graph = load_graph(path)
            moments.append(time.perf_counter())
            model = Manela(engine="gpu").fit(graph)
            moments.append(time.perf_counter())
            model.save(Path(folder) / f"{turn}.npz")
            moments.append(time.perf_counter())
            assert np.isfinite(model.embedding_).all()
            rows.row(turn, *(f"{value:.2f}" for value in np.diff(moments)), f"{moments[-1] - moments[0]:.2f}")
    print()
    fits = [timed(lambda: Manela(engine="gpu").fit(graph)) for _ in range(TURNS)]
    print(f"the fit alone, {TURNS} more times: {spread(fits, '.2f')} s\n")


def rmat() -> None:
    """A network of 100 million edges (R-MAT, 0.57 / 0.19 / 0.19 / 0.05), made on the card."""
    begun = time.perf_counter()
    sources, targets = draw_rmat(SCALE, RMAT_EDGES)
    drawn = time.perf_counter()
    graph = Graph.from_edges(sources, targets, nodes=range(1 << SCALE))
    del sources, targets
    built = time.perf_counter()
    torch.cuda.reset_peak_memory_stats()
    model = Manela(engine="gpu").fit(graph)
    ended = time.perf_counter()
    assert np.isfinite(model.embedding_).all()
    facts = model.provenance_
    with table("R-MAT, default settings", "") as rows:
        rows.row("nodes, of these with neighbours", f"{graph.number_of_nodes:,}, {np.count_nonzero(graph.degrees):,}")
        rows.row("edges, largest degree", f"{graph.number_of_edges:,}, {graph.degrees.max():,}")
        rows.row("drawing the edges, s", f"{drawn - begun:.1f}")
        rows.row("making the network of them, s", f"{built - drawn:.1f}")
        rows.row("fit, s", f"{ended - built:.1f}")
        rows.row("rounds, update pairs", f"{facts['rounds']}, {facts['pairs_made']:,}")
        rows.row("memory of the card, GB", f"{torch.cuda.max_memory_allocated() / 1e9:.1f}")
        rows.row("memory of the process, GB", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f}")


def draw_rmat(scale: int, edges: int) -> tuple[Any, Any]:
    """Ends of edges: at every level a quadrant of the matrix is drawn, and names are mixed at the end."""
    generator = torch.Generator("cuda").manual_seed(0)
    sources = torch.zeros(edges, dtype=torch.int32, device="cuda")
    targets = torch.zeros(edges, dtype=torch.int32, device="cuda")
    for _ in range(scale):
        drawn = torch.rand(edges, generator=generator, device="cuda")
        sources = 2 * sources + (drawn >= 0.76)
        targets = 2 * targets + (((drawn >= 0.57) & (drawn < 0.76)) | (drawn >= 0.95))
    names = torch.randperm(1 << scale, generator=generator, device="cuda", dtype=torch.int32)
    return names[sources].cpu().numpy(), names[targets].cpu().numpy()


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


def beyond() -> None:
    """A network of more than 2³¹ arcs: everyone knows everyone."""
    nodes = 47_000
    others = np.arange(nodes - 1, dtype=np.int32)
    indices = np.empty((nodes, nodes - 1), dtype=np.int32)
    for node in range(nodes):
        np.add(others, others >= node, out=indices[node], casting="unsafe")
    indptr = np.arange(nodes + 1, dtype=np.int64) * (nodes - 1)
    graph = Graph(indptr, indices.reshape(-1), None, np.arange(nodes))
    wanted = check_all({**ROUNDS_ONLY, "rounds": 1, "pairs": 20 * nodes, "ratios": (1.0,)})
    engine, _, _ = run(graph, wanted)
    arcs, key = Arcs(indptr, graph.indices), int(derive(derive_key(wanted.seed, ROUNDS), 0))
    drawn, order = engine._drawn.cpu().numpy(), engine._nodes[0].cpu().numpy()
    places = np.flatnonzero(order[: len(drawn)] >= nodes - 100)
    for place in places:
        node = int(order[place])
        keys = derive(int(derive(derive(key, node), 0)), np.arange(20))
        chosen = [reference.choose(int(indptr[node]), int(indptr[node + 1]), int(one), arcs) for one in keys]
        assert np.array_equal(drawn[place], graph.indices[chosen]), node
    print(f"\n{len(graph.indices):,} arcs: the targets of {len(places)} of the last nodes are those of the reference")
