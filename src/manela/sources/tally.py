"""Tally: counts the messages between pairs of addresses, each message once and older ones for less.

Correspondence is the base class of sources of mail.
"""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError, SourceError
from manela.sources.addresses import Addresses
from manela.sources.edges import BATCH, Edges
from manela.sources.source import Source
from manela.sources.state import ImportState

_MOST_WAITING = 500_000
"""Pairs and messages that are counted at once; more take more memory, fewer are slower."""
_BITS = 32
_DAY = "day"
_LONGEST_PAUSE = 2000
"""Most days between two imports; a clock that is wrong by more would make all weights vanish."""


def digest(text: bytes) -> int:
    """Return a 64-bit hash of a text."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class Tally:
    """Counts messages between pairs of addresses, at least one of which is an own address.

    A message counts half after `half_life` days, or as much as others if it is 0. `today` is in days since 1970.
    `messages` is how many messages were counted, `repeated` how many were skipped as they had been counted before.
    `most_waiting` pairs and messages are held in memory before they are added to the sums. If it is `directed`, pairs
    with an address elsewhere lead from the sender, so that there are two of a pair that wrote both ways.
    """

    def __init__(
        self,
        addresses: Addresses,
        state: ImportState,
        half_life: float,
        today: int,
        most_waiting: int = _MOST_WAITING,
        directed: bool = False,
    ) -> None:
        self.messages = self.repeated = 0
        self._directed = directed
        self._addresses, self._state, self._half_life = addresses, state, half_life
        self._most_waiting = most_waiting
        self._today = max(today, state.get(_DAY, today))  # a clock that went back must not increase weights
        if self._today - state.get(_DAY, self._today) > _LONGEST_PAUSE:
            raise SourceError(
                f"the clock is {self._today - state.get(_DAY):,} days ahead of the last import; if it is right, begin "
                "with a new state"
            )
        self._seen = state.read_seen()
        self._keys: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._weights: npt.NDArray[np.float64] = np.empty(0)
        self._clear()

    def _clear(self) -> None:
        self._digests, self._days, self._sizes, self._waiting = array("Q"), array("l"), array("l"), array("q")

    def add(self, message: int, day: int, sender: int, recipients: tuple[int, ...]) -> None:
        """Add a message by its digest, day, and the numbers of its addresses."""
        addresses, first = self._addresses, len(self._waiting)
        sender_is_own = addresses.is_own(sender)
        for recipient in recipients:
            if recipient == sender:
                continue
            recipient_is_own = addresses.is_own(recipient)
            is_from_elsewhere = self._directed and recipient_is_own and not sender_is_own
            if is_from_elsewhere or (sender_is_own and (not recipient_is_own or sender < recipient)):
                self._waiting.append(sender << _BITS | recipient)
            elif recipient_is_own:
                self._waiting.append(recipient << _BITS | sender)
        self._digests.append(message)
        self._days.append(day)
        self._sizes.append(len(self._waiting) - first)
        if len(self._waiting) + len(self._digests) >= self._most_waiting:
            self._count()

    def _count(self) -> None:
        digests = np.frombuffer(self._digests, dtype=np.uint64)
        unique, first = np.unique(digests, return_index=True)
        is_new = np.isin(unique, self._seen, assume_unique=True, invert=True)
        counts = np.zeros(len(digests), dtype=bool)
        counts[first[is_new]] = True
        self.messages += int(counts.sum())
        self.repeated += int(len(counts) - counts.sum())
        self._seen = np.union1d(self._seen, unique[is_new])
        ages = np.maximum(self._today - np.frombuffer(self._days, dtype=np.int64), 0)
        faded = np.exp2(-ages / self._half_life) if self._half_life else np.ones(len(ages))
        weights = np.repeat(np.where(counts, faded, 0.0), np.frombuffer(self._sizes, dtype=np.int64))
        keys = np.concatenate((self._keys, np.frombuffer(self._waiting, dtype=np.int64)))
        self._keys, codes = np.unique(keys, return_inverse=True)
        sums: npt.NDArray[Any] = np.bincount(
            codes, weights=np.concatenate((self._weights, weights)), minlength=len(self._keys)
        )
        self._weights = sums
        self._clear()

    def finish(self) -> Iterator[Edges]:
        """Yield the weight of each pair, after recording in the state what was counted."""
        self._count()
        before = self._state.get(_DAY)
        if before is not None and self._half_life and before < self._today:
            self._state.fade(2.0 ** (-(self._today - before) / self._half_life))
        self._state.put(_DAY, self._today)
        self._state.keep_seen(self._seen)
        kept = np.flatnonzero(self._weights > 0)
        for start in range(0, len(kept), BATCH):
            rows = kept[start : start + BATCH]
            pairs = [self._name_pair(key >> _BITS, key & (1 << _BITS) - 1) for key in self._keys[rows].tolist()]
            own, other = zip(*pairs, strict=True)
            yield Edges(own, other, self._weights[rows])

    def _name_pair(self, own: int, other: int) -> tuple[str, str]:
        """Return the names of two addresses; two own addresses are sorted."""
        names = self._addresses.names[own], self._addresses.names[other]
        are_own = self._addresses.is_own(own) and self._addresses.is_own(other)
        return (names[1], names[0]) if are_own and names[1] < names[0] else names


HALF_LIFE = 180.0
"""Days after which a message counts half by default; with more days, old friends count for more."""
DAY = 86400
"""Seconds of a day."""


class Correspondence(Source):
    """A source whose edges are messages between people, counted once each and less when they are old.

    Users of `domains` are one's own. A message counts half after `half_life` days; with 0, all count the same. With a
    `hash_key`, users are named by keyed hashes. Ages are measured from `today`, in days since 1970.
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
            raise ParameterError.of("half_life", "must be a number of days from 0, for none, to a million", half_life)
        self._paths = list(paths)
        self.addresses = Addresses(domains, hash_key)
        self._half_life = half_life
        self._today = int(time.time()) // DAY if today is None else today
        self.own_hosts = self.addresses.domains
        hashed = "" if hash_key is None else f", key {hashlib.blake2b(hash_key, digest_size=4).hexdigest()}"
        self._key = f"{self.kind} of {', '.join(sorted(self.addresses.domains))}, half-life {half_life:g}{hashed}"
        self._without_sender = 0
        self._tally: Tally | None = None

    @property
    def key(self) -> str:
        """The domains, how messages fade, and the key that users are hashed with; files may move."""
        return self._key

    def keep_directions(self) -> None:
        """Have edges with people elsewhere lead from the one who wrote."""
        self.directed = True

    def _begin(self, state: ImportState) -> Tally:
        self._tally = Tally(self.addresses, state, self._half_life, self._today, directed=self.directed)
        return self._tally

    def _describe(self, unit: str, where: str, left_out: Mapping[str, int]) -> str:
        if self._tally is None:
            return "nothing was read yet"
        reasons = {
            "counted before": self._tally.repeated,
            **left_out,
            "without a person as sender": self._without_sender,
        }
        counts = ", ".join(f"{number:,} {reason}" for reason, number in reasons.items() if number)
        return f"{self._tally.messages:,} {unit} in {where}" + (f"; left out: {counts}" if counts else "")
