"""Link prediction: hidden edges, their ranks by vectors, and scores that need no vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import roc_auc_score

from manela.data.graph import Graph
from manela.errors import GraphError, ParameterError
from manela.kernels.layout import RowNumbers
from manela.kernels.randomness import seed_of

Scorer = Callable[[RowNumbers], npt.NDArray[np.floating]]
"""Scores some nodes against all nodes, shape (len(rows), n); a larger score means a likelier link."""

_BLOCK = 1 << 22
"""Scores computed at a time; more take more memory."""
_STRANGERS = 200
"""Random pairs without an edge per node for AUC; more are more precise and slower."""
_MOST_ASKED = 2048
"""Most nodes that AUC is computed for; more are more precise and slower."""
PLACES = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
"""The values of k for precision@k."""


@dataclass(frozen=True, eq=False)
class Split:
    """A network with some of its edges hidden."""

    graph: Graph  # the network to learn from: the largest component without the hidden edges
    hidden: sp.csr_array  # (n, n): hidden edges between nodes of that component, in both directions


@dataclass(frozen=True)
class LinkScores:
    """How well a ranking finds hidden edges."""

    mean_average_precision: float  # MAP: the mean of average precision over the nodes that have a hidden edge
    # the mean over all ranked nodes, as in the paper's equation; a node without a hidden edge counts as 0
    over_all: float
    precision: dict[int, float]  # precision@k of a single list of all pairs, by k
    auc: float  # the probability that a hidden edge scores above a pair without any edge


def hide_edges(graph: Graph, share: float = 0.2, random_state: Any = 0) -> Split:
    """Hide a random share of the edges, and keep the largest component of the rest to learn from."""
    if not 0 < share < 1:
        raise ParameterError(f"share must be between 0 and 1, got {share!r}")
    if graph.directed:
        raise GraphError("link prediction hides edges of an undirected network, and this one is directed")
    edges = sp.triu(graph.to_scipy(), k=1, format="coo")
    hidden = np.zeros(edges.nnz, dtype=bool)
    chosen = np.random.default_rng(seed_of(random_state)).permutation(edges.nnz)[: round(share * edges.nnz)]
    hidden[chosen] = True
    shape = (graph.number_of_nodes,) * 2
    remaining = sp.csr_array((edges.data[~hidden], (edges.row[~hidden], edges.col[~hidden])), shape=shape)
    remaining = sp.csr_array(remaining + remaining.T)
    _, membership = connected_components(remaining, directed=False)
    in_component = membership == np.argmax(np.bincount(membership))
    if not hidden.any() or np.count_nonzero(in_component) < 3:
        raise GraphError(f"too small to hide {share:.0%} of its {edges.nnz} edges and learn from the rest")
    ones = np.ones(np.count_nonzero(hidden), dtype=bool)
    hidden_edges = sp.csr_array((ones, (edges.row[hidden], edges.col[hidden])), shape=shape)
    hidden_edges = sp.csr_array((hidden_edges + hidden_edges.T)[in_component][:, in_component])
    component = sp.csr_array(remaining[in_component][:, in_component])
    ids = graph.nodes[in_component]
    u, v = sp.triu(component, k=1).nonzero()
    weights = np.asarray(component[u, v]).ravel() if graph.is_weighted else None
    return Split(Graph.from_edges(ids[u], ids[v], weights, nodes=ids), hidden_edges)


def sample_nodes(split: Split, count: int | None, random_state: Any = 0) -> RowNumbers:
    """Return the nodes to predict edges for: `count` at random, or all."""
    n = split.graph.number_of_nodes
    if count is None or count >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed_of(random_state)).permutation(n)[:count])


def score_vectors(vectors: npt.NDArray[np.floating]) -> Scorer:
    """Score pairs by Φ(v)·Φ(v')."""
    return lambda rows: np.asarray(vectors[rows] @ vectors.T)


def rank_links(
    scorer: Scorer, split: Split, nodes: RowNumbers, *, among: bool = True, random_state: Any = 0
) -> LinkScores:
    """Rank all pairs of these nodes that have no edge in training, and score how high the hidden edges rank.

    With `among=False` the pairs of these nodes with any other node are ranked. Edges are broken by the order of nodes.
    """
    n = split.graph.number_of_nodes
    known = sp.csr_array(split.graph.to_scipy() != 0)
    hits: list[npt.NDArray[np.bool_]] = []
    tops: list[npt.NDArray[np.floating]] = []
    averages = np.zeros(len(nodes))
    has_hidden = np.zeros(len(nodes), dtype=bool)
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
        has_hidden[first : first + step] = wanted.any(axis=1)
        # a pair of two chosen nodes is listed once, in the row of the smaller
        scores[(np.arange(n) < rows[:, None]) & is_chosen] = -np.inf
        best = np.argsort(-scores, axis=None, kind="stable")[: PLACES[-1]]
        best = best[scores.ravel()[best] > -np.inf]
        tops.append(scores.ravel()[best])
        hits.append(wanted.ravel()[best])
    order = np.argsort(-np.concatenate(tops), kind="stable")
    hits_up_to = np.cumsum(np.concatenate(hits)[order])
    precision = {k: float(hits_up_to[k - 1] / k) for k in PLACES if k <= len(hits_up_to)}
    return LinkScores(
        mean_average_precision=float(averages[has_hidden].mean()) if has_hidden.any() else 0.0,
        over_all=float(averages.mean()),
        precision=precision,
        auc=_auc(scorer, split, known, nodes, random_state),
    )


def average_precision(scores: npt.NDArray[np.floating], wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return the AP of each row: the mean of the precision at each wanted column, in descending order of scores.

    Columns with a score of −∞ are ignored. A row without wanted columns has an AP of 0.

    Examples
    --------
    >>> average_precision(np.array([[0.9, 0.8, 0.7, 0.6]]), np.array([[True, False, True, False]])).tolist()
    [0.8333333333333333]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    is_listed = np.take_along_axis(scores, order, axis=1) > -np.inf
    is_hit = np.take_along_axis(wanted, order, axis=1) & is_listed
    precision = np.cumsum(is_hit, axis=1) / np.arange(1, scores.shape[1] + 1)
    average: npt.NDArray[np.float64] = (precision * is_hit).sum(axis=1) / np.maximum(is_hit.sum(axis=1), 1)
    return average


def _auc(scorer: Scorer, split: Split, known: sp.csr_array, nodes: RowNumbers, random_state: Any) -> float:
    """Return the AUC of the hidden edges of some nodes against random pairs of these nodes without an edge."""
    n = split.graph.number_of_nodes
    random = np.random.default_rng(seed_of(random_state))
    sampled = np.sort(random.permutation(nodes)[:_MOST_ASKED])
    values: list[npt.NDArray[np.floating]] = []
    truth: list[npt.NDArray[np.bool_]] = []
    step = max(1, _BLOCK // n)
    for first in range(0, len(sampled), step):
        rows = sampled[first : first + step]
        scores, hidden = np.asarray(scorer(rows)), split.hidden[rows].toarray()
        partners = random.integers(n, size=(len(rows), min(_STRANGERS, n)))
        is_taken = np.take_along_axis(known[rows].toarray() | hidden, partners, axis=1) | (partners == rows[:, None])
        unlinked_scores = np.take_along_axis(scores, partners, axis=1)[~is_taken]
        values += [scores[hidden], unlinked_scores]
        truth += [np.ones(int(hidden.sum()), dtype=bool), np.zeros(len(unlinked_scores), dtype=bool)]
    is_hidden = np.concatenate(truth)
    if is_hidden.all() or not is_hidden.any():
        return float("nan")
    return float(roc_auc_score(is_hidden, np.concatenate(values)))


def count_common_neighbours(graph: Graph) -> Scorer:
    """Score pairs by |N(v) ∩ N(v')|."""
    adjacency = _adjacency(graph)
    return lambda rows: (adjacency[rows] @ adjacency).toarray()


def score_adamic_adar(graph: Graph) -> Scorer:
    """Score pairs by Σ 1/log d(w) over the common neighbours w."""
    adjacency = _adjacency(graph)
    # a common neighbour has a degree of at least 2; the weights of other nodes are never used
    weights = 1.0 / np.log(np.maximum(graph.degrees, 2))
    weighted = sp.csr_array(sp.diags_array(weights) @ adjacency)
    return lambda rows: (adjacency[rows] @ weighted).toarray()


def score_preferential_attachment(graph: Graph) -> Scorer:
    """Score pairs by d(v)·d(v')."""
    degrees = graph.degrees.astype(np.float64)

    def score(rows: RowNumbers) -> np.ndarray:
        return np.asarray(np.outer(degrees[rows], degrees))

    return score


HEURISTICS = {
    "common-neighbours": count_common_neighbours,
    "adamic-adar": score_adamic_adar,
    "preferential-attachment": score_preferential_attachment,
}


def _adjacency(graph: Graph) -> sp.csr_array:
    return sp.csr_array((graph.to_scipy() != 0).astype(np.float64))
