"""Every method by its name: those that learn vectors, and those that score links without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from manela.errors import ParameterError
from manela.estimators.deepwalk import DeepWalk
from manela.estimators.embedder import Embedder
from manela.estimators.manela import Manela
from manela.estimators.netmf import NetMF
from manela.estimators.node2vec import Node2Vec
from manela.estimators.prone import ProNE
from manela.evaluation.heuristics import HEURISTICS
from manela.evaluation.links import Scorer, score_vectors
from manela.graph import Graph

EMBEDDERS: dict[str, type[Embedder]] = {kind.method: kind for kind in (Manela, DeepWalk, Node2Vec, ProNE, NetMF)}
METHODS = (*EMBEDDERS, *HEURISTICS)


def make_embedder(method: str, parameters: Mapping[str, Any]) -> Embedder:
    """The estimator of a method with those of the parameters that it has."""
    if method not in EMBEDDERS:
        raise ParameterError(f"method must be one of {', '.join(EMBEDDERS)}, got {method!r}.")
    kind = EMBEDDERS[method]
    model: Embedder = kind(**{name: value for name, value in parameters.items() if name in kind._get_param_names()})
    return model


def make_scorer(method: str, graph: Graph, parameters: Mapping[str, Any]) -> Scorer:
    """What a method says of the links that a network may have, learned from it if need be."""
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    heuristic: Callable[[Graph], Scorer] | None = HEURISTICS.get(method)
    if heuristic is not None:
        return heuristic(graph)
    return score_vectors(make_embedder(method, parameters).fit(graph).embedding_)
