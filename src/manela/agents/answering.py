"""Answering: answers the operator's questions about a daemon's vectors, if that is turned on."""

from __future__ import annotations

import time

from manela.agents.host import Host
from manela.analysis.answers import AnswerBook, Questions
from manela.system.local_server import Query, Reply

ANSWERS, ON = "answers", "on"
"""A key in the store, and its value if the operator has turned answering on."""
_EVERY = 10.0
"""Seconds after which changed vectors are copied again; larger values give older answers, smaller ones copy more."""


class Answering:
    """The questions that a daemon answers, and a copy of the vectors to answer them from.

    Questions are about own nodes. Answers name own nodes and their neighbours at other hosts, whose vectors this host
    is shown anyway. The host knows no other nodes.
    """

    def __init__(self, name: str) -> None:
        self._questions = Questions(name, lambda: self._book)
        self._book: AnswerBook | None = None
        self._version, self._copied_at, self._host = -1, float("-inf"), 0
        self._is_on = False

    def turn(self, is_on: bool) -> None:
        """Turn answering on or off."""
        self._is_on = is_on
        if not is_on:
            self._book, self._version = None, -1

    def look(self, host: Host) -> None:
        """Copy the host's vectors, if they have changed and the last copy is old enough."""
        now = time.monotonic()
        has_moved = host.version != self._version or id(host) != self._host
        if not self._is_on or not has_moved or not host.can_be_saved:
            return
        if self._book is not None and now - self._copied_at < _EVERY and not host.done:
            return
        self._book = make_book(host)
        self._version, self._copied_at, self._host = host.version, now, id(host)

    def find(self, path: str, query: Query) -> Reply | None:
        """Return the reply to a request, or None if the path is unknown or answering is off."""
        return self._questions.find(path, query) if self._is_on else None


def make_book(host: Host) -> AnswerBook:
    """Return an AnswerBook of a host's own nodes and their neighbours elsewhere, with a copy of the known vectors."""
    near, names = host.neighbourhood, host.neighbourhood.nodes
    strangers = [f"{name}@{where}" for name, where in near.strangers]
    return AnswerBook(
        [*names, *strangers], host.read_known(), host.own, near.indptr, near.indices, host.find_smoothed()
    )
