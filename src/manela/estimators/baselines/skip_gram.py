"""DeepWalk and node2vec: skip-gram with negative sampling over random walks, on threads of this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import prepare_arcs
from manela.errors import DivergenceError
from manela.estimators.baselines.baseline import Baseline, Learned
from manela.kernels.cpu import skipgram
from manela.kernels.cpu.walks import build_aliases
from manela.kernels.layout import allocate
from manela.kernels.randomness import ORDERS, VECTORS, WALKS, derive, derive_key, draw_vectors
from manela.settings.parameters import default
from manela.settings.settings import WalkSettings, check_walks
from manela.system.progress import Progress, Reporter

Nodes = npt.NDArray[np.int64]

_PIECES = 32
"""Pieces of each pass, after which a run reports and can be stopped; more cost more overhead."""
_POWER = 0.75
"""Exponent of the visits in the distribution of negatives; larger favours frequently visited nodes."""
_LAST_RATE = 1e-4
"""Learning rate at the end, as a fraction of the first."""


@dataclass(eq=False, repr=False)
class SkipGram(Baseline):
    """A method that learns by skip-gram over random walks; subclasses add the parameters that follow these."""

    dimensions: int = default("dimensions")
    walks: int = default("walks")
    walk_length: int = default("walk_length")
    window: int = default("window")
    negatives: int = default("negatives")
    learning_rate: float = default("learning_rate")

    def _check(self) -> WalkSettings:
        return check_walks(self.get_params())

    def _learn(self, graph: Graph, settings: WalkSettings, progress: Reporter | None) -> Learned:
        started = time.perf_counter()
        walker = _Walker(graph, settings)
        prepared = time.perf_counter()
        walker.prepare_negatives()
        counted = time.perf_counter()
        walker.train(progress)
        trained = time.perf_counter()
        seconds = {"preparing": prepared - started, "walking": counted - prepared, "training": trained - counted}
        provenance = {"pairs_made": walker.pairs, "threads": settings.threads, "seconds": seconds}
        m = settings.dimensions
        return Learned(walker.vectors[:, :m], provenance, walker.contexts[:, :m], walker.updates)


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


class _Walker:
    """The walks of a run: in each pass, one from every node in a random order."""

    def __init__(self, graph: Graph, settings: WalkSettings) -> None:
        self.settings = settings
        self.nodes = graph.number_of_nodes
        self.way = (settings.walk_length, prepare_arcs(graph), settings.p, settings.q)
        self.vectors, self.contexts = (allocate(self.nodes, settings.dimensions) for _ in range(2))
        draw_vectors(settings.seed, np.arange(self.nodes), self.vectors[:, : settings.dimensions], VECTORS)
        self.pairs = 0
        self.updates = np.zeros(self.nodes, dtype=np.int64)
        self.stopped = np.zeros(1, dtype=np.uint8)

    def prepare_negatives(self) -> None:
        """Build alias tables that draw a negative with probability ∝ visits^¾."""

        def count(starts: Nodes, key: np.uint64) -> Nodes:
            visits = np.zeros(self.nodes, dtype=np.int64)
            skipgram.count_visits(starts, key, *self.way, visits, self.stopped)
            return visits

        visits = np.zeros(self.nodes, dtype=np.int64)
        for number in range(self.settings.walks):
            visits += np.sum(self._share(count, number, self._order(number)), axis=0)
        self.thresholds = np.empty(self.nodes, dtype=np.uint32)
        self.aliases = np.empty(self.nodes, dtype=np.int32)
        build_aliases(np.array([0, self.nodes]), visits**_POWER, self.thresholds, self.aliases)

    def train(self, reporter: Reporter | None) -> None:
        """Train on all walks, piece by piece, each with a lower learning rate."""
        started = time.perf_counter()
        rate = self.settings.learning_rate
        total = self.settings.walks * _PIECES
        kernel: Any = skipgram.train

        def work(piece: int) -> Callable[[Nodes, np.uint64], tuple[int, Nodes]]:
            rates = [rate * (1 - (1 - _LAST_RATE) * position / total) for position in (piece, piece + 1)]

            def move(starts: Nodes, key: np.uint64) -> tuple[int, Nodes]:
                updates = np.zeros(self.nodes, dtype=np.int64)
                pairs = kernel(
                    starts, key, *self.way, self.settings.window, self.settings.negatives,
                    self.thresholds, self.aliases, *rates, self.vectors, self.contexts, updates, self.stopped,
                )  # fmt: skip
                return pairs, updates

            return move

        for piece in range(total):
            number, position = divmod(piece, _PIECES)
            if position == 0:
                parts = np.array_split(self._order(number), _PIECES)
            for pairs, updates in self._share(work(piece), number, parts[position]):
                self.pairs += pairs
                self.updates += updates
            if not np.isfinite(self.vectors).all():
                raise DivergenceError(f"vectors stopped being finite: learning_rate must be smaller, got {rate:g}")
            if reporter is not None:
                seconds = time.perf_counter() - started
                seconds_left = seconds / (piece + 1) * (total - piece - 1)
                current_rate = rate * (1 - (1 - _LAST_RATE) * piece / total)
                reporter(Progress(piece + 1, total, self.pairs, seconds, seconds_left, current_rate, float("nan")))

    def _order(self, number: int) -> Nodes:
        key = derive(derive_key(self.settings.seed, ORDERS), number)
        return np.argsort(derive(key, np.arange(self.nodes)), kind="stable")

    def _share(self, work: Callable[[Nodes, np.uint64], Any], number: int, starts: Nodes) -> list[Any]:
        """Call `work` on several threads, each with a part of the start nodes of a pass; stops soon on Ctrl-C."""
        key = np.uint64(derive(derive_key(self.settings.seed, WALKS), number))
        with ThreadPoolExecutor(self.settings.threads, thread_name_prefix="manela-walks") as threads:
            parts = [threads.submit(work, part, key) for part in np.array_split(starts, self.settings.threads)]
            try:
                return [part.result() for part in parts]
            except BaseException:
                self.stopped[0] = 1
                raise
