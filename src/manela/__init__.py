"""Vectors for the nodes of a network, learned by agents that each see only their own neighbourhood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manela.system.exports import export

__version__ = "0.3.0.dev0"

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
    from manela.formats.datasets import planted_partition as planted_partition
    from manela.formats.datasets import stochastic_block_model as stochastic_block_model
    from manela.formats.embeddings import read_embedding as read_embedding
    from manela.formats.graphs import read_graph as read_graph
    from manela.formats.loading import load_graph as load_graph

# imported when first used: `import manela` loads neither Numba nor scikit-learn
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
    "load_graph": "manela.formats.loading",
    "planted_partition": "manela.formats.datasets",
    "read_embedding": "manela.formats.embeddings",
    "read_graph": "manela.formats.graphs",
    "stochastic_block_model": "manela.formats.datasets",
}
__all__ = ["__version__", *_HOMES]


__getattr__, __dir__ = export(__name__, _HOMES, "__version__")
