"""The Ray engine on this machine beside the CPU engine: time, traffic, memory, and a projection to larger clusters."""

import logging
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray

from benchmarks.table import table
from manela import Graph
from manela.datasets.generators import draw_random
from manela.datasets.loading import load_graph
from manela.engines.cluster import RayEngine
from manela.engines.cpu import CpuEngine
from manela.engines.state import begin
from manela.params import PARAMETERS
from manela.schedule import count_pairs, plan
from manela.settings import Settings, check_all

NODES, EDGES = 300_000, 1_500_000
ROUNDS = {"BlogCatalog": 300, "300,000 nodes": 60}


def main() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=4, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    try:
        graphs = {"BlogCatalog": load_graph("blogcatalog", unweighted=True), "300,000 nodes": draw_random(NODES, EDGES)}
        speed, each = measure(graphs)
        carry()
        project(speed, each)
    finally:
        ray.shutdown()


def settings(**parameters: Any) -> Settings:
    return check_all({**{name: one.default for name, one in PARAMETERS.items()}, **parameters})


def measure(graphs: dict[str, Graph]) -> tuple[float, float]:
    """Time some rounds on each; returns update pairs a second of the CPU engine on the large one, and bytes a row."""
    speed = each = 0.0
    with table(
        "m = 128, default budget", "rounds timed", "seconds", "against the CPU engine", "MB that workers sent a round",
        "worker's own memory / vectors", "with what it has mapped, less the graph",
    ) as rows:  # fmt: skip
        for name, graph in graphs.items():
            for workers, threads, snapshot in (
                (0, 2, "float32"), (1, 2, "float32"), (2, 1, "float32"), (2, 1, "float16"), (4, 1, "float32"),
            ):  # fmt: skip
                wanted = settings(n_jobs=threads, workers=workers or None, snapshot=snapshot, engine="ray")
                schedule = plan(graph, wanted, count_pairs(graph, wanted))
                state = begin(graph.number_of_nodes, 128, False, 0)
                vectors = sum(table.nbytes for table in state.tables)
                engine: Any = (RayEngine if workers else CpuEngine)(graph, wanted, state)
                with engine:
                    empty = memory(engine) if workers else (0, 0)
                    for _ in range(3):
                        engine.advance(schedule)
                    begun = time.perf_counter()
                    for _ in range(ROUNDS[name] - 3):
                        engine.advance(schedule)
                    seconds = time.perf_counter() - begun
                    own, mapped = memory(engine) if workers else (0, 0)
                    sent = engine.sent if workers else 0
                label = f"{name}: {workers} workers with {threads} threads" + (
                    ", float16" if snapshot == "float16" else ""
                )
                if not workers:
                    one = seconds
                    pairs = sum(int(schedule.counts(number).sum()) for number in range(3, ROUNDS[name])) * 20
                    speed = pairs / seconds
                    rows.row(f"{name}: CPU engine with 2 threads", ROUNDS[name] - 3, f"{seconds:.1f}", "", "", "", "")
                    continue
                arcs = graph.indptr.nbytes + graph.indices.nbytes
                if workers == 2 and snapshot == "float32":
                    moved = sum(int(np.count_nonzero(schedule.counts(number))) for number in range(ROUNDS[name]))
                    each = sent / moved if moved else 0.0
                rows.row(
                    label, ROUNDS[name] - 3, f"{seconds:.1f}", f"{seconds / one:.2f}x",
                    f"{sent / ROUNDS[name] / 1e6:.1f}", f"{(own - empty[0]) / vectors:.2f}",
                    f"{(own - empty[0] + mapped - arcs) / vectors:.2f}",
                )  # fmt: skip
    print()
    return speed, each


def memory(engine: RayEngine) -> tuple[int, int]:
    """The memory of the first worker: its own, and what it has mapped of the object store."""
    pid = ray.get(engine._workers[0].__ray_call__.remote(lambda _: os.getpid()))
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    facts = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return int(facts["RssAnon"]) * 1024, int(facts["RssShmem"]) * 1024


def carry() -> None:
    """By the formula of docs/cluster.md: every node moves in 372 of 1,000 rounds."""
    with table("bytes into a machine a round, m = 128", "k = 2", "k = 8", "k = 32", "float16, k = 8") as rows:
        for nodes in (300_000, 10_000_000, 100_000_000):
            moved = nodes * 0.372
            cells = [moved * (4 * 128 + 16) * (k - 1) / k for k in (2, 8, 32)] + [moved * (2 * 128 + 16) * 7 / 8]
            rows.row(f"{nodes:,} nodes", *(f"{cell / 1e9:.2f} GB" for cell in cells))
    print()


def project(speed: float, each: float) -> None:
    """Not measured: computing shared out evenly, and what must come into a machine over 10 Gbit/s beside it."""
    with table(
        "PROJECTION, not measured: m = 128, default budget, 16 cores a machine", "machines", "hours of computing",
        "GB into a machine, whole run", "hours for that at 10 Gbit/s", "with float16",
    ) as rows:  # fmt: skip
        for nodes in (10_000_000, 100_000_000):
            for machines in (8, 32):
                pairs = 7450 * nodes
                hours = pairs / (speed / 2 * 16 * machines) / 3600
                # 1,000 rounds; a node moves in as many as it has iterations at most, and its row goes to all others
                moves = min(1000.0, 7450 / 20) * nodes
                into = moves * each * (machines - 1) / machines
                rows.row(
                    f"{nodes:,} nodes", machines, f"{hours:.2f}", f"{into / 1e9:,.0f}", f"{into * 8 / 10e9 / 3600:.2f}",
                    f"{into * 8 / 10e9 / 3600 * (256 + 16) / (512 + 16):.2f}",
                )  # fmt: skip
