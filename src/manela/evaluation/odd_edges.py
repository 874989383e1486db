"""Odd edges: those that the rest of the network does not lead one to expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from manela.answers.book import find_directions
from manela.errors import GraphError, ParameterError
from manela.graph import Graph
from manela.randomness import seed_of

Vectors = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Learn = Callable[[Graph], Vectors]
"""The vectors of a network, a row for each of its nodes."""

_RANDOM_PAIRS = 50_000
"""Pairs without an edge that edges are compared with; with more, small differences are told apart."""
_BLOCK = 1 << 18


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
        The share of random pairs without an edge that are at least as similar: near 0 for an edge as one would expect.
    judged : int
        Edges that could be judged; ends that have no other edge say nothing, and their edges are left out.
    auc : float
        The chance that an edge that was hidden is more similar than a random pair without an edge.
    """

    sources: Integers
    targets: Integers
    similarity: npt.NDArray[np.float32]
    oddness: npt.NDArray[np.float64]
    judged: int
    auc: float


def find_odd_edges(
    graph: Graph,
    learn: Learn,
    folds: int = 5,
    random_state: Any = 0,
    done: Callable[[], None] = lambda: None,
) -> OddEdges:
    """Judge every edge by vectors that were learned without it.

    The edges are dealt into `folds` parts. For each, vectors are learned from all other parts, and its edges are
    compared with random pairs that are no edges. An edge that an attacker, a mistake or chance has put in is as similar
    as these.

    Parameters
    ----------
    graph : Graph
    learn : callable
        The vectors of a network.
    folds : int
        Parts; with more, more is learned from, and the run takes longer.
    random_state : int
    done : callable
        Called after each part.
    """
    if folds < 2:
        raise ParameterError(f"folds must be at least 2, got {folds}.")
    edges = sp.triu(_symmetric(graph), k=1, format="coo")
    if edges.nnz < 2 * folds:
        raise GraphError(f"a network of {edges.nnz:,} edges is too small to hide a part of them, in {folds} parts")
    random = np.random.default_rng(seed_of(random_state))
    part = random.permutation(edges.nnz) % folds
    pairs = _draw_pairs(graph, random)
    similarity = np.full(edges.nnz, np.nan, dtype=np.float32)
    oddness = np.full(edges.nnz, np.nan)
    truth, scores = [], []
    for number in range(folds):
        hidden = part == number
        left = ~hidden
        rest = Graph.from_arcs(
            edges.row[left].astype(np.int64), edges.col[left].astype(np.int64),
            edges.data[left] if graph.is_weighted else None, graph.nodes, duplicates="first",
        )  # fmt: skip
        directions = find_directions(learn(rest))
        random_similarity = np.sort(_compare(directions, *pairs))
        known = hidden & (rest.degrees[edges.row] > 0) & (rest.degrees[edges.col] > 0)
        similarity[known] = _compare(directions, edges.row[known], edges.col[known])
        above = len(random_similarity) - np.searchsorted(random_similarity, similarity[known])
        oddness[known] = above / len(random_similarity)
        truth.append(np.repeat([True, False], [int(known.sum()), len(random_similarity)]))
        # places among the random pairs of the same part, since vectors of different parts cannot be compared
        places = (np.arange(len(random_similarity), 0, -1) - 0.5) / len(random_similarity)
        scores.append(-np.concatenate((oddness[known], places)))
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


def _draw_pairs(graph: Graph, random: np.random.Generator) -> tuple[Integers, Integers]:
    """Random pairs without an edge; ends are drawn by degree, so that their degrees are those of ends of edges."""
    chances = graph.degrees / graph.degrees.sum()
    known = sp.csr_array(_symmetric(graph) != 0)
    ends = random.choice(graph.number_of_nodes, size=(2, 2 * _RANDOM_PAIRS), p=chances)
    is_edge = np.asarray(known[ends[0], ends[1]]).ravel()
    free = np.flatnonzero((ends[0] != ends[1]) & ~is_edge)[:_RANDOM_PAIRS]
    if not len(free):
        raise GraphError("every node is joined with every other, so that no edge is odd")
    return ends[0][free], ends[1][free]


def _compare(directions: Vectors, sources: Any, targets: Any) -> Vectors:
    """The cosine of each pair."""
    cosines = np.empty(len(sources), dtype=np.float32)
    for start in range(0, len(sources), _BLOCK):
        block = slice(start, start + _BLOCK)
        cosines[block] = np.einsum("ij,ij->i", directions[sources[block]], directions[targets[block]])
    return cosines
