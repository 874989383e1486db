"""Status: what a daemon tells of itself, twice a second, in a file and to whoever looks at its page."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manela.agents.host import Host
from manela.agents.identity import expiry_of
from manela.agents.learner import Learner
from manela.agents.service import Service

WARN_DAYS = 30
"""Days before a certificate ends from which on operators are warned."""
_EVERY = 300.0
"""Seconds of one bar of the history."""
_BARS = 288
"""Bars that are kept: a day."""
_DAY = 86400.0


class Speed:
    """Update pairs a second: now, and over the last day.

    Attributes
    ----------
    now : float
    """

    def __init__(self, pairs: int) -> None:
        self.now = 0.0
        self._then, self._before = time.monotonic(), pairs
        self._bar_began, self._bar_before = time.time(), pairs
        self._bars: deque[tuple[float, float]] = deque(maxlen=_BARS)

    def look(self, pairs: int) -> None:
        """So many pairs have been made by now."""
        now = time.monotonic()
        if now - self._then >= 1.0:
            self.now = max(0, pairs - self._before) / (now - self._then)
            self._then, self._before = now, pairs
        passed = time.time() - self._bar_began
        if passed >= _EVERY or passed < 0:
            self._bars.append((self._bar_began, max(0, pairs - self._bar_before) / max(1.0, passed)))
            self._bar_began, self._bar_before = time.time(), pairs

    def history(self, pairs: int) -> list[tuple[int, int]]:
        """When each bar began, and the pairs a second in it; the last is not over yet."""
        passed = max(1.0, time.time() - self._bar_began)
        bars = [*self._bars, (self._bar_began, max(0, pairs - self._bar_before) / passed)]
        return [(int(began), round(speed)) for began, speed in bars]


def describe_peers(
    learner: Learner, sent: Mapping[str, int], received: Mapping[str, int], certificates: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """What there is to tell of each peer."""
    host: Host = learner.host
    told = {}
    for peer in learner.peers:
        greeting = host.sessions.greetings.get(peer)
        agreed, disagreed = host.sessions.count_edges(peer)
        trouble = learner.trouble_with(peer)
        told[peer] = {
            "state": "here" if host.sessions.knows(peer) and not trouble else "away",
            "trouble": trouble,
            "seen": learner.seen(peer),
            "asked": learner.service.asked.get(peer),
            "program": greeting.program if greeting else "",
            "nodes": greeting.nodes if greeting else None,
            "edges_agreed": agreed,
            "edges_disagreed": disagreed,
            "shown_nodes": host.sessions.count_neighbours(peer),
            "expires": find_expiry(certificates.get(peer, ())),
            "alarms": {kind: times for (who, kind), times in host.alarms.items() if who == peer},
            "sent": sent[peer],
            "received": received[peer],
        }
    return told


def count_refusals(service: Service) -> dict[str, dict[str, int]]:
    """How often what was refused, by peer and reason."""
    refusals: dict[str, dict[str, int]] = {}
    for (peer, reason), times in service.refusals.items():
        refusals.setdefault(peer, {})[reason] = times
    return refusals


def find_expiry(certificates: Iterable[str]) -> float | None:
    """When the last of some certificates ends, in seconds since 1970."""
    return max((expiry_of(one).timestamp() for one in certificates), default=None)


def warn_of_expiry(status: Mapping[str, Any]) -> list[str]:
    """A line for each certificate that ends soon, or has ended."""
    found = {"": status.get("expires"), **{name: one.get("expires") for name, one in status["peers"].items()}}
    lines = []
    for name, ends in found.items():
        if ends is not None and ends - time.time() < WARN_DAYS * _DAY:
            whose = "this host's certificate" if name == "" else f"the certificate of {name}"
            days = int((ends - time.time()) // _DAY)
            lines.append(f"{whose} has ended" if days < 0 else f"{whose} ends in {days} days")
    return lines


def write_status(path: Path, status: Mapping[str, Any]) -> None:
    """Replace the file that `manela agent status` reads; where it cannot be written, the old one tells its age."""
    part = path.with_suffix(".part")
    with contextlib.suppress(OSError):
        if part.is_symlink():
            part.unlink()
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(status, file)
        part.replace(path)
