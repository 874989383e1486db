"""All methods by name: those that learn vectors, and those that score links directly."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from manela.analysis.links import HEURISTICS, Scorer, score_vectors
from manela.data.graph import Graph
from manela.errors import GraphError, ManelaWarning, ParameterError
from manela.estimators.baselines.netmf import NetMF, check_size
from manela.estimators.baselines.prone import ProNE
from manela.estimators.baselines.skip_gram import DeepWalk, Node2Vec
from manela.estimators.embedder import Embedder
from manela.estimators.manela import Manela

EMBEDDERS: dict[str, type[Embedder]] = {kind.method: kind for kind in (Manela, DeepWalk, Node2Vec, ProNE, NetMF)}
METHODS = (*EMBEDDERS, *HEURISTICS)


def choose_methods(names: str, graph: Graph, window: int) -> tuple[str, ...]:
    """Parse method names separated by commas; `all` leaves out those for which the network is too large."""
    chosen = METHODS if names == "all" else tuple(dict.fromkeys(names.split(",")))
    unknown = [name for name in chosen if name not in METHODS]
    if unknown:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, or all, got {unknown[0]!r}")
    if NetMF.method in chosen:
        try:
            check_size(graph, window)
        except GraphError as error:
            if names != "all":
                raise
            warnings.warn(f"{NetMF.method} is left out: {error}", ManelaWarning, stacklevel=2)
            return tuple(name for name in chosen if name != NetMF.method)
    return chosen


def make_embedder(method: str, parameters: Mapping[str, Any]) -> Embedder:
    """Return the estimator of a method; parameters that it does not have are ignored."""
    if method not in EMBEDDERS:
        raise ParameterError(f"method must be one of {', '.join(EMBEDDERS)}, got {method!r}")
    kind = EMBEDDERS[method]
    model: Embedder = kind(**{name: value for name, value in parameters.items() if name in kind._get_param_names()})
    return model


def make_scorer(method: str, graph: Graph, parameters: Mapping[str, Any]) -> Scorer:
    """Return the link scorer of a method, fitted to the network if the method learns vectors."""
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    heuristic: Callable[[Graph], Scorer] | None = HEURISTICS.get(method)
    if heuristic is not None:
        return heuristic(graph)
    return score_vectors(make_embedder(method, parameters).fit(graph).embedding_)
