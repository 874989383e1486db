"""Baseline: the base class of the methods that Manela is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.data.graph import Graph
from manela.estimators.embedder import Embedder, describe_run
from manela.formats.loading import load_graph
from manela.kernels.layout import Vectors
from manela.system.progress import Reporter
from manela.system.threads import allow_cores


class Learned(NamedTuple):
    """What a method learned from a network."""

    vectors: Vectors  # (n, m)
    provenance: Mapping[str, Any]  # entries besides parameters and network
    context: Vectors | None = None  # (n, m): the second vectors, if the method has them
    updates: npt.NDArray[np.int64] | None = None  # (n,): how often each vector was updated, if the method counts it


class Baseline(Embedder):
    """A method that Manela is compared with; subclasses implement `_check` and `_learn`."""

    def fit(self, X: Any, y: Any = None, *, progress: Reporter | None = None) -> Self:  # noqa: ARG002
        """Learn the vectors of a network.

        Parameters
        ----------
        X : Graph, SciPy sparse matrix, NetworkX or igraph graph, edge_index, pandas frame, or path
            The network.
        y : ignored
        progress : callable, optional
            Called with a `manela.system.progress.Progress` after each part of the run, reported as a round. A method
            without update pairs reports 0 pairs.

        Returns
        -------
        self
        """
        settings = self._check()
        with allow_cores(settings.threads):
            graph = load_graph(X)
        learned = self._learn(graph, settings, progress)
        parameters = {name: value for name, value in asdict(settings).items() if name in self._get_param_names()}
        provenance = describe_run(
            self.method, graph, parameters | {"random_state": settings.seed}, **learned.provenance
        )
        return self._set_fitted(Embedding(graph.nodes, learned.vectors, learned.context, provenance), learned.updates)

    def _check(self) -> Any:
        raise NotImplementedError

    def _learn(self, graph: Graph, settings: Any, progress: Reporter | None) -> Learned:
        raise NotImplementedError
