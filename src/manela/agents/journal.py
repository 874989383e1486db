"""Journal: collects refusals, and writes them to the store and the log in batches."""

from __future__ import annotations

import asyncio
from collections import Counter, deque

from manela.agents.logs import log
from manela.agents.store import Store
from manela.errors import OutputError, RefusedError

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
            words = detail if times == 1 else f"{detail} ({times} times)"
            lines.append((peer, reason, words))
            log("refused", peer=peer, reason=reason, detail=words)
        lines = [*self._not_stored, *lines]
        self._not_stored.clear()
        try:
            if lines:
                self._store.audit(lines)
        except OutputError:
            self._not_stored.extend(lines)  # keeps only the latest
            raise
