"""The cover of a directed network: an undirected one that splits a node in two, for outgoing and incoming arcs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.data.graph import Graph
from manela.kernels.layout import Vectors
from manela.settings.settings import Settings


def is_covered(graph: Graph, settings: Settings) -> bool:
    """Return whether a network is learned through its cover: directed, by messages, without context vectors."""
    return graph.directed and settings.exchange == "messages" and not settings.context


def cover(graph: Graph) -> Graph:
    """Return the cover, which has an edge ("out", u) - ("in", v) for each arc u → v.

    A node has an "out" node only if arcs leave it, and an "in" node only if arcs lead to it.

    Examples
    --------
    >>> graph = cover(Graph.from_edges(["a", "b"], ["b", "c"], directed=True))
    >>> graph.nodes.tolist()
    [('out', 'a'), ('out', 'b'), ('in', 'b'), ('in', 'c')]
    """
    has_out, has_in = _find_ends(graph)
    positions = [np.cumsum(has_arcs) - 1 for has_arcs in (has_out, has_in)]
    sources = positions[0][np.repeat(np.arange(graph.number_of_nodes), graph.degrees)]
    out_nodes = int(np.count_nonzero(has_out))
    nodes = _name_ends(graph.nodes)[np.concatenate((has_out, has_in))]
    covered = Graph.from_arcs(
        sources, positions[1][graph.indices] + out_nodes, graph.weights, nodes, duplicates="error"
    )
    return replace(covered, rows=out_nodes)


def uncover(graph: Graph, vectors: Vectors, provenance: Mapping[str, Any]) -> Embedding:
    """Return out vectors, and in vectors as context, from those of the cover; zeros for a node without such arcs."""
    has_out, has_in = _find_ends(graph)
    tables = np.zeros((2, graph.number_of_nodes, vectors.shape[1]), dtype=np.float32)
    tables[0, has_out], tables[1, has_in] = np.split(vectors, [np.count_nonzero(has_out)])
    return Embedding(graph.nodes, tables[0], tables[1], provenance)


def add_ends(graph: Graph, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add up the counts of a node's two ends in the cover, for each node."""
    has_out, has_in = _find_ends(graph)
    of_out, of_in = np.split(counts, [np.count_nonzero(has_out)])
    totals = np.zeros(graph.number_of_nodes, dtype=np.int64)
    totals[has_out] += of_out
    totals[has_in] += of_in
    return totals


def _find_ends(graph: Graph) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    return graph.degrees > 0, np.bincount(graph.indices, minlength=graph.number_of_nodes) > 0


def cover_embedding(embedding: Embedding) -> Embedding:
    """Return out and in vectors as the embedding of a cover, without vectors of zeros."""
    context = embedding.context if embedding.context is not None else embedding.vectors
    vectors = np.concatenate((embedding.vectors, context))
    is_nonzero = vectors.any(axis=1)
    return Embedding(_name_ends(embedding.nodes)[is_nonzero], vectors[is_nonzero])


def _name_ends(nodes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    names = np.empty(2 * len(nodes), dtype=object)
    names[:] = [("out", node) for node in nodes.tolist()] + [("in", node) for node in nodes.tolist()]
    return names
