"""Messages as bytes, and bytes as messages: whatever is not a message of ours is refused here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, EncodeError

from manela.agents import host_pb2 as wire
from manela.agents.messages import (
    NOTHING,
    OWN,
    Acceptance,
    Hello,
    Integers,
    Introduction,
    Reason,
    Reply,
    Request,
    Rows,
)  # fmt: skip
from manela.errors import RefusedError
from manela.kernels.half import from_half, to_half

PIECE = 1 << 20
"""Bytes of a frame's content."""
LARGEST = 1 << 28
"""Bytes of a message."""
MOST_EDGES = 1 << 22
MOST_NODES = 1 << 31
MOST_ASKED = 1 << 22
"""Walks and random vectors of one request."""
MOST_STRENGTHS = 64


def encode(message: Hello | Introduction | Acceptance | Request | Reply, half: bool = False) -> bytes:
    """A message as bytes; the vectors of a reply as float16 if `half`."""
    found: Any
    if isinstance(message, Hello):
        found = wire.Hello(
            protocol=message.protocol, host=message.host, dimensions=message.dimensions, hops=message.hops,
            context=message.context, lock_step=message.lock_step, half=message.half, nodes=message.nodes,
            strengths=message.strengths, run=message.run, numbers=_pack(message.numbers, "<u4"),
        )  # fmt: skip
    elif isinstance(message, Introduction):
        found = wire.Introduction(askers=message.askers, others=message.others)
    elif isinstance(message, Acceptance):
        found = wire.Acceptance(session=message.session, accepted=_pack(message.accepted, "u1"))
    elif isinstance(message, Request):
        found = wire.Request(
            session=message.session, round=message.round, neighbours=message.neighbours, since=message.since,
            edges=_pack(message.edges, "<u4"), steps=_pack(message.steps, "u1"), random=message.random,
            firsts=_pack(message.firsts, "u1"), keys=_pack(message.keys, "<u8"), numbers=_pack(message.numbers, "<u4"),
        )  # fmt: skip
    else:
        found = wire.Reply(
            version=message.version, half=half, changed=_pack(message.changed, "<u4"),
            neighbours=_pack_rows(message.neighbours, half), index=_pack(message.index, "<i4"),
            vectors=_pack_rows(message.vectors, half),
        )  # fmt: skip
    try:
        return bytes(found.SerializeToString())
    except EncodeError as error:
        raise RefusedError(Reason.MALFORMED, "the message cannot be written") from error


def decode_hello(content: bytes) -> Hello:
    """A greeting."""
    found = _parse(wire.Hello, content)
    if len(found.strengths) > MOST_STRENGTHS:
        raise RefusedError(Reason.TOO_LARGE, f"a sum may have {MOST_STRENGTHS} parts, got {len(found.strengths)}")
    if found.nodes > MOST_NODES:
        raise RefusedError(Reason.TOO_LARGE, f"a host may have {MOST_NODES:,} nodes, got {found.nodes:,}")
    numbers = _unpack(found.numbers, "<u4")
    if len(numbers) and (len(numbers) != found.nodes or (np.diff(numbers) <= 0).any()):
        raise RefusedError(Reason.MALFORMED, "the numbers of a host's nodes must be in order, one a node")
    return Hello(
        host=found.host, dimensions=found.dimensions, hops=found.hops, context=found.context,
        lock_step=found.lock_step, half=found.half, nodes=found.nodes, strengths=tuple(found.strengths),
        run=found.run, numbers=numbers, protocol=found.protocol,
    )  # fmt: skip


def decode_introduction(content: bytes) -> Introduction:
    """A peer's edges."""
    found = _parse(wire.Introduction, content)
    if len(found.askers) != len(found.others):
        raise RefusedError(Reason.MALFORMED, f"{len(found.askers)} nodes are introduced with {len(found.others)}")
    if len(found.askers) > MOST_EDGES:
        raise RefusedError(Reason.TOO_LARGE, f"{MOST_EDGES:,} edges may be introduced, got {len(found.askers):,}")
    names: dict[str, str] = {}  # each name is there as often as its node has edges
    askers, others = ([names.setdefault(name, name) for name in part] for part in (found.askers, found.others))
    return Introduction(askers, others)


def decode_acceptance(content: bytes) -> Acceptance:
    """A peer's answer to our edges."""
    found = _parse(wire.Acceptance, content)
    accepted = _unpack(found.accepted, "u1")
    if len(accepted) and accepted.max() > 1:
        raise RefusedError(Reason.MALFORMED, "an edge is accepted or not: 0 or 1")
    return Acceptance(found.session, accepted.astype(bool))


def decode_request(content: bytes, lock_step: bool) -> Request:
    """What a peer needs for a round."""
    found = _parse(wire.Request, content)
    edges, steps = _unpack(found.edges, "<u4"), _unpack(found.steps, "u1")
    firsts, keys = _unpack(found.firsts, "u1"), np.frombuffer(_whole(found.keys, 8), "<u8").astype(np.uint64)
    if len(steps) != len(edges) or (lock_step and not len(firsts) == len(keys) == len(edges)):
        raise RefusedError(Reason.MALFORMED, "every walk needs an edge and a number of steps, and in lock-step a key")
    asked = len(edges) + found.random + len(found.numbers) // 4
    if asked > MOST_ASKED:
        raise RefusedError(Reason.TOO_LARGE, f"a request may ask for {MOST_ASKED:,} vectors, got {asked:,}")
    return Request(
        session=found.session, round=found.round, neighbours=found.neighbours, since=min(found.since, 2**62),
        edges=edges, steps=steps, random=found.random,
        firsts=firsts if lock_step else None, keys=keys if lock_step else None,
        numbers=_unpack(found.numbers, "<u4") if lock_step else None,
    )  # fmt: skip


def decode_reply(content: bytes, request: Request, tables: int, dimensions: int, largest_norm: float) -> Reply:
    """What a peer answered to this request; vectors must be finite and of a size that learning gives."""
    found = _parse(wire.Reply, content)
    index, changed = _unpack(found.index, "<i4"), _unpack(found.changed, "<u4")
    neighbours = _unpack_rows(found.neighbours, found.half, tables, dimensions, largest_norm)
    vectors = _unpack_rows(found.vectors, found.half, tables, dimensions, largest_norm)
    if len(index) != request.size or len(changed) != len(neighbours):
        raise RefusedError(Reason.MALFORMED, f"asked for {request.size} vectors, and the index has {len(index)}")
    if len(index) and index.max() >= len(vectors):
        raise RefusedError(Reason.MALFORMED, f"the index goes to {index.max()}, and there are {len(vectors)} vectors")
    if not request.neighbours and len(changed):
        raise RefusedError(Reason.MALFORMED, "neighbours were sent that nobody asked for")
    if len(index) and (index[len(request.edges) :] <= OWN).any():
        raise RefusedError(Reason.MALFORMED, "a random node must not be one of the asker's")
    if len(vectors) > np.count_nonzero(index > NOTHING):
        raise RefusedError(Reason.MALFORMED, "vectors were sent that nobody asked for")
    return Reply(min(found.version, 2**62), changed, neighbours, index, vectors)


def cut(content: bytes, call: int) -> Iterator[bytes]:
    """A message in frames of bounded size."""
    last = max(0, (len(content) - 1) // PIECE)
    for number in range(last + 1):
        # a Frame as protobuf writes it, without the copies that it would make of the content
        piece = memoryview(content)[number * PIECE : (number + 1) * PIECE]
        head = wire.Frame(call=call, number=number, last=number == last).SerializeToString()
        yield b"".join((head, _CONTENT, _varint(len(piece)), piece))


_CONTENT = bytes([wire.Frame.CONTENT_FIELD_NUMBER << 3 | 2])


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


class Joiner:
    """Puts the frames of a message together again, as they come."""

    def __init__(self, call: int | None = None, largest: int = LARGEST) -> None:
        self.call, self.done = call, False
        self._pieces: list[bytes] = []
        self._size, self._largest = 0, largest

    def add(self, content: bytes) -> None:
        """Take the next frame; it must be the next one, and of this call."""
        frame = _parse(wire.Frame, content)
        if self.call is None:
            self.call = frame.call
        if self.done or frame.call != self.call or frame.number != len(self._pieces):
            raise RefusedError(
                Reason.OUT_OF_ORDER,
                f"frame {len(self._pieces)} of call {self.call} is due, got frame {frame.number} of call {frame.call}",
            )
        self._size += len(frame.content)
        if self._size > self._largest or len(frame.content) > PIECE:
            raise RefusedError(Reason.TOO_LARGE, f"a message may have {self._largest:,} bytes in frames of {PIECE:,}")
        self._pieces.append(frame.content)
        self.done = frame.last

    @property
    def content(self) -> bytes:
        """The whole message."""
        if not self.done:
            raise RefusedError(Reason.MALFORMED, "the message ends before its last frame")
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


def join(frames: Iterable[bytes]) -> bytes:
    """The message of these frames."""
    joiner = Joiner()
    for frame in frames:
        joiner.add(frame)
    return joiner.content


def _parse(kind: Any, content: bytes) -> Any:
    found = kind()
    try:
        found.ParseFromString(content)
    except DecodeError as error:
        raise RefusedError(Reason.MALFORMED, f"not a {kind.DESCRIPTOR.name} of this protocol") from error
    return found


def _pack(array: npt.NDArray[Any] | None, kind: str) -> bytes:
    return b"" if array is None else np.ascontiguousarray(array, dtype=kind).tobytes()


def _pack_rows(rows: Rows, half: bool) -> bytes:
    return to_half(rows).astype("<f2", copy=False).tobytes() if half else _pack(rows, "<f4")


def _whole(content: bytes, size: int) -> bytes:
    if len(content) % size:
        raise RefusedError(Reason.MALFORMED, f"{len(content)} bytes are no array of items of {size}")
    return content


def _unpack(content: bytes, kind: str) -> Integers:
    return np.frombuffer(_whole(content, np.dtype(kind).itemsize), kind).astype(np.int64)


def _unpack_rows(content: bytes, half: bool, tables: int, dimensions: int, largest_norm: float) -> Rows:
    kind = "<f2" if half else "<f4"
    found = np.frombuffer(_whole(content, tables * dimensions * np.dtype(kind).itemsize), kind)
    rows: Rows = from_half(found) if half else found.astype(np.float32)
    rows = rows.reshape(-1, tables, dimensions)
    with np.errstate(all="ignore"):
        squares = np.einsum("ijk,ijk->ij", rows, rows)
    # what is not finite, or too large to be squared, does not compare
    if not (np.isfinite(squares) & (squares <= np.float32(largest_norm) ** 2)).all():
        raise RefusedError(Reason.BAD_VECTOR, f"a vector is not finite, or longer than {largest_norm:g}")
    return rows
