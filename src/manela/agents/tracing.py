"""Tracer: writes what is disclosed to a host to the trace in its folder."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from manela.agents.logs import log
from manela.agents.trace import write_fact
from manela.system.files import open_private


class Tracer:
    """Appends facts to a trace until it is closed, or until it cannot be written any more.

    Attributes
    ----------
    is_open : bool
        Whether facts are still written.
    """

    def __init__(self, path: Path) -> None:
        self._file = open_private(path, "a")
        self.is_open = True

    def add(self, **fact: Any) -> None:
        """Write a fact; after an error the trace is given up, and the host goes on without one."""
        if not self.is_open:
            return
        try:
            self._file.write(write_fact(fact) + "\n")
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
            log("not traced", why=str(error))
        self.is_open = False
        with contextlib.suppress(OSError):  # closing writes the rest of the buffer, which fails again
            self._file.close()
