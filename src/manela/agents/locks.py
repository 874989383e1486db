"""The lock of a host's folder: whether a daemon runs there, and that no second one does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from manela.errors import AgentError, OutputError

LOCK = "lock"
_ATTEMPTS = 20


def is_running(folder: Path) -> bool:
    """Whether a daemon runs in this folder."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Refuse to run where a daemon runs."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    try:
        for attempt in range(_ATTEMPTS):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # somebody may only be looking whether a daemon runs
                if attempt == _ATTEMPTS - 1:
                    raise AgentError(f"{folder}: a daemon runs there already") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(handle)
