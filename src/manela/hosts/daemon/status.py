"""Status: collects what a daemon reports about itself, and writes it to a file."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manela.hosts.daemon.learner import Learner
from manela.hosts.daemon.service import Service
from manela.hosts.folder.identity import expiry_of

WARN_DAYS = 30
"""Operators are warned this many days before a certificate expires; more warn earlier."""
_EVERY = 300.0
"""Seconds of one bar of the history; larger values show less detail over a longer time."""
_BARS = 288
"""Bars to keep, which cover one day."""
_DAY = 86400.0


class Speed:
    """Update pairs per second: now, and over the last day."""

    def __init__(self, pairs: int) -> None:
        self.now = 0.0
        self._measured_at, self._measured_pairs = time.monotonic(), pairs
        self._bar_start, self._bar_pairs = time.time(), pairs
        self._bars: deque[tuple[float, float]] = deque(maxlen=_BARS)

    def look(self, pairs: int) -> None:
        """Record the total number of pairs made so far."""
        now = time.monotonic()
        if now - self._measured_at >= 1.0:
            self.now = max(0, pairs - self._measured_pairs) / (now - self._measured_at)
            self._measured_at, self._measured_pairs = now, pairs
        elapsed = time.time() - self._bar_start
        if elapsed >= _EVERY or elapsed < 0:
            self._bars.append((self._bar_start, max(0, pairs - self._bar_pairs) / max(1.0, elapsed)))
            self._bar_start, self._bar_pairs = time.time(), pairs

    def history(self, pairs: int) -> list[tuple[int, int]]:
        """Return the start of each bar and its pairs per second; the last bar is not complete."""
        elapsed = max(1.0, time.time() - self._bar_start)
        bars = [*self._bars, (self._bar_start, max(0, pairs - self._bar_pairs) / elapsed)]
        return [(int(start), round(speed)) for start, speed in bars]


def describe_peers(learner: Learner, certificates: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return the status of each peer."""
    host, described = learner.host, {}
    for name in learner.peers:
        peer, contact = host.peers[name], learner.service.contacts[name]
        agreed, disagreed = host.sessions.count_edges(name)
        comparable, alike = host.find_likeness(name) or (None, None)
        described[name] = {
            "state": "here" if peer.link is not None and not contact.trouble else "away",
            "believed": not peer.distrust,
            "comparable": comparable,
            "frame": str(peer.frame),
            "alike": None if alike is None else round(alike, 3),
            "trouble": contact.trouble,
            "seen": contact.seen,
            "asked": contact.asked,
            "program": peer.greeting.program if peer.greeting else "",
            "nodes": peer.greeting.nodes if peer.greeting else None,
            "edges_agreed": agreed,
            "edges_disagreed": disagreed,
            "shown_nodes": host.sessions.count_neighbours(name),
            "expires": find_expiry(certificates.get(name, ())),
            "alarms": dict(peer.alarms),
            "sent": contact.sent,
            "received": contact.received,
        }
    return described


def count_refusals(service: Service) -> dict[str, dict[str, int]]:
    """Return the number of refusals, by peer and reason."""
    return {peer: dict(contact.refusals) for peer, contact in service.contacts.items() if contact.refusals}


def find_expiry(certificates: Iterable[str]) -> float | None:
    """Return when the last of these certificates expires, in seconds since 1970, or None if there are none."""
    return max((expiry_of(pem).timestamp() for pem in certificates), default=None)


def warn_of_expiry(status: Mapping[str, Any]) -> list[str]:
    """Return a line for each certificate that expires soon or has expired."""
    expiries = {"": status.get("expires"), **{name: peer.get("expires") for name, peer in status["peers"].items()}}
    lines = []
    for name, ends in expiries.items():
        if ends is not None and ends - time.time() < WARN_DAYS * _DAY:
            whose = "this host's certificate" if name == "" else f"the certificate of {name}"
            days = int((ends - time.time()) // _DAY)
            lines.append(f"{whose} has expired" if days < 0 else f"{whose} expires in {days} days")
    return lines


def write_status(path: Path, status: Mapping[str, Any]) -> str:
    """Replace the file that `manela agent status` reads; on failure the old file stays, which holds its time.

    Returns what went wrong, or an empty text.
    """
    part = path.with_suffix(".part")
    try:
        if part.is_symlink():
            part.unlink()
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(status, file)
        part.replace(path)
    except OSError as error:
        return f"{path}: cannot be written: {error.strerror or error}"
    return ""
