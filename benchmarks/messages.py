"""Rounds by messages beside rounds by walks, and beside ProNE: update pairs a second, seconds of a default fit."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.table import spread, table
from manela import Manela, ManelaWarning, ProNE
from manela.data.graph import Graph
from manela.engines.cpu import CpuEngine
from manela.engines.engine import open_engine
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.formats.datasets import draw_random
from manela.formats.loading import load_graph
from manela.settings.parameters import PAPER
from manela.settings.schedule import Schedule
from manela.settings.settings import check_all

ROUNDS_ONLY: dict[str, Any] = {"start": "random", "views": "rounds"}
"""Rounds that are timed by themselves; from the spectral view there are too few of them."""
TURNS = 7
SMALL_TURNS, LARGE_TURNS = 31, 5
"""Short turns, and many: a shared machine is slower for moments."""


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    blogcatalog = load_graph("blogcatalog")
    with table("update pairs a second, m = 128, two threads", "walks, M", "messages, M", "messages / walks") as rows:
        for label, graph, turns in (
            ("BlogCatalog", blogcatalog, SMALL_TURNS),
            ("random, 1 M nodes, 5 M edges", draw_random(1_000_000, 5_000_000), LARGE_TURNS),
        ):
            walks, messages = compare_speed(graph, turns)
            ratios = [m / w for m, w in zip(messages, walks, strict=True)]
            rows.row(label, spread(walks, ".2f"), spread(messages, ".2f"), spread(ratios, ".2f"))
    print()
    time_parts(blogcatalog)
    print()
    fits: dict[str, Any] = {
        "MANELA, default settings": lambda: Manela(n_jobs=2),
        "MANELA, the paper's settings (the default of 0.1)": lambda: Manela.paper(n_jobs=2),
        "ProNE": lambda: ProNE(n_jobs=2),
    }
    for make in fits.values():
        make().fit(blogcatalog)  # compiles
    seconds: dict[str, list[float]] = {label: [] for label in fits}
    for _ in range(TURNS):
        for label, make in fits.items():
            begun = time.perf_counter()
            make().fit(blogcatalog)
            seconds[label].append(time.perf_counter() - begun)
    with table("seconds of a whole fit on BlogCatalog, two threads", "seconds", "MANELA's default / this") as rows:
        for label, values in seconds.items():
            own = seconds["MANELA, default settings"]
            rows.row(label, spread(values, ".3f"), spread([a / b for a, b in zip(own, values, strict=True)], ".2f"))


def time_parts(graph: Graph) -> None:
    """Where a round by messages spends its time."""
    with table(
        "parts of a round on BlogCatalog, two threads; median of 31", "ms", "ns of a pair, for each thread"
    ) as rows:
        for negatives in (5, 0):
            settings = check_all({**ROUNDS_ONLY, "n_jobs": 2, "negatives": negatives})
            schedule = plan_run(graph, settings, 30 * 40 * graph.number_of_nodes)
            everyone = slice(0, graph.number_of_nodes)
            with CpuEngine(graph, settings) as engine:
                engine.advance(schedule)
                rounds, counts = engine.rounds, schedule.counts(3)
                drawn = rounds.draw_negatives(3, schedule)
                parts: dict[str, Callable[[], object]] = {
                    "what nodes show, with their means": rounds.show,
                    "common negatives": lambda: rounds.draw_negatives(3, schedule),  # noqa: B023
                    "moving nodes": lambda: rounds.move(everyone, counts, 3, 0.0, drawn),  # noqa: B023
                }
                pairs = int(counts.sum()) * sum(settings.targets_by_hop)
                for label, work in parts.items():
                    if negatives or label == "moving nodes":
                        seconds = float(np.median([timed(work) for _ in range(SMALL_TURNS)]))
                        label += "" if negatives else ", without negatives"
                        rows.row(label, f"{seconds * 1e3:.2f}", f"{2 * seconds / pairs * 1e9:.1f}")


def timed(work: Callable[[], object]) -> float:
    """Seconds of a piece of work."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def compare_speed(graph: Graph, turns: int) -> tuple[list[float], list[float]]:
    """Million pairs a second of whole rounds by walks and by messages, one after the other, turn by turn."""
    speeds: tuple[list[float], list[float]] = ([], [])
    runs = []
    for parameters in (PAPER, ROUNDS_ONLY):
        settings = check_all({**parameters, "n_jobs": 2})
        state = begin(graph.number_of_nodes, settings.dimensions, False, 0, 2)
        for table_ in state.tables:
            table_ *= 20  # as large as vectors are when they have learned for a while
        engine = open_engine(graph, settings, state)
        schedule = plan_run(graph, settings, None)
        engine.advance(schedule)
        runs.append((engine, schedule))
    for _ in range(turns):
        for place, (engine, schedule) in enumerate(runs):
            speeds[place].append(time_rounds(engine, schedule))
    for engine, _ in runs:
        engine.__exit__(None, None, None)
    return speeds


def time_rounds(engine: Any, schedule: Schedule, least: float = 0.2) -> float:
    """Million update pairs a second over rounds of at least a fifth of a second."""
    begun, pairs = time.perf_counter(), engine.pairs
    while (elapsed := time.perf_counter() - begun) < least:
        engine.advance(schedule)
    return float((engine.pairs - pairs) / elapsed / 1e6)
