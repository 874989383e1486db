"""Frames: cuts a message into pieces of bounded size, and joins them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from manela.errors import MalformedError, OutOfOrderError, TooLargeError, import_extra
from manela.hosts.wire import host_pb2 as wire

_PROTOBUF: Any = import_extra("google.protobuf.message", "agents", "a host")

PIECE = 1 << 20
"""Most bytes of a frame's content; larger frames hold up other calls on the same connection."""
LARGEST = 1 << 28
"""Most bytes of a message; more would let a peer take more memory."""
_CONTENT = bytes([wire.Frame.CONTENT_FIELD_NUMBER << 3 | 2])


def cut(content: bytes, call: int) -> Iterator[bytes]:
    """Yield a message as frames of bounded size."""
    last = max(0, (len(content) - 1) // PIECE)
    for number in range(last + 1):
        # the encoding of a Frame, without the copies of the content that protobuf would make
        piece = memoryview(content)[number * PIECE : (number + 1) * PIECE]
        header = wire.Frame(call=call, number=number, last=number == last).SerializeToString()
        yield b"".join((header, _CONTENT, _varint(len(piece)), piece))


class Joiner:
    """Joins the frames of a message as they arrive."""

    def __init__(self, call: int | None = None, largest: int = LARGEST) -> None:
        self.call, self.done = call, False
        self._pieces: list[bytes] = []
        self._size, self._largest = 0, largest

    def add(self, content: bytes) -> None:
        """Add a frame; refuse one that is not the next of this call."""
        frame = wire.Frame()
        try:
            frame.ParseFromString(content)
        except _PROTOBUF.DecodeError as error:
            raise MalformedError("not a Frame of this protocol") from error
        if self.call is None:
            self.call = frame.call
        if self.done or frame.call != self.call or frame.number != len(self._pieces):
            raise OutOfOrderError(
                f"frame {len(self._pieces)} of call {self.call} is due, got frame {frame.number} of call {frame.call}"
            )
        self._size += len(frame.content)
        if self._size > self._largest or len(frame.content) > PIECE:
            raise TooLargeError(f"a message may have {self._largest:,} bytes in frames of {PIECE:,}")
        self._pieces.append(frame.content)
        self.done = frame.last

    @property
    def content(self) -> bytes:
        """The complete message."""
        if not self.done:
            raise MalformedError("the message ends before its last frame")
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


def join(frames: Iterable[bytes]) -> bytes:
    """Return the message that these frames make up."""
    joiner = Joiner()
    for frame in frames:
        joiner.add(frame)
    return joiner.content


def _varint(number: int) -> bytes:
    """Return a number as Protocol Buffers write it: seven bits a byte, the lowest first."""
    packed = bytearray()
    while number > 127:
        packed.append(number & 127 | 128)
        number >>= 7
    return bytes([*packed, number])
