"""Link scores computed directly from the neighbours of two nodes, without learning."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from manela.data.graph import Graph
from manela.evaluation.links import RowNumbers, Scorer


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
    """Return the adjacency matrix with ones for weights."""
    return sp.csr_array((graph.to_scipy() != 0).astype(np.float64))
