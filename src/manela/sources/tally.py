"""Tally: how often pairs wrote to each other, each message once, older ones counting less."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import SourceError
from manela.sources.addresses import Addresses
from manela.sources.state import ImportState
from manela.sources.ties import BATCH, Ties

_MOST_WAITING = 500_000
"""Pairs that are counted at once; more of them need more memory, and fewer are slower."""
_BITS = 32
_DAY = "day"
_LONGEST_PAUSE = 2000
"""Days between two imports; a clock that is wrong by more would make all weights vanish."""


def digest(text: bytes) -> int:
    """A number by which a text is known again."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class Tally:
    """Counts pairs of addresses, of which one at least is an own one.

    Parameters
    ----------
    addresses : Addresses
    state : ImportState
        Which messages were counted before, and when.
    half_life : float
        Days after which a message counts half; 0 if all count alike.
    today : int
        The day from which ages are counted, since 1970.

    Attributes
    ----------
    messages, repeated : int
        Messages that were counted, and that had been counted before.
    """

    def __init__(self, addresses: Addresses, state: ImportState, half_life: float, today: int) -> None:
        self.messages = self.repeated = 0
        self._addresses, self._state, self._half_life = addresses, state, half_life
        self._today = max(today, state.get(_DAY, today))  # a clock that went back makes nothing heavier
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
        """Count a message, by the numbers of addresses; `message` is the digest by which it is known."""
        addresses, before = self._addresses, len(self._waiting)
        sender_is_own = addresses.is_own(sender)
        for recipient in recipients:
            if recipient == sender:
                continue
            recipient_is_own = addresses.is_own(recipient)
            if sender_is_own and (not recipient_is_own or sender < recipient):
                self._waiting.append(sender << _BITS | recipient)
            elif recipient_is_own:
                self._waiting.append(recipient << _BITS | sender)
        self._digests.append(message)
        self._days.append(day)
        self._sizes.append(len(self._waiting) - before)
        if len(self._waiting) + len(self._digests) >= _MOST_WAITING:
            self._count()

    def _count(self) -> None:
        """Take what waits into the sums."""
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
        self._keys, places = np.unique(keys, return_inverse=True)
        sums: npt.NDArray[Any] = np.bincount(
            places, weights=np.concatenate((self._weights, weights)), minlength=len(self._keys)
        )
        self._weights = sums
        self._clear()

    def finish(self) -> Iterator[Ties]:
        """What was counted, each pair once; the state keeps that it was."""
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
            yield Ties(own, other, self._weights[rows])

    def _name_pair(self, one: int, other: int) -> tuple[str, str]:
        """The names of two addresses, an own one first; of two own ones that which comes first in the alphabet."""
        names = self._addresses.names[one], self._addresses.names[other]
        return (names[1], names[0]) if self._addresses.is_own(other) and names[1] < names[0] else names
