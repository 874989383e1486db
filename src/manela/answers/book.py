"""AnswerBook: who is near, who is missing, and which edges are odd, from the vectors of some nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError, UnknownNodeError
from manela.randomness import derive_key

Vectors = npt.NDArray[np.float32]
Integers = npt.NDArray[np.integer]

MOST = 1000
"""Nodes that one question may ask for."""
_RANDOM_PAIRS = 20_000
"""Pairs of nodes that an edge is compared with; with more, small differences are told apart."""
_PAIRS = 201
"""What the random pairs are drawn for."""


class Near(NamedTuple):
    """A node and the cosine of its vector with that of the node asked for."""

    node: str
    similarity: float


@dataclass(frozen=True)
class Oddness:
    """How odd an edge is.

    Attributes
    ----------
    similarity : float
        The cosine of the vectors of its ends.
    oddness : float
        The share of random pairs of nodes that are at least as similar: near 0 for an edge as one would expect, 0.5 for
        one that is no likelier than any pair.
    is_edge : bool
        Whether it is there.
    """

    similarity: float
    oddness: float
    is_edge: bool


@dataclass(frozen=True, eq=False)
class AnswerBook:
    """The vectors of some nodes, with their edges, ready to be asked.

    Parameters
    ----------
    names : list of str
        Own nodes first.
    vectors : array of float32, shape (n, m)
    own : int
        How many nodes are one's own; only these can be asked for.
    indptr, indices : arrays, or None
        The neighbours of each own node, as rows; None where edges are not known.
    own_vectors : array of float32, shape (own, m), or None
        Better vectors of own nodes alone, which cannot be compared with those of others.

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
        """The own nodes that are most similar to an own node."""
        row = self.find_row(node)
        similarities = self._own_directions @ self._own_directions[row]
        return self._take_best(similarities, self._own_directions, row, np.array([row]), count)

    def recommend(self, node: str, count: int = 10) -> list[Near]:
        """The nodes whose vectors have the largest products with that of an own node, and that are not its neighbours.

        Products rather than cosines, as they find more of the edges that are hidden for a trial.
        """
        row = self.find_row(node)
        known = np.append(self._find_neighbours(row), row)
        if self.own == len(self.names):
            vectors, directions = self.vectors if self.own_vectors is None else self.own_vectors, self._own_directions
        else:
            vectors, directions = self.vectors, self._directions
        return self._take_best(vectors @ vectors[row], directions, row, known, count)

    def judge_edge(self, node: str, other: str) -> Oddness:
        """How odd an edge is, or would be, between an own node and another one."""
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
        """The edges of own nodes whose ends are least similar, with the cosine, the oddest first."""
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
            (self.names[one], self.names[other], float(similarity))
            for one, other, similarity in zip(sources[odd], targets[odd], similarities[odd], strict=True)
        ]

    def find_row(self, node: str) -> int:
        """The row of an own node."""
        row = self._rows.get(node)
        if row is None or row >= self.own:
            raise UnknownNodeError(f"no node here has the name {node!r}")
        return row

    def find_names(self, start: str, count: int = 10) -> list[str]:
        """Own nodes whose names begin with a text, or hold it, in order."""
        wanted = start.casefold()
        begin: list[str] = []
        hold: list[str] = []
        for name in self.names[: self.own]:
            text = name.casefold()
            if text.startswith(wanted):
                begin.append(name)
                if len(begin) >= count:
                    break
            elif len(hold) < count and wanted in text:
                hold.append(name)
        return (begin + hold)[:count]

    def _find_neighbours(self, row: int) -> Integers:
        if self.indptr is None or self.indices is None:
            return np.empty(0, dtype=np.int64)
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def _take_best(self, scores: Vectors, directions: Vectors, row: int, leave_out: Integers, count: int) -> list[Near]:
        """The nodes with the best scores, with their cosines."""
        scores[leave_out[leave_out < len(scores)]] = -np.inf
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
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def _directions(self) -> Vectors:
        return find_directions(self.vectors)

    @cached_property
    def _own_directions(self) -> Vectors:
        return self._directions[: self.own] if self.own_vectors is None else find_directions(self.own_vectors)

    @cached_property
    def _unseen(self) -> Integers:
        """Rows without a vector: of nodes elsewhere that have not been shown yet."""
        return np.flatnonzero(~self.vectors[self.own :].any(axis=1)) + self.own

    @cached_property
    def _random_similarities(self) -> Vectors:
        """Cosines of random pairs of an own node and any, in order."""
        random = np.random.default_rng(derive_key(0, _PAIRS))
        seen = np.setdiff1d(np.arange(len(self.names)), self._unseen)
        own, others = random.integers(self.own, size=_RANDOM_PAIRS), random.choice(seen, size=_RANDOM_PAIRS)
        differ = own != others
        pairs = self._directions[own[differ]], self._directions[others[differ]]
        similarities: Vectors = np.sort(np.einsum("ij,ij->i", *pairs))
        return similarities


def find_directions(vectors: Vectors) -> Vectors:
    """Vectors, each of length 1; one that is zero stays so."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: Vectors = (vectors / np.maximum(norms, np.finfo(np.float32).tiny)).astype(np.float32)
    return directions


def _check_count(count: int) -> int:
    if not 1 <= count <= MOST:
        raise ParameterError(f"count must be 1 to {MOST:,}, got {count}.")
    return count
