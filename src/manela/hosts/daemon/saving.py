"""Saver: saves the state of a host beside learning, retries what failed, and keeps open files in reserve."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from manela.errors import OutputError
from manela.hosts.daemon.logs import log
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.host import Host, Saved

_EVERY = 0.25
"""Least seconds between two saves; larger values lose more in a power cut."""
_FIRST_PAUSE = 0.5
"""Seconds before a failed save is retried; each failure doubles the pause, up to `longest_pause`."""


class Saver:
    """Saves the states of a host to its home, with at most `longest_pause` seconds between two attempts after failures.

    The open files of `reserve` are released while a state is saved.
    """

    def __init__(self, home: Path, reserve: Reserve, longest_pause: float) -> None:
        self._vectors, self._reserve, self._longest_pause = VectorsFile(home), reserve, longest_pause
        self._saving: asyncio.Task[None] | None = None
        self._saved_at = 0.0
        self._next, self._pause = 0.0, _FIRST_PAUSE
        self.trouble = ""  # why the last save failed; empty if it did not

    def load(self) -> Saved | None:
        """Return the saved state, or None if there is none yet."""
        return self._vectors.load()

    def save_if_due(self, host: Host) -> None:
        """Begin to save the state, unless a save is running or the last one is too recent."""
        if self._is_idle and time.monotonic() - self._saved_at >= _EVERY:
            self._saved_at = time.monotonic()
            self._saving = asyncio.create_task(self._save(host.save()))

    def retry_if_due(self, host: Host) -> None:
        """Begin to save again if the last save has failed and the pause since then is over."""
        if self.trouble and self._is_idle and time.monotonic() >= self._next and host.can_be_saved:
            self._saving = asyncio.create_task(self._save(host.save()))

    async def save(self, host: Host) -> None:
        """Save the state as it is now, after a save that has begun; two at once could leave the older state."""
        await self.wait()
        self._saving = asyncio.create_task(self._save(host.save()))
        await self.wait()
        self._saving.result()

    async def wait(self) -> None:
        """Wait until a save that has begun is complete."""
        if self._saving is not None:
            await asyncio.wait([self._saving])

    def save_now(self, host: Host, nodes: Collection[str] | None = None) -> None:
        """Save in this thread, when nothing else runs any more, by default all nodes; raises if that fails."""
        if host.can_be_saved:
            saved = host.save()
            is_whole = nodes is None or set(nodes).issuperset(saved.names)
            self._write(saved if is_whole else saved.keep(nodes or ()))

    @property
    def _is_idle(self) -> bool:
        return self._saving is None or self._saving.done()

    async def _save(self, saved: Saved) -> None:
        """Save in a thread; a failure is logged once, and kept as `trouble` until a save succeeds."""
        try:
            await asyncio.to_thread(self._write, saved)
        except OutputError as error:
            if not self.trouble:
                log("not saved", message=str(error))
            self.trouble = str(error)
            self._next = time.monotonic() + self._pause
            self._pause = min(self._longest_pause, 2 * self._pause)
            return
        was_in_trouble = bool(self.trouble)
        self.trouble, self._pause = "", _FIRST_PAUSE
        if was_in_trouble:
            log("saved again")

    def _write(self, saved: Saved) -> None:
        """Write a state with the reserve of open files released."""
        with self._reserve.lend():
            self._vectors.save(saved)


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
