"""StatusServer: what a daemon does, on an address of this machine: a page, JSON, and metrics for Prometheus."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

from manela.agents.config import is_local
from manela.errors import AgentError

_AT_ONCE = 16
"""Connections that are answered at the same time."""
_PATIENCE = 5.0
"""Seconds after which whoever has asked nothing, or not read the answer, is hung up."""
_PAUSE = 0.1
"""Seconds until another try where the system has no connection to give."""
_STATES = ("meeting", "learning", "done")
"""What a daemon does while it can be watched."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

Status = dict[str, Any]
"""What the daemon writes to status.json."""


class StatusServer:
    """Answers on an address until it is closed; threads of its own, so that a round does not keep anyone waiting.

    Attributes
    ----------
    url : str
        Of the page.
    """

    def __init__(self, address: str, read: Callable[[], Status]) -> None:
        host, _, port = address.rpartition(":")
        try:
            self._server = _Server((host.strip("[]"), int(port)), partial(_Handler, read))
        except OSError as error:
            raise AgentError(f"watch: cannot listen on {address}: {error.strerror or error}") from error
        self.url = f"http://{host}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="watch", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Listen no more; whoever is being answered is not waited for."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def write_metrics(status: Status) -> str:
    """A status in Prometheus's text format."""
    return "".join(line + "\n" for line in _metrics(status))


def _metrics(status: Status) -> Iterator[str]:
    yield from _family("state", "gauge", "1 for what the daemon does now.",
                       {(("state", state),): int(state == status["state"]) for state in _STATES})  # fmt: skip
    yield from _family("trouble", "gauge", "1 while the state cannot be saved.", {(): int(bool(status["trouble"]))})
    yield from _family("round", "gauge", "Rounds done.", {(): status["round"]})
    yield from _family("rounds", "gauge", "Rounds to do.", {(): status["rounds"]})
    yield from _family("pairs_total", "counter", "Update pairs made.", {(): status["pairs"]})
    yield from _family("nodes", "gauge", "Own nodes.", {(): status["nodes"]})
    yield from _family("arcs", "gauge", "Neighbours of own nodes.", {(): status["arcs"]})
    yield from _family("updated_seconds", "gauge", "When these numbers were taken, since 1970.",
                       {(): status["updated"]})  # fmt: skip
    yield from _family("start_time_seconds", "gauge", "When the daemon began, since 1970.", {(): status["began"]})
    yield from _family("noise", "gauge", "Noise on means that peers are shown, over their size.",
                       {(): status["noise"]})  # fmt: skip
    peers = status["peers"]
    expiries = {(("peer", peer),): one["expires"] for peer, one in peers.items() if one["expires"] is not None}
    own = {(("peer", ""),): status["expires"]} if status["expires"] is not None else {}
    words = "When a certificate ends, since 1970; that of this host has no peer."
    yield from _family("certificate_end_seconds", "gauge", words, {**own, **expiries})
    yield from _family("peer_edges", "gauge", "Edges with a peer that both hosts have, or only one.", {
        (("peer", peer), ("agreed", word)): one[key]
        for peer, one in peers.items()
        for word, key in (("yes", "edges_agreed"), ("no", "edges_disagreed"))
    })  # fmt: skip
    yield from _family("shown_nodes", "gauge", "Own nodes whose vectors a peer sees.",
                       {(("peer", peer),): one["shown_nodes"] for peer, one in peers.items()})  # fmt: skip
    for name, kind, help_text, key in (
        ("sent_bytes_total", "counter", "Bytes sent to a peer.", "sent"),
        ("received_bytes_total", "counter", "Bytes received from a peer.", "received"),
    ):
        yield from _family(name, kind, help_text, {(("peer", peer),): one[key] for peer, one in peers.items()})
    yield from _family("peer_here", "gauge", "1 if a peer answers, 0 if it is away.",
                       {(("peer", peer),): int(one["state"] == "here") for peer, one in peers.items()})  # fmt: skip
    yield from _family("refusals_total", "counter", "What was refused to a peer, by reason.", {
        (("peer", peer), ("reason", reason)): times
        for peer, reasons in status["refusals"].items()
        for reason, times in reasons.items()
    })  # fmt: skip
    yield from _family("alarms_total", "counter", "How often a peer's vectors were odd, by kind.", {
        (("peer", peer), ("kind", kind)): times
        for peer, one in peers.items()
        for kind, times in one.get("alarms", {}).items()
    })  # fmt: skip


def _family(name: str, kind: str, help_text: str, values: dict[Any, float]) -> Iterator[str]:
    yield f"# HELP manela_{name} {help_text}"
    yield f"# TYPE manela_{name} {kind}"
    for labels, value in values.items():
        shown = ",".join(f'{label}="{_escape(text)}"' for label, text in labels)
        yield f"manela_{name}{{{shown}}} {value}" if shown else f"manela_{name} {value}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False
    request_queue_size = _AT_ONCE

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free = threading.Semaphore(_AT_ONCE)
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without a look at the name server, which http.server would take."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", int(self.server_address[1])

    def get_request(self) -> Any:
        """The next connection; where there can be none, socketserver asks again at once."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)
            raise

    def verify_request(self, *_: Any) -> bool:
        """Whether there is room for one more; otherwise it is hung up."""
        return self._free.acquire(blocking=False)

    def process_request(self, *given: Any) -> None:
        """Answer in a thread of its own, if one can be had."""
        try:
            super().process_request(*given)
        except RuntimeError:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, *given: Any) -> None:
        """Answer, and make room again; in time, however slowly the other side is."""
        hanging_up = threading.Timer(_PATIENCE, _hang_up, (request,))
        hanging_up.daemon = True
        try:
            hanging_up.start()
            super().process_request_thread(request, *given)
        finally:
            hanging_up.cancel()
            self._free.release()

    def handle_error(self, *_: Any) -> None:
        """Nothing to say of whoever hung up."""


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "manela", ""

    def __init__(self, read: Callable[[], Status], *rest: Any) -> None:
        self._read = read
        super().__init__(*rest)

    def do_GET(self) -> None:
        if not self._is_for_us():
            self._answer("text/plain", "this page is for this machine only\n", HTTPStatus.MISDIRECTED_REQUEST)
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer("text/html", files("manela.agents").joinpath("status.html").read_text(encoding="utf-8"))
        elif path == "/status.json":
            self._answer("application/json", json.dumps(self._read()))
        elif path == "/metrics":
            self._answer("text/plain; version=0.0.4", write_metrics(self._read()))
        else:
            self._answer("text/plain", "there are /, /status.json and /metrics\n", HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET  # noqa: N815 - the same

    def _is_for_us(self) -> bool:
        """Whether the browser means this machine: a page from elsewhere may have its own name lead here."""
        try:
            name = urlsplit(f"//{self.headers.get('Host', 'localhost')}").hostname
        except ValueError:
            return False
        return name is not None and is_local(name)

    def _answer(self, kind: str, text: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """The daemon's log is for what it does."""
