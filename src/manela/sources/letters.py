"""Reads the headers of mail messages from mbox files and Maildir folders."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from manela.errors import SourceError

_BLOCK = 1 << 20
"""Bytes of an mbox to read at once; more take more memory."""
_FIRST_BLOCK = 8192
"""Bytes of a Maildir message to read at once; more read parts of the body, which is not needed."""
_LONGEST_HEADER = 256 * 1024
"""Most bytes of a message's header; a message with a longer one is skipped."""
_BEGIN = b"From "


class Letter(NamedTuple):
    """The header of a mail message, and in an mbox the `From ` line before it, which may hold a date."""

    header: bytes
    envelope: bytes = b""


@contextmanager
def open_letters(path: Path) -> Iterator[BinaryIO]:
    """Open a file, decompressed if it is gzip; errors while reading in the block become SourceError."""
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if not is_packed:
                yield file
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path}: cannot be read: {reason}") from error


def is_mbox(start: bytes) -> bool:
    """Return whether a file that starts with these bytes is an mbox."""
    return start.startswith(_BEGIN) and b":" in start.partition(b"\n")[2].partition(b"\n")[0]


class Mbox:
    r"""The messages of an mbox, from the current position of the file, where a message must start.

    A message starts with a line `From …`, which follows an empty line or starts the file, and is followed by a header.
    A message whose header is incomplete at the end of the file is still being written; it is left for the next time,
    which should start at the byte `end`.

    Examples
    --------
    >>> import io
    >>> text = b"From a Mon\nFrom: a@x\n\nFrom here it is body\n\nFrom b Tue\nFrom: b@x\nTo: a@x\n\nhello\n"
    >>> [letter.header for letter in Mbox(io.BytesIO(text))]
    [b'From: a@x', b'From: b@x\nTo: a@x']
    """

    def __init__(self, file: BinaryIO, block: int = _BLOCK) -> None:
        self.end = file.tell()
        self._file, self._block = file, block
        self._buffer, self._place, self._is_end = b"", 0, False

    def __iter__(self) -> Iterator[Letter]:
        while True:
            # a message starts at this position
            self.end = self._file.tell() - len(self._buffer) + self._place
            while (end := _find_end(self._buffer, self._place)) < 0:
                if self._is_end or len(self._buffer) - self._place >= _LONGEST_HEADER:
                    break
                self._read_more()
            if end < 0 and self._is_end:
                return
            if end >= 0:
                envelope, _, header = self._buffer[self._place : end].partition(b"\n")
                if header and len(header) <= _LONGEST_HEADER:
                    yield Letter(header, envelope)
            self._place = max(end, self._place + 1)
            while (begin := _find_begin(self._buffer, self._place)) < 0:
                if self._is_end:
                    self.end = self._file.tell()
                    return
                self._place = max(self._place, len(self._buffer) - _LOOK_BACK)
                self._read_more()
            self._place = begin

    def _read_more(self) -> None:
        """Drop the used part of the buffer, and append the next block."""
        block = self._file.read(self._block)
        self._buffer, self._place, self._is_end = self._buffer[self._place :] + block, 0, not block


_LOOK_BACK = 4096
"""Bytes kept while searching for the start of a message, so that one across two blocks is found; more search longer."""


def _find_end(buffer: bytes, position: int) -> int:
    """Return where the header of the message at this position ends, −1 if the end is not in the buffer yet."""
    first = buffer.find(b"\n", position)
    # searching for both kinds of line ends would scan the whole buffer for the kind that is not used
    blank = b"\n\r\n" if first > 0 and buffer[first - 1 : first] == b"\r" else b"\n\n"
    return buffer.find(blank, max(first, position))


def _find_begin(buffer: bytes, position: int) -> int:
    """Return where the next message starts, −1 if there is none in the buffer or its first lines are incomplete."""
    while (line_end := buffer.find(b"\nFrom ", position)) >= 0:
        follows_empty_line = (
            buffer[max(line_end - 1, 0) : line_end] == b"\n" or buffer[max(line_end - 2, 0) : line_end] == b"\n\r"
        )
        if follows_empty_line:
            first = buffer.find(b"\n", line_end + 1)
            second = buffer.find(b"\n", first + 1) if first >= 0 else -1
            if second < 0:
                return line_end + 1 if first >= 0 and b":" in buffer[first:] else -1
            name, colon, _ = buffer[first + 1 : second].partition(b":")
            if colon and name and b" " not in name:
                return line_end + 1
        position = line_end + 1
    return -1


def find_mailboxes(path: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the mailboxes at a path and below it, each with whether it is a Maildir."""
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder")
    if path.is_dir():
        if is_maildir(path):
            yield path, True
        for inner in sorted(path.iterdir()):
            if not inner.is_symlink() and (inner.is_file() or (inner.is_dir() and inner.name not in _PARTS)):
                yield from find_mailboxes(inner)
    elif path.is_file():
        yield path, False
    else:
        raise SourceError(f"{path}: must be a file or a folder")


_PARTS = ("cur", "new", "tmp")


def is_maildir(folder: Path) -> bool:
    """Return whether a folder is a Maildir."""
    return all((folder / name).is_dir() for name in ("cur", "new"))


def list_maildir(folder: Path, since: float) -> Iterator[Path]:
    """Yield the messages of a Maildir that arrived, or were moved, after a time."""
    for name in ("cur", "new"):
        for path in (folder / name).iterdir():
            try:
                status = path.lstat()
            except OSError:  # the message was moved meanwhile
                continue
            if path.is_file() and not path.is_symlink() and status.st_ctime >= since:
                yield path


def read_header(path: Path) -> Letter | None:
    """Return the header of a message in a separate file; None if the file is gone or holds no message."""
    start = b""
    try:
        with path.open("rb") as file:
            while (end := _find_end(start, 0)) < 0 and len(start) < _LONGEST_HEADER:
                block = file.read(_FIRST_BLOCK)
                start += block
                if not block:
                    break
    except OSError:
        return None
    header = start[:end] if end >= 0 else start
    return Letter(header) if b":" in header and len(header) < _LONGEST_HEADER else None
