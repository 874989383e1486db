"""What a daemon writes while it runs: log lines, the journal of refusals, and the trace of disclosures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

from manela.errors import OutputError, RefusedError
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


def log(event: str, **fields: Any) -> None:
    """Log an event with its fields."""
    _LOGGER.info(event, extra={"fields": fields})


_MOST_UNWRITTEN_OF_ONE = 20
"""Different refusals of one peer per batch; any more are counted together as "and others"."""
_MOST_NOT_STORED = 1000
"""Lines that wait while the store cannot be written; more take memory, and beyond it the oldest are lost."""


class Journal:
    """Collects refusals, with equal ones counted together, until they are written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unwritten: Counter[tuple[str, str, str]] = Counter()
        self._kinds: Counter[str] = Counter()
        self._not_stored: deque[tuple[str, str, str]] = deque(maxlen=_MOST_NOT_STORED)

    def add(self, peer: str, refusal: RefusedError) -> None:
        """Add a refusal."""
        key = (peer, str(refusal.reason), str(refusal))
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
