"""Placing the nodes of a network that an embedding does not have yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.data.graph import Graph
from manela.errors import GraphError, ParameterError
from manela.estimators.cover import cover, cover_embedding
from manela.estimators.placement import Placement, split_newcomers

Vectors = npt.NDArray[np.float32]


def add_placement(embedding: Embedding, graph: Graph) -> Embedding:
    """Return the embedding with what `place_newcomers` needs.

    Nothing is added if arcs were followed as given, rather than through a cover.
    """
    if _is_covered(embedding):
        covered, known = cover(graph), cover_embedding(embedding)
        rows = np.array([known._positions.get(node, -1) for node in covered.nodes.tolist()])
        vectors = np.where(rows[:, None] >= 0, known.vectors[rows], np.float32(0.0))
        placements = [Placement.learn(covered, vectors)]
    elif graph.directed:
        return embedding
    else:
        tables = [table for table in (embedding.vectors, embedding.context) if table is not None]
        placements = [Placement.learn(graph, table) for table in tables]
    further = {
        "placement": np.stack([placement.matrix for placement in placements]),
        "placement_norms": np.array([(placement.scale, placement.power) for placement in placements]),
    }
    return replace(embedding, further={**embedding.further, **further})


def place_newcomers(embedding: Embedding, graph: Graph) -> tuple[list[Vectors], npt.NDArray[Any]]:
    """Return vectors for a network's nodes that an embedding does not have, for each of its tables, and their ids."""
    further = embedding.further
    rows = np.array([row for row, node in enumerate(graph.nodes.tolist()) if node not in embedding], dtype=np.int64)
    names = graph.nodes[rows]
    if "placement" not in further:
        raise ParameterError(
            f"{names.tolist()[0]!r} is new, and this model does not say how to place new nodes: partial_fit learns "
            "them; files that Manela.save wrote, or manela embed, say it unless arcs were followed as given."
        )
    placements = [
        Placement(matrix, float(scale), float(power))
        for matrix, (scale, power) in zip(further["placement"], further["placement_norms"], strict=True)
    ]
    if _is_covered(embedding):
        return _place_ends(embedding, graph, placements[0], names), names
    links, among, _ = split_newcomers(graph, embedding._positions, len(embedding))
    tables = []
    for placement, table in zip(placements, (embedding.vectors, embedding.context), strict=False):
        if table is not None:
            vectors, is_placed = placement.place(links, among, table)
            _check_placed(is_placed, names)
            tables.append(vectors)
    return tables, names


def _place_ends(embedding: Embedding, graph: Graph, how: Placement, names: npt.NDArray[Any]) -> list[Vectors]:
    """Return the out and in vectors of a directed network's new nodes; zeros without such arcs to known nodes."""
    known = cover_embedding(embedding)
    links, among, ends = split_newcomers(cover(graph), known._positions, len(known))
    vectors, is_placed = how.place(links, among, known.vectors)
    rows: Mapping[Any, int] = {end: row for row, end in enumerate(ends.tolist())}
    tables = []
    reached = np.zeros(len(names), dtype=bool)
    for side in ("out", "in"):
        end_rows = np.array([rows.get((side, name), -1) for name in names.tolist()], dtype=np.int64)
        has_vector = (end_rows >= 0) & is_placed[end_rows]
        tables.append(np.where(has_vector[:, None], vectors[end_rows], np.float32(0.0)))
        reached |= has_vector
    _check_placed(reached, names)
    return tables


def _check_placed(is_placed: npt.NDArray[np.bool_], names: npt.NDArray[Any]) -> None:
    """Raise if a new node has no known neighbour."""
    if not is_placed.all():
        raise GraphError(f"a new node must be joined to known ones, {names[~is_placed].tolist()[0]!r} is not")


def _is_covered(embedding: Embedding) -> bool:
    """Return whether these are out and in vectors, learned through the cover of a directed network."""
    parameters = embedding.provenance.get("parameters", {})
    is_directed = bool(embedding.provenance.get("graph", {}).get("directed"))
    by_messages = parameters.get("exchange") == "messages" and not parameters.get("context")
    return is_directed and by_messages and embedding.context is not None
