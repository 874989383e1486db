"""Node2Vec: the estimator."""

from __future__ import annotations

from typing import Any

from manela.estimators.deepwalk import DeepWalk
from manela.params import default


class Node2Vec(DeepWalk):
    """Learn a vector for each node by skip-gram over biased walks (Grover and Leskovec, 2016).

    A walk that came from t to v goes on to a neighbour x of v with a probability proportional to the weight of v-x,
    times 1/p if x is t, 1 if x is a neighbour of t, and 1/q otherwise. Steps are drawn by rejection, so that memory
    stays linear in the number of edges.

    Parameters
    ----------
    dimensions : int, default=128
        Length of a vector (m).
    walks : int, default=10
        Walks from each node (γ).
    walk_length : int, default=80
        Nodes of a walk (ℓ).
    window : int, default=10
        How far apart in a walk two nodes may be to make a pair (w); drawn anew from 1 to w for each place.
    negatives : int, default=5
        Random nodes for each pair, by the ¾ power of how often walks come to them.
    learning_rate : float, default=0.025
        Learning rate at the beginning; falls linearly to 1e-4 of it.
    p : float, default=1
        How unlikely a walk is to go straight back.
    q : float, default=1
        How unlikely a walk is to leave what lies around.
    random_state : int, NumPy generator or None, default=0
        Seed; None for a new one, kept in `provenance_`.
    n_jobs : int, default=1
        Threads. With one, a seed gives the same bits each time; more write the same rows without locks, which is faster
        and never quite the same twice.

    Attributes
    ----------
    embedding_ : array of float32, shape (n, m)
        Row i is the vector of nodes_[i].
    context_ : array of float32, shape (n, m)
        The vectors that pairs and negatives are measured against.
    nodes_ : array, shape (n,)
        Ids.
    updates_ : array of int, shape (n,), or None
        How often each vector was moved; None after `load`.
    provenance_ : dict
        Parameters, seed, network and version.

    Examples
    --------
    >>> from manela import Node2Vec
    >>> from manela.datasets.generators import stochastic_block_model
    >>> graph, communities = stochastic_block_model(nodes=60, inside=0.5, between=0.02, seed=1)
    >>> model = Node2Vec(dimensions=16, walk_length=20, p=0.25, q=4.0).fit(graph)
    >>> model.embedding_.shape
    (60, 16)
    """

    method = "node2vec"

    def __init__(
        self,
        dimensions: int = default("dimensions"),
        walks: int = default("walks"),
        walk_length: int = default("walk_length"),
        window: int = default("window"),
        negatives: int = default("negatives"),
        learning_rate: float = default("learning_rate"),
        p: float = default("p"),
        q: float = default("q"),
        random_state: Any = default("random_state"),
        n_jobs: int | None = 1,
    ) -> None:
        self.dimensions = dimensions
        self.walks = walks
        self.walk_length = walk_length
        self.window = window
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.p = p
        self.q = q
        self.random_state = random_state
        self.n_jobs = n_jobs
