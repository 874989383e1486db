"""The Ray engine beside the CPU engine, on this machine: time, traffic, memory, and a projection to more machines."""

import logging
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import ray

from benchmarks.table import table
from manela import Graph
from manela.engines.engine import open_engine
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.formats.datasets import draw_random
from manela.formats.loading import load_graph
from manela.settings.budget import Sizes, resolve
from manela.settings.settings import check_all

NODES, EDGES = 300_000, 1_500_000
ROUNDS = {"BlogCatalog": 37, "300,000 nodes": 20}
WARM = 3


class Case(NamedTuple):
    """Workers, and threads of each."""

    name: str
    workers: int
    threads: int


CASES = (
    Case("CPU engine with 2 threads", 0, 2),
    Case("1 worker with 2 threads", 1, 2),
    Case("2 workers with 1 thread", 2, 1),
    Case("4 workers with 1 thread", 4, 1),
)


def main() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init("local", num_cpus=4, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    try:
        graphs = {"BlogCatalog": load_graph("blogcatalog", unweighted=True), "300,000 nodes": draw_random(NODES, EDGES)}
        project(*measure(graphs))
    finally:
        ray.shutdown()


def measure(graphs: dict[str, Graph]) -> tuple[float, float]:
    """Time some rounds of each case; returns of the large network the CPU's pairs a second, and bytes a pair."""
    found = 0.0, 0.0
    with table(
        "m = 128, default budget", "rounds timed", "seconds", "against the CPU engine", "MB that workers sent a round",
        "bytes for an update pair", "GB in a whole run", "worker's own memory / vectors",
    ) as rows:  # fmt: skip
        for name, rounds in ROUNDS.items():
            base = speed = 0.0
            for case in CASES:
                seconds, pairs, sent, memory, all_pairs = time_rounds(graphs[name], case, rounds)
                base = base or seconds
                speed = speed or pairs / seconds
                label, done = f"{name}: {case.name}", rounds - WARM
                if not case.workers:
                    rows.row(label, done, f"{seconds:.1f}", "", "", "", "", "")
                    continue
                a_pair = sent / (pairs * rounds / done)
                if case.workers == 2:
                    found = speed, a_pair
                rows.row(
                    label, done, f"{seconds:.1f}", f"{seconds / base:.2f}x", f"{sent / rounds / 1e6:.1f}",
                    f"{a_pair:.1f}", f"{a_pair * all_pairs / 1e9:.1f}", f"{memory:.2f}",
                )  # fmt: skip
    print()
    return found


def time_rounds(graph: Graph, case: Case, rounds: int) -> tuple[float, int, int, float, int]:
    """Seconds and update pairs of the rounds that are timed, bytes sent in all, memory over vectors, pairs of a run."""
    wanted = check_all({
        "start": "random", "views": "rounds", "n_jobs": case.threads, "workers": case.workers or None,
        "engine": "ray" if case.workers else "cpu",
    })  # fmt: skip
    budget = resolve(wanted, Sizes.of(graph.indptr)).expected_pairs
    schedule = plan_run(graph, wanted, None)
    state = begin(graph.number_of_nodes, 128, False, 0)
    vectors = sum(table.nbytes for table in state.tables)
    with open_engine(graph, wanted, state) as engine:
        empty = find_memory(engine) if case.workers else 0
        for _ in range(WARM):
            engine.advance(schedule)
        begun, made = time.perf_counter(), engine.pairs
        for _ in range(rounds - WARM):
            engine.advance(schedule)
        seconds = time.perf_counter() - begun
        made = engine.pairs - made
        memory = (find_memory(engine) - empty) / vectors if case.workers else 0.0
        sent = getattr(engine, "sent", 0)
    return seconds, made, sent, memory, budget


def find_memory(engine: Any) -> int:
    """The memory of the first worker that is its own, in bytes."""
    pid = ray.get(engine.workers[0].__ray_call__.remote(lambda _: os.getpid()))
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    facts = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return int(facts["RssAnon"]) * 1024


def project(speed: float, a_pair: float) -> None:
    """Not measured: computing shared out evenly, and what must come into a machine over 10 Gbit/s beside it."""
    with table(
        "PROJECTION, not measured: by messages, m = 128, default budget, 16 cores a machine", "machines",
        "hours of computing", "GB into a machine, whole run", "hours for that at 10 Gbit/s",
    ) as rows:  # fmt: skip
        for nodes in (10_000_000, 100_000_000):
            for machines in (8, 32):
                pairs = 1120 * nodes
                hours = pairs / (speed / 2 * 16 * machines) / 3600
                # of two workers each has seen the rows of half of all nodes; of more, of all but its own
                into = pairs * a_pair * (machines - 1) / machines
                rows.row(
                    f"{nodes:,} nodes", machines, f"{hours:.3f}", f"{into / 1e9:,.0f}", f"{into * 8 / 10e9 / 3600:.2f}"
                )
