"""Link prediction as in the paper: hide edges, learn from the rest, rank the pairs that are not connected there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import roc_auc_score

from manela.errors import GraphError, ParameterError
from manela.graph import Graph
from manela.randomness import seed_of

RowNumbers = npt.NDArray[np.int64]
Scorer = Callable[[RowNumbers], npt.NDArray[np.floating]]
"""Scores of some nodes against all, shape (len(rows), n); the larger, the likelier a link."""

_BLOCK = 1 << 22
"""Scores held at a time."""
_STRANGERS = 200
"""Pairs without an edge, for each node, that AUC compares the hidden ones with …"""
_MOST_ASKED = 2048
"""… and for how many nodes at most it does so."""
PLACES = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
"""The k of precision@k."""


@dataclass(frozen=True, eq=False)
class Split:
    """A network with some of its edges hidden.

    Attributes
    ----------
    graph : Graph
        What may be learned from: the largest component of what is left.
    hidden : sparse array of bool, shape (n, n)
        Hidden edges between nodes of that component, both ways.
    """

    graph: Graph
    hidden: sp.csr_array

    @property
    def number_hidden(self) -> int:
        """Hidden edges."""
        return int(self.hidden.nnz // 2)


@dataclass(frozen=True)
class LinkScores:
    """How well a ranking finds hidden edges.

    Attributes
    ----------
    mean_average_precision : float
        MAP: the mean of average precision over the nodes that have a hidden edge to find.
    over_all : float
        The mean over all nodes asked for, as the paper's equation has it, where one with nothing to find counts as 0.
    precision : dict
        precision@k of the one list of all pairs, by k.
    auc : float
        The chance that a hidden edge scores above a pair without any edge.
    """

    mean_average_precision: float
    over_all: float
    precision: dict[int, float]
    auc: float


def hide_edges(graph: Graph, share: float = 0.2, random_state: Any = 0) -> Split:
    """Hide a random share of the edges, and keep the largest component of the rest to learn from."""
    if not 0 < share < 1:
        raise ParameterError(f"share must be between 0 and 1, got {share!r}.")
    if graph.directed:
        raise GraphError("link prediction hides edges of an undirected network, and this one is directed")
    edges = sp.triu(graph.to_scipy(), k=1, format="coo")
    hidden = np.zeros(edges.nnz, dtype=bool)
    chosen = np.random.default_rng(seed_of(random_state)).permutation(edges.nnz)[: round(share * edges.nnz)]
    hidden[chosen] = True
    shape = (graph.number_of_nodes,) * 2
    left = sp.csr_array((edges.data[~hidden], (edges.row[~hidden], edges.col[~hidden])), shape=shape)
    left = sp.csr_array(left + left.T)
    _, membership = connected_components(left, directed=False)
    inside = membership == np.argmax(np.bincount(membership))
    if not hidden.any() or np.count_nonzero(inside) < 3:
        raise GraphError(f"too small to hide {share:.0%} of its {edges.nnz} edges and learn from the rest")
    ends = np.ones(np.count_nonzero(hidden), dtype=bool)
    lost = sp.csr_array((ends, (edges.row[hidden], edges.col[hidden])), shape=shape)
    lost = sp.csr_array((lost + lost.T)[inside][:, inside])
    kept = sp.csr_array(left[inside][:, inside])
    ids = graph.nodes[inside]
    u, v = sp.triu(kept, k=1).nonzero()
    weights = np.asarray(kept[u, v]).ravel() if graph.is_weighted else None
    return Split(Graph.from_edges(ids[u], ids[v], weights, nodes=ids), lost)


def sample_nodes(split: Split, count: int | None, random_state: Any = 0) -> RowNumbers:
    """Nodes to predict the edges of: so many at random, or all."""
    n = split.graph.number_of_nodes
    if count is None or count >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed_of(random_state)).permutation(n)[:count])


def score_vectors(vectors: npt.NDArray[np.floating]) -> Scorer:
    """Φ(v)·Φ(v')."""
    return lambda rows: np.asarray(vectors[rows] @ vectors.T)


def rank_links(
    scorer: Scorer, split: Split, nodes: RowNumbers, *, among: bool = True, random_state: Any = 0
) -> LinkScores:
    """Rank the pairs of two of these nodes, those connected in training left out, and look for hidden edges there.

    With `among=False` the pairs of these nodes with any other are ranked. Pairs of equal score are in the order of
    their nodes.
    """
    n = split.graph.number_of_nodes
    known = sp.csr_array(split.graph.to_scipy() != 0)
    hits: list[npt.NDArray[np.bool_]] = []
    tops: list[npt.NDArray[np.floating]] = []
    averages = np.zeros(len(nodes))
    findable = np.zeros(len(nodes), dtype=bool)
    is_chosen = np.zeros(n, dtype=bool)
    is_chosen[nodes] = True
    step = max(1, _BLOCK // n)
    for first in range(0, len(nodes), step):
        rows = nodes[first : first + step]
        scores = np.array(scorer(rows), dtype=np.float64)
        scores[known[rows].toarray()] = -np.inf
        scores[np.arange(len(rows)), rows] = -np.inf
        wanted = split.hidden[rows].toarray()
        if among:
            scores[:, ~is_chosen] = -np.inf
            wanted[:, ~is_chosen] = False
        averages[first : first + step] = average_precision(scores, wanted)
        findable[first : first + step] = wanted.any(axis=1)
        # a pair of two chosen nodes is in the one list once, from the smaller
        scores[(np.arange(n) < rows[:, None]) & is_chosen] = -np.inf
        best = np.argsort(-scores, axis=None, kind="stable")[: PLACES[-1]]
        best = best[scores.ravel()[best] > -np.inf]
        tops.append(scores.ravel()[best])
        hits.append(wanted.ravel()[best])
    order = np.argsort(-np.concatenate(tops), kind="stable")
    found = np.cumsum(np.concatenate(hits)[order])
    precision = {k: float(found[k - 1] / k) for k in PLACES if k <= len(found)}
    return LinkScores(
        mean_average_precision=float(averages[findable].mean()) if findable.any() else 0.0,
        over_all=float(averages.mean()),
        precision=precision,
        auc=_auc(scorer, split, known, nodes, random_state),
    )


def average_precision(scores: npt.NDArray[np.floating], wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """AP of each row: the mean, over what is wanted, of precision at its place in the order of falling scores.

    Columns with a score of −∞ are not in the list. 0 where nothing is wanted.

    Examples
    --------
    >>> average_precision(np.array([[0.9, 0.8, 0.7, 0.6]]), np.array([[True, False, True, False]])).tolist()
    [0.8333333333333333]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    listed = np.take_along_axis(scores, order, axis=1) > -np.inf
    right = np.take_along_axis(wanted, order, axis=1) & listed
    precision = np.cumsum(right, axis=1) / np.arange(1, scores.shape[1] + 1)
    average: npt.NDArray[np.float64] = (precision * right).sum(axis=1) / np.maximum(right.sum(axis=1), 1)
    return average


def _auc(scorer: Scorer, split: Split, known: sp.csr_array, nodes: RowNumbers, random_state: Any) -> float:
    """Hidden edges of some of the nodes against random pairs of the same nodes with any other that have no edge."""
    n = split.graph.number_of_nodes
    random = np.random.default_rng(seed_of(random_state))
    asked = np.sort(random.permutation(nodes)[:_MOST_ASKED])
    values: list[npt.NDArray[np.floating]] = []
    truth: list[npt.NDArray[np.bool_]] = []
    step = max(1, _BLOCK // n)
    for first in range(0, len(asked), step):
        rows = asked[first : first + step]
        scores, hidden = np.asarray(scorer(rows)), split.hidden[rows].toarray()
        others = random.integers(n, size=(len(rows), min(_STRANGERS, n)))
        taken = np.take_along_axis(known[rows].toarray() | hidden, others, axis=1) | (others == rows[:, None])
        strange = np.take_along_axis(scores, others, axis=1)[~taken]
        values += [scores[hidden], strange]
        truth += [np.ones(int(hidden.sum()), dtype=bool), np.zeros(len(strange), dtype=bool)]
    known_ones = np.concatenate(truth)
    if known_ones.all() or not known_ones.any():
        return float("nan")
    return float(roc_auc_score(known_ones, np.concatenate(values)))
