"""The DeepWalk estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manela.estimators.skip_gram import SkipGram
from manela.settings.parameters import default


@dataclass(eq=False, repr=False)
class DeepWalk(SkipGram):
    """Learn a vector for each node by skip-gram over random walks (Perozzi, Al-Rfou and Skiena, 2014).

    It uses negative sampling instead of the hierarchical softmax. On a weighted network, the probability of a step is
    proportional to the edge weight.

    Parameters
    ----------
    dimensions : int, default=128
        Length of a vector (m).
    walks : int, default=10
        Walks from each node (γ).
    walk_length : int, default=80
        Nodes in a walk (ℓ).
    window : int, default=10
        Largest distance in a walk between two nodes of a pair (w); each position draws its own from 1 to w.
    negatives : int, default=5
        Random nodes for each pair, drawn by the ¾ power of how often walks visit them.
    learning_rate : float, default=0.025
        Initial learning rate; falls linearly to 1e-4 of it.
    random_state : int, NumPy generator or None, default=0
        Seed; None draws a new one, which `provenance_` records.
    n_jobs : int, default=1
        Threads. With one, the same seed gives the same bits. Several write the same vectors without locks, which is
        faster, but results differ slightly from run to run.

    Fitted attributes are those of `Embedder`; `context_` holds the vectors that pairs and negatives are compared with.

    Examples
    --------
    >>> from manela import DeepWalk
    >>> from manela.formats.datasets import stochastic_block_model
    >>> graph, communities = stochastic_block_model(nodes=60, inside=0.5, between=0.02, seed=1)
    >>> model = DeepWalk(dimensions=16, walk_length=20).fit(graph)
    >>> model.embedding_.shape
    (60, 16)
    """

    method = "deepwalk"

    random_state: Any = default("random_state")
    n_jobs: int | None = 1
