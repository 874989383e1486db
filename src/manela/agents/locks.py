"""The lock of a host's folder, which lets only one daemon run there."""

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
    """Return whether a daemon runs in this folder."""
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
    """Hold the lock of a folder within this block, or raise if a daemon holds it."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if (folder / LOCK).is_symlink():
            raise AgentError(f"{folder / LOCK}: is a symbolic link, which is not followed; remove it") from error
        raise OutputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    try:
        for attempt in range(_ATTEMPTS):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # retry, as `is_running` takes the lock for a moment
                if attempt == _ATTEMPTS - 1:
                    raise AgentError(f"{folder}: a daemon runs there already") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(handle)
