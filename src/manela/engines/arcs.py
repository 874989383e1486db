"""The arcs of a network, as the kernels take them."""

from __future__ import annotations

import numpy as np

from manela.graph import Graph
from manela.kernels.arcs import Arcs
from manela.kernels.cpu import build_aliases

__all__ = ["Arcs", "prepare_arcs"]


def prepare_arcs(graph: Graph) -> Arcs:
    """The arcs of a graph: its own arrays, and alias tables where it has weights."""
    if graph.weights is None:
        return Arcs(graph.indptr, graph.indices)
    thresholds = np.empty(len(graph.indices), dtype=np.uint32)
    aliases = np.empty(len(graph.indices), dtype=np.int32)
    build_aliases(graph.indptr, graph.weights, thresholds, aliases)
    return Arcs(graph.indptr, graph.indices, thresholds, aliases)
