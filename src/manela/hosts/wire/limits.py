"""Rate limits on what a peer may ask for, as token buckets."""

from __future__ import annotations

from dataclasses import dataclass, field

from manela.errors import TooOftenError
from manela.hosts.state.terms import RateLimits

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
