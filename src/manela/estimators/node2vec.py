"""The Node2Vec estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manela.estimators.skip_gram import SkipGram
from manela.settings.parameters import default


@dataclass(eq=False, repr=False)
class Node2Vec(SkipGram):
    """Learn a vector for each node by skip-gram over biased walks (Grover and Leskovec, 2016).

    A walk that came from t to v continues to a neighbour x of v with a probability proportional to the weight of v-x,
    times 1/p if x is t, 1 if x is a neighbour of t, and 1/q otherwise. Steps are drawn by rejection, so that memory
    stays linear in the number of edges.

    Parameters
    ----------
    p : float, default=1
        The larger, the less likely a walk is to step straight back.
    q : float, default=1
        The larger, the less likely a walk is to leave the surroundings of the node it came from.
    dimensions, walks, walk_length, window, negatives, learning_rate, random_state, n_jobs
        As for `DeepWalk`, and so are the fitted attributes.

    Examples
    --------
    >>> from manela import Node2Vec
    >>> from manela.formats.datasets import stochastic_block_model
    >>> graph, communities = stochastic_block_model(nodes=60, inside=0.5, between=0.02, seed=1)
    >>> model = Node2Vec(dimensions=16, walk_length=20, p=0.25, q=4.0).fit(graph)
    >>> model.embedding_.shape
    (60, 16)
    """

    method = "node2vec"

    p: float = default("p")
    q: float = default("q")
    random_state: Any = default("random_state")
    n_jobs: int | None = 1
