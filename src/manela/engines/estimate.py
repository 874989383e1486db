"""What a run will take, told before it begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manela.engines.training import measure_speed
from manela.graph import Graph
from manela.kernels.layout import pad
from manela.params import Settings
from manela.schedule import count_pairs, plan

_TRIAL = 0.5


@dataclass(frozen=True)
class Estimate:
    """Update pairs, seconds, and bytes at the peak beyond what the program itself needs."""

    pairs: int
    rounds: int
    seconds: float
    bytes: int


def estimate(graph: Graph, settings: Settings) -> Estimate:
    """Try half a second of work on this graph and machine, and reckon from it."""
    speed = measure_speed(graph, settings, _TRIAL)
    pairs = int(speed * settings.max_seconds) if settings.max_seconds else count_pairs(graph, settings)
    schedule = plan(graph, settings, pairs)
    moved = int(np.count_nonzero(schedule.counts(0)))
    tables = 2 if settings.context else 1
    row = 4 * pad(settings.dimensions)
    arcs = graph.indptr.nbytes + graph.indices.nbytes
    arcs += 0 if graph.weights is None else graph.weights.nbytes + 8 * len(graph.indices)
    counts = 5 * 8 * graph.number_of_nodes
    return Estimate(
        pairs=pairs,
        rounds=schedule.rounds,
        seconds=pairs / speed,
        bytes=arcs + counts + tables * row * (graph.number_of_nodes + moved),
    )
