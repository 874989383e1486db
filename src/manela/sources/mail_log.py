"""MailLogSource: imports who writes to whom from the log of Postfix or Exim."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from manela.errors import SourceError
from manela.sources.edges import Edges
from manela.sources.letters import open_letters
from manela.sources.state import ImportState
from manela.sources.tally import DAY, Correspondence, Tally, digest

_PREFIX = 256
"""Bytes at the start of a log that identify it after rotation; shorter logs are read again in full."""
_LONGEST_LINE = 64 * 1024
"""Bytes of the longest line; longer ones are ignored. A larger limit needs more memory."""
_MOST_OPEN = 100_000
"""Most messages whose recipients may still follow; beyond that the oldest is forgotten. More need more memory."""
_OPEN = "open"
_POSTFIX = re.compile(
    rb"(?:[A-Z][a-z]{2} +\d{1,2} [\d:]{8}|\d{4}-\d\d-\d\dT\S+) \S+ postfix[\w./-]*\[\d+\]: ([0-9A-Za-z]+): (.*)"
)
_FROM = re.compile(rb"from=<([^<>]*)>, ")
_TO = re.compile(rb"to=<([^<>]*)>, (?:orig_to=<[^<>]*>, )?")
_LOOP = re.compile(rb"\brelay=(?:localhost|127\.|\[?::1)")
_EXIM = re.compile(
    rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: [+-]\d{4})? (?:\[\d+\] )?([0-9A-Za-z]+-[0-9A-Za-z]+-[0-9A-Za-z]+) "
    rb"(Completed|(?:<=|=>|->) (\S+)(?: <([^<>\s]+)>)?)"
)
_ISO = re.compile(rb"^(\d{4})-(\d\d)-(\d\d)[T ]")
_SYSLOG = re.compile(rb"^([A-Z][a-z]{2}) +(\d{1,2}) \d\d:\d\d:\d\d")
_MONTHS = {name.encode(): number for number, name in enumerate(calendar.month_abbr) if number}


class MailLogSource(Correspondence):
    """Edges between correspondents, from the senders and recipients in a mail server's log.

    A delivery counts once for its sender and its recipient; old deliveries count less. Bounces and addresses
    without a person are left out. Rotated logs are recognised, even if compressed by gzip.

    Parameters
    ----------
    paths : list of paths
        Log files, oldest first.
    domains, half_life, hash_key, today
        As in `Correspondence`.

    Examples
    --------
    >>> MailLogSource([Path("/var/log/mail.log")], ["example.org"]).key
    'mail log of example.org, half-life 180'
    """

    kind = "mail log"
    _lines = 0

    def read(self, state: ImportState) -> Iterator[Edges]:
        """Yield the pairs of correspondents, from lines that were not counted before."""
        tally = self._begin(state)
        self._lines = self._without_sender = 0
        self._is_log = False
        senders = {name: self.addresses.number_name(sender) for name, sender in state.get(_OPEN, {}).items()}
        for path in self._paths:
            self._read_log(path, state, tally, senders)
        if self._lines and not self._is_log:
            raise SourceError(f"{self._paths[0]}: must be a log of Postfix or Exim, but no line is")
        names = self.addresses.names
        state.put(_OPEN, {name: names[sender] for name, sender in senders.items() if sender >= 0})
        yield from tally.finish()

    def describe(self) -> str:
        """Say what was counted and what was left out."""
        return self._describe("deliveries", f"{self._lines:,} lines", {})

    def _read_log(self, path: Path, state: ImportState, tally: Tally, senders: dict[str, int]) -> None:
        """Count the deliveries in a log from where the last import ended."""
        with open_letters(path) as file:
            prefix = file.read(_PREFIX)
            mark = f"log {digest(prefix):x}"
            offset = state.get(mark, 0) if len(prefix) == _PREFIX else 0
            file.seek(offset)
            day, latest = 0, int(path.stat().st_mtime) // DAY + 1
            while line := _read_line(file):
                if not line.endswith(b"\n"):
                    break  # the line is still being written
                offset = file.tell()
                self._lines += 1
                delivery = self._find(line, senders)
                if delivery is not None:
                    sender, recipient = delivery
                    day = _find_day(line, latest) or day or self._today
                    tally.add(digest(line), day, sender, (recipient,))
            state.put(mark, offset)

    def _find(self, line: bytes, senders: dict[str, int]) -> tuple[int, int] | None:
        told = _POSTFIX.match(line)
        if told is not None:
            self._is_log = True
            return self._find_postfix(told[1], told[2], senders)
        told = _EXIM.match(line)
        if told is None:
            return None
        self._is_log = True
        if told[2] == b"Completed":
            senders.pop(told[1].decode(), None)
        elif told[2].startswith(b"<="):
            self._open(told[1], told[3], senders)
        else:
            return self._deliver(told[1], told[4] or told[3], senders)
        return None

    def _find_postfix(self, name: bytes, text: bytes, senders: dict[str, int]) -> tuple[int, int] | None:
        told = _FROM.match(text)
        if told is not None:
            self._open(name, told[1], senders)
            return None
        told = _TO.match(text)
        if told is not None:
            # the bracket quotes the other server, which may say anything
            fields, _, answer = text[told.end() :].partition(b" (")
            is_handed_on = _LOOP.search(fields) is not None and b" queued as " in answer
            if fields.rstrip().endswith(b"status=sent") and not is_handed_on:
                return self._deliver(name, told[1], senders)
        elif text.rstrip() == b"removed":
            senders.pop(name.decode(), None)
        return None

    def _open(self, name: bytes, sender: bytes, senders: dict[str, int]) -> None:
        """Remember the sender of a message until it is delivered; of too many the oldest is forgotten."""
        if len(senders) >= _MOST_OPEN:
            del senders[next(iter(senders))]
        senders[name.decode()] = self._number(sender)

    def _deliver(self, name: bytes, recipient: bytes, senders: dict[str, int]) -> tuple[int, int] | None:
        """Return sender and recipient of a delivery, or None if one is not known or a machine."""
        sender, number = senders.get(name.decode(), -1), self._number(recipient)
        if sender < 0:
            self._without_sender += 1
        return (sender, number) if sender >= 0 and number >= 0 else None

    def _number(self, address: bytes) -> int:
        return self.addresses.number_one(address.decode("utf-8", "replace"))


def _read_line(file: BinaryIO) -> bytes:
    """Return the next line, without its text if it is too long."""
    line = file.readline(_LONGEST_LINE)
    if len(line) < _LONGEST_LINE or line.endswith(b"\n"):
        return line
    while (piece := file.readline(_LONGEST_LINE)) and not piece.endswith(b"\n"):
        pass
    return b"\n" if piece else b"?"


def _find_day(line: bytes, latest: int) -> int:
    """Return the day of a line, in days since 1970; 0 if there is none.

    Syslog does not write the year, so it is taken to be the latest in which the day is not after `latest`.
    """
    match = _ISO.match(line)
    if match is not None:
        return _count_days(int(match[1]), int(match[2]), int(match[3]))
    match = _SYSLOG.match(line)
    if match is None or match[1] not in _MONTHS:
        return 0
    last = datetime.date.fromordinal(datetime.date(1970, 1, 1).toordinal() + latest)
    for year in range(last.year, last.year - 5, -1):
        day = _count_days(year, _MONTHS[match[1]], int(match[2]))
        if 0 < day <= latest:
            return day
    return 0


def _count_days(year: int, month: int, day: int) -> int:
    if not (1970 <= year < 2200 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
        return 0
    return calendar.timegm((year, month, day, 0, 0, 0)) // DAY
