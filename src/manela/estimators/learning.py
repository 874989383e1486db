"""Learning with validated settings, shared by the estimator and the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.data.graph import Graph
from manela.engines.training import Run, train
from manela.estimators.cover import add_ends, cover, is_covered, uncover
from manela.estimators.embedder import describe_run
from manela.kernels.layout import Vectors
from manela.settings.settings import Settings

METHOD = "manela"
"""The name of the method in provenance."""


def learn(
    graph: Graph, settings: Settings, facts: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Embedding, Run]:
    """Learn the vectors of a graph with validated settings; return them and the run.

    A directed network is learned through its cover where `is_covered` says so. `facts` are added to the provenance, and
    `options` are passed to `train`.
    """
    covered = is_covered(graph, settings)
    run = train(cover(graph) if covered else graph, settings, **options)
    provenance = describe_run(
        METHOD,
        graph,
        {**run.settings.parameters(), "directed": graph.directed},
        budget=run.pairs,
        rounds=run.schedule.rounds,
        rounds_done=run.state.round,
        rate_fell_at=run.state.falls_at,
        pairs_made=run.state.pairs,
        engine=run.engine,
        **(facts or {}),
    )
    if covered:
        updates = None if run.updates is None else add_ends(graph, run.updates)
        return uncover(graph, run.state.vectors, provenance), dataclasses.replace(run, updates=updates)
    return Embedding(graph.nodes, run.state.vectors, run.state.context, provenance), run


def start_from_neighbours(graph: Graph, table: Vectors, is_new: npt.NDArray[np.bool_]) -> None:
    """Set each new node's row of `table` to the mean of its placed neighbours, starting next to known nodes.

    A new node with no path to a known one keeps its row.
    """
    placed = ~is_new
    adjacency = graph.to_scipy()
    while not placed.all():
        counts = adjacency @ placed.astype(np.float64)
        ready = ~placed & (counts > 0)
        if not ready.any():
            return
        sums = adjacency[ready] @ np.where(placed[:, None], table, 0.0)
        table[ready] = sums / counts[ready, None]
        placed |= ready
