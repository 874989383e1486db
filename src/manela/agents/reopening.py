"""Reopening: decides when a host that is done goes on learning."""

from __future__ import annotations

import asyncio
import time

from manela.agents.host import Host
from manela.agents.logs import log
from manela.agents.round_requests import close_request, find_request
from manela.agents.store import Store
from manela.errors import ManelaError

_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 3600.0
"""Shortest and longest pause in seconds between two times that peers reopen learning.

The pause doubles each time. If smaller, a peer could keep the host busy.
"""


class Reopening:
    """The reasons to go on: rounds that the operator requests, other nodes or edges, and new peers.

    Parameters
    ----------
    store : Store
        Where requests are read.
    second_store : Store
        Another connection to the same store, where a thread records that a request is carried out.
    """

    def __init__(self, store: Store, second_store: Store) -> None:
        self._store, self._second_store = store, second_store
        self._next, self._pause = 0.0, _FIRST_PAUSE

    def has_reason(self, host: Host) -> bool:
        """Return whether rounds are requested or a peer is new; new edges are noticed by whoever renews the host."""
        return find_request(self._store) is not None or self._has_new_peer(host)

    async def reopen(self, host: Host) -> bool:
        """Reopen learning on a finished host if there is a reason to; return whether it was reopened."""
        try:
            request = find_request(self._store)
            if request is not None:
                await asyncio.to_thread(close_request, self._second_store, request)
        except ManelaError as error:
            log("trouble", why=str(error))
            return False
        if request is not None:
            log("goes on", why=f"{request.rounds:,} rounds were asked for")
            host.reopen(request.rounds)
        elif host.has_new_edges:
            log("goes on", why="there are other nodes or edges")
            host.reopen()
        elif self._has_new_peer(host):
            log("goes on", why="there is a peer, or there are edges with it, that were not there before")
            self._next = time.monotonic() + self._pause
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause)
            host.reopen()
        return not host.done

    def _has_new_peer(self, host: Host) -> bool:
        """Return whether a peer has edges that were not learned from yet, and the pause since the last one is over."""
        return host.should_go_on and time.monotonic() >= self._next
