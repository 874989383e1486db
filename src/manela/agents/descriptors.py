"""Open files: a daemon may have many, and keeps a few back so that it can always save."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Iterator

_ENOUGH = 65_536
"""Open files that are enough for any number of peers."""
_KEPT_BACK = 16


def allow_many_files() -> int:
    """Raise how many files this process may have open as far as it may; returns how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return int(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


class Reserve:
    """Open files that are kept back, and given free for as long as something is saved."""

    def __init__(self) -> None:
        self._lock, self._held = threading.Lock(), list[int]()
        self._take()

    @contextlib.contextmanager
    def lend(self) -> Iterator[None]:
        """In this block there are a few files to open, whoever has taken all others.

        Nobody waits for another's block: the files are free while it lasts.
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
        """Give all of them back."""
        while self._held:
            os.close(self._held.pop())

    def _take(self) -> None:
        with contextlib.suppress(OSError):  # those that are left are kept then
            while len(self._held) < _KEPT_BACK:
                self._held.append(os.open(os.devnull, os.O_RDONLY))
