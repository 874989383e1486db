"""Vectors for nodes that were not there when fitting: by a map from the means of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manela.graph import Graph

Vectors = npt.NDArray[np.float32]

_MOST_SAMPLES = 16_384
"""Known nodes that the map is learned on; more make it a little better and take longer."""
_RIDGE = 1e-4
"""How much the map is held back, as a share of the mean square of what it is learned from."""
_MOST_POWER = 2.0
"""Norms grow with no higher power of degrees: where nearly all degrees are the same, the slope tells nothing."""
_TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Placement:
    """How the vector of a node follows from those of its neighbours.

    Attributes
    ----------
    matrix : array of float32, shape (2m, m)
        What the mean of the neighbours' directions, and the mean of their vectors, are multiplied by.
    scale, power : float
        The norm of a vector is scale·d^power for a node of degree d.
    """

    matrix: Vectors
    scale: float
    power: float

    @classmethod
    def learn(cls, graph: Graph, vectors: Vectors) -> Placement:
        """The map that fits known nodes best, in the sense of least squares, those of high degree counting for more.

        The mean over neighbours damps what varies from node to node and keeps what is common to all; the map undoes
        that, direction by direction.
        """
        degrees = graph.degrees
        rows = np.flatnonzero(degrees)
        rows = rows[:: max(1, -(-len(rows) // _MOST_SAMPLES))]
        directions = _unit(vectors)
        means = _average(graph.to_scipy()[rows], directions, vectors).astype(np.float64)
        weighted = means * degrees[rows][:, None]
        square = means.T @ weighted
        square[np.diag_indices_from(square)] += _RIDGE * max(np.trace(square) / len(square), float(_TINY))
        matrix = np.linalg.solve(square, weighted.T @ directions[rows]).astype(np.float32)
        norms = np.log(np.maximum(np.linalg.norm(vectors[rows], axis=1), _TINY))
        sizes = np.log(degrees[rows])
        power = 0.0
        if np.ptp(sizes) > 0:  # the variance of equal numbers is not quite 0
            slope = np.mean((sizes - sizes.mean()) * (norms - norms.mean())) / np.var(sizes)
            power = float(np.clip(slope, -_MOST_POWER, _MOST_POWER))
        return cls(matrix, float(np.exp(norms.mean() - power * sizes.mean())), power)

    def place(
        self, links: sp.csr_array, among: sp.csr_array, vectors: Vectors
    ) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """Vectors for new nodes, by their known neighbours; one that has none, by new ones that have a vector already.

        Returns them, and which of them have one: those that known nodes can be reached from.

        Parameters
        ----------
        links : sparse array, shape (new, n)
            Weights of edges to known nodes.
        among : sparse array, shape (new, new)
            Weights of edges between new ones.
        vectors : array, shape (n, m)
            The vectors of known nodes, which stay as they are.
        """
        degrees = np.diff(links.indptr) + np.diff(among.indptr)
        norms = (self.scale * np.maximum(degrees, 1) ** self.power).astype(np.float32)[:, None]
        used, columns = np.unique(links.indices, return_inverse=True)
        known = vectors[used]
        narrow = sp.csr_array((links.data, columns, links.indptr), shape=(links.shape[0], len(used)))
        placed = np.diff(links.indptr) > 0
        new = self._map(_average(narrow, _unit(known), known)) * norms
        while not placed.all():  # nodes that are joined to known ones by way of other new ones
            through = among @ sp.diags_array(placed.astype(np.float64))
            through.eliminate_zeros()
            ready = ~placed & (np.diff(through.indptr) > 0)
            if not ready.any():
                break
            new[ready] = self._map(_average(through[ready], _unit(new), new)) * norms[ready]
            placed |= ready
        return np.asarray(new, dtype=np.float32), placed

    def _map(self, means: Vectors) -> Vectors:
        """Directions by the means over neighbours."""
        return _unit(means @ self.matrix)


def split_newcomers(graph: Graph, known: dict[Any, int], size: int) -> tuple[Any, Any, npt.NDArray[Any]]:
    """Edges of new nodes to known ones, (new, size), and to each other, (new, new), and the ids of the new ones."""
    rows = np.array([known.get(node, -1) for node in graph.nodes.tolist()], dtype=np.int64)
    new = np.flatnonzero(rows < 0)
    places = np.full(len(rows), -1, dtype=np.int64)
    places[new] = np.arange(len(new))
    entries = sp.coo_array(graph.to_scipy()[new])
    sources, targets = entries.coords
    is_known = rows[targets] >= 0
    links = sp.csr_array((entries.data[is_known], (sources[is_known], rows[targets[is_known]])), shape=(len(new), size))
    among = sp.csr_array(
        (entries.data[~is_known], (sources[~is_known], places[targets[~is_known]])), shape=(len(new), len(new))
    )
    return links, among, graph.nodes[new]


def _average(matrix: sp.csr_array, directions: Vectors, vectors: Vectors) -> Vectors:
    """The weighted means of the directions and of the vectors of each row's neighbours, side by side."""
    totals = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    shares = matrix.data / np.repeat(np.where(totals > 0, totals, 1.0), np.diff(matrix.indptr))
    weights = sp.csr_array((shares.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.concatenate((weights @ directions, weights @ vectors), axis=1)


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, _TINY), dtype=np.float32)
