"""Contact: what a daemon holds of a peer besides what its host knows: calls in both directions, limits and counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.terms import RateLimits
from manela.hosts.wire.limits import TokenBuckets

FIRST_PAUSE = 0.2
"""Seconds before the first retry of a peer; each failure doubles the pause."""


@dataclass(eq=False)
class Contact:
    """The calls of a peer and to it.

    Attributes
    ----------
    buckets : TokenBuckets
        What the peer may still ask for.
    slots : asyncio.Semaphore
        The requests of the peer that are answered at a time.
    waiting : int
        The requests of the peer that are being answered, or wait for it.
    asked : float, or None
        When the peer last asked for something, in seconds since 1970.
    refusals : Counter
        How often something from the peer was refused, by reason.
    listed : tuple, or None
        A neighbourhood, and the size of the peer's edges in it as `Neighbourhood.count_bytes` returns it.
    sent, received : int
        Bytes of messages to and from the peer.
    call, request : task and request, or None
        The call to the peer that is open.
    meeting : task, or None
        The greeting that is open.
    pause, again : float
        Seconds until the next retry after a failure, and when it is due.
    trouble : str
        Why the peer is away, empty if it is not.
    patience : float, or None
        Seconds for which rounds still wait for it; None before the first call.
    answered : float
        When it last answered, or else when `patience` was set.
    seen : float, or None
        When it last answered, in seconds since 1970.
    late : bool
        Whether it did not answer in time in the start or in smoothing.
    """

    buckets: TokenBuckets
    slots: asyncio.Semaphore
    waiting: int = 0
    asked: float | None = None
    refusals: Counter[str] = field(default_factory=Counter)
    listed: tuple[Neighbourhood, tuple[int, int]] | None = None
    sent: int = 0
    received: int = 0
    call: asyncio.Task[Any] | None = None
    request: Any = None
    meeting: asyncio.Task[bool] | None = None
    pause: float = FIRST_PAUSE
    again: float = 0.0
    trouble: str = ""
    patience: float | None = None
    answered: float = 0.0
    seen: float | None = None
    late: bool = False

    def end(self) -> None:
        """Cancel the open calls to the peer."""
        for task in (self.call, self.meeting):
            if task is not None:
                task.cancel()


class Contacts(dict[str, Contact]):
    """The contacts by name, each made when it is first needed; to forget one, delete it."""

    def __init__(self, limits: RateLimits | None = None) -> None:
        super().__init__()
        self.limits = limits or RateLimits()

    def __missing__(self, peer: str) -> Contact:
        self[peer] = Contact(TokenBuckets(self.limits), asyncio.Semaphore(self.limits.at_once))
        return self[peer]

    def count(self, peer: str, sent: int, received: int) -> None:
        """Count bytes that were sent to a peer and received from it."""
        contact = self[peer]
        contact.sent += sent
        contact.received += received
