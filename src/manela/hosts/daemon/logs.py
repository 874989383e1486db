"""What a daemon writes while it runs: log lines, the journal of refusals, and the trace of disclosures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import logging.handlers
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from manela.errors import NodeName, OutputError, RefusedError
from manela.hosts.folder.store import Store
from manela.hosts.folder.trace import write_disclosure
from manela.system.files import open_private

_LOGGER = logging.getLogger("manela.daemon")


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON with its time, its event and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        fields: dict[str, Any] = getattr(record, "fields", {})
        return json.dumps({"time": now, "event": record.getMessage(), **fields}, ensure_ascii=False)


class _Stderr(logging.Handler):
    """Writes to stderr, and ignores errors such as a full disk."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line at once; characters that cannot be encoded are replaced."""
        with contextlib.suppress(OSError):
            os.write(2, (self.format(record) + "\n").encode(errors="replace"))


def begin_log() -> None:
    """Send the daemon's log to stderr, unless a handler is configured already."""
    if not _LOGGER.handlers:
        handler = _Stderr()
        handler.setFormatter(JsonLines())
        _LOGGER.addHandler(handler)
        _LOGGER.setLevel(logging.INFO)
        _LOGGER.propagate = False


class Syslog(logging.handlers.SysLogHandler):
    """Sends lines to the system's log by datagrams; what cannot be sent at once is lost.

    The address is the path of a socket, or udp:ADDRESS:PORT.
    """

    socket: Any

    def __init__(self, address: str, host: str) -> None:
        target: Any = address
        if address.startswith("udp:"):
            where, _, port = address.removeprefix("udp:").rpartition(":")
            target = (where.strip("[]"), int(port))
        super().__init__(target, self.LOG_DAEMON, socket.SOCK_DGRAM)
        self.ident = f"manela-{host}[{os.getpid()}]: "
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line without waiting; after an error the socket is opened again for the next line."""
        priority = self.encodePriority(self.facility, "info")
        line = f"<{priority}>{self.ident}{self.format(record)}".encode(errors="replace")[:_LONGEST_DATAGRAM]
        try:
            if self.socket is None:
                self.createSocket()
            self.socket.setblocking(False)
            if isinstance(self.address, str):
                self.socket.send(line)
            else:
                self.socket.sendto(line, self.address)
        except OSError:
            self.socket.close()
            self.socket = None


def add_syslog(address: str, host: str) -> Syslog | None:
    """Also send the daemon's log to a system log, unless the address is empty; end that with `drop_syslog`."""
    if not address:
        return None
    handler = Syslog(address, host)
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)
    return handler


def drop_syslog(handler: Syslog | None) -> None:
    """Stop sending the log to a system log."""
    if handler is not None:
        _LOGGER.removeHandler(handler)
        handler.close()


def log(event: str, **fields: Any) -> None:
    """Log an event with its fields."""
    _LOGGER.info(event, extra={"fields": fields})


class NameKeeper:
    """Decides how logs and the audit show nodes: by name, or by the keyed hash of a store.

    With `hash_names`, all are hashed, and otherwise those that were erased.
    """

    def __init__(self, store: Store, hash_names: bool) -> None:
        self._store, self._hashes_all = store, hash_names
        self.refresh()

    def refresh(self) -> None:
        """Read again which nodes were erased."""
        self._erased = self._store.tombstones()
        self._hasher = self._store.hasher() if self._hashes_all or self._erased else None

    def show(self, node: NodeName) -> str:
        """Return what stands for a node."""
        if self._hasher is not None and (self._hashes_all or self._erased.cover_text(node.node)):
            return self._hasher.show(node.node)
        return node.text

    def conceal(self, message: str, names: Collection[str]) -> str:
        """Return a message, which may quote a peer, without these names of own nodes, and without words `name@host`."""
        if self._hasher is None:
            return message
        return " ".join(self._conceal_word(word, names) for word in message.split(" "))

    def _conceal_word(self, word: str, names: Collection[str]) -> str:
        name = word.strip(_PUNCTUATION)
        is_own = name in names or (self._hasher is not None and self._erased.cover(name, self._hasher.host))
        if self._hasher is None or not (is_own or "@" in name.strip("@")):
            return word
        node = f"{name}@{self._hasher.host}" if is_own else name
        return word.replace(name, self.show(NodeName(name, node)))


_LONGEST_DATAGRAM = 8192
"""Bytes of a line to the system's log; longer datagrams are refused by some systems."""
_PUNCTUATION = ".,;:()[]'\"?!"
"""What may stand around a name in a message."""
_MOST_UNWRITTEN_OF_ONE = 20
"""Different refusals of one peer per batch; any more are counted together as "and others"."""
_MOST_NOT_STORED = 1000
"""Lines that wait while the store cannot be written; more take memory, and beyond it the oldest are lost."""


class Journal:
    """Collects refusals, with equal ones counted together, until they are written.

    `show` returns what stands for a node in them.
    """

    def __init__(self, store: Store, show: Callable[[NodeName], str] = str) -> None:
        self._store, self._show = store, show
        self._unwritten: Counter[tuple[str, str, str]] = Counter()
        self._kinds: Counter[str] = Counter()
        self._not_stored: deque[tuple[str, str, str]] = deque(maxlen=_MOST_NOT_STORED)

    def add(self, peer: str, refusal: RefusedError) -> None:
        """Add a refusal."""
        key = (peer, str(refusal.reason), refusal.write(self._show))
        if key not in self._unwritten:
            if self._kinds[peer] >= _MOST_UNWRITTEN_OF_ONE:
                key = (peer, str(refusal.reason), "and others")
            self._kinds[peer] += 1
        self._unwritten[key] += 1

    async def flush(self) -> None:
        """Write the collected refusals in a thread."""
        waiting = self._take()
        if waiting or self._not_stored:
            await asyncio.to_thread(self._write, waiting)

    def flush_now(self) -> None:
        """Write the collected refusals before returning."""
        self._write(self._take())

    def _take(self) -> Counter[tuple[str, str, str]]:
        """Return the refusals that were not written yet, and forget them."""
        waiting, self._unwritten, self._kinds = self._unwritten, Counter(), Counter()
        return waiting

    def _write(self, waiting: Counter[tuple[str, str, str]]) -> None:
        """Log refusals and store them; those that cannot be stored are kept for the next time."""
        lines = []
        for (peer, reason, detail), times in waiting.items():
            message = detail if times == 1 else f"{detail} ({times} times)"
            lines.append((peer, reason, message))
            log("refused", peer=peer, reason=reason, detail=message)
        lines = [*self._not_stored, *lines]
        self._not_stored.clear()
        try:
            if lines:
                self._store.audit(lines)
        except OutputError:
            self._not_stored.extend(lines)  # keeps only the latest
            raise


class Tracer:
    """Appends disclosures to a trace until it is closed, or until it cannot be written any more."""

    def __init__(self, path: Path) -> None:
        self._file = open_private(path, "a")
        self.is_open = True  # whether disclosures are still written

    def add(self, **disclosure: Any) -> None:
        """Write a disclosure; after an error the trace is given up, and the host continues without one."""
        if not self.is_open:
            return
        try:
            self._file.write(write_disclosure(disclosure) + "\n")
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file, which writes what is left to write."""
        try:
            self._file.close()
        except OSError as error:
            self._give_up(error)
        self.is_open = False

    def _give_up(self, error: OSError) -> None:
        """Log once that the trace is incomplete, and close it."""
        if self.is_open:
            log("not traced", message=str(error))
        self.is_open = False
        with contextlib.suppress(OSError):  # closing writes the rest of the buffer, which fails again
            self._file.close()
