"""Places nodes that were not in the training network, from their neighbours alone, and starts them for training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from manela.data.embedding import Embedding
from manela.data.graph import Graph
from manela.errors import GraphError, ParameterError
from manela.estimators.cover import cover, cover_embedding
from manela.kernels.layout import Vectors, normalise_rows


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
            f"{names.tolist()[0]!r} was not in the training network, and this model cannot place new nodes; use "
            "partial_fit, or load a .npz saved by Manela.save"
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
    if not is_placed.all():
        raise GraphError(f"a new node must be joined to known ones, {names[~is_placed].tolist()[0]!r} is not")


def _is_covered(embedding: Embedding) -> bool:
    """Return whether these are out and in vectors, learned through the cover of a directed network."""
    parameters = embedding.provenance.get("parameters", {})
    is_directed = bool(embedding.provenance.get("graph", {}).get("directed"))
    by_messages = parameters.get("exchange") == "messages" and not parameters.get("context")
    return is_directed and by_messages and embedding.context is not None


_MOST_SAMPLES = 16_384
"""Most known nodes that the map is learned on; more make it slightly better and take longer."""
_RIDGE = 1e-4
"""Ridge penalty, as a share of the mean square of the inputs; the larger, the more the map shrinks towards 0."""
_MOST_POWER = 2.0
"""Largest power of the degree that norms may follow. Where nearly all degrees are equal, the fitted slope is noise, and
a larger limit lets more of it through."""
_TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Placement:
    """Predicts the vector of a node from those of its neighbours."""

    # (2m, m): maps the mean of the neighbours' directions, followed by the mean of their vectors, to a direction
    matrix: Vectors
    # the norm of a vector is scale·d^power for a node of degree d
    scale: float
    power: float

    @classmethod
    def learn(cls, graph: Graph, vectors: Vectors) -> Placement:
        """Return the least-squares fit to known nodes, weighted by degree.

        Averaging over neighbours damps what varies from node to node and keeps what is common to all. The map undoes
        that, direction by direction.
        """
        degrees = graph.degrees
        rows = np.flatnonzero(degrees)
        rows = rows[:: max(1, -(-len(rows) // _MOST_SAMPLES))]
        directions = normalise_rows(vectors)
        means = _average(graph.to_scipy()[rows], directions, vectors).astype(np.float64)
        weighted = means * degrees[rows][:, None]
        square = means.T @ weighted
        square[np.diag_indices_from(square)] += _RIDGE * max(np.trace(square) / len(square), float(_TINY))
        matrix = np.linalg.solve(square, weighted.T @ directions[rows]).astype(np.float32)
        norms = np.log(np.maximum(np.linalg.norm(vectors[rows], axis=1), _TINY))
        sizes = np.log(degrees[rows])
        power = 0.0
        if np.ptp(sizes) > 0:  # the computed variance of equal numbers is not quite 0
            slope = np.mean((sizes - sizes.mean()) * (norms - norms.mean())) / np.var(sizes)
            power = float(np.clip(slope, -_MOST_POWER, _MOST_POWER))
        return cls(matrix, float(np.exp(norms.mean() - power * sizes.mean())), power)

    def place(
        self, links: sp.csr_array, among: sp.csr_array, vectors: Vectors
    ) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """Return vectors for new nodes, and which of them were placed: those with a path to a known node.

        A node is placed by its known neighbours or, without any, by new neighbours that were placed before. The weights
        of edges are `links`, (new, n), to known nodes and `among`, (new, new), between new ones; `vectors`, (n, m), are
        those of known nodes.
        """
        degrees = np.diff(links.indptr) + np.diff(among.indptr)
        norms = (self.scale * np.maximum(degrees, 1) ** self.power).astype(np.float32)[:, None]
        used, columns = np.unique(links.indices, return_inverse=True)
        known = vectors[used]
        used_links = sp.csr_array((links.data, columns, links.indptr), shape=(links.shape[0], len(used)))
        placed = np.diff(links.indptr) > 0
        new = self._map(_average(used_links, normalise_rows(known), known)) * norms
        while not placed.all():  # nodes that reach known ones only through other new ones
            to_placed = among @ sp.diags_array(placed.astype(np.float64))
            to_placed.eliminate_zeros()
            ready = ~placed & (np.diff(to_placed.indptr) > 0)
            if not ready.any():
                break
            new[ready] = self._map(_average(to_placed[ready], normalise_rows(new), new)) * norms[ready]
            placed |= ready
        return np.asarray(new, dtype=np.float32), placed

    def _map(self, means: Vectors) -> Vectors:
        return normalise_rows(means @ self.matrix)


def turn_back(embedding: Embedding, before: Embedding) -> Embedding:
    """Return the embedding turned so that nodes that were there before are nearest to their vectors of then.

    No angle between two vectors changes. Norms are left aside, so that nodes of high degree decide no more than others.
    """
    rows = [(row, before.row(node)) for row, node in enumerate(embedding.nodes.tolist()) if node in before]
    if not rows:
        return embedding
    new, old = np.array(rows).T
    tables = [table for table in (embedding.vectors, embedding.context) if table is not None]
    earlier = [table for table in (before.vectors, before.context) if table is not None]
    with threadpool_limits(limits=1, user_api="blas"):  # for the same bits with any number of threads
        product = sum(
            normalise_rows(now[new].astype(np.float64)).T @ normalise_rows(then[old].astype(np.float64))
            for now, then in zip(tables, earlier, strict=True)
        )
        left, _, right = np.linalg.svd(product)
        turned = [(table.astype(np.float64) @ (left @ right)).astype(np.float32) for table in tables]
    return replace(embedding, vectors=turned[0], context=turned[1] if len(turned) > 1 else None)


def split_newcomers(graph: Graph, known: dict[Any, int], size: int) -> tuple[Any, Any, npt.NDArray[Any]]:
    """Return edges of new nodes to known ones, (new, size), and among them, (new, new), and the ids of new nodes."""
    rows = np.array([known.get(node, -1) for node in graph.nodes.tolist()], dtype=np.int64)
    new = np.flatnonzero(rows < 0)
    new_rows = np.full(len(rows), -1, dtype=np.int64)
    new_rows[new] = np.arange(len(new))
    entries = sp.coo_array(graph.to_scipy()[new])
    sources, targets = entries.coords
    is_known = rows[targets] >= 0
    links = sp.csr_array((entries.data[is_known], (sources[is_known], rows[targets[is_known]])), shape=(len(new), size))
    among = sp.csr_array(
        (entries.data[~is_known], (sources[~is_known], new_rows[targets[~is_known]])), shape=(len(new), len(new))
    )
    return links, among, graph.nodes[new]


def _average(matrix: sp.csr_array, directions: Vectors, vectors: Vectors) -> Vectors:
    totals = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    shares = matrix.data / np.repeat(np.where(totals > 0, totals, 1.0), np.diff(matrix.indptr))
    weights = sp.csr_array((shares.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.concatenate((weights @ directions, weights @ vectors), axis=1)


def start_from_neighbours(graph: Graph, table: Vectors, is_new: npt.NDArray[np.bool_]) -> None:
    """Set each new node's row of `table` to the mean of its placed neighbours, starting next to known nodes.

    A new node with no path to a known one keeps its row.
    """
    placed = ~is_new
    adjacency = graph.to_scipy()
    while not placed.all():
        counts = adjacency @ placed.astype(np.float64)
        ready = ~placed & (counts > 0)
        if not ready.any():
            return
        sums = adjacency[ready] @ np.where(placed[:, None], table, 0.0)
        table[ready] = sums / counts[ready, None]
        placed |= ready
