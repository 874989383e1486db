"""Learning by settings that are checked: what the estimator and the command have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.embedding import Embedding
from manela.engines.training import Run, train
from manela.estimators.cover import add_ends, cover, is_covered, uncover
from manela.estimators.embedder import Vectors, describe_run
from manela.graph import Graph
from manela.settings import Settings

METHOD = "manela"
"""The name of the method, as provenance has it."""


def learn(
    graph: Graph, settings: Settings, facts: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Embedding, Run]:
    """The vectors of a graph by settings that are checked already, and the run that learned them.

    By messages, a directed network is learned by its cover. `facts` are added to the provenance; `options` are those of
    `train`.
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
        made = None if run.updates is None else add_ends(graph, run.updates)
        return uncover(graph, run.state.vectors, provenance), dataclasses.replace(run, updates=made)
    return Embedding(graph.nodes, run.state.vectors, run.state.context, provenance), run


def start_from_neighbours(graph: Graph, table: Vectors, is_new: npt.NDArray[np.bool_]) -> None:
    """Put each new node at the mean of its neighbours that have a place, nearest first; without any it stays put."""
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
