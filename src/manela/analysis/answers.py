"""Answers from vectors over HTTP: similar nodes, groups and edges, for programs and for a page."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manela import __version__
from manela.analysis.oddness import compare, draw_unlinked, measure_oddness
from manela.errors import ManelaError, ParameterError, UnknownNodeError
from manela.kernels.layout import RowNumbers, Vectors, normalise_rows
from manela.kernels.randomness import derive_key
from manela.system.local_server import Query, Reply

Integers = npt.NDArray[np.integer]

MOST = 1000
"""Most nodes or edges that one answer may list; more make answers longer."""
_RANDOM_PAIRS = 20_000
"""Pairs of nodes that an edge is compared with; more make the oddness finer and take longer."""
_PAIRS = 201
"""Purpose of the random draws of pairs."""


class Nearest(NamedTuple):
    """A node, and the cosine between its vector and that of the node in question."""

    node: str
    similarity: float


class Oddness(NamedTuple):
    """How odd an edge is."""

    similarity: float  # the cosine of the vectors of its ends
    # the share of random pairs without an edge that are at least as similar: near 0 for an expected edge, 0.5 for one
    # that is no more likely than a random pair
    oddness: float
    is_edge: bool  # whether the edge exists


@dataclass(frozen=True, eq=False)
class AnswerBook:
    """Nodes with their vectors and edges, prepared for questions.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32)
    >>> book = AnswerBook(["a", "b", "c"], vectors, 3)
    >>> [nearest.node for nearest in book.find_nearest("a", 1)]
    ['b']
    """

    names: Sequence[str]  # names of the nodes, own nodes first
    vectors: Vectors  # (n, m)
    own: int  # the number of own nodes; questions are about own nodes only
    # rows of the neighbours of each own node, in CSR form; None if edges are not known
    indptr: Integers | None = None
    indices: Integers | None = None
    # (own, m): better vectors of own nodes, which cannot be compared with `vectors` of other nodes
    own_vectors: Vectors | None = None

    def find_nearest(self, node: str, count: int = 10) -> list[Nearest]:
        """Return the own nodes that are most similar to an own node."""
        row = self.find_row(node)
        similarities = self._own_directions @ self._own_directions[row]
        return self._take_best(similarities, self._own_directions, row, np.array([row]), count)

    def recommend(self, node: str, count: int = 10) -> list[Nearest]:
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
            raise ParameterError(f"an edge must be between two nodes, got {node!r} twice")
        similarity = float(self._directions[row] @ self._directions[target])
        share = float(measure_oddness(similarity, self._random_similarities))
        return Oddness(similarity, share, bool(np.isin(target, self._find_neighbours(row))))

    def find_odd_edges(self, count: int = 10) -> list[tuple[str, str, float]]:
        """Return the edges of own nodes whose ends are least similar, with their cosine, the oddest first."""
        sources, targets = self._arcs
        once = (sources < targets) | (targets >= self.own)
        sources, targets = sources[once], targets[once]
        similarities = compare(self._directions, sources, targets)
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
        if self.indptr is None or self.indices is None:
            return np.empty(0, dtype=np.int64)
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def _take_best(
        self, scores: Vectors, directions: Vectors, row: int, excluded: Integers, count: int
    ) -> list[Nearest]:
        scores[excluded[excluded < len(scores)]] = -np.inf
        if len(scores) > self.own:
            scores[self._unseen] = -np.inf
        count = min(_check_count(count), len(scores))
        best = np.argpartition(scores, len(scores) - count)[-count:]
        best = best[np.lexsort((best, -scores[best]))]
        best = best[scores[best] > -np.inf]
        cosines = directions[best] @ directions[row]
        return [Nearest(self.names[row], float(cosine)) for row, cosine in zip(best, cosines, strict=True)]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def _directions(self) -> Vectors:
        return normalise_rows(self.vectors)

    @cached_property
    def _own_directions(self) -> Vectors:
        return self._directions[: self.own] if self.own_vectors is None else normalise_rows(self.own_vectors)

    @cached_property
    def _unseen(self) -> Integers:
        """Rows of nodes at other hosts whose vectors have not been shown yet."""
        return np.flatnonzero(~self.vectors[self.own :].any(axis=1)) + self.own

    @cached_property
    def _random_similarities(self) -> Vectors:
        """Sorted cosines of random pairs of an own node and any seen node, without an edge between them."""
        random = np.random.default_rng(derive_key(0, _PAIRS))
        seen = np.setdiff1d(np.arange(len(self.names)), self._unseen).astype(np.int64)
        pairs = draw_unlinked(random, _RANDOM_PAIRS, self._arcs, (np.arange(self.own), seen))
        return np.sort(compare(self._directions, *pairs))

    @cached_property
    def _arcs(self) -> tuple[RowNumbers, RowNumbers]:
        """The arcs from own nodes to nodes that have been seen; none if edges are not known."""
        if self.indptr is None or self.indices is None:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        sources, targets = np.repeat(np.arange(self.own), np.diff(self.indptr)), np.asarray(self.indices)
        is_seen = ~np.isin(targets, self._unseen)
        return sources[is_seen], targets[is_seen].astype(np.int64)


def _check_count(count: int) -> int:
    if not 1 <= count <= MOST:
        raise ParameterError(f"count must be 1 to {MOST:,}, got {count}")
    return count


PAGE = "/answers"
_MOST_SHOWN = 50
"""Names listed for each group; more make answers longer."""


class Questions:
    """Replies to requests from the current book, which `find_book` returns; `title` is the owner of the nodes."""

    def __init__(self, title: str, find_book: Callable[[], AnswerBook | None]) -> None:
        self._title, self._find_book = title, find_book
        self._groups = _Groups()
        self._paths: dict[str, Callable[[AnswerBook, Query], dict[str, Any]]] = {
            "/api/names": self._names,
            "/api/near": self._near,
            "/api/recommend": self._recommend,
            "/api/edge": self._edge,
            "/api/odd": self._odd,
            "/api/groups": self._list_groups,
        }

    def find(self, path: str, query: Query) -> Reply | None:
        """Return the reply to a request, or None for an unknown path."""
        if path == PAGE:
            return Reply("text/html", files(__package__).joinpath("answers.html").read_text(encoding="utf-8"))
        if path == "/openapi.json":
            return Reply("application/json", json.dumps(describe_api()))
        answer = self._paths.get(path)
        if answer is None:
            return None
        book = self._find_book()
        if book is None:
            return _fail(
                "there are no vectors yet; ask again when the first round is over", HTTPStatus.SERVICE_UNAVAILABLE
            )
        try:
            return Reply("application/json", json.dumps(answer(book, query), ensure_ascii=False))
        except KeyError as error:  # an unknown node, or a missing field of the query
            is_unknown_node = isinstance(error, ManelaError)
            message = str(error) if is_unknown_node else f"the query needs {error}"
            return _fail(message, HTTPStatus.NOT_FOUND if is_unknown_node else HTTPStatus.BAD_REQUEST)
        except ManelaError as error:
            return _fail(str(error), HTTPStatus.BAD_REQUEST)

    def _names(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        return {"of": self._title, "nodes": book.own, "names": book.find_names(query.get("start", ""), _count(query))}

    def _near(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        nodes = book.find_nearest(query["node"], _count(query))
        return {"node": query["node"], "near": [nearest._asdict() for nearest in nodes]}

    def _recommend(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        nodes = book.recommend(query["node"], _count(query))
        return {"node": query["node"], "recommended": [nearest._asdict() for nearest in nodes]}

    def _edge(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        oddness = book.judge_edge(query["node"], query["other"])
        return {"node": query["node"], "other": query["other"], **oddness._asdict()}

    def _odd(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        edges = book.find_odd_edges(_count(query))
        return {"odd": [{"node": node, "other": other, "similarity": cosine} for node, other, cosine in edges]}

    def _list_groups(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        """Answer which groups there are, or who is in a node's group; they are found in the background."""
        labels = self._groups.find(book)
        if labels is None:
            return {"state": "working", "groups": []}
        if "node" in query:
            label = int(labels[book.find_row(query["node"])])
            members = np.flatnonzero(labels == label) if label >= 0 else np.empty(0, dtype=np.int64)
            names = [book.names[row] for row in members[: _count(query)]]
            return {"state": "done", "node": query["node"], "group": label, "size": len(members), "names": names}
        sizes = np.bincount(labels[labels >= 0])
        return {
            "state": "done",
            "groups": [
                {"group": group, "size": int(size),
                 "names": [book.names[row] for row in np.flatnonzero(labels == group)[:_MOST_SHOWN]]}
                for group, size in enumerate(sizes)
            ],
        }  # fmt: skip


class _Groups:
    """A cache of the groups of a book, which are found in a thread, as that takes too long for a request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._book: AnswerBook | None = None
        self._cached: tuple[AnswerBook, Any] | None = None

    def find(self, book: AnswerBook) -> Any:
        """Return a group for each own node: the last ones while new ones are being found, None if there are none."""
        with self._lock:
            if (self._cached is None or self._cached[0] is not book) and self._book is None:
                self._book = book
                threading.Thread(target=self._work, name="groups", daemon=True).start()
            cached = self._cached
        # groups of an earlier book can be used only if it has the same nodes
        return cached[1] if cached is not None and cached[0].names == book.names else None

    def _work(self) -> None:
        from manela.analysis.groups import find_groups

        book = self._book
        labels = np.full(0 if book is None else book.own, -1)
        try:
            if book is not None:
                vectors = book.vectors[: book.own] if book.own_vectors is None else book.own_vectors
                labels = find_groups(vectors).labels
        except ManelaError:
            pass  # there are too few nodes, so none is in a group
        finally:
            with self._lock:
                self._book = None
                if book is not None:
                    self._cached = (book, labels)


def _count(query: Query) -> int:
    text = query.get("count", "10")
    if not text.isdecimal() or len(text) > len(str(MOST)) or not 1 <= int(text) <= MOST:
        raise ParameterError(f"count must be 1 to {MOST:,}, got {text[:50]!r}")
    return int(text)


def _fail(message: str, status: HTTPStatus) -> Reply:
    return Reply("application/json", json.dumps({"error": message}), status)


def describe_api() -> dict[str, Any]:
    """Return the description of all requests in OpenAPI 3.1."""
    text, number = {"type": "string"}, {"type": "number"}
    near = {"type": "array", "items": _object(node=text, similarity=number)}
    node = _field("node", "The name of an own node.", True)
    count = _field(
        "count", "How many at most.", False, {"type": "integer", "minimum": 1, "maximum": MOST, "default": 10}
    )
    names = {"type": "array", "items": text}
    edge = _object(node=text, other=text, similarity=number)
    group = _object(group={"type": "integer"}, size={"type": "integer"}, names=names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "manela answers",
            "version": __version__,
            "description": "Answers from the vectors of nodes, on this machine alone.",
        },
        "paths": {
            "/api/names": _path("Own nodes by the begin of their names.",
                                [_field("start", "What names begin with or hold.", False), count],
                                _object(of=text, nodes={"type": "integer"}, names=names)),
            "/api/near": _path("Own nodes near an own node.", [node, count], _object(node=text, near=near)),
            "/api/recommend": _path("Nodes that are near an own node and not its neighbours.", [node, count],
                                    _object(node=text, recommended=near)),
            "/api/edge": _path("How odd an edge is, or would be.",
                               [node, _field("other", "The other end, name@host if it is elsewhere.", True)],
                               _object(node=text, other=text, similarity=number, oddness=number,
                                       is_edge={"type": "boolean"})),
            "/api/odd": _path("The edges whose ends are least similar.", [count],
                              _object(odd={"type": "array", "items": edge})),
            "/api/groups": _path("Groups of own nodes, or the group of one; found when first asked for.",
                                 [_field("node", "The name of an own node.", False), count],
                                 {"type": "object", "required": ["state"], "properties": {
                                     "state": {"type": "string", "enum": ["working", "done"]},
                                     "groups": {"type": "array", "items": group}, "node": text,
                                     "group": {"type": "integer"}, "size": {"type": "integer"}, "names": names}}),
        },
    }  # fmt: skip


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _field(name: str, description: str, required: bool, schema: Any = None) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "required": required,
            "schema": schema or {"type": "string"}}  # fmt: skip


def _path(summary: str, fields: list[dict[str, Any]], schema: Any) -> dict[str, Any]:
    error = {"description": "What is wrong.",
             "content": {"application/json": {"schema": _object(error={"type": "string"})}}}  # fmt: skip
    answer = {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    codes = {"200": answer, "400": error, "404": error, "503": error}
    return {"get": {"summary": summary, "parameters": fields, "responses": codes}}
