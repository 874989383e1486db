"""The cover of a directed network: an undirected one in which each node is two, one for each end of its arcs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.embedding import Embedding
from manela.graph import Graph
from manela.settings import Settings

Vectors = npt.NDArray[np.float32]


def is_covered(graph: Graph, settings: Settings) -> bool:
    """Whether a network is learned by its cover: if it is directed, by messages and without context vectors."""
    return graph.directed and settings.exchange == "messages" and not settings.context


def cover(graph: Graph) -> Graph:
    """The cover: nodes ("out", v) and ("in", v) for the ends of arcs, and an edge ("out", u) - ("in", v) for u → v.

    Examples
    --------
    >>> graph = cover(Graph.from_edges(["a", "b"], ["b", "c"], directed=True))
    >>> graph.nodes.tolist()
    [('out', 'a'), ('out', 'b'), ('in', 'b'), ('in', 'c')]
    """
    has_out, has_in = _find_ends(graph)
    places = [np.cumsum(has) - 1 for has in (has_out, has_in)]
    sources = places[0][np.repeat(np.arange(graph.number_of_nodes), graph.degrees)]
    rows = int(np.count_nonzero(has_out))
    nodes = _name_ends(graph.nodes)[np.concatenate((has_out, has_in))]
    covered = Graph.from_arcs(sources, places[1][graph.indices] + rows, graph.weights, nodes, duplicates="error")
    return replace(covered, rows=rows)


def uncover(graph: Graph, vectors: Vectors, provenance: Mapping[str, Any]) -> Embedding:
    """The out vectors and, as context, the in vectors of a network whose cover has these; zeros where no arc is."""
    tables = []
    first = 0
    for has in _find_ends(graph):
        table = np.zeros((graph.number_of_nodes, vectors.shape[1]), dtype=np.float32)
        last = first + int(np.count_nonzero(has))
        table[has] = vectors[first:last]
        tables.append(table)
        first = last
    return Embedding(graph.nodes, tables[0], tables[1], provenance)


def add_ends(graph: Graph, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The sum for each node of what is counted for the nodes of the cover."""
    added = np.zeros(graph.number_of_nodes, dtype=np.int64)
    first = 0
    for has in _find_ends(graph):
        last = first + int(np.count_nonzero(has))
        added[has] += counts[first:last]
        first = last
    return added


def _find_ends(graph: Graph) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which nodes arcs leave, and which they lead to."""
    return graph.degrees > 0, np.bincount(graph.indices, minlength=graph.number_of_nodes) > 0


def cover_embedding(embedding: Embedding) -> Embedding:
    """Out and in vectors as those of a cover; those of zeros are left out."""
    context = embedding.context if embedding.context is not None else embedding.vectors
    vectors = np.concatenate((embedding.vectors, context))
    kept = vectors.any(axis=1)
    return Embedding(_name_ends(embedding.nodes)[kept], vectors[kept])


def _name_ends(nodes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    names = np.empty(2 * len(nodes), dtype=object)
    names[:] = [("out", node) for node in nodes.tolist()] + [("in", node) for node in nodes.tolist()]
    return names
