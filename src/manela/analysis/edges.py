"""Odd and missing edges: those that vectors find unlikely, and pairs that look like edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from manela.analysis.links import Scorer, Split, hide_edges, sample_nodes, score_adamic_adar, score_vectors
from manela.analysis.oddness import compare, draw_unlinked, measure_oddness
from manela.data.graph import Graph
from manela.errors import GraphError, ParameterError
from manela.kernels.layout import RowNumbers, Vectors, normalise_rows
from manela.kernels.randomness import seed_of

Learn = Callable[[Graph], Vectors]
"""Learns the vectors of a network, one row for each node."""

_RANDOM_PAIRS = 50_000
"""Random pairs without an edge for comparison; more distinguish smaller differences and take longer."""


@dataclass(frozen=True, eq=False)
class OddEdges:
    """The edges of a network, the oddest first.

    Attributes
    ----------
    sources, targets : arrays of int, shape (e,)
        Rows of the ends of each edge.
    similarity : array of float32, shape (e,)
        The cosine of the vectors of its ends, which were learned without this edge.
    oddness : array of float64, shape (e,)
        The share of random pairs without an edge that are at least as similar: near 0 for an expected edge.
    judged : int
        Number of edges that could be scored; an edge with an end that has no other edge is left out.
    auc : float
        The probability that a hidden edge is more similar than a random pair without an edge.
    """

    sources: RowNumbers
    targets: RowNumbers
    similarity: npt.NDArray[np.float32]
    oddness: npt.NDArray[np.float64]
    judged: int
    auc: float


def find_odd_edges(
    graph: Graph, learn: Learn, folds: int = 5, random_state: Any = 0, done: Callable[[], None] = lambda: None
) -> OddEdges:
    """Score every edge by vectors that were learned without it.

    The edges are split into `folds` parts at random. For each part, vectors are learned from all other parts, and its
    edges are compared with random pairs without an edge. An edge that was added by an attacker, by mistake or by chance
    is about as similar as a random pair.

    Parameters
    ----------
    graph : Graph
    learn : callable
        Learns the vectors of a network.
    folds : int
        Number of parts; with more, each fit sees more edges, and the run takes longer.
    random_state : int
    done : callable
        Called after each part.
    """
    if folds < 2:
        raise ParameterError(f"folds must be at least 2, got {folds}")
    both_ways = _symmetric(graph)
    edges = sp.triu(both_ways, k=1, format="coo")
    if edges.nnz < 2 * folds:
        raise GraphError(f"a network of {edges.nnz:,} edges is too small to hide a part of them, in {folds} parts")
    random = np.random.default_rng(seed_of(random_state))
    part = random.permutation(edges.nnz) % folds
    arcs = np.repeat(np.arange(graph.number_of_nodes), np.diff(both_ways.indptr)), both_ways.indices
    pairs = draw_unlinked(random, _RANDOM_PAIRS, arcs, arcs)
    if not len(pairs[0]):
        raise GraphError("every node is joined with every other, so no edge is odd")
    similarity = np.full(edges.nnz, np.nan, dtype=np.float32)
    oddness = np.full(edges.nnz, np.nan)
    truth, scores = [], []
    for number in range(folds):
        hidden = part == number
        is_left = ~hidden
        remaining = Graph.from_arcs(
            edges.row[is_left].astype(np.int64), edges.col[is_left].astype(np.int64),
            edges.data[is_left] if graph.is_weighted else None, graph.nodes, duplicates="first",
        )  # fmt: skip
        directions = normalise_rows(learn(remaining))
        random_similarity = np.sort(compare(directions, *pairs))
        is_scored = hidden & (remaining.degrees[edges.row] > 0) & (remaining.degrees[edges.col] > 0)
        similarity[is_scored] = compare(directions, edges.row[is_scored], edges.col[is_scored])
        oddness[is_scored] = measure_oddness(similarity[is_scored], random_similarity)
        truth.append(np.repeat([True, False], [int(is_scored.sum()), len(random_similarity)]))
        # ranks among the random pairs of the same part, as vectors of different parts cannot be compared
        random_ranks = (np.arange(len(random_similarity), 0, -1) - 0.5) / len(random_similarity)
        scores.append(-np.concatenate((oddness[is_scored], random_ranks)))
        done()
    judged = np.flatnonzero(~np.isnan(oddness))
    if not len(judged):
        raise GraphError("no edge can be judged: each has an end without other edges")
    order = judged[np.lexsort((judged, similarity[judged], -oddness[judged]))]
    return OddEdges(
        edges.row[order].astype(np.int64), edges.col[order].astype(np.int64), similarity[order], oddness[order],
        len(judged), float(roc_auc_score(np.concatenate(truth), np.concatenate(scores))),
    )  # fmt: skip


def _symmetric(graph: Graph) -> sp.csr_array:
    matrix = graph.to_scipy()
    return sp.csr_array(matrix.maximum(matrix.T)) if graph.directed else matrix


_SHARE = 0.1
"""Share of the edges that are hidden; a larger share measures more precisely and leaves less to learn from."""
_MOST_ASKED = 2000
"""Most nodes whose hidden edges are searched for; more are more precise and slower."""
_SCORES = 1 << 24
"""Scores computed at a time; more take more memory."""


@dataclass(frozen=True)
class Recall:
    """The share of hidden edges that are recommended."""

    hidden: int  # number of hidden edges of the sampled nodes
    # the share of their ends at sampled nodes whose other end is recommended to the node: by vectors, and by common
    # neighbours (Adamic and Adar) without learning
    by_vectors: float
    by_neighbours: float


def recommend(
    graph: Graph, scorer: Scorer, rows: RowNumbers, count: int
) -> Iterator[tuple[RowNumbers, npt.NDArray[np.float64]]]:
    """Yield for each node the rows of the highest-scoring nodes that are not its neighbours, with their scores."""
    if count < 1:
        raise ParameterError(f"count must be at least 1, got {count}")
    known = sp.csr_array(graph.to_scipy() != 0)
    count = min(count, graph.number_of_nodes)
    step = max(1, _SCORES // graph.number_of_nodes)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        scores = np.array(scorer(part), dtype=np.float64)
        scores[known[part].toarray()] = -np.inf
        scores[np.arange(len(part)), part] = -np.inf
        best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
        for line, columns in zip(scores, best, strict=True):
            order = columns[np.lexsort((columns, -line[columns]))]
            order = order[line[order] > -np.inf]
            yield order.astype(np.int64), line[order]


def measure_recall(
    graph: Graph, learn: Learn, count: int, random_state: Any = 0, most_asked: int = _MOST_ASKED
) -> Recall:
    """Hide a tenth of the edges, learn from the rest, and measure how many are among `count` recommended per node.

    At most `most_asked` nodes, drawn at random, are asked.
    """
    split = hide_edges(graph, _SHARE, random_state)
    rows = sample_nodes(split, most_asked, random_state)
    by_vectors = _count_found(split, score_vectors(learn(split.graph)), rows, count)
    by_neighbours = _count_found(split, score_adamic_adar(split.graph), rows, count)
    ends = int(split.hidden[rows].nnz)
    hidden = ends - int(sp.triu(split.hidden[rows][:, rows]).nnz)  # an edge of two sampled nodes has two ends there
    return Recall(hidden, by_vectors / max(1, ends), by_neighbours / max(1, ends))


def _count_found(split: Split, scorer: Scorer, rows: RowNumbers, count: int) -> int:
    hits = 0
    for row, (columns, _) in zip(rows, recommend(split.graph, scorer, rows, count), strict=True):
        hits += int(split.hidden[[int(row)]][:, columns].nnz)
    return hits
