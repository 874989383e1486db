"""AnswerBook: finds similar nodes, missing edges and odd edges from vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError, UnknownNodeError
from manela.kernels.randomness import derive_key

Vectors = npt.NDArray[np.float32]
Integers = npt.NDArray[np.integer]

MOST = 1000
"""Most nodes or edges that one answer may list; more make answers longer."""
_RANDOM_PAIRS = 20_000
"""Pairs of nodes that an edge is compared with; more make the oddness finer and take longer."""
_PAIRS = 201
"""Purpose of the random draws of pairs."""


class Near(NamedTuple):
    """A node, and the cosine between its vector and that of the node in question."""

    node: str
    similarity: float


class Oddness(NamedTuple):
    """How odd an edge is.

    Attributes
    ----------
    similarity : float
        The cosine of the vectors of its ends.
    oddness : float
        The share of random pairs of nodes that are at least as similar: near 0 for an expected edge, 0.5 for an edge
        that is no more likely than a random pair.
    is_edge : bool
        Whether the edge exists.
    """

    similarity: float
    oddness: float
    is_edge: bool


@dataclass(frozen=True, eq=False)
class AnswerBook:
    """Nodes with their vectors and edges, prepared for questions.

    Parameters
    ----------
    names : list of str
        Names of the nodes, own nodes first.
    vectors : array of float32, shape (n, m)
    own : int
        The number of own nodes; questions are about own nodes only.
    indptr, indices : arrays, or None
        Rows of the neighbours of each own node, in CSR form; None if edges are not known.
    own_vectors : array of float32, shape (own, m), or None
        Better vectors of own nodes, which cannot be compared with `vectors` of other nodes.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32)
    >>> book = AnswerBook(["a", "b", "c"], vectors, 3)
    >>> [near.node for near in book.find_near("a", 1)]
    ['b']
    """

    names: Sequence[str]
    vectors: Vectors
    own: int
    indptr: Integers | None = None
    indices: Integers | None = None
    own_vectors: Vectors | None = None

    def find_near(self, node: str, count: int = 10) -> list[Near]:
        """Return the own nodes that are most similar to an own node."""
        row = self.find_row(node)
        similarities = self._own_directions @ self._own_directions[row]
        return self._take_best(similarities, self._own_directions, row, np.array([row]), count)

    def recommend(self, node: str, count: int = 10) -> list[Near]:
        """Return the nodes whose vectors have the largest dot product with that of an own node, without its neighbours.

        Dot products find more hidden edges in tests than cosines do.
        """
        row = self.find_row(node)
        known = np.append(self._find_neighbours(row), row)
        if self.own == len(self.names):
            vectors, directions = self.vectors if self.own_vectors is None else self.own_vectors, self._own_directions
        else:
            vectors, directions = self.vectors, self._directions
        return self._take_best(vectors @ vectors[row], directions, row, known, count)

    def judge_edge(self, node: str, other: str) -> Oddness:
        """Return how odd an edge between an own node and another node is, or would be."""
        row = self.find_row(node)
        target = self._rows.get(other)
        if target is None or target in self._unseen:
            raise UnknownNodeError(f"no node that can be seen from here has the name {other!r}")
        if target == row:
            raise ParameterError(f"an edge must be between two nodes, got {node!r} twice.")
        similarity = float(self._directions[row] @ self._directions[target])
        above = len(self._random_similarities) - np.searchsorted(self._random_similarities, similarity)
        share = float(above) / max(1, len(self._random_similarities))
        return Oddness(similarity, share, bool(np.isin(target, self._find_neighbours(row))))

    def find_odd_edges(self, count: int = 10) -> list[tuple[str, str, float]]:
        """Return the edges of own nodes whose ends are least similar, with their cosine, the oddest first."""
        if self.indptr is None or self.indices is None:
            return []
        sources = np.repeat(np.arange(self.own), np.diff(self.indptr))
        once = ((sources < self.indices) | (self.indices >= self.own)) & ~np.isin(self.indices, self._unseen)
        sources, targets = sources[once], np.asarray(self.indices)[once]
        similarities = np.empty(len(sources), dtype=np.float32)
        for start in range(0, len(sources), 1 << 18):
            part = slice(start, start + (1 << 18))
            similarities[part] = np.einsum("ij,ij->i", self._directions[sources[part]], self._directions[targets[part]])
        odd = np.argsort(similarities, kind="stable")[: _check_count(count)]
        return [
            (self.names[source], self.names[target], float(similarity))
            for source, target, similarity in zip(sources[odd], targets[odd], similarities[odd], strict=True)
        ]

    def find_row(self, node: str) -> int:
        """Return the row of an own node."""
        row = self._rows.get(node)
        if row is None or row >= self.own:
            raise UnknownNodeError(f"no node here has the name {node!r}")
        return row

    def find_names(self, start: str, count: int = 10) -> list[str]:
        """Return the own nodes whose names start with a text, then those whose names contain it."""
        wanted = start.casefold()
        starting: list[str] = []
        containing: list[str] = []
        for name in self.names[: self.own]:
            text = name.casefold()
            if text.startswith(wanted):
                starting.append(name)
                if len(starting) >= count:
                    break
            elif len(containing) < count and wanted in text:
                containing.append(name)
        return (starting + containing)[:count]

    def _find_neighbours(self, row: int) -> Integers:
        """Return the rows of a node's neighbours, none if edges are not known."""
        if self.indptr is None or self.indices is None:
            return np.empty(0, dtype=np.int64)
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def _take_best(self, scores: Vectors, directions: Vectors, row: int, excluded: Integers, count: int) -> list[Near]:
        """Return the nodes with the best scores, with their cosines."""
        scores[excluded[excluded < len(scores)]] = -np.inf
        if len(scores) > self.own:
            scores[self._unseen] = -np.inf
        count = min(_check_count(count), len(scores))
        best = np.argpartition(scores, len(scores) - count)[-count:]
        best = best[np.lexsort((best, -scores[best]))]
        best = best[scores[best] > -np.inf]
        cosines = directions[best] @ directions[row]
        return [Near(self.names[place], float(cosine)) for place, cosine in zip(best, cosines, strict=True)]

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The row of each name."""
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def _directions(self) -> Vectors:
        """The vectors with norm 1."""
        return find_directions(self.vectors)

    @cached_property
    def _own_directions(self) -> Vectors:
        """The vectors of own nodes with norm 1."""
        return self._directions[: self.own] if self.own_vectors is None else find_directions(self.own_vectors)

    @cached_property
    def _unseen(self) -> Integers:
        """Rows of nodes at other hosts whose vectors have not been shown yet."""
        return np.flatnonzero(~self.vectors[self.own :].any(axis=1)) + self.own

    @cached_property
    def _random_similarities(self) -> Vectors:
        """Sorted cosines of random pairs of an own node and any node."""
        random = np.random.default_rng(derive_key(0, _PAIRS))
        seen = np.setdiff1d(np.arange(len(self.names)), self._unseen)
        own, others = random.integers(self.own, size=_RANDOM_PAIRS), random.choice(seen, size=_RANDOM_PAIRS)
        differ = own != others
        pairs = self._directions[own[differ]], self._directions[others[differ]]
        similarities: Vectors = np.sort(np.einsum("ij,ij->i", *pairs))
        return similarities


def find_directions(vectors: Vectors) -> Vectors:
    """Return the vectors scaled to length 1; a zero vector stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: Vectors = (vectors / np.maximum(norms, np.finfo(np.float32).tiny)).astype(np.float32)
    return directions


def _check_count(count: int) -> int:
    """Return the count if it is within its limits."""
    if not 1 <= count <= MOST:
        raise ParameterError(f"count must be 1 to {MOST:,}, got {count}.")
    return count
