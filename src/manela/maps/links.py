"""Links: chooses the edges that a map draws, as pairs of rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.errors import GraphError, ManelaWarning

Pairs = npt.NDArray[np.uint32]

_MOST_LINKS = 30_000
"""Most links that are drawn; more make the page larger and cover the points."""


def choose_links(nodes: npt.NDArray[Any], edges: Any, random_state: int = 0) -> tuple[Pairs, int]:
    """Return the links to draw, and the number of edges between the nodes.

    Parameters
    ----------
    nodes : array, shape (n,)
        Ids of the map's nodes, which are compared with those of the edges as text.
    edges : Graph, or anything that `Graph.of` accepts
    random_state : int
        The seed of the random sample that is drawn if there are too many edges.

    Returns
    -------
    pairs : array of uint32, shape (links, 2)
    total : int

    Examples
    --------
    >>> pairs, total = choose_links(np.array([10, 20, 30]), [(10, 20), (20, 30)])
    >>> pairs.tolist(), total
    ([[0, 1], [1, 2]], 2)
    """
    graph = Graph.of(edges, duplicates="first")
    rows = {str(node): row for row, node in enumerate(nodes.tolist())}
    places = np.array([rows.get(str(node), -1) for node in graph.nodes.tolist()], dtype=np.int64)
    sources = places[np.repeat(np.arange(len(places)), np.diff(graph.indptr))]
    pairs = np.column_stack((sources, places[graph.indices]))
    known = (pairs >= 0).all(axis=1)
    low, high = pairs[known].min(axis=1), pairs[known].max(axis=1)
    codes = np.unique(low * len(nodes) + high)  # a graph has each edge in both directions; draw it once
    pairs = np.column_stack(np.divmod(codes, len(nodes)))
    if not len(pairs):
        raise GraphError("no edge joins two nodes of the map; the edges and the vectors must be of the same network")
    if not known.all():
        left_out = int((places < 0).sum())
        warnings.warn(
            f"edges of {left_out:,} nodes that have no vector are left out of the map", ManelaWarning, stacklevel=2
        )
    total = len(pairs)
    if total > _MOST_LINKS:
        chosen = np.random.default_rng(random_state).choice(total, _MOST_LINKS, replace=False)
        pairs = pairs[np.sort(chosen)]
    return pairs.astype(np.uint32), total
