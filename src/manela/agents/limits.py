"""Limits on what a peer may ask for in a second: buckets that fill up with time."""

from __future__ import annotations

from dataclasses import dataclass, field

from manela.agents.options import Rates
from manela.errors import TooOftenError

_BURST = 10.0


@dataclass
class Limits:
    """What one peer has left.

    Examples
    --------
    >>> limits = Limits(Rates(requests=1.0))
    >>> [limits.take(now=0.0, walks=0, vectors=0) for _ in range(11)][-2:]
    [0.0, 1.0]

    What is more than ten seconds' worth is given to whoever has asked for nothing before, and waited for after.

    >>> limits = Limits(Rates(vectors=1.0, longest_wait=5.0))
    >>> limits.take(now=0.0, walks=0, vectors=12), limits.take(now=0.0, walks=0, vectors=1)
    (0.0, 3.0)
    """

    rates: Rates
    _left: dict[str, float] = field(default_factory=dict)
    _then: float | None = None

    def take(self, now: float, walks: int, vectors: int, requests: int = 1) -> float:
        """Take a request's worth; returns how many seconds it has to wait, or refuses it."""
        rates = self._refill(now)
        wanted = {"requests": requests, "walks": walks, "vectors": vectors, "bytes": 0}
        # of what is larger than all that can be saved up, so much must be there; what is beyond is waited for later
        there = {name: min(wanted[name], _BURST * rate) for name, rate in rates.items()}
        wait = max(0.0, *((there[name] - self._left[name]) / rate for name, rate in rates.items()))
        if wait > self.rates.longest_wait:
            raise TooOftenError(f"more than agreed was asked for; try again in {wait:.0f} s")
        for name in rates:
            self._left[name] -= wanted[name]
        return wait

    def charge(self, now: float, size: int) -> None:
        """Bytes have come and gone; whoever has used up its own waits with what it asks for next."""
        self._refill(now)
        self._left["bytes"] -= size

    def _refill(self, now: float) -> dict[str, float]:
        rates = {
            "requests": self.rates.requests, "walks": self.rates.walks, "vectors": self.rates.vectors,
            "bytes": 1e6 * self.rates.megabytes,
        }  # fmt: skip
        passed = 0.0 if self._then is None else max(0.0, now - self._then)
        self._then = now
        for name, rate in rates.items():
            most = _BURST * rate
            self._left[name] = min(most, self._left.get(name, most) + passed * rate)
        return rates
