"""Account: keeps in the store what the host has disclosed, so that no crash makes it forget."""

from __future__ import annotations

import json
import math
import time
from typing import Any

from manela.hosts.folder.store import Store
from manela.hosts.state.noise import Ledger, Noise, find_epsilon
from manela.hosts.state.terms import PeerOptions

_NAME = "account"
"""Key in the store."""
_DAY = 86_400.0


class Account:
    """The account of a host, which outlives its daemon.

    Before the host learns, the whole budget is written as spent; when it has learned or is stopped, what it did cost. A
    daemon that is killed in between has spent all of it.
    """

    def __init__(self, store: Store, options: PeerOptions) -> None:
        self._store, self._options = store, options

    def load(self, ledger: Ledger) -> None:
        """Continue with what an earlier daemon has written, and begin a new period if it is time."""
        kept: dict[str, Any] = json.loads(self._store.get(_NAME) or "{}")
        ledger.period, ledger.spent = int(kept.get("period", 0)), float(kept.get("spent", 0.0))
        ledger.by_peer = {str(peer): float(spent) for peer, spent in kept.get("peers", {}).items()}
        self.turn(ledger)

    def turn(self, ledger: Ledger) -> None:
        """Begin a new period if it is time."""
        ledger.turn(int(time.time() / _DAY), self._options.period)

    def reserve(self, noise: Noise) -> None:
        """Write that the host has spent all that it may spend before the next time."""
        ledger = noise.ledger
        self._write(ledger, max(0.0, ledger.limit - ledger.spent) if math.isfinite(ledger.limit) else 0.0)

    def keep(self, noise: Noise) -> None:
        """Write what the host has spent."""
        self._write(noise.ledger, 0.0)

    def describe(self, noise: Noise) -> dict[str, Any]:
        """Return ε as it is bounded and as it is spent, for a status; None stands for no bound."""
        options, ledger = self._options, noise.ledger
        return {
            "limit": options.epsilon or None,
            "delta": options.delta,
            "days": options.period,
            "spent": self._find(ledger.spent),
            "peers": {peer: self._find(spent) for peer, spent in ledger.by_peer.items()},
        }

    def _find(self, spent: float) -> float | None:
        epsilon = find_epsilon(math.sqrt(spent), self._options.delta)
        return round(epsilon, 3) if math.isfinite(epsilon) else None

    def _write(self, ledger: Ledger, ahead: float) -> None:
        if not math.isfinite(ledger.spent):
            return
        peers = {peer: spent + ahead for peer, spent in ledger.by_peer.items()}
        self._store.put(_NAME, json.dumps({"period": ledger.period, "spent": ledger.spent + ahead, "peers": peers}))
