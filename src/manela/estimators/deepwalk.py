"""DeepWalk: the estimator."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Self

from manela.datasets.loading import load_graph
from manela.embedding import Embedding
from manela.engines.walks import train_walks
from manela.estimators.embedder import Embedder
from manela.params import default
from manela.progress import Reporter
from manela.settings import check_walks


class DeepWalk(Embedder):
    """Learn a vector for each node by skip-gram over random walks (Perozzi, Al-Rfou and Skiena, 2014).

    With negative sampling instead of the hierarchical softmax. A step is proportional to edge weight on a weighted
    network.

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
    >>> from manela import DeepWalk
    >>> from manela.datasets.generators import stochastic_block_model
    >>> graph, communities = stochastic_block_model(nodes=60, inside=0.5, between=0.02, seed=1)
    >>> model = DeepWalk(dimensions=16, walk_length=20).fit(graph)
    >>> model.embedding_.shape
    (60, 16)
    """

    method = "deepwalk"

    def __init__(
        self,
        dimensions: int = default("dimensions"),
        walks: int = default("walks"),
        walk_length: int = default("walk_length"),
        window: int = default("window"),
        negatives: int = default("negatives"),
        learning_rate: float = default("learning_rate"),
        random_state: Any = default("random_state"),
        n_jobs: int | None = 1,
    ) -> None:
        self.dimensions = dimensions
        self.walks = walks
        self.walk_length = walk_length
        self.window = window
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, *, progress: Reporter | None = None) -> Self:  # noqa: ARG002
        """Learn the vectors of a network.

        Parameters
        ----------
        X : Graph, SciPy sparse matrix, NetworkX or igraph graph, edge_index, pandas frame, or path
            The network.
        y : ignored
        progress : callable, optional
            Called now and then with a `manela.progress.Progress`; what it calls rounds are pieces of a pass.

        Returns
        -------
        self
        """
        settings = check_walks(self.get_params())
        graph = load_graph(X)
        run = train_walks(graph, settings, progress)
        said = {name: value for name, value in asdict(settings).items() if name in self._get_param_names()}
        said["random_state"] = settings.seed
        provenance = self._provenance(graph, said, pairs_made=run.pairs, threads=settings.threads, seconds=run.seconds)
        return self._set_fitted(Embedding(graph.nodes, run.vectors, run.context, provenance), run.updates)
