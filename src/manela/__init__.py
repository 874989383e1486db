"""Vectors for the nodes of a network, learned by agents that each see only their own neighbourhood."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from manela.data.embedding import Embedding as Embedding
    from manela.data.graph import Graph as Graph
    from manela.engines.checkpoint import Checkpoint as Checkpoint
    from manela.errors import ManelaError as ManelaError
    from manela.errors import ManelaWarning as ManelaWarning
    from manela.estimators.baselines.netmf import NetMF as NetMF
    from manela.estimators.baselines.prone import ProNE as ProNE
    from manela.estimators.baselines.skip_gram import DeepWalk as DeepWalk
    from manela.estimators.baselines.skip_gram import Node2Vec as Node2Vec
    from manela.estimators.manela import Manela as Manela
    from manela.estimators.relational_neighbors import RelationalNeighbors as RelationalNeighbors
    from manela.formats.graphs import read_graph as read_graph

_HOMES = {
    "Checkpoint": "manela.engines.checkpoint",
    "DeepWalk": "manela.estimators.baselines.skip_gram",
    "Embedding": "manela.data.embedding",
    "Graph": "manela.data.graph",
    "Manela": "manela.estimators.manela",
    "ManelaError": "manela.errors",
    "ManelaWarning": "manela.errors",
    "NetMF": "manela.estimators.baselines.netmf",
    "Node2Vec": "manela.estimators.baselines.skip_gram",
    "ProNE": "manela.estimators.baselines.prone",
    "RelationalNeighbors": "manela.estimators.relational_neighbors",
    "read_graph": "manela.formats.graphs",
}
__all__ = [
    "Checkpoint",
    "DeepWalk",
    "Embedding",
    "Graph",
    "Manela",
    "ManelaError",
    "ManelaWarning",
    "NetMF",
    "Node2Vec",
    "ProNE",
    "RelationalNeighbors",
    "__version__",
    "read_graph",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import manela` loads neither Numba nor scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module 'manela' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
