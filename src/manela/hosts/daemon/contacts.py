"""Contact: what a daemon holds of a peer besides what its host knows: calls in both directions, limits and counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from manela.errors import TooOftenError
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.terms import RateLimits

FIRST_PAUSE = 0.2
"""Seconds before the first retry of a peer; each failure doubles the pause."""


@dataclass(eq=False)
class Contact:
    """The calls of a peer and to it."""

    buckets: TokenBuckets  # what the peer may still ask for
    slots: asyncio.Semaphore  # the requests of the peer that are answered at a time
    waiting: int = 0  # the requests of the peer that are being answered, or wait for it
    asked: float | None = None  # when the peer last asked for something, in seconds since 1970
    refusals: Counter[str] = field(default_factory=Counter)  # how often something from the peer was refused, by reason
    # A neighbourhood, and the size of the peer's edges in it as `Neighbourhood.count_bytes` returns it
    listed: tuple[Neighbourhood, tuple[int, int]] | None = None
    # bytes of messages to and from the peer
    sent: int = 0
    received: int = 0
    # the call to the peer that is open
    call: asyncio.Task[Any] | None = None
    request: Any = None
    meeting: asyncio.Task[bool] | None = None  # the greeting that is open
    # seconds until the next retry after a failure, and when it is due
    pause: float = FIRST_PAUSE
    again: float = 0.0
    trouble: str = ""  # why the peer is away, empty if it is not
    patience: float | None = None  # seconds for which rounds still wait for it; None before the first call
    answered: float = 0.0  # when it last answered, or else when `patience` was set
    seen: float | None = None  # when it last answered, in seconds since 1970
    late: bool = False  # whether it did not answer in time in the start or in smoothing

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


_BURST = 10.0
"""Seconds' worth of requests that a quiet peer may save up; more allows larger bursts."""


@dataclass
class TokenBuckets:
    """The token buckets of one peer.

    Examples
    --------
    >>> limits = TokenBuckets(RateLimits(requests=1.0))
    >>> [limits.take(now=0.0, walks=0, vectors=0) for _ in range(11)][-2:]
    [0.0, 1.0]

    A request for more than ten seconds' worth is served if the bucket is full; the next request waits for the excess.

    >>> limits = TokenBuckets(RateLimits(vectors=1.0, longest_wait=5.0))
    >>> limits.take(now=0.0, walks=0, vectors=12), limits.take(now=0.0, walks=0, vectors=1)
    (0.0, 3.0)
    """

    rates: RateLimits
    _left: dict[str, float] = field(default_factory=dict)
    _refilled_at: float | None = None

    def take(self, now: float, walks: int, vectors: int, requests: int = 1) -> float:
        """Take the tokens for a request; return the seconds it must wait, or refuse it if that is too long."""
        rates = self._refill(now)
        wanted = {"requests": requests, "walks": walks, "vectors": vectors, "bytes": 0}
        # a full bucket is enough for a request of any size; the next request waits for the excess
        needed = {name: min(wanted[name], _BURST * rate) for name, rate in rates.items()}
        wait = max(0.0, *((needed[name] - self._left[name]) / rate for name, rate in rates.items()))
        if wait > self.rates.longest_wait:
            raise TooOftenError(f"the rate limit is exceeded; try again in {wait:.0f} s")
        for name in rates:
            self._left[name] -= wanted[name]
        return wait

    def charge(self, now: float, size: int) -> None:
        """Charge bytes that were received or sent; if they exceed the limit, the peer's next request waits."""
        self._refill(now)
        self._left["bytes"] -= size

    def _refill(self, now: float) -> dict[str, float]:
        """Add what has become free since the last time, up to a burst; return the rates."""
        rates = {
            "requests": self.rates.requests, "walks": self.rates.walks, "vectors": self.rates.vectors,
            "bytes": 1e6 * self.rates.megabytes,
        }  # fmt: skip
        elapsed = 0.0 if self._refilled_at is None else max(0.0, now - self._refilled_at)
        self._refilled_at = now
        for name, rate in rates.items():
            capacity = _BURST * rate
            self._left[name] = min(capacity, self._left.get(name, capacity) + elapsed * rate)
        return rates
