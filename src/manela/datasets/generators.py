"""Generators of random networks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.errors import ParameterError


def stochastic_block_model(
    nodes: int = 1024, communities: int = 3, inside: float = 0.1, between: float = 0.01, seed: int = 0
) -> tuple[Graph, npt.NDArray[np.int64]]:
    """Generate a stochastic block model; by default SYN-SBM of the paper.

    Each node belongs to a random community; two nodes have an edge with probability `inside` if they share it and
    `between` otherwise.

    Returns
    -------
    graph : Graph
        Ids are 0 … nodes - 1.
    communities : array of int, shape (nodes,)
    """
    for name, value in (("inside", inside), ("between", between)):
        if not 0 <= value <= 1:
            raise ParameterError(f"{name} must be a probability, got {value!r}.")
    random = np.random.default_rng(seed)
    community = random.integers(communities, size=nodes)
    rows, columns = np.triu_indices(nodes, k=1)
    probability = np.where(community[rows] == community[columns], inside, between)
    has_edge = random.random(len(rows)) < probability
    return Graph.from_arcs(rows[has_edge], columns[has_edge], None, np.arange(nodes), duplicates="first"), community


def planted_partition(
    nodes: int, communities: int, inside: int, outside: int, seed: int = 0
) -> tuple[Graph, npt.NDArray[np.int64]]:
    """Generate a sparse network with communities: each node draws edges to its own community, and to any node.

    Time and memory are proportional to the edges, while `stochastic_block_model` visits every pair of nodes.

    Returns
    -------
    graph : Graph
        Ids are 0 … nodes - 1; duplicates and self-loops are dropped.
    communities : array of int, shape (nodes,)
    """
    if nodes < 2 or communities < 1 or inside < 0 or outside < 0 or inside + outside == 0:
        raise ParameterError(
            "nodes must be at least 2, communities at least 1, and inside and outside not negative and not both 0, "
            f"got {nodes}, {communities}, {inside} and {outside}."
        )
    random = np.random.default_rng(seed)
    community = random.integers(communities, size=nodes)
    members = np.argsort(community, kind="stable")
    starts = np.searchsorted(community[members], np.arange(communities + 1))
    sizes = starts[community + 1] - starts[community]
    inside_sources, outside_sources = np.repeat(np.arange(nodes), inside), np.repeat(np.arange(nodes), outside)
    inside_targets = members[
        starts[community[inside_sources]]
        + (random.random(len(inside_sources)) * sizes[inside_sources]).astype(np.int64)
    ]
    outside_targets = random.integers(nodes, size=len(outside_sources))
    sources, targets = (
        np.concatenate((inside_sources, outside_sources)),
        np.concatenate((inside_targets, outside_targets)),
    )
    return Graph.from_arcs(sources, targets, None, np.arange(nodes), duplicates="first"), community


def draw_random(nodes: int, edges: int, seed: int = 0) -> Graph:
    """Generate a uniformly random network of about this many edges (duplicates and self-loops are dropped)."""
    random = np.random.default_rng(seed)
    kind = np.int32 if nodes < 2**31 else np.int64
    ends = random.integers(nodes, size=(2, edges), dtype=kind)
    return Graph.from_arcs(ends[0], ends[1], None, np.arange(nodes), duplicates="first")
