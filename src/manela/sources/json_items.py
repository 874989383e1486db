"""Reads the items of a long JSON list one at a time, so that memory does not grow with the list."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

from manela.errors import SourceError

_BLOCK = 1 << 20
_MOST_LETTERS = 1 << 22
"""Most characters of an item, and of the text before the list; more take more memory."""
_SPACE = re.compile(r"\s*")
_GAP = re.compile(r"[\s,]*")


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""


def read_items(file: Readable, name: str, label: str) -> Iterator[Any]:
    """Yield the items of the list under the key `name` of a JSON object; `label` names the file in errors.

    Examples
    --------
    >>> import io
    >>> list(read_items(io.BytesIO(b'{"total": 2, "items": [1, {"a": 2}]}'), "items", "a file"))
    [1, {'a': 2}]
    """
    decoder, text, at = json.JSONDecoder(), _Text(file, label), 0
    list_start = re.compile(rf'"{re.escape(name)}"\s*:\s*\[')
    while (match := list_start.search(text.content)) is None:
        if not text.read_more(0):
            raise SourceError(f"{label}: must be JSON with a list {name!r}, and has none")
    at = match.end()
    while True:
        at = _GAP.match(text.content, at).end()  # type: ignore[union-attr]
        if at < len(text.content) and text.content[at] == "]":
            return
        try:
            item, end = decoder.raw_decode(text.content, at)
        except (ValueError, RecursionError) as error:
            if isinstance(error, RecursionError) or not text.read_more(at):
                raise SourceError(f"{label}: is not JSON, or ends too early: {error}") from None
            at = 0
            continue
        after = _SPACE.match(text.content, end).end()  # type: ignore[union-attr]
        if text.content[after : after + 1] not in (",", "]"):  # a number may continue in the next block
            if not text.read_more(at):
                raise SourceError(f"{label}: is not JSON, or ends too early: an item must end with , or ]")
            at = 0
            continue
        yield item
        at = end


class _Text:
    """The text that was read and not yet parsed."""

    def __init__(self, file: Readable, label: str) -> None:
        self.content = ""
        self._file, self._label = file, label
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode

    def read_more(self, used: int) -> bool:
        """Drop the first `used` characters and append the next block; return whether there was one."""
        if len(self.content) - used > _MOST_LETTERS:
            raise SourceError(f"{self._label}: an item must have at most {_MOST_LETTERS:,} characters, got more")
        block = self._file.read(_BLOCK)
        if not block:
            return False
        self.content = self.content[used:] + self._decode(block)
        return True
