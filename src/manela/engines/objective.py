"""An estimate of the objective (equation 1 of the paper) on a fixed sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import Arcs
from manela.engines.engine import Engine
from manela.graph import Graph
from manela.kernels.reference import draw
from manela.randomness import OBJECTIVE, derive, derive_key, scale_to
from manela.settings import Settings

_SAMPLE = 64


class Objective:
    """One iteration of each of up to 64 nodes, drawn once; its value is a mean over update pairs."""

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
        """Σ log σ(x·u) over targets plus Σ log σ(−x·u) over negatives, for each update pair; NaN with no pairs."""
        pairs = np.count_nonzero(self._signs > 0)
        if pairs == 0:
            return float("nan")
        x, others = engine.rows(0, self._nodes), engine.rows(-1, self._rows)
        logits: npt.NDArray[np.float64] = self._signs * np.einsum("ij,ij->i", x, others).astype(np.float64)
        return float(-np.logaddexp(0.0, -logits).sum() / pairs)
