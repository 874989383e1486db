"""Eraser: has peers forget the nodes that were removed here, and asks again until each has answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from manela.errors import ManelaError
from manela.hosts.daemon.logs import log
from manela.hosts.daemon.service import Service
from manela.hosts.folder.erasure import find_requests, keep_receipt
from manela.hosts.folder.store import Store

_FIRST_PAUSE = 1.0
"""Seconds before a request is repeated; each failure doubles the pause, up to the longest."""


@dataclass
class _Attempt:
    """The request to a peer that is open, and when the next one is due."""

    call: asyncio.Task[Any] | None = None
    pause: float = _FIRST_PAUSE
    again: float = 0.0


class Eraser:
    """Sends the requests to forget nodes that wait in a store; `second_store` is a connection for threads."""

    def __init__(self, store: Store, second_store: Store, longest_pause: float) -> None:
        self._store, self._second_store, self._longest_pause = store, second_store, longest_pause
        self._attempts: dict[str, _Attempt] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read again what waits."""
        self._waiting = find_requests(self._store)

    def look(self, service: Service, peers: Collection[str]) -> None:
        """Begin the requests that are due, one at a time to each peer."""
        for peer, names in self._waiting.items():
            attempt = self._attempts.setdefault(peer, _Attempt())
            is_open = attempt.call is not None and not attempt.call.done()
            if peer in peers and not is_open and time.monotonic() >= attempt.again:
                attempt.call = asyncio.create_task(self._ask(service, peer, names, attempt))

    async def _ask(self, service: Service, peer: str, names: list[str], attempt: _Attempt) -> None:
        """Ask a peer to forget nodes, and keep its receipt; after a failure, a longer pause follows."""
        try:
            receipt = await service.ask_to_forget(peer, names)
            await asyncio.to_thread(keep_receipt, self._second_store, peer, names, receipt)
            self.refresh()
        except ManelaError as error:
            if attempt.pause == _FIRST_PAUSE:
                log("not forgotten", peer=peer, nodes=len(names), message=str(error))
            attempt.again = time.monotonic() + attempt.pause
            attempt.pause = min(self._longest_pause, 2 * attempt.pause)
        else:
            attempt.pause, attempt.again = _FIRST_PAUSE, 0.0

    async def end(self) -> None:
        """Cancel the open requests; they are repeated after the next start."""
        calls = [attempt.call for attempt in self._attempts.values() if attempt.call is not None]
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
