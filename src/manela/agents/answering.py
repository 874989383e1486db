"""Answering: what a daemon lets its operator ask of its vectors, once that has been turned on."""

from __future__ import annotations

import time

from manela.agents.host import Host
from manela.answers.book import AnswerBook
from manela.answers.questions import Questions
from manela.local_server import Query, Reply

ANSWERS, ON = "answers", "on"
"""Name of a fact: whether the operator has turned it on."""
_EVERY = 10.0
"""Seconds after which vectors that have moved are looked at again; with fewer, more time goes into copying."""


class Answering:
    """The questions that a daemon answers, and the vectors that they are answered from.

    Own nodes can be asked for. Found are own nodes, and of other hosts those nodes that are neighbours of own ones,
    whose vectors this host is shown anyway. There is nothing of others here to be found.
    """

    def __init__(self, name: str) -> None:
        self._questions = Questions(name, lambda: self._book)
        self._book: AnswerBook | None = None
        self._version, self._looked, self._host = -1, float("-inf"), 0
        self._is_on = False

    def turn(self, is_on: bool) -> None:
        """Begin to answer, or end it."""
        self._is_on = is_on
        if not is_on:
            self._book, self._version = None, -1

    def look(self, host: Host) -> None:
        """Take the vectors as they are, if they have moved and it was some time ago that they were taken."""
        now = time.monotonic()
        has_moved = host.version != self._version or id(host) != self._host
        if not self._is_on or not has_moved or not host.can_be_saved:
            return
        if self._book is not None and now - self._looked < _EVERY and not host.done:
            return
        self._book = make_book(host)
        self._version, self._looked, self._host = host.version, now, id(host)

    def find(self, path: str, query: Query) -> Reply | None:
        """The reply; None for what is not asked for here, and for all while it is off."""
        return self._questions.find(path, query) if self._is_on else None


def make_book(host: Host) -> AnswerBook:
    """The own nodes of a host with those neighbours elsewhere whose vectors it was shown, in a copy."""
    near, names = host.neighbourhood, host.neighbourhood.nodes
    strangers = [f"{name}@{where}" for name, where in near.strangers]
    return AnswerBook(
        [*names, *strangers], host.read_known(), host.own, near.indptr, near.indices, host.find_smoothed()
    )
