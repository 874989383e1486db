"""Rounds by messages beside rounds by walks, and beside ProNE: update pairs a second, seconds of a default fit."""

import time
import warnings
from typing import Any

from benchmarks.table import spread, table
from manela import Manela, ManelaWarning, ProNE
from manela.datasets.generators import draw_random
from manela.datasets.loading import load_graph
from manela.engines.selection import open_engine
from manela.engines.state import begin
from manela.graph import Graph
from manela.params import PAPER
from manela.schedule import Schedule, plan
from manela.settings import check_all

TURNS = 7
LARGE_TURNS = 3


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    blogcatalog = load_graph("blogcatalog")
    with table("update pairs a second, m = 128, two threads", "walks, M", "messages, M", "messages / walks") as rows:
        for label, graph, turns in (
            ("BlogCatalog", blogcatalog, TURNS),
            ("random, 1 M nodes, 5 M edges", draw_random(1_000_000, 5_000_000), LARGE_TURNS),
        ):
            walks, messages = compare_speed(graph, turns)
            ratios = [m / w for m, w in zip(messages, walks, strict=True)]
            rows.row(label, spread(walks, ".2f"), spread(messages, ".2f"), spread(ratios, ".2f"))
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


def compare_speed(graph: Graph, turns: int) -> tuple[list[float], list[float]]:
    """Million pairs a second of whole rounds by walks and by messages, one after the other, turn by turn."""
    speeds: tuple[list[float], list[float]] = ([], [])
    runs = []
    for parameters in (PAPER, {}):
        settings = check_all({**parameters, "n_jobs": 2})
        state = begin(graph.number_of_nodes, settings.dimensions, False, 0, 2)
        for table_ in state.tables:
            table_ *= 20  # as large as vectors are when they have learned for a while
        engine = open_engine(graph, settings, state)
        schedule = plan(graph, settings, None)
        engine.advance(schedule)
        runs.append((engine, schedule))
    for _ in range(turns):
        for place, (engine, schedule) in enumerate(runs):
            speeds[place].append(time_rounds(engine, schedule))
    for engine, _ in runs:
        engine.__exit__(None, None, None)
    return speeds


def time_rounds(engine: Any, schedule: Schedule, least: float = 0.5) -> float:
    """Million update pairs a second over rounds of at least half a second."""
    begun, pairs = time.perf_counter(), engine.pairs
    while (elapsed := time.perf_counter() - begun) < least:
        engine.advance(schedule)
    return float((engine.pairs - pairs) / elapsed / 1e6)
