"""Serves a daemon's status page and metrics on this machine, and answers from its vectors if that is turned on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from manela.analysis.answers import AnswerBook, Questions
from manela.errors import AgentError
from manela.hosts.state.host import Host
from manela.system.local_server import LocalServer, Query, Reply

_STATES = ("meeting", "learning", "done")
"""The states in which a daemon serves its status."""
Status = dict[str, Any]
"""The content of status.json."""


class StatusServer(LocalServer):
    """Serves the status of a daemon, which `read` returns, on an address of the local machine.

    `find_answer` returns the reply to a request for any other path, or None if there is none.
    """

    def __init__(
        self,
        address: str,
        read: Callable[[], Status],
        find_answer: Callable[[str, Query], Reply | None] | None = None,
        **options: float,
    ) -> None:
        self._read, self._find_answer = read, find_answer
        try:
            super().__init__(address, self._find, **options)
        except AgentError as error:
            raise AgentError(f"watch: {error}") from error

    def _find(self, path: str, query: Query) -> Reply:
        if path == "/":
            return Reply("text/html", files(__package__).joinpath("status.html").read_text(encoding="utf-8"))
        if path == "/status.json":
            return Reply("application/json", json.dumps(self._read()))
        if path == "/metrics":
            return Reply("text/plain; version=0.0.4", write_metrics(self._read()))
        reply = None if self._find_answer is None else self._find_answer(path, query)
        return reply or Reply("text/plain", "there are /, /status.json and /metrics\n", HTTPStatus.NOT_FOUND)


def write_metrics(status: Status) -> str:
    """Return a status in Prometheus's text format."""
    return "".join(line + "\n" for line in _metrics(status))


def _metrics(status: Status) -> Iterator[str]:
    yield from _family("state", "gauge", "1 for the current state of the daemon.",
                       {(("state", state),): int(state == status["state"]) for state in _STATES})  # fmt: skip
    yield from _family("trouble", "gauge", "1 while the state cannot be saved.", {(): int(bool(status["trouble"]))})
    yield from _family("provisional", "gauge", "1 while vectors will be others soon.",
                       {(): int(bool(status.get("provisional")))})  # fmt: skip
    yield from _family("frame_info", "gauge", "1 for the frame of the vectors; those of one frame can be compared.",
                       {(("frame", status.get("frame", "none")),): 1})  # fmt: skip
    yield from _family("round", "gauge", "Rounds done.", {(): status["round"]})
    yield from _family("rounds", "gauge", "Expected total number of rounds.", {(): status["rounds"]})
    yield from _family("pairs_total", "counter", "Update pairs made.", {(): status["pairs"]})
    yield from _family("nodes", "gauge", "Own nodes.", {(): status["nodes"]})
    yield from _family("arcs", "gauge", "Neighbours of own nodes.", {(): status["arcs"]})
    yield from _family("updated_seconds", "gauge", "Time of these numbers, in seconds since 1970.",
                       {(): status["updated"]})  # fmt: skip
    yield from _family(
        "start_time_seconds", "gauge", "Start of the daemon, in seconds since 1970.", {(): status["began"]}
    )
    yield from _family("noise", "gauge", "Factor on the noise of what peers are shown.",
                       {(): status["noise"]})  # fmt: skip
    epsilon = status.get("epsilon") or {}
    if epsilon.get("limit"):
        yield from _family("epsilon_limit", "gauge", "Bound on what means and sums disclose in a period.",
                           {(): epsilon["limit"]})  # fmt: skip
    if epsilon.get("spent") is not None:
        spent = {(("peer", peer),): value for peer, value in epsilon["peers"].items() if value is not None}
        yield from _family("epsilon_spent", "gauge", "What they have disclosed in it; without a peer, to all together.",
                           {(("peer", ""),): epsilon["spent"], **spent})  # fmt: skip
    peers = status["peers"]
    expiries = {(("peer", peer),): entry["expires"] for peer, entry in peers.items() if entry["expires"] is not None}
    own = {(("peer", ""),): status["expires"]} if status["expires"] is not None else {}
    message = "Expiry of a certificate, in seconds since 1970; without a peer, that of this host."
    yield from _family("certificate_end_seconds", "gauge", message, {**own, **expiries})
    yield from _family("peer_edges", "gauge", "Edges with a peer that both hosts have, or only one.", {
        (("peer", peer), ("agreed", word)): entry[key]
        for peer, entry in peers.items()
        for word, key in (("yes", "edges_agreed"), ("no", "edges_disagreed"))
    })  # fmt: skip
    yield from _family("shown_nodes", "gauge", "Own nodes whose vectors a peer sees.",
                       {(("peer", peer),): entry["shown_nodes"] for peer, entry in peers.items()})  # fmt: skip
    for name, kind, help_text, key in (
        ("sent_bytes_total", "counter", "Bytes sent to a peer.", "sent"),
        ("received_bytes_total", "counter", "Bytes received from a peer.", "received"),
    ):
        yield from _family(name, kind, help_text, {(("peer", peer),): entry[key] for peer, entry in peers.items()})
    yield from _family("peer_here", "gauge", "1 if a peer answers, 0 if it is away.",
                       {(("peer", peer),): int(entry["state"] == "here") for peer, entry in peers.items()})  # fmt: skip
    yield from _family(
        "peer_believed", "gauge", "1 if a peer's vectors are used, 0 if they are not believed.",
        {(("peer", peer),): int(entry.get("believed", True)) for peer, entry in peers.items()}
    )  # fmt: skip
    yield from _family(
        "peer_alike", "gauge", "How alike neighbours here and at a peer are, over how alike neighbours here are.",
        {(("peer", peer),): entry["alike"] for peer, entry in peers.items() if entry.get("alike") is not None}
    )  # fmt: skip
    yield from _family("refusals_total", "counter", "Refusals to a peer, by reason.", {
        (("peer", peer), ("reason", reason)): times
        for peer, reasons in status["refusals"].items()
        for reason, times in reasons.items()
    })  # fmt: skip
    yield from _family("alarms_total", "counter", "Alarms raised by a peer's vectors, by kind.", {
        (("peer", peer), ("kind", kind)): times
        for peer, entry in peers.items()
        for kind, times in entry.get("alarms", {}).items()
    })  # fmt: skip


def _family(name: str, kind: str, help_text: str, values: dict[Any, float]) -> Iterator[str]:
    """Yield the lines of one metric, one line for each set of labels."""
    yield f"# HELP manela_{name} {help_text}"
    yield f"# TYPE manela_{name} {kind}"
    for labels, value in values.items():
        shown = ",".join(f'{label}="{_escape(text)}"' for label, text in labels)
        yield f"manela_{name}{{{shown}}} {value}" if shown else f"manela_{name} {value}"


def _escape(text: str) -> str:
    """Return text as a label's value may hold it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
    """Return an AnswerBook of a host's own nodes and their remote neighbours, with a copy of the known vectors."""
    near, names = host.neighbourhood, host.neighbourhood.nodes
    remotes = [f"{name}@{where}" for name, where in near.remotes]
    return AnswerBook([*names, *remotes], host.read_known(), host.own, near.indptr, near.indices, host.find_smoothed())
