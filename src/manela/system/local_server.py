"""LocalServer: a small web server for this machine only, with limits on its load."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from manela.errors import AgentError

_MOST_CONNECTIONS = 16
"""Connections that are served at the same time; more would take more threads and memory."""
_PATIENCE = 5.0
"""Seconds after which a connection is closed; larger lets slow clients occupy threads for longer."""
_PAUSE = 0.1
"""Seconds before the next attempt after the system failed to accept a connection."""
_MOST_FIELDS = 20
"""Largest number of fields in a query; a query with more is refused."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

Query = dict[str, str]
"""The fields of a query by name."""


@dataclass(frozen=True)
class Reply:
    """An HTTP reply: media type, text and status."""

    kind: str
    text: str
    status: HTTPStatus = HTTPStatus.OK


Find = Callable[[str, Query], Reply]
"""Returns the reply to a path and a query."""


class LocalServer:
    """Answers on an address of this machine, `host:port`, until it is closed, in separate threads.

    Port 0 takes any free port; `url` is that of the root page. A connection is closed after `patience` seconds.
    """

    def __init__(self, address: str, find: Find, patience: float = _PATIENCE) -> None:
        host, _, port = address.rpartition(":")
        try:
            self._server = _Server((host.strip("[]"), int(port)), partial(_Handler, find), patience)
        except OSError as error:
            raise AgentError(f"cannot listen on {address}: {error.strerror or error}") from error
        except OverflowError as error:
            raise AgentError(f"cannot listen on {address}: a port must be from 0 to 65535, got {port}") from error
        self.url = f"http://{host}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="local server", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening, without waiting for open connections."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def is_local(host: str) -> bool:
    """Whether a host name or address is a loopback address of this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False
    request_queue_size = _MOST_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: Any, patience: float) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free, self._patience = threading.Semaphore(_MOST_CONNECTIONS), patience
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without the DNS lookup that http.server would do."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", int(self.server_address[1])

    def get_request(self) -> Any:
        """Accept the next connection; pause after an error, as socketserver retries at once."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)
            raise

    def verify_request(self, *_: Any) -> bool:
        """Whether another connection can be served; otherwise socketserver closes it."""
        return self._free.acquire(blocking=False)

    def process_request(self, *args: Any) -> None:
        """Answer in a new thread, if the system can start one."""
        try:
            super().process_request(*args)
        except RuntimeError:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, *args: Any) -> None:
        """Answer within the time limit, however slow the client is, and free the slot."""
        timer = threading.Timer(self._patience, _hang_up, (request,))
        timer.daemon = True
        try:
            timer.start()
            super().process_request_thread(request, *args)
        finally:
            timer.cancel()
            self._free.release()

    def handle_error(self, *_: Any) -> None:
        """Log nothing when a client disconnects."""


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "manela", ""

    def __init__(self, find: Find, *args: Any) -> None:
        self._find = find
        super().__init__(*args)

    def do_GET(self) -> None:
        """Answer a request, unless it was meant for another machine."""
        if not self._is_addressed_to_us():
            self._answer(Reply("text/plain", "this page is for this machine only\n", HTTPStatus.MISDIRECTED_REQUEST))
            return
        path, _, query = self.path.partition("?")
        try:
            fields = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
        except ValueError:
            self._answer(Reply("text/plain", "the query is not valid\n", HTTPStatus.BAD_REQUEST))
            return
        self._answer(self._find(path, fields))

    do_HEAD = do_GET  # noqa: N815 - name of http.server

    def _is_addressed_to_us(self) -> bool:
        """Whether the Host header names this machine, which refuses DNS rebinding by foreign pages."""
        try:
            name = urlsplit(f"//{self.headers.get('Host', 'localhost')}").hostname
        except ValueError:
            return False
        return name is not None and is_local(name)

    def _answer(self, reply: Reply) -> None:
        content = reply.text.encode(errors="replace")
        self.send_response(reply.status)
        for name, value in {**_HEADERS, "Content-Type": f"{reply.kind}; charset=utf-8"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log no requests."""
