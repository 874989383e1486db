"""Manela: the estimator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.datasets.loading import load_graph
from manela.embedding import Embedding
from manela.engines.checkpoint import Checkpoint
from manela.engines.state import State, begin
from manela.engines.training import Run, train
from manela.errors import ManelaWarning, ParameterError
from manela.estimators.embedder import Embedder, Vectors
from manela.graph import Graph
from manela.params import PAPER, THOROUGH, default
from manela.progress import Reporter
from manela.settings import Settings, check_all


class Manela(Embedder):
    """Learn a vector for each node by the multi-agent algorithm MANELA.

    Each node's agent moves its own vector towards what its neighbours show of themselves and of their surroundings,
    and away from what all nodes move away from. The vectors are the same bits for any number of threads. `Manela.paper`
    has the settings of the paper.

    Parameters
    ----------
    dimensions : int, default=128
        Length of a vector (m).
    window : int, default=10
        Half the number of targets of an iteration (w).
    ratios : sequence of float, optional
        Share of the targets 1, 2, … s hops away (r); they sum to 1, and their number is s. (0.5, 0.5) by default, and
        (1,) by messages with `context=True`.
    negatives : int, default=5
        Random nodes for each target (κ).
    learning_rate : float, default=0.025
        Learning rate of the first round (α); stays until vectors have grown, then falls linearly to 1e-4 of it.
    exchange : {"messages", "walks"}, default="messages"
        How nodes learn of others: from what direct neighbours show, with negatives that are the same for all nodes, or
        by walks and random nodes of their own, as in the paper.
    negative_source : {"nodes", "moments"}, default="nodes"
        By messages, what nodes move away from: vectors of random nodes, or draws from the normal distribution with the
        mean and covariance of all vectors.
    frequency : float, default=0.25
        Iterations of a node are proportional to its strength to this power; 1 in the paper.
    start : {"neighbours", "random"}, default="neighbours"
        The first vectors: by sweeps in which nodes take the mean of their neighbours, or random. They are random with
        `context=True`.
    smooth : bool, default=True
        Pass the vectors through a filter of the network at the end, and make their norms proportional to degree^⅕. Not
        done with `context=True`, where it would harm.
    context : bool, default=False
        Keep a second vector for each node: nodes become alike by having alike neighbours rather than by being near.
    pairs, updates, max_seconds : optional, at most one
        The budget: update pairs in all, units of d(v)/w iterations for every node v, or a running time, the paper's T.
        By default as many pairs as suit the network; 7,450 a node by walks.
    rounds : int, optional
        Rounds in all (R). By default as many as suit the network; by walks 300, and 1,000 from 100,000 nodes on.
    patience : float, default=1
        By messages and without a budget, how many times as many rounds as usual on a dense network; fewer times on a
        sparse one, which is learned too much otherwise.
    random_state : int, NumPy generator or None, default=0
        Seed; None for a new one, kept in `provenance_`.
    n_jobs : int, optional
        Threads; all cores by default.
    engine : {"auto", "cpu", "gpu", "ray"}, default="auto"
        Who runs the rounds; "auto" takes a GPU where one is and the work is worth it.
    snapshot : {"float32", "float16", "bfloat16"}, default="float32"
        By walks, how nodes read each other's vectors: bfloat16 on a GPU halves what is read, float16 on a cluster what
        travels. A node's own vector is float32.
    workers : int, optional
        Workers of a Ray cluster; one a machine by default.
    address : str, optional
        A Ray cluster; by default Ray is started on this machine.

    Attributes
    ----------
    embedding_ : array of float32, shape (n, m)
        Φ; row i is the vector of nodes_[i].
    context_ : array of float32, shape (n, m), or None
        Ψ, with `context=True`.
    nodes_ : array, shape (n,)
        Ids.
    updates_ : array of int, shape (n,), or None
        Update pairs that each node made; None where the run was resumed, and after `load`.
    provenance_ : dict
        Parameters, seed, network and version.

    Examples
    --------
    >>> from manela import Manela
    >>> from manela.datasets.generators import stochastic_block_model
    >>> graph, communities = stochastic_block_model(nodes=60, inside=0.5, between=0.02, seed=1)
    >>> model = Manela(dimensions=16, ratios=(0.5, 0.5), random_state=0).fit(graph)
    >>> model.embedding_.shape
    (60, 16)
    >>> best, _ = model.most_similar(0, k=1)[0]
    >>> bool(communities[best] == communities[0])
    True
    """

    method = "manela"

    def __init__(
        self,
        dimensions: int = default("dimensions"),
        window: int = default("window"),
        ratios: Any = default("ratios"),
        negatives: int = default("negatives"),
        learning_rate: float = default("learning_rate"),
        exchange: str = default("exchange"),
        negative_source: str = default("negative_source"),
        frequency: float = default("frequency"),
        start: str = default("start"),
        smooth: bool = default("smooth"),
        context: bool = default("context"),
        pairs: int | None = default("pairs"),
        updates: float | None = default("updates"),
        max_seconds: float | None = default("max_seconds"),
        rounds: int | None = default("rounds"),
        patience: float = default("patience"),
        random_state: Any = default("random_state"),
        n_jobs: int | None = default("n_jobs"),
        engine: str = default("engine"),
        snapshot: str = default("snapshot"),
        workers: int | None = default("workers"),
        address: str | None = default("address"),
    ) -> None:
        self.dimensions = dimensions
        self.window = window
        self.ratios = ratios
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.exchange = exchange
        self.negative_source = negative_source
        self.frequency = frequency
        self.start = start
        self.smooth = smooth
        self.context = context
        self.pairs = pairs
        self.updates = updates
        self.max_seconds = max_seconds
        self.rounds = rounds
        self.patience = patience
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine
        self.snapshot = snapshot
        self.workers = workers
        self.address = address

    @classmethod
    def paper(cls, **parameters: Any) -> Manela:
        """An estimator with the settings of the paper, and these parameters.

        Examples
        --------
        >>> Manela.paper(ratios=(0.7, 0.3)).exchange
        'walks'
        """
        return cls(**{**PAPER, **parameters})

    @classmethod
    def thorough(cls, **parameters: Any) -> Manela:
        """An estimator that learns the best vectors that patience buys, with these parameters.

        Examples
        --------
        >>> Manela.thorough(dimensions=64).patience
        8.0
        """
        return cls(**{**THOROUGH, **parameters})

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        progress: Reporter | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
    ) -> Manela:
        """Learn the vectors of a network.

        Parameters
        ----------
        X : Graph, SciPy sparse matrix, NetworkX or igraph graph, edge_index, pandas frame, or path
            The network.
        y : ignored
        progress : callable, optional
            Called about twice a second with a `manela.progress.Progress`.
        checkpoint : Checkpoint or path, optional
            Where to save the run so that it can be resumed; a path is that of a folder for a new run.

        Returns
        -------
        self
        """
        settings = check_all(self.get_params())
        graph = load_graph(X)
        if isinstance(checkpoint, str | Path):
            checkpoint = Checkpoint(Path(checkpoint))
        embedding, run = learn(graph, settings, reporter=progress, checkpoint=checkpoint)
        self._graph = graph
        return self._set_fitted(embedding, run.updates)

    def partial_fit(self, X: Any, y: Any = None, *, replace: bool = False, progress: Reporter | None = None) -> Manela:
        """Go on with new edges, and the nodes that they bring.

        Nodes that were there start from their vectors, new ones from the mean of their neighbours'. New nodes do the
        iterations of a full run, the others a tenth of them. Vectors that were smoothed start with the norm 1, and are
        smoothed again. Where nothing is new, nothing changes.

        Parameters
        ----------
        X : as for `fit`
            A batch of edges, which are added to those from before; a model that was loaded from a file does not know
            them, and its nodes keep their vectors unless they have edges here.
        replace : bool, default=False
            X is the whole network as it is now: nodes and edges that are not in it are gone.
        """
        if not hasattr(self, "embedding_"):
            return self.fit(X, y, progress=progress)
        settings = check_all(self.get_params())
        dimensions, has_context = self.embedding_.shape[1], self.context_ is not None
        if self.dimensions != dimensions or bool(self.context) != has_context:
            raise ParameterError(
                f"dimensions and context must be those of the first fit, {dimensions} and {has_context}, "
                f"got {self.dimensions} and {self.context}."
            )
        graph = self._find_network(load_graph(X), replace)
        if graph.digest == self.provenance_.get("graph", {}).get("sha256"):
            return self
        state, is_new = self._carry_over(graph, settings.seed)
        share = np.where(is_new, 1.0, _SHARE_OF_KNOWN)
        facts = {
            "continued_from": self.provenance_.get("graph", {}).get("sha256"),
            "nodes_kept": int(np.count_nonzero(~is_new)),
        }
        embedding, run = learn(graph, settings, facts, start=state, share=share, reporter=progress)
        self._graph = graph
        return self._set_fitted(embedding, run.updates)

    def _find_network(self, given: Graph, replace: bool) -> Graph:
        """The network to go on with: the given one, or that from before with its edges."""
        before: Graph | None = getattr(self, "_graph", None)
        if replace:
            kept = sum(node in self._kept for node in given.nodes.tolist())
            if 2 * kept < len(self.nodes_):
                warnings.warn(
                    f"{len(self.nodes_) - kept:,} of {len(self.nodes_):,} nodes are not in this network and lose their "
                    "vectors; without replace=True its edges are added to those from before",
                    ManelaWarning,
                    stacklevel=3,
                )
            return given
        if before is None:
            nodes = [*self.nodes_.tolist(), *(node for node in given.nodes.tolist() if node not in self._kept)]
            sources = np.repeat(np.arange(given.number_of_nodes), given.degrees)
            once = np.full(len(sources), True) if given.directed else sources < given.indices
            weights = None if given.weights is None else given.weights[once]
            return Graph.from_edges(
                given.nodes[sources[once]], given.nodes[given.indices[once]], weights, nodes=nodes,
                directed=given.directed,
            )  # fmt: skip
        both = before.add(given)
        again = before.number_of_edges + given.number_of_edges - both.number_of_edges
        if 2 * again > max(before.number_of_edges, given.number_of_edges):
            warnings.warn(
                f"{again:,} of these {given.number_of_edges:,} edges were there before; replace=True takes a network "
                "as the whole of it as it is now",
                ManelaWarning,
                stacklevel=3,
            )
        return both

    def _carry_over(self, graph: Graph, seed: int) -> tuple[State, npt.NDArray[np.bool_]]:
        """The state to go on from, and which nodes are new."""
        dimensions = self.embedding_.shape[1]
        known = self._kept
        rows = np.array([known.row(n) if n in known else -1 for n in graph.nodes.tolist()], dtype=np.int64)
        is_new = rows < 0
        state = begin(graph.number_of_nodes, dimensions, bool(self.context), seed)
        for table, old in zip(state.tables, (self.embedding_, self.context_), strict=False):
            if old is not None:
                table[~is_new, :dimensions] = old[rows[~is_new]]
                if self.smooth and not self.context:
                    norms = np.linalg.norm(table, axis=1, keepdims=True)
                    table /= np.where(is_new[:, None], 1.0, np.maximum(norms, np.finfo(np.float32).tiny))
            start_from_neighbours(graph, table, is_new)
        return state, is_new


def learn(
    graph: Graph, settings: Settings, facts: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Embedding, Run]:
    """The vectors of a graph by settings that are checked already, and the run that learned them.

    `facts` are added to the provenance; `options` are those of `train`.
    """
    run = train(graph, settings, **options)
    provenance = Manela._provenance(
        graph,
        run.settings.parameters(),
        budget=run.pairs,
        rounds=run.schedule.rounds,
        rounds_done=run.state.round,
        rate_fell_at=run.state.falls_at,
        pairs_made=run.state.pairs,
        engine=run.engine,
        **(facts or {}),
    )
    return Embedding(graph.nodes, run.state.vectors, run.state.context, provenance), run


_SHARE_OF_KNOWN = 0.1
"""Of the iterations of a full run, what a node does that was there before; more forgets more of what it learned."""


def start_from_neighbours(graph: Graph, table: Vectors, is_new: npt.NDArray[np.bool_]) -> None:
    """Put each new node at the mean of its neighbours that have a place, nearest first; without any it stays put."""
    placed = ~is_new
    adjacency = graph.to_scipy()
    while not placed.all():
        counts = adjacency @ placed.astype(np.float64)
        ready = ~placed & (counts > 0)
        if not ready.any():
            return
        sums = adjacency[ready] @ np.where(placed[:, None], table, 0.0)
        table[ready] = sums / counts[ready, None]
        placed |= ready
