"""MailSource: imports who writes to whom from the headers of mbox files and Maildir folders."""

from __future__ import annotations

import calendar
import os
import re
import time
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import BinaryIO

from manela.errors import ParameterError, SourceError
from manela.sources.addresses import split_addresses
from manela.sources.edges import Edges
from manela.sources.letters import Letter, Mbox, find_mailboxes, is_mbox, list_maildir, open_letters, read_header
from manela.sources.state import ImportState
from manela.sources.tally import DAY, HALF_LIFE, Correspondence, Tally, digest

MOST_RECIPIENTS = 50
"""Most recipients of a message; one with more is taken for an announcement and ignored. Larger counts more of them."""
_PREFIX = 1024
"""Bytes before an offset whose digest shows whether the file was rewritten; more are surer and slower to read."""
_SLACK = 3600.0
"""Seconds before the last import from which a Maildir's files are read again; more rereads more files."""
_FIELDS = re.compile(
    rb"^(from|sender|to|cc|bcc|date|message-id|list-id|list-post|list-unsubscribe|precedence|auto-submitted)"
    rb"[ \t]*:((?:[^\n]*)(?:\n[ \t][^\n]*)*)",
    re.IGNORECASE | re.MULTILINE,
)
_DATE = re.compile(rb"(\d{1,2})[ -](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ -](\d{4})", re.IGNORECASE)
_LONGEST_DATE = 200
_MONTHS = {name.encode(): number for number, name in enumerate(
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
)}  # fmt: skip


class MailSource(Correspondence):
    """Edges between correspondents: a person in one's own domains, and people they wrote to or heard from.

    A message counts once for its sender and each recipient, however many mailboxes hold it; old messages count less.
    Mailing lists, automatic mail and addresses without a person are left out.

    Parameters
    ----------
    paths : list of paths
        mbox files, Maildir folders, or folders that contain them.
    domains, half_life, hash_key, today
        As in `Correspondence`.
    most_recipients : int
        A message with more recipients is left out.

    Examples
    --------
    >>> MailSource([Path("/var/vmail")], ["example.org"]).key
    'mail of example.org, half-life 180'
    """

    kind = "mail"

    def __init__(
        self,
        paths: Sequence[Path],
        domains: Sequence[str],
        *,
        half_life: float = HALF_LIFE,
        most_recipients: int = MOST_RECIPIENTS,
        hash_key: bytes | None = None,
        today: int | None = None,
    ) -> None:
        super().__init__(paths, domains, half_life=half_life, hash_key=hash_key, today=today)
        if most_recipients < 1:
            raise ParameterError.of("most_recipients", "must be at least 1", most_recipients)
        self._most_recipients = most_recipients
        self._lists = self._crowds = self._boxes = 0

    def read(self, state: ImportState) -> Iterator[Edges]:
        """Yield the pairs of correspondents, from messages that were not counted before."""
        tally, began = self._begin(state), time.time()
        self._lists = self._crowds = self._boxes = self._without_sender = 0
        for path in self._paths:
            for box, is_maildir in find_mailboxes(path):
                self._boxes += 1
                if is_maildir:
                    self._read_maildir(box, state, tally, began)
                elif not self._read_mbox(box, state, tally):
                    self._boxes -= 1
        if not self._boxes:
            raise SourceError(f"{self._paths[0]}: must hold an mbox or a Maildir, but has neither")
        yield from tally.finish()

    def describe(self) -> str:
        """Say what was counted and what was left out."""
        boxes = "1 mailbox" if self._boxes == 1 else f"{self._boxes:,} mailboxes"
        left_out = {"of lists or automatic": self._lists, f"to more than {self._most_recipients}": self._crowds}
        return self._describe("messages", boxes, left_out)

    def _read_maildir(self, folder: Path, state: ImportState, tally: Tally, began: float) -> None:
        """Count the messages of a folder that have come since the last import."""
        mark = f"maildir {digest(os.fsencode(folder.resolve())):x}"
        since = state.get(mark, 0.0)
        for path in list_maildir(folder, since - _SLACK if since <= began else 0.0):
            letter = read_header(path)
            if letter is not None:
                self._count(letter, tally)
        state.put(mark, began)

    def _read_mbox(self, path: Path, state: ImportState, tally: Tally) -> bool:
        """Count the messages of an mbox after those read before; return False if the file is not an mbox."""
        with open_letters(path) as file:
            start = file.read(_PREFIX)
            if not start.strip():
                return True
            if not is_mbox(start):
                return False
            mark = f"mbox {digest(os.fsencode(path.resolve())):x}"
            read, before = state.get(mark, (0, 0))
            if read and _digest_before(file, read) != before:
                read = 0  # it was rewritten; digests tell which messages were counted
            file.seek(read)
            letters = Mbox(file)
            for letter in letters:
                self._count(letter, tally)
            state.put(mark, (letters.end, _digest_before(file, letters.end)))
        return True

    def _count(self, letter: Letter, tally: Tally) -> None:
        """Count a message, unless it comes from a list or a machine, or has no sender."""
        fields: dict[bytes, bytes] = {}
        written: list[bytes] = []
        for name, value in _FIELDS.findall(letter.header):
            field = name.lower()
            if field in (b"to", b"cc", b"bcc"):
                written.append(value)
            else:
                fields.setdefault(field, value)
        if _is_automatic(fields):
            self._lists += 1
            return
        sender = self.addresses.number(_as_text(fields.get(b"from") or fields.get(b"sender") or b""))
        if not sender:
            self._without_sender += 1
            return
        if self._is_crowd(written):
            self._crowds += 1
            return
        recipients = {number for value in written for number in self.addresses.number(_as_text(value))}
        message = digest(fields[b"message-id"].strip() if fields.get(b"message-id", b"").strip() else letter.header)
        day = _find_day(fields.get(b"date", b"")) or _find_day(letter.envelope) or self._today
        tally.add(message, day, sender[0], tuple(recipients))

    def _is_crowd(self, recipients: list[bytes]) -> bool:
        """Return whether there are too many recipients, before any is stored; an @ may also be part of a name."""
        if sum(value.count(b"@") for value in recipients) <= self._most_recipients:
            return False
        return sum(len(split_addresses(_as_text(value))) for value in recipients) > self._most_recipients


def _digest_before(file: BinaryIO, offset: int) -> int:
    """Return a digest of the bytes before an offset; 0 if the file is shorter."""
    file.seek(max(0, offset - _PREFIX))
    before = file.read(min(offset, _PREFIX))
    return digest(before) if len(before) == min(offset, _PREFIX) else 0


def _is_automatic(fields: dict[bytes, bytes]) -> bool:
    if b"list-id" in fields or b"list-post" in fields or b"list-unsubscribe" in fields:
        return True
    if fields.get(b"precedence", b"").strip().lower() in (b"bulk", b"list", b"junk"):
        return True
    return fields.get(b"auto-submitted", b"no").strip().lower() != b"no"


def _as_text(value: bytes) -> str:
    return value.decode("utf-8", "replace").replace("\r", "").replace("\n", " ").strip()


def _find_day(text: bytes, kept: dict[bytes, int] = {}) -> int:  # noqa: B006 - a cache across calls
    match = _DATE.search(text, 0, _LONGEST_DATE)
    if match is None:
        return _parse_day(text[:_LONGEST_DATE])
    written = match[0]
    if written not in kept:
        if len(kept) > 50_000:
            kept.clear()
        day, month, year = int(match[1]), _MONTHS[match[2].lower()], int(match[3])
        is_date = 1970 <= year < 2200 and 1 <= day <= calendar.monthrange(year, month)[1]
        kept[written] = calendar.timegm((year, month, day, 0, 0, 0)) // DAY if is_date else 0
    return kept[written]


_ENVELOPE_DATE = re.compile(rb"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) +(\d{1,2}) .* (\d{4})", re.IGNORECASE)


def _parse_day(text: bytes) -> int:
    """Return the day of a date in another format, such as that of an mbox's envelope line; 0 if there is none."""
    match = _ENVELOPE_DATE.search(text)
    if match is not None:
        return _find_day(b"%s %s %s" % (match[2], match[1], match[3]))
    if not text.strip():
        return 0
    try:
        return max(0, int(parsedate_to_datetime(text.decode("ascii", "replace").strip()).timestamp()) // DAY)
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0
