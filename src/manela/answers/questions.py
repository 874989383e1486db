"""Questions: answers HTTP requests about an AnswerBook in JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import numpy as np

from manela import __version__
from manela.answers.book import MOST, AnswerBook
from manela.errors import ManelaError, ParameterError
from manela.system.local_server import Query, Reply

PAGE = "/answers"
_MOST_SHOWN = 50
"""Names listed for each group; more make answers longer."""


class Questions:
    """Replies to requests from the current AnswerBook.

    Parameters
    ----------
    title : str
        The owner of the nodes.
    find_book : callable
        Returns the current book, or None if there is none yet.
    """

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
            return Reply("text/html", files("manela.answers").joinpath("answers.html").read_text(encoding="utf-8"))
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
        """Answer which names begin with a text."""
        return {"of": self._title, "nodes": book.own, "names": book.find_names(query.get("start", ""), _count(query))}

    def _near(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        """Answer who is near a node."""
        nodes = book.find_near(query["node"], _count(query))
        return {"node": query["node"], "near": [near._asdict() for near in nodes]}

    def _recommend(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        """Answer whom a node might be joined to."""
        nodes = book.recommend(query["node"], _count(query))
        return {"node": query["node"], "recommended": [near._asdict() for near in nodes]}

    def _edge(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        """Answer how odd an edge is."""
        oddness = book.judge_edge(query["node"], query["other"])
        return {"node": query["node"], "other": query["other"], **oddness._asdict()}

    def _odd(self, book: AnswerBook, query: Query) -> dict[str, Any]:
        """Answer which edges are the oddest."""
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
        """Find the groups of the waiting book, in a thread of its own."""
        from manela.answers.groups import find_groups

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
    """Return the count in a query, 10 by default."""
    text = query.get("count", "10")
    if not text.isdecimal() or len(text) > len(str(MOST)) or not 1 <= int(text) <= MOST:
        raise ParameterError(f"count must be 1 to {MOST:,}, got {text[:50]!r}.")
    return int(text)


def _fail(message: str, status: HTTPStatus) -> Reply:
    """Return an error as a reply."""
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
    """Return the schema of an object with these properties."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _field(name: str, description: str, required: bool, schema: Any = None) -> dict[str, Any]:
    """Return the description of a field of a query."""
    return {"name": name, "in": "query", "description": description, "required": required,
            "schema": schema or {"type": "string"}}  # fmt: skip


def _path(summary: str, fields: list[dict[str, Any]], schema: Any) -> dict[str, Any]:
    """Return the description of a path."""
    error = {"description": "What is wrong.",
             "content": {"application/json": {"schema": _object(error={"type": "string"})}}}  # fmt: skip
    answer = {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    codes = {"200": answer, "400": error, "404": error, "503": error}
    return {"get": {"summary": summary, "parameters": fields, "responses": codes}}
