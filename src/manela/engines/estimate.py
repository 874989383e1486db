"""What a run will take, told before it begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manela.engines.training import measure_speed
from manela.graph import Graph
from manela.kernels.layout import pad
from manela.kernels.reference import BLOCKS
from manela.schedule import Schedule, count_pairs, plan
from manela.settings import Settings

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
    return Estimate(
        pairs=pairs,
        rounds=schedule.rounds,
        seconds=pairs / speed,
        bytes=_count_bytes(graph, settings, schedule),
    )


def _count_bytes(graph: Graph, settings: Settings, schedule: Schedule) -> int:
    """The network, the schedule, the vectors, and what a round needs beside them."""
    nodes, width = graph.number_of_nodes, pad(settings.dimensions)
    arcs = graph.indptr.nbytes + graph.indices.nbytes
    arcs += 0 if graph.weights is None else graph.weights.nbytes + 8 * len(graph.indices)
    counts = 5 * 8 * nodes
    tables = 2 if settings.context else 1
    vectors = 4 * width * nodes * tables
    if settings.exchange == "walks":
        moved = int(np.count_nonzero(schedule.counts(0)))
        return arcs + counts + vectors + 4 * width * moved * tables
    shown = 2 * width * nodes * tables * len(settings.targets_by_hop)
    own_shares = 4 * len(graph.indices) if graph.directed or graph.is_weighted else 0
    most = min(BLOCKS, int(schedule.counts(0).max()))
    negatives = 2 * 4 * width * most * settings.negatives * sum(settings.targets_by_hop)
    return arcs + own_shares + counts + vectors + shown + negatives
