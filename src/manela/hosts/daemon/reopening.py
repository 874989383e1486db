"""Reopening: decides when a host that is done continues to learn, and the rounds that operators request."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import NamedTuple

from manela.errors import ManelaError
from manela.hosts.daemon.logs import log
from manela.hosts.folder.store import Store
from manela.hosts.state.host import Host

_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 3600.0
"""Shortest and longest pause in seconds between two times that peers reopen learning.

The pause doubles each time. If smaller, a peer could keep the host busy.
"""


_FIRST_START, _LONGEST_START, _QUIET = 2.0, 900.0, 10.0
"""Shortest and longest pause in seconds between two new starts, and after how many pauses it is the shortest again.

The pause doubles each time. If smaller, a peer that lies about its frame could keep the host busy.
"""


class Reopening:
    """The reasons to continue: rounds that the operator requests, other nodes or edges, and new peers.

    `second_store` is another connection to the same store, where a thread records that a request is carried out.
    """

    def __init__(self, store: Store, second_store: Store) -> None:
        self._store, self._second_store = store, second_store
        self._next, self._pause = 0.0, _FIRST_PAUSE
        self._next_start, self._start_pause = 0.0, _FIRST_START

    def has_reason(self, host: Host) -> bool:
        """Return whether rounds are requested or a peer is new; new edges are noticed by whoever renews the host."""
        return find_request(self._store) is not None or self._has_newer_start(host) or self._has_new_peer(host)

    async def reopen(self, host: Host) -> bool:
        """Reopen learning on a finished host if there is a reason to; return whether it was reopened."""
        try:
            request = find_request(self._store)
            if request is not None:
                await asyncio.to_thread(close_request, self._second_store, request)
        except ManelaError as error:
            log("trouble", message=str(error))
            return False
        if request is not None:
            if request.rounds:
                log("continues", message=f"{request.rounds:,} more rounds were requested")
                host.reopen(request.rounds)
            else:
                log("continues", message="a new start was requested")
                host.start_anew()
        elif host.has_new_edges:
            log("continues", message="nodes or edges have changed")
            host.reopen()
        elif self._has_newer_start(host):
            log("continues", message="peers are in a newer start")
            self._note_start()
            host.reopen()
        elif self._has_new_peer(host):
            log("continues", message="a peer is new, or has new edges")
            self._next = time.monotonic() + self._pause
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause)
            host.reopen()
        return not host.done

    def _has_newer_start(self, host: Host) -> bool:
        """Return whether peers are in a newer start, and the pause since the last one is over."""
        return host.is_outdated and time.monotonic() >= self._next_start

    def _note_start(self) -> None:
        """Let a longer pause follow, unless the last start was long ago."""
        now = time.monotonic()
        is_long_ago = now - self._next_start > _QUIET * self._start_pause
        self._start_pause = _FIRST_START if is_long_ago else min(_LONGEST_START, 2 * self._start_pause)
        self._next_start = now + self._start_pause

    def _has_new_peer(self, host: Host) -> bool:
        """Return whether a peer has edges that were not learned from yet, and the pause since the last one is over."""
        return not host.is_outdated and host.should_go_on and time.monotonic() >= self._next


_REQUESTED, _DONE = "learn", "learned"
"""Keys in the store: the last request, and the id of the last one that was carried out."""


class RoundRequest(NamedTuple):
    """A request that was not carried out yet; 0 rounds are for a new start."""

    id: str
    rounds: int


def find_request(store: Store) -> RoundRequest | None:
    """Return the open request, or None if there is none."""
    number, _, rounds = (store.get(_REQUESTED) or "").partition(" ")
    return RoundRequest(number, int(rounds)) if rounds.isdecimal() and number != store.get(_DONE) else None


def request_rounds(store: Store, rounds: int) -> int:
    """Ask for more rounds, in addition to those of an open request; return how many are requested in all."""
    waiting = find_request(store)
    if waiting is not None:
        rounds += waiting.rounds
    store.put(_REQUESTED, f"{secrets.token_hex(8)} {rounds}")
    return rounds


def request_start(store: Store) -> None:
    """Ask for a new start, in place of an open request."""
    store.put(_REQUESTED, f"{secrets.token_hex(8)} 0")


def close_request(store: Store, request: RoundRequest) -> None:
    """Record that a request is carried out, so that no later start does it again."""
    store.put(_DONE, request.id)
