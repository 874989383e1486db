"""Limits on open files: raises the limit of the process, and reserves a few for saving."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Iterator

_ENOUGH = 65_536
"""Open files to ask for; larger values admit more connections."""
_RESERVED = 16
"""Open files kept in reserve for saving; more leave fewer for connections."""


def allow_many_files() -> int:
    """Raise the limit on open files as far as the system allows; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return int(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


class Reserve:
    """Open files held in reserve, and released while something is saved."""

    def __init__(self) -> None:
        self._lock, self._held = threading.Lock(), list[int]()
        self._take()

    @contextlib.contextmanager
    def lend(self) -> Iterator[None]:
        """Release the reserve within this block, so that a few files can be opened even if all others are in use.

        A second block at the same time does not wait: the reserve is released already.
        """
        is_first = self._lock.acquire(blocking=False)
        try:
            if is_first:
                self.close()
            yield
        finally:
            if is_first:
                self._take()
                self._lock.release()

    def close(self) -> None:
        """Close the reserved files."""
        while self._held:
            os.close(self._held.pop())

    def _take(self) -> None:
        """Open as many files as the reserve should have."""
        with contextlib.suppress(OSError):  # a smaller reserve is better than none
            while len(self._held) < _RESERVED:
                self._held.append(os.open(os.devnull, os.O_RDONLY))
