"""Vectors for the nodes of a network that an embedding does not know yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.embedding import Embedding
from manela.errors import GraphError, ParameterError
from manela.estimators.cover import cover, cover_embedding
from manela.estimators.placement import Placement, split_newcomers
from manela.graph import Graph

Vectors = npt.NDArray[np.float32]


def add_placement(embedding: Embedding, graph: Graph) -> Embedding:
    """The same embedding, with how new nodes are placed; nothing is added to that of a network followed as given."""
    if _is_covered(embedding):
        covered, known = cover(graph), cover_embedding(embedding)
        rows = np.array([known._positions.get(node, -1) for node in covered.nodes.tolist()])
        vectors = np.where(rows[:, None] >= 0, known.vectors[rows], np.float32(0.0))
        learned = [Placement.learn(covered, vectors)]
    elif graph.directed:
        return embedding
    else:
        tables = [table for table in (embedding.vectors, embedding.context) if table is not None]
        learned = [Placement.learn(graph, table) for table in tables]
    further = {
        "placement": np.stack([how.matrix for how in learned]),
        "placement_norms": np.array([(how.scale, how.power) for how in learned]),
    }
    return replace(embedding, further={**embedding.further, **further})


def place_newcomers(embedding: Embedding, graph: Graph) -> tuple[list[Vectors], npt.NDArray[Any]]:
    """The vectors of the nodes of a network that an embedding does not have, for each of its tables, and their ids."""
    further = embedding.further
    ids = np.array([place for place, node in enumerate(graph.nodes.tolist()) if node not in embedding], dtype=np.int64)
    names = graph.nodes[ids]
    if "placement" not in further:
        raise ParameterError(
            f"{names.tolist()[0]!r} is new, and this model does not say how to place new nodes: partial_fit learns "
            "them; files that Manela.save wrote, or manela embed, say it unless arcs were followed as given."
        )
    how = [
        Placement(matrix, float(scale), float(power))
        for matrix, (scale, power) in zip(further["placement"], further["placement_norms"], strict=True)
    ]
    if _is_covered(embedding):
        return _place_ends(embedding, graph, how[0], names), names
    links, among, _ = split_newcomers(graph, embedding._positions, len(embedding))
    placed = []
    for one, table in zip(how, (embedding.vectors, embedding.context), strict=False):
        if table is not None:
            vectors, is_placed = one.place(links, among, table)
            _check_placed(is_placed, names)
            placed.append(vectors)
    return placed, names


def _place_ends(embedding: Embedding, graph: Graph, how: Placement, names: npt.NDArray[Any]) -> list[Vectors]:
    """The out and in vectors of new nodes of a directed network, zeros where they have no such arcs to known ones."""
    known = cover_embedding(embedding)
    links, among, ends = split_newcomers(cover(graph), known._positions, len(known))
    vectors, is_placed = how.place(links, among, known.vectors)
    rows: Mapping[Any, int] = {end: row for row, end in enumerate(ends.tolist())}
    tables = []
    reached = np.zeros(len(names), dtype=bool)
    for side in ("out", "in"):
        places = np.array([rows.get((side, name), -1) for name in names.tolist()], dtype=np.int64)
        has = (places >= 0) & is_placed[places]
        tables.append(np.where(has[:, None], vectors[places], np.float32(0.0)))
        reached |= has
    _check_placed(reached, names)
    return tables


def _check_placed(is_placed: npt.NDArray[np.bool_], names: npt.NDArray[Any]) -> None:
    if not is_placed.all():
        raise GraphError(f"a new node must be joined to known ones, {names[~is_placed].tolist()[0]!r} is not")


def _is_covered(embedding: Embedding) -> bool:
    """Whether these are out and in vectors, learned by the cover of a directed network."""
    parameters = embedding.provenance.get("parameters", {})
    is_directed = bool(embedding.provenance.get("graph", {}).get("directed"))
    by_messages = parameters.get("exchange") == "messages" and not parameters.get("context")
    return is_directed and by_messages and embedding.context is not None
