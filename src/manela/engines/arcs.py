"""Prepares the arcs of a network for the kernels."""

from __future__ import annotations

import numpy as np

from manela.data.graph import Graph
from manela.kernels.cpu.walks import build_aliases
from manela.kernels.layout import Arcs

__all__ = ["Arcs", "prepare_arcs"]


def prepare_arcs(graph: Graph) -> Arcs:
    """Return the arcs of a graph: its own arrays, and alias tables if it has weights."""
    if graph.weights is None:
        return Arcs(graph.indptr, graph.indices)
    thresholds = np.empty(len(graph.indices), dtype=np.uint32)
    aliases = np.empty(len(graph.indices), dtype=np.int32)
    build_aliases(graph.indptr, graph.weights, thresholds, aliases)
    return Arcs(graph.indptr, graph.indices, thresholds, aliases)
