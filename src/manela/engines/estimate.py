"""Estimates the time and memory of a run before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from manela.data.graph import Graph
from manela.engines.training import USUAL_SWEEPS, adapt, count_reserve, measure_speed, split_time, turn_aside
from manela.kernels.layout import pad
from manela.kernels.reference import BLOCKS
from manela.settings.budget import Sizes, resolve
from manela.settings.settings import Settings

MOST_PLANNED = 1 << 24
"""On a GPU, most nodes times rounds planned ahead (at least one round); more take more memory."""

_JOIN = 12
"""How many sweeps take as long as what follows them and the rounds."""
_OF_LIMIT = 0.9
"""Share of a running time that rounds get, beside what is kept for other phases: the rest measures speed."""
_TRIAL = 0.5
"""Seconds for which speed is measured; longer is more precise."""


@dataclass(frozen=True)
class Estimate:
    """Update pairs, rounds, seconds, and peak memory in bytes on top of the program itself.

    A run with context vectors beside the rounds is in seconds and bytes only.
    `gpu_bytes` is the memory of a GPU, `store_bytes` that of the object store of each machine of a Ray cluster; both
    are 0 with walks, which run on the CPU.
    """

    pairs: int
    rounds: int
    seconds: float
    bytes: int
    gpu_bytes: int
    store_bytes: int


def estimate(graph: Graph, settings: Settings, seconds: float = _TRIAL) -> Estimate:
    """Measure the speed on this graph and machine for some seconds, and extrapolate."""
    settings = adapt(settings, graph)
    aside = measure_speed(graph, turn_aside(settings), seconds) if settings.learns_aside else None
    speed, sizes = measure_speed(graph, settings, seconds), Sizes.of(graph.indptr)
    limit, budget = settings.max_seconds, resolve(settings, sizes)
    beside = speed.sweep * (USUAL_SWEEPS + (_JOIN if settings.has_view else 0.0))
    pairs = budget.expected_pairs
    if limit is not None and settings.has_rounds:
        sweep = speed.sweep + (0.0 if aside is None else aside.sweep)
        left = _OF_LIMIT * (limit * (1.0 - count_reserve(settings)) - sweep * USUAL_SWEEPS)
        pairs = split_time(left, aside, speed) if aside is not None else int(speed.pairs * max(0.0, left))
    if aside is not None:
        beside += aside.sweep * USUAL_SWEEPS + resolve(turn_aside(settings), sizes).expected_pairs / aside.pairs
    return Estimate(
        pairs=pairs,
        rounds=resolve(settings, sizes, pairs).rounds,
        seconds=limit or beside + pairs / speed.pairs,
        bytes=count_cpu_bytes(graph, settings),
        gpu_bytes=count_gpu_bytes(graph, settings),
        store_bytes=count_store_bytes(graph, settings),
    )


def count_cpu_bytes(graph: Graph, settings: Settings) -> int:
    """Return the bytes of this process for the network, the vectors and all phases, on top of the program itself."""
    nodes, tables = graph.number_of_nodes, _count_tables(settings)
    schedule = 5 * 8 * nodes
    if settings.exchange == "walks":
        return _count_arcs(graph) + schedule + tables * _row(settings) * (nodes + _count_moved(graph, settings))
    hops = len(settings.targets_by_hop)
    most = min(BLOCKS, int(_count_iterations(graph, settings) * _find_top(graph, settings)) + 2)
    negatives = 2 * most * settings.negatives * sum(settings.targets_by_hop) * _row(settings) * tables
    shown = _row(settings) // 2 * hops
    view = _row(settings) // 2 if settings.has_view else 0
    in_rounds = schedule + (tables * (_row(settings) + shown) + view) * nodes + negatives
    # a view that is not where vectors start from has a table of its own
    in_sweeps = (_row(settings) * (1 + (not settings.starts_by_sweeps)) + view) * nodes + 4 * len(graph.indices)
    if settings.learns_aside:
        held = _row(settings) // 2 * nodes  # the vectors of the run with context vectors, beside all of this
        return max(count_cpu_bytes(graph, turn_aside(settings)), held + _count_arcs(graph) + max(in_rounds, in_sweeps))
    return _count_arcs(graph) + max(in_rounds, in_sweeps)


def count_gpu_bytes(graph: Graph, settings: Settings) -> int:
    """Return the bytes on a GPU, which runs no walks."""
    if settings.exchange == "walks":
        return 0
    nodes, tables, row = graph.number_of_nodes, _count_tables(settings), _row(settings)
    budget = resolve(settings, Sizes.of(graph.indptr))
    rounds = MOST_PLANNED if budget.seconds is not None else budget.rounds
    planned = 8 * 6 * max(2 * nodes, min(MOST_PLANNED, nodes * rounds))
    common = _count_arcs(graph) + 40 * nodes + planned
    shown = row // 2 * len(settings.targets_by_hop) * tables
    view = row // 2 * nodes if settings.has_view else 0
    in_rounds = (shown + row + 12 * sum(settings.targets_by_hop)) * nodes
    smoothing = 4 * row * nodes if settings.smooths else 0
    in_sweeps = row // 2 * nodes + 12 * len(graph.indices) if settings.starts_by_sweeps or settings.has_view else 0
    own = common + tables * row * nodes + view + max(in_rounds, smoothing, in_sweeps)
    return max(own + view, count_gpu_bytes(graph, turn_aside(settings))) if settings.learns_aside else own


def count_store_bytes(graph: Graph, settings: Settings) -> int:
    """Return the bytes in the object store of each machine of a Ray cluster: the network, and two rounds of data.

    A cluster runs no walks.
    """
    if settings.exchange == "walks":
        return 0
    nodes, row = graph.number_of_nodes, _count_tables(settings) * _row(settings)
    return _count_arcs(graph) + 8 * len(settings.targets_by_hop) * nodes + 2 * nodes * row // 2


def _count_tables(settings: Settings) -> int:
    return 2 if settings.context else 1


def _row(settings: Settings) -> int:
    return 4 * pad(settings.dimensions)


def _count_arcs(graph: Graph) -> int:
    """Return the bytes of the arcs, of their weights with alias tables, and of the shares of nodes in means."""
    arcs = graph.indptr.nbytes + graph.indices.nbytes
    if graph.weights is not None:
        arcs += graph.weights.nbytes + 8 * len(graph.indices)
    return arcs + (4 * len(graph.indices) if graph.directed or graph.is_weighted else 0)


def _count_iterations(graph: Graph, settings: Settings) -> float:
    budget = resolve(settings, Sizes.of(graph.indptr))
    if budget.seconds is not None:
        return 1.0
    return budget.pairs_per_round / graph.number_of_nodes / sum(settings.targets_by_hop)


def _count_moved(graph: Graph, settings: Settings) -> int:
    nodes = graph.number_of_nodes
    return int(min(nodes, _count_iterations(graph, settings) * nodes + 1))


def _find_top(graph: Graph, settings: Settings) -> float:
    strengths = graph.strengths[graph.degrees > 0]
    weights = strengths**settings.frequency
    return float(weights.max() / weights.mean()) if len(weights) else 1.0
