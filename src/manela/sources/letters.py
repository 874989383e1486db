"""The headers of letters, in mbox files and in Maildir folders; bodies are skipped as they are read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from manela.errors import SourceError

_BLOCK = 1 << 20
"""Bytes that are read at once."""
_FIRST_BLOCK = 8192
"""Bytes that are read at once of a letter in a file of its own, of which the header alone matters."""
_LONGEST_HEADER = 256 * 1024
"""Bytes of a letter's header; what is longer is no letter, and is skipped."""
_BEGIN = b"From "


class Letter(NamedTuple):
    """The header of a letter, and the line before it in an mbox file, which may hold a date."""

    header: bytes
    envelope: bytes = b""


@contextmanager
def open_letters(path: Path) -> Iterator[BinaryIO]:
    """A file to read, unpacked if it is packed by gzip; if it cannot be read in the block, that is a SourceError."""
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
    """Whether a file that begins like this is an mbox."""
    return start.startswith(_BEGIN) and b":" in start.partition(b"\n")[2].partition(b"\n")[0]


class Mbox:
    r"""The letters of an mbox, from where the file stands, which must be the begin of one.

    A letter begins with a line `From …` behind an empty line, or at the begin, with a header behind it. One whose
    header is not whole at the end of the file is still being written, and is left for the next time.

    Attributes
    ----------
    end : int
        Where the next reading should begin, in bytes from the begin of the file.

    Examples
    --------
    >>> import io
    >>> text = b"From a Mon\nFrom: a@x\n\nFrom here it is body\n\nFrom b Tue\nFrom: b@x\nTo: a@x\n\nhello\n"
    >>> [letter.header for letter in Mbox(io.BytesIO(text))]
    [b'From: a@x', b'From: b@x\nTo: a@x']
    """

    def __init__(self, file: BinaryIO) -> None:
        self.end = file.tell()
        self._file = file
        self._buffer, self._place, self._is_end = b"", 0, False

    def __iter__(self) -> Iterator[Letter]:
        while True:
            # here a letter begins
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
        """Forget what was used, and read on."""
        block = self._file.read(_BLOCK)
        self._buffer, self._place, self._is_end = self._buffer[self._place :] + block, 0, not block


_LOOK_BACK = 4096
"""Bytes that stay while a letter's begin is looked for, so that one that lies across two blocks is found."""


def _find_end(buffer: bytes, place: int) -> int:
    """Where the header of the letter that begins here ends, −1 if that is not in the buffer yet."""
    first = buffer.find(b"\n", place)
    # a look for both kinds of line ends would search all of the buffer for the kind that is not there
    blank = b"\n\r\n" if first > 0 and buffer[first - 1 : first] == b"\r" else b"\n\n"
    return buffer.find(blank, max(first, place))


def _find_begin(buffer: bytes, place: int) -> int:
    """Where the next letter begins, −1 if there is none in the buffer, or its first lines are not all there yet."""
    while (found := buffer.find(b"\nFrom ", place)) >= 0:
        is_behind_empty_line = (
            buffer[max(found - 1, 0) : found] == b"\n" or buffer[max(found - 2, 0) : found] == b"\n\r"
        )
        if is_behind_empty_line:
            first = buffer.find(b"\n", found + 1)
            second = buffer.find(b"\n", first + 1) if first >= 0 else -1
            if second < 0:
                return found + 1 if first >= 0 and b":" in buffer[first:] else -1
            name, colon, _ = buffer[first + 1 : second].partition(b":")
            if colon and name and b" " not in name:
                return found + 1
        place = found + 1
    return -1


def find_mailboxes(path: Path) -> Iterator[tuple[Path, bool]]:
    """The mailboxes in a place, and whether each is a Maildir: the place itself, or all in it and below."""
    if not path.exists():
        raise SourceError(f"{path}: is not there")
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
    """Whether a folder is a Maildir."""
    return all((folder / name).is_dir() for name in ("cur", "new"))


def list_maildir(folder: Path, since: float) -> Iterator[Path]:
    """The letters of a Maildir that came, or were moved, after a time."""
    for name in ("cur", "new"):
        for path in (folder / name).iterdir():
            try:
                found = path.lstat()
            except OSError:  # it was moved just now
                continue
            if path.is_file() and not path.is_symlink() and found.st_ctime >= since:
                yield path


def read_header(path: Path) -> Letter | None:
    """The header of a letter in a file of its own; None if it is gone, or none."""
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
