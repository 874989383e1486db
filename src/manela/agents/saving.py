"""Saver: saves the state of a host beside learning, one save at a time, and retries a failed one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from manela.agents.descriptors import Reserve
from manela.agents.host import Host, Saved
from manela.agents.logs import log
from manela.agents.vectors_file import VectorsFile
from manela.errors import OutputError

_EVERY = 0.25
"""Least seconds between two saves; larger values lose more in a power cut."""
_FIRST_PAUSE = 0.5
"""Seconds before a failed save is retried; each failure doubles the pause, up to `longest_pause`."""


class Saver:
    """Saves the states of a host to its folder.

    Parameters
    ----------
    folder : path
    reserve : Reserve
        Open files that are released while a state is saved.
    longest_pause : float
        Most seconds between two attempts after failures.

    Attributes
    ----------
    trouble : str
        Why the last save failed; empty if it did not.
    """

    def __init__(self, folder: Path, reserve: Reserve, longest_pause: float) -> None:
        self._vectors, self._reserve, self._longest_pause = VectorsFile(folder), reserve, longest_pause
        self._saving: asyncio.Task[None] | None = None
        self._saved_at = 0.0
        self._next, self._pause = 0.0, _FIRST_PAUSE
        self.trouble = ""

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

    def save_now(self, host: Host) -> None:
        """Save in this thread, when nothing else runs any more; raises if that fails."""
        if host.can_be_saved:
            self._write(host.save())

    @property
    def _is_idle(self) -> bool:
        """Whether no save is running."""
        return self._saving is None or self._saving.done()

    async def _save(self, saved: Saved) -> None:
        """Save in a thread; a failure is logged once, and kept as `trouble` until a save succeeds."""
        try:
            await asyncio.to_thread(self._write, saved)
        except OutputError as error:
            if not self.trouble:
                log("not saved", why=str(error))
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
