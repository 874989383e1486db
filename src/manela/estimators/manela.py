"""The Manela estimator."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from manela.data.embedding import Embedding, is_list_of_ids
from manela.data.graph import Graph
from manela.engines.checkpoint import Checkpoint
from manela.engines.state import State, begin
from manela.engines.training import Run, adapt, train
from manela.errors import ManelaWarning, ParameterError
from manela.estimators.cover import add_ends, cover, cover_embedding, is_covered, uncover
from manela.estimators.embedder import Embedder, describe_run, is_list_of_edges
from manela.estimators.newcomers import add_placement, place_newcomers, start_from_neighbours, turn_back
from manela.formats.loading import load_graph
from manela.kernels.layout import Vectors
from manela.settings.parameters import PAPER, THOROUGH, default
from manela.settings.settings import Settings, check_all
from manela.system.progress import Reporter, RunBar, is_watched, report_download
from manela.system.threads import allow_cores

METHOD = "manela"
"""The name of the method in provenance."""


@dataclass(eq=False, repr=False)
class Manela(Embedder):
    """Learn a vector for each node by the multi-agent algorithm MANELA.

    Each node's agent moves its own vector towards what its neighbours show of themselves and of their surroundings,
    and away from negatives. The vectors are the same, bit for bit, for any number of threads. `Manela.paper` has the
    settings of the paper.

    Parameters
    ----------
    dimensions : int, default=128
        Length of a vector (m).
    window : int, default=10
        Half the number of targets in an iteration (w).
    ratios : sequence of float, optional
        Shares of the targets that are 1, 2, … s hops away (r); they sum to 1, and there are s of them. By default
        (0.5, 0.5), or (1,) for messages with `context=True`.
    negatives : int, default=5
        Random nodes for each target (κ).
    learning_rate : float, default=0.025
        Initial learning rate (α). It falls linearly to 1e-4 of this, from the first round on if the start is spectral,
        otherwise once the vectors have grown.
    exchange : {"messages", "walks"}, default="messages"
        How nodes learn about others: from what direct neighbours show, with negatives that all nodes share, or by
        walks and random nodes of their own, as in the paper.
    negative_source : {"nodes", "moments"}, default="nodes"
        With messages, what nodes move away from: vectors of random nodes, or samples of the normal distribution with
        the mean and covariance of all vectors.
    frequency : float, default=0.25
        Iterations of a node are proportional to its strength to this power; 1 in the paper.
    start : {"spectral", "random"}, default="spectral"
        The initial vectors: those of the spectral view, or random. With `context=True` and on a directed network they
        are always random.
    views : {"both", "all", "rounds", "spectral"}, default="both"
        What vectors are made of. Rounds learn which nodes are near each other; the spectral view also knows which have
        alike neighbours without being near. "both" joins them, "spectral" does no rounds. "all" joins a third view,
        what rounds with context vectors learn; a budget is then that of each of the two runs, and a running time that
        of both. With `context=True`, and on a directed network, there are rounds only.
    smooth : bool, default=True
        At the end, pass each view through a filter of the network, and make norms proportional to degree^0.3.
        Skipped with `context=True`, where it makes the vectors worse.
    context : bool, default=False
        Keep a second vector for each node: nodes become similar if their neighbours are, not if they are close.
    directed : bool, default=False
        Learn arcs as given: each node has an out vector, learned from its outgoing arcs (`embedding_`), and an in
        vector, learned from its incoming arcs (`context_`); they are zeros for a node without such arcs. With walks,
        and with `context=True`, nodes learn along their outgoing arcs, and nodes without any learn nothing.
    pairs, updates, max_seconds : optional, at most one
        The budget: total update pairs, units of d(v)/w iterations for every node v, or a running time, the paper's T.
        By default as many pairs as suit the network; with walks 7,450 per node.
    rounds : int, optional
        Total rounds (R). By default as many as suit the network; with walks 300, and 1,000 from 100,000 nodes on.
    patience : float, default=1
        With messages and no budget, the factor by which a dense network gets more rounds than usual. The factor is
        smaller for a sparse network, which would otherwise be trained too long.
    random_state : int, NumPy generator or None, default=0
        Seed; None draws a new one, which `provenance_` records.
    n_jobs : int, optional
        Threads; all cores by default.
    engine : {"auto", "cpu", "gpu", "ray"}, default="auto"
        What runs the rounds; "auto" uses a GPU if there is one and the work is worth it. Walks run on "cpu" only.
    workers : int, optional
        Workers on a Ray cluster; one per machine by default.
    address : str, optional
        Address of a Ray cluster; by default Ray is started on this machine.

    Attributes
    ----------
    embedding_ : array of float32, shape (n, m)
        Φ; row i is the vector of nodes_[i].
    context_ : array of float32, shape (n, m), or None
        Ψ with `context=True`, the in vectors with `directed=True`.
    nodes_ : array, shape (n,)
        Node ids.
    updates_ : array of int, shape (n,), or None
        Update pairs that each node made, without those of the context vectors of `views="all"`; None after a resumed
        run, after `load`, and after `partial_fit` that only placed nodes.
    provenance_ : dict
        Parameters, seed, network and version.

    Examples
    --------
    >>> from manela import Manela
    >>> from manela.formats.datasets import stochastic_block_model
    >>> graph, communities = stochastic_block_model(nodes=60, inside=0.5, between=0.02, seed=1)
    >>> model = Manela(dimensions=16, ratios=(0.5, 0.5), random_state=0).fit(graph)
    >>> model.embedding_.shape
    (60, 16)
    >>> best, _ = model.most_similar(0, k=1)[0]
    >>> bool(communities[best] == communities[0])
    True
    """

    method = METHOD

    dimensions: int = default("dimensions")
    window: int = default("window")
    ratios: Any = default("ratios")
    negatives: int = default("negatives")
    learning_rate: float = default("learning_rate")
    exchange: Literal["messages", "walks"] = default("exchange")
    negative_source: Literal["nodes", "moments"] = default("negative_source")
    frequency: float = default("frequency")
    start: Literal["spectral", "random"] = default("start")
    views: Literal["both", "all", "rounds", "spectral"] = default("views")
    smooth: bool = default("smooth")
    context: bool = default("context")
    directed: bool = default("directed")
    pairs: int | None = default("pairs")
    updates: float | None = default("updates")
    max_seconds: float | None = default("max_seconds")
    rounds: int | None = default("rounds")
    patience: float = default("patience")
    random_state: Any = default("random_state")
    n_jobs: int | None = default("n_jobs")
    engine: Literal["auto", "cpu", "gpu", "ray"] = default("engine")
    workers: int | None = default("workers")
    address: str | None = default("address")

    @classmethod
    def paper(cls, **parameters: Any) -> Manela:
        """Return an estimator with the settings of the paper; `parameters` override them.

        Examples
        --------
        >>> Manela.paper(ratios=(0.7, 0.3)).exchange
        'walks'
        """
        return cls(**{**PAPER, **parameters})

    @classmethod
    def thorough(cls, **parameters: Any) -> Manela:
        """Return an estimator that trains longer for better vectors; `parameters` override its settings.

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
        progress: Reporter | bool | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
    ) -> Manela:
        """Learn the vectors of a network.

        Parameters
        ----------
        X : Graph, SciPy sparse matrix, NetworkX or igraph graph, edge_index, pandas frame, or path
            The network.
        y : ignored
        progress : callable or bool, optional
            Called about twice a second with a `manela.system.progress.Progress`. True shows a progress bar
            and False none; by default there is one in a terminal and in a notebook.
        checkpoint : Checkpoint or path, optional
            Where to save the run so that it can be resumed; a path names a folder for a new run.

        Returns
        -------
        self
        """
        settings, graph = check_all(self.get_params()), self._load(X)
        if isinstance(checkpoint, str | Path):
            checkpoint = Checkpoint(Path(checkpoint))
        with _show(progress) as reporter:
            embedding, run = learn(graph, settings, reporter=reporter, checkpoint=checkpoint)
        self._graph = graph
        return self._set_fitted(embedding, run.updates)

    def transform(self, X: Any) -> Any:
        """Return the vectors of the nodes of X, including nodes that were not in the fitted network.

        A new node gets its vector from its neighbours in X, known or new: a map, learned on the known nodes, predicts
        it from the means of the neighbours. The vectors of known nodes do not change.

        Parameters
        ----------
        X : as for `fit`, or a list or one-dimensional array of ids
            Rows are in the order of the ids, or of `Graph.of(X).nodes`.

        Returns
        -------
        array of float32, shape (nodes of X, m)

        Examples
        --------
        >>> model = Manela(dimensions=8).fit([("ann", "bob"), ("bob", "cem"), ("cem", "ann"), ("cem", "dan")])
        >>> model.transform([("eve", "ann"), ("eve", "bob")]).shape  # rows for eve, ann and bob
        (3, 8)
        """
        check_is_fitted(self)
        if is_list_of_ids(X) and not is_list_of_edges(X, self._kept):
            return self._with_ids(self._kept[X], X)
        graph = load_graph(X, directed=bool(self.directed))
        rows = np.array([self._kept._positions.get(node, -1) for node in graph.nodes.tolist()], dtype=np.int64)
        vectors = self.embedding_[rows]
        if (rows < 0).any():
            vectors[rows < 0] = self._place(graph)[0][0]
        return self._with_ids(vectors, graph.nodes)

    def _place(self, graph: Graph) -> tuple[list[Vectors], npt.NDArray[Any]]:
        self._learn_placement()
        return place_newcomers(self._kept, graph)

    def _learn_placement(self) -> None:
        """Learn how to place new nodes and store it with the vectors, unless it is stored or the network is unknown."""
        if "placement" not in self._kept.further and hasattr(self, "_graph"):
            self._kept = add_placement(self._kept, self._graph)

    def save(self, path: str | Path) -> None:
        """Write ids, vectors and provenance in the format that the suffix of path names.

        A .npz file also stores how to place new nodes, so that a model loaded from it can `transform` them.
        """
        check_is_fitted(self)
        if Path(path).suffix.lower() == ".npz":
            self._learn_placement()
        super().save(path)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        replace: bool = False,
        freeze: bool = False,
        progress: Reporter | bool | None = None,
    ) -> Manela:
        """Continue training with new edges and their new nodes.

        Known nodes start from their vectors, new ones from the mean of their neighbours. New nodes do the iterations of
        a full run, known ones a tenth of them. Smoothed vectors are scaled to norm 1 first, and smoothed again at the
        end. The spectral view is found again; as a join may turn all vectors, they are turned back so that known nodes
        are near their places. If the network is the same as before, nothing changes.

        Parameters
        ----------
        X : as for `fit`
            A batch of edges to add to the network; if edges have weights, that of a repeated edge grows. Files do not
            store the network, so a loaded model only places new nodes, as with `freeze`, unless `replace` is set.
        replace : bool, default=False
            X is the whole current network: nodes and edges that are not in it are dropped.
        freeze : bool, default=False
            Leave all existing vectors unchanged, and place new nodes as `transform` does.
        """
        if not hasattr(self, "embedding_"):
            return self.fit(X, y, progress=progress)
        settings = check_all(self.get_params())
        self._check_same()
        if freeze and replace:
            raise ParameterError(
                "give at most one of freeze and replace: freeze keeps all vectors, and replace drops some"
            )
        given = self._load(X)
        if given.digest == self.provenance_.get("graph", {}).get("sha256"):
            return self
        if not freeze and not replace and not hasattr(self, "_graph"):
            warnings.warn(
                "this model was read from a file, which does not hold its network: new nodes are placed, and all "
                "others stay; pass the whole network with replace=True to train it",
                ManelaWarning,
                stacklevel=2,
            )
            freeze = True
        if freeze:
            return self._add_newcomers(given)
        graph = self._find_network(given, replace)
        if graph.digest == self.provenance_.get("graph", {}).get("sha256"):
            return self
        if is_covered(graph, settings):
            state, is_new = self._carry_over(cover(graph), cover_embedding(self._kept), settings)
        else:
            state, is_new = self._carry_over(graph, self._kept, settings)
        share = np.where(is_new, 1.0, _SHARE_OF_KNOWN)
        entries = {
            "continued_from": self.provenance_.get("graph", {}).get("sha256"),
            "nodes_kept": sum(node in self._kept for node in graph.nodes.tolist()),
        }
        with _show(progress) as reporter:
            embedding, run = learn(graph, settings, entries, start=state, share=share, reporter=reporter)
        self._graph = graph
        if run.settings.has_view:
            embedding = turn_back(embedding, self._kept)
        return self._set_fitted(embedding, run.updates)

    def _add_newcomers(self, given: Graph) -> Manela:
        """Add vectors for the new nodes of a network, and leave all others unchanged."""
        previous = getattr(self, "_graph", None)
        graph = given if previous is None else previous.add(given)
        if all(node in self._kept for node in given.nodes.tolist()):
            if previous is not None:
                self._graph = graph  # so that later training uses these edges too
            return self
        tables, ids = self._place(given)
        further = self._kept.further
        nodes = np.empty(len(self.nodes_) + len(ids), dtype=object)
        nodes[:] = [*self.nodes_.tolist(), *ids.tolist()]
        nodes = nodes.astype(np.int64) if self.nodes_.dtype != object and ids.dtype != object else nodes
        vectors = np.concatenate((self.embedding_, tables[0]))
        context = None if self.context_ is None else np.concatenate((self.context_, tables[1]))
        provenance = {**self.provenance_, "nodes_placed": self.provenance_.get("nodes_placed", 0) + len(ids)}
        if previous is not None:
            self._graph = graph
            provenance["graph"] = describe_run(METHOD, graph, {})["graph"]
        return self._set_fitted(Embedding(nodes, vectors, context, provenance, further), None)

    def _find_network(self, given: Graph, replace: bool) -> Graph:
        """Return the network to continue with: the given one, or the previous one with the given edges added."""
        previous: Graph = getattr(self, "_graph", given)
        if replace:
            known_nodes = sum(node in self._kept for node in given.nodes.tolist())
            if 2 * known_nodes < len(self.nodes_):
                warnings.warn(
                    f"{len(self.nodes_) - known_nodes:,} of {len(self.nodes_):,} nodes are not in this network and "
                    "lose their vectors; without replace=True its edges are added to those from before",
                    ManelaWarning,
                    stacklevel=3,
                )
            return given
        merged = previous.add(given)
        repeated = previous.number_of_edges + given.number_of_edges - merged.number_of_edges
        if 2 * repeated > max(previous.number_of_edges, given.number_of_edges):
            warnings.warn(
                f"{repeated:,} of these {given.number_of_edges:,} edges were there before; pass replace=True if this "
                "is the whole current network",
                ManelaWarning,
                stacklevel=3,
            )
        return merged

    def _carry_over(self, graph: Graph, known: Embedding, settings: Settings) -> tuple[State, npt.NDArray[np.bool_]]:
        dimensions = known.vectors.shape[1]
        rows = np.array([known.row(n) if n in known else -1 for n in graph.nodes.tolist()], dtype=np.int64)
        is_new = rows < 0
        state = begin(graph.number_of_nodes, dimensions, settings.context, settings.seed)
        for table, old in zip(state.tables, (known.vectors, known.context), strict=False):
            if old is not None:
                table[~is_new, :dimensions] = old[rows[~is_new]]
                if settings.smooths:
                    # in single precision as before, for the same bits
                    norms = np.linalg.norm(table, axis=1, keepdims=True)
                    table /= np.where(is_new[:, None], 1.0, np.maximum(norms, np.finfo(np.float32).tiny))
            start_from_neighbours(graph, table, is_new)
        return state, is_new

    def _check_same(self) -> None:
        dimensions, has_context = self.embedding_.shape[1], self.context_ is not None
        is_directed = bool(self.provenance_.get("graph", {}).get("directed"))
        wants_context = bool(self.context) or (is_directed and self.exchange == "messages")
        if self.dimensions != dimensions or wants_context != has_context:
            raise ParameterError(
                f"dimensions and context must be those of the first fit, {dimensions} and {has_context}, "
                f"got {self.dimensions} and {self.context}"
            )

    def _load(self, X: Any) -> Graph:
        with allow_cores(self.n_jobs):
            graph = load_graph(X, directed=bool(self.directed), progress=report_download(X))
        if self.directed and not graph.directed:
            raise ParameterError("directed=True needs a network with arcs, but this Graph is undirected")
        return graph


def learn(
    graph: Graph, settings: Settings, entries: Mapping[str, Any] | None = None, **options: Any
) -> tuple[Embedding, Run]:
    """Learn the vectors of a graph with validated settings; return them and the run.

    A directed network is learned through its cover where `is_covered` says so. `entries` are added to the provenance,
    and `options` are passed to `train`.
    """
    settings, covered = adapt(settings, graph), is_covered(graph, settings)
    run = train(cover(graph) if covered else graph, settings, **options)
    provenance = describe_run(
        METHOD,
        graph,
        {**run.settings.parameters(), "directed": graph.directed},
        budget=run.pairs,
        rounds=run.schedule.rounds,
        rounds_done=run.state.round,
        rate_fell_at=run.state.falls_at,
        pairs_made=run.state.pairs,
        engine=run.engine,
        **(entries or {}),
    )
    if covered:
        updates = None if run.updates is None else add_ends(graph, run.updates)
        return uncover(graph, run.state.vectors, provenance), dataclasses.replace(run, updates=updates)
    return Embedding(graph.nodes, run.state.vectors, run.state.context, provenance), run


@contextmanager
def _show(progress: Reporter | bool | None) -> Iterator[Reporter | None]:
    """Yield what to call with the progress: the given callable, or a progress bar, which may be hidden."""
    if callable(progress):
        yield progress
        return
    with RunBar(is_watched() if progress is None else bool(progress)) as bar:
        yield bar.report


_SHARE_OF_KNOWN = 0.1
"""Share of a full run's iterations that known nodes do; the larger, the more they forget of what they learned."""
