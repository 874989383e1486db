"""Missing edges: recommends pairs without an edge that the rest of the network suggests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manela.data.graph import Graph
from manela.errors import ParameterError
from manela.evaluation.heuristics import score_adamic_adar
from manela.evaluation.links import RowNumbers, Scorer, Split, hide_edges, sample_nodes, score_vectors

Learn = Callable[[Graph], npt.NDArray[np.float32]]
"""Learns the vectors of a network, one row for each node."""

_SHARE = 0.1
"""Share of the edges that are hidden; a larger share measures more precisely and leaves less to learn from."""
_MOST_ASKED = 2000
"""Most nodes whose hidden edges are searched for; more are more precise and slower."""
_BLOCK = 1 << 24
"""Scores computed at a time; more take more memory."""


@dataclass(frozen=True)
class Recall:
    """The share of hidden edges that are recommended.

    Attributes
    ----------
    hidden : int
        Number of hidden edges of the sampled nodes.
    by_vectors, by_neighbours : float
        The share of their ends at sampled nodes whose other end is recommended to the node: by vectors, and by common
        neighbours (Adamic and Adar) without learning.
    """

    hidden: int
    by_vectors: float
    by_neighbours: float


def recommend(
    graph: Graph, scorer: Scorer, rows: RowNumbers, count: int
) -> Iterator[tuple[RowNumbers, npt.NDArray[np.float64]]]:
    """Yield for each node the rows of the highest-scoring nodes that are not its neighbours, with their scores."""
    if count < 1:
        raise ParameterError(f"count must be at least 1, got {count}.")
    known = sp.csr_array(graph.to_scipy() != 0)
    count = min(count, graph.number_of_nodes)
    step = max(1, _BLOCK // graph.number_of_nodes)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        scores = np.array(scorer(part), dtype=np.float64)
        scores[known[part].toarray()] = -np.inf
        scores[np.arange(len(part)), part] = -np.inf
        best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
        for line, places in zip(scores, best, strict=True):
            order = places[np.lexsort((places, -line[places]))]
            order = order[line[order] > -np.inf]
            yield order.astype(np.int64), line[order]


def measure_recall(graph: Graph, learn: Learn, count: int, random_state: Any = 0) -> Recall:
    """Hide a tenth of the edges, learn from the rest, and measure how many are among `count` recommended per node."""
    split = hide_edges(graph, _SHARE, random_state)
    rows = sample_nodes(split, _MOST_ASKED, random_state)
    by_vectors = _count_found(split, score_vectors(learn(split.graph)), rows, count)
    by_neighbours = _count_found(split, score_adamic_adar(split.graph), rows, count)
    ends = int(split.hidden[rows].nnz)
    hidden = ends - int(sp.triu(split.hidden[rows][:, rows]).nnz)  # an edge of two sampled nodes has two ends there
    return Recall(hidden, by_vectors / max(1, ends), by_neighbours / max(1, ends))


def _count_found(split: Split, scorer: Scorer, rows: RowNumbers, count: int) -> int:
    """Return how often the other end of a hidden edge is recommended to a node."""
    hits = 0
    for row, (places, _) in zip(rows, recommend(split.graph, scorer, rows, count), strict=True):
        hits += int(split.hidden[[int(row)]][:, places].nnz)
    return hits
