"""Correspondence: what sources of mail share, whatever they read it from."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from manela.errors import ParameterError
from manela.sources.addresses import Addresses
from manela.sources.source import Source
from manela.sources.state import ImportState
from manela.sources.tally import Tally

HALF_LIFE = 180.0
"""Days after which a message counts half by default; with more days, old friends count for more."""
DAY = 86400
"""Seconds of a day."""


class Correspondence(Source):
    """A source whose edges are messages between people, counted once each and less when they are old.

    Parameters
    ----------
    paths : list of paths
    domains : list of str
        The domains whose users are one's own.
    half_life : float
        Days after which a message counts half; with 0, all count the same.
    hash_key : bytes or None
        With a key, users are named by keyed hashes.
    today : int or None
        The day that ages are measured from, in days since 1970; the current day by default.
    """

    adds = True
    kind: str
    """What is read; the key of the source begins with it."""

    def __init__(
        self,
        paths: Sequence[Path],
        domains: Sequence[str],
        *,
        half_life: float = HALF_LIFE,
        hash_key: bytes | None = None,
        today: int | None = None,
    ) -> None:
        if not 0 <= half_life < 1e6:
            raise ParameterError(f"half_life must be 0, for none, or up to a million days, got {half_life}.")
        self._paths = list(paths)
        self._addresses = Addresses(domains, hash_key)
        self._half_life = half_life
        self._today = int(time.time()) // DAY if today is None else today
        self.own_hosts = self._addresses.domains
        hashed = "" if hash_key is None else f", key {hashlib.blake2b(hash_key, digest_size=4).hexdigest()}"
        self._key = f"{self.kind} of {', '.join(sorted(self._addresses.domains))}, half-life {half_life:g}{hashed}"
        self._without_sender = 0
        self._tally: Tally | None = None

    @property
    def key(self) -> str:
        """The domains, how messages fade, and the key that users are hashed with; files may move."""
        return self._key

    def _begin(self, state: ImportState) -> Tally:
        """Start counting messages that were not counted before."""
        self._tally = Tally(self._addresses, state, self._half_life, self._today)
        return self._tally

    def _describe(self, unit: str, place: str, left_out: Mapping[str, int]) -> str:
        """Say how many messages were counted, and how many were left out for which reason."""
        if self._tally is None:
            return "nothing was read yet"
        reasons = {
            "counted before": self._tally.repeated,
            **left_out,
            "without a person as sender": self._without_sender,
        }
        counts = ", ".join(f"{number:,} {reason}" for reason, number in reasons.items() if number)
        return f"{self._tally.messages:,} {unit} in {place}" + (f"; left out: {counts}" if counts else "")
