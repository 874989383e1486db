"""Estimates the time and memory of a run before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from manela.data.graph import Graph
from manela.engines.memory import count_cpu_bytes, count_gpu_bytes, count_store_bytes
from manela.engines.training import measure_speed
from manela.settings.schedule import count_pairs, plan
from manela.settings.settings import Settings

_TRIAL = 0.5
"""Seconds for which speed is measured; longer is more precise."""


@dataclass(frozen=True)
class Estimate:
    """Update pairs, rounds, seconds, and peak memory in bytes on top of the program itself.

    `gpu_bytes` is the memory of a GPU, `store_bytes` that of the object store of each machine of a Ray cluster.
    """

    pairs: int
    rounds: int
    seconds: float
    bytes: int
    gpu_bytes: int
    store_bytes: int


def estimate(graph: Graph, settings: Settings) -> Estimate:
    """Measure the speed on this graph and machine for half a second, and extrapolate."""
    speed = measure_speed(graph, settings, _TRIAL)
    pairs = int(speed * settings.max_seconds) if settings.max_seconds else count_pairs(graph, settings)
    schedule = plan(graph, settings, pairs)
    return Estimate(
        pairs=pairs,
        rounds=schedule.rounds,
        seconds=pairs / speed,
        bytes=count_cpu_bytes(graph, settings),
        gpu_bytes=count_gpu_bytes(graph, settings),
        store_bytes=count_store_bytes(graph, settings),
    )
