"""Estimates the objective (equation 1 of the paper) on a fixed sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.arcs import Arcs
from manela.engines.engine import Engine
from manela.kernels.randomness import OBJECTIVE, derive, derive_key, scale_to
from manela.kernels.reference import draw
from manela.settings.settings import Settings

_SAMPLE = 64
"""Sampled nodes; more are more precise and slower."""


class Objective:
    """The objective on one iteration of each of 64 nodes, drawn once with repetition; a mean over update pairs."""

    def __init__(self, graph: Graph, settings: Settings, arcs: Arcs) -> None:
        key = derive_key(settings.seed, OBJECTIVE)
        candidates = np.flatnonzero(graph.degrees)
        nodes = candidates[scale_to(derive(key, np.arange(_SAMPLE)), len(candidates)).astype(np.int64)]
        drawn = [
            draw(int(node), int(derive(derive(key, node), place)), arcs, settings.targets_by_hop, settings.negatives)
            for place, node in enumerate(nodes)
        ]
        self._nodes = np.repeat(nodes, [len(rows) for rows, _ in drawn])
        self._rows = np.concatenate([rows for rows, _ in drawn])
        self._signs = 2 * np.concatenate([labels for _, labels in drawn]) - 1

    def of(self, engine: Engine) -> float:
        """Return (Σ log σ(x·u) over targets + Σ log σ(−x·u) over negatives) per update pair; NaN without pairs."""
        pairs = np.count_nonzero(self._signs > 0)
        if pairs == 0:
            return float("nan")
        x, others = engine.rows(0, self._nodes), engine.rows(-1, self._rows)
        logits: npt.NDArray[np.float64] = self._signs * np.einsum("ij,ij->i", x, others).astype(np.float64)
        return float(-np.logaddexp(0.0, -logits).sum() / pairs)
