"""A daemon's log: lines of JSON on stderr, by the standard library."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from typing import Any

_LOGGER = logging.getLogger("manela.daemon")


class JsonLines(logging.Formatter):
    """A record as a line of JSON: when, what happened, and the facts of it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        facts: dict[str, Any] = getattr(record, "facts", {})
        return json.dumps({"time": now, "event": record.getMessage(), **facts}, ensure_ascii=False)


class _Stderr(logging.Handler):
    """Writes to stderr; where that cannot be, as on a full disk, the daemon goes on without."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line at once, with whatever cannot be encoded left out."""
        with contextlib.suppress(OSError):
            os.write(2, (self.format(record) + "\n").encode(errors="replace"))


def begin_log() -> None:
    """Have the daemon's log go to stderr, unless the program that it runs in has other plans."""
    if not _LOGGER.handlers:
        handler = _Stderr()
        handler.setFormatter(JsonLines())
        _LOGGER.addHandler(handler)
        _LOGGER.setLevel(logging.INFO)
        _LOGGER.propagate = False


def log(event: str, **facts: Any) -> None:
    """Write an event down, at once."""
    _LOGGER.info(event, extra={"facts": facts})
