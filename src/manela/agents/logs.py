"""The log of a daemon: JSON lines on stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from typing import Any

_LOGGER = logging.getLogger("manela.daemon")


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON with its time, its event and its facts."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        facts: dict[str, Any] = getattr(record, "facts", {})
        return json.dumps({"time": now, "event": record.getMessage(), **facts}, ensure_ascii=False)


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


def log(event: str, **facts: Any) -> None:
    """Log an event with its facts."""
    _LOGGER.info(event, extra={"facts": facts})
