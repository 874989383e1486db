"""Codec: turns messages into bytes and back, and refuses bytes that are no valid message."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import MalformedError, TermsError, TooLargeError, import_extra
from manela.hosts.state.erasure import MOST_ERASED, Erasure, Receipt
from manela.hosts.state.messages import (
    JOIN,
    NOTHING,
    OWN,
    ROUND,
    Acceptance,
    Frame,
    Hello,
    Integers,
    Introduction,
    Products,
    Pull,
    Shown,
    Step,
    Sum,
    Sums,
    Totals,
    VectorRows,
    WalkReply,
    WalkRequest,
)
from manela.hosts.state.names import LONGEST_NAME, is_name
from manela.hosts.wire import host_pb2 as wire
from manela.kernels.cpu.half import from_half, to_half
from manela.kernels.moments import LARGEST, UNIT, Moments

_PROTOBUF: Any = import_extra("google.protobuf.message", "agents", "a host")

MOST_NODES = 1 << 31
MOST_ASKED = 1 << 22
"""Walks and random vectors that one request may ask for; more would let a peer take more memory."""
MOST_PARTS = 64
"""Floats by which a greeting may represent one exact sum."""
LARGEST_SUM = 1e112
LARGEST_PRODUCTS = 1 << 62
"""Largest sum of products, in units of the message's own."""
_LONGEST_PROGRAM = 32
_LAST = 2**62
"""Larger versions and rounds are clamped to this, so that they fit into int64."""

LARGEST_ERASURE = MOST_ERASED * (LONGEST_NAME + 4)
"""Most bytes of a request to forget nodes; each name adds up to three bytes of encoding."""
_LONGEST_RECEIPT = 64
_LAST_TIME = 253_402_300_799
"""Later times, in seconds since 1970, are clamped to this, the end of the year 9999."""

Message = Hello | Introduction | Acceptance | Pull | Shown | WalkRequest | WalkReply | Erasure | Receipt


def encode(message: Message, half: bool = False) -> bytes:
    """Return a message as bytes; with `half`, the vectors of a WalkReply are sent as float16."""
    try:
        wired = (
            _encode_walk_reply(message, half) if isinstance(message, WalkReply) else _ENCODERS[type(message)](message)
        )
        return bytes(wired.SerializeToString())
    except (_PROTOBUF.EncodeError, UnicodeEncodeError) as error:
        raise MalformedError("the message cannot be written") from error


def _encode_hello(message: Hello) -> Any:
    totals = message.totals
    return wire.Hello(
        protocol=message.protocol, host=message.host, exchange=message.exchange, dimensions=message.dimensions,
        hops=message.hops, context=message.context, lock_step=message.lock_step, half=message.half,
        nodes=message.nodes, run=message.run, numbers=_pack(message.numbers, "<u4"), program=message.program,
        views=message.views, frame=_pack_frame(message.frame),
        totals=None if totals == Totals() else wire.Totals(
            joined=totals.joined, arcs=totals.arcs, strengths=totals.strengths, frequencies=totals.frequencies,
            sizes=totals.sizes
        ),
    )  # fmt: skip


def _encode_introduction(message: Introduction) -> Any:
    return wire.Introduction(askers=message.askers, others=message.others)


def _encode_acceptance(message: Acceptance) -> Any:
    return wire.Acceptance(session=message.session, accepted=_pack(message.accepted, "u1"))


def _encode_pull(message: Pull) -> Any:
    phase, number, level = message.step
    return wire.Pull(
        session=message.session, phase=phase, number=number, level=level, since=message.since,
        frame=_pack_frame(message.frame)
    )  # fmt: skip


def _encode_shown(message: Shown) -> Any:
    """Return the wire form of shown vectors; of each matrix of moments, only the lower triangle is sent."""
    phase, number, level = message.step
    sums, products, half = message.sums, message.products, message.rows.dtype == np.float16
    return wire.Shown(
        phase=phase, number=number, level=level, version=message.version, half=half,
        changed=_pack(message.changed, "<u4"), rows=_pack(message.rows, "<f2" if half else "<f4"),
        levels=message.rows.shape[2],
        strengths=_pack(message.strengths, "<f8"),
        moments=[
            wire.Moments(
                size=moments.size, total=_pack(moments.total, "<i8"),
                products=_pack_triangle(moments.products)
            )
            for moments in message.moments
        ],
        sums=None if sums is None else wire.Sums(
            count=sums.count, total=_pack(sums.total, "<i8"), squares=sums.squares.to_bytes(16, "little")
        ),
        sum=None if message.sum is None else wire.Sum(count=message.sum.count, parts=message.sum.parts),
        products=None if products is None else wire.Products(
            size=products.size, unit=products.unit, sums=_pack_triangle(products.sums)
        ),
        frame=_pack_frame(message.frame)
    )  # fmt: skip


def _encode_walk_request(message: WalkRequest) -> Any:
    return wire.WalkRequest(
        session=message.session, round=message.round, neighbours=message.neighbours, since=message.since,
        edges=_pack(message.edges, "<u4"), steps=_pack(message.steps, "u1"), random=message.random,
        firsts=_pack(message.firsts, "u1"), keys=_pack(message.keys, "<u8"), numbers=_pack(message.numbers, "<u4")
    )  # fmt: skip


def _encode_walk_reply(message: WalkReply, half: bool) -> Any:
    return wire.WalkReply(
        version=message.version, half=half, changed=_pack(message.changed, "<u4"),
        neighbours=_pack_rows(message.neighbours, half), index=_pack(message.index, "<i4"),
        vectors=_pack_rows(message.vectors, half)
    )  # fmt: skip


_ENCODERS: dict[type, Callable[[Any], Any]] = {
    Hello: _encode_hello,
    Introduction: _encode_introduction,
    Acceptance: _encode_acceptance,
    Pull: _encode_pull,
    Shown: _encode_shown,
    WalkRequest: _encode_walk_request,
    Erasure: lambda message: wire.Erasure(nodes=message.nodes),
    Receipt: lambda message: wire.Receipt(id=message.id, time=message.time),
}


def decode_hello(content: bytes, lock_step: bool = True) -> Hello:
    """Decode a greeting; numbers and totals are refused outside lock-step."""
    parsed = _parse(wire.Hello, content)
    if not lock_step and (parsed.numbers or parsed.HasField("totals")):
        raise TermsError("lock-step must be False, and numbers are for lock-step")
    if parsed.nodes > MOST_NODES:
        raise TooLargeError(f"a host may have {MOST_NODES:,} nodes, got {parsed.nodes:,}")
    numbers = _unpack(parsed.numbers, "<u4")
    if len(numbers) and (len(numbers) != parsed.nodes or (np.diff(numbers) <= 0).any()):
        raise MalformedError("the numbers of a host's nodes must be in order, one a node")
    totals = parsed.totals
    return Hello(
        host=parsed.host, exchange=parsed.exchange, dimensions=parsed.dimensions, hops=parsed.hops,
        context=parsed.context, lock_step=parsed.lock_step, half=parsed.half, nodes=parsed.nodes, run=parsed.run,
        numbers=numbers, protocol=parsed.protocol, program=_read_program(parsed.program), views=parsed.views,
        frame=_unpack_frame(parsed.frame),
        totals=Totals(
            min(totals.joined, _LAST), min(totals.arcs, _LAST), _unpack_sum(totals.strengths),
            _unpack_sum(totals.frequencies), _unpack_sum(totals.sizes)
        ),
    )  # fmt: skip


def _read_program(text: str) -> str:
    """Return a peer's version as text that can be shown to an operator."""
    return "".join(c for c in text[:_LONGEST_PROGRAM] if c.isprintable())


def decode_introduction(content: bytes, most: int) -> Introduction:
    """Decode a peer's introduction of at most `most` edges."""
    parsed = _parse(wire.Introduction, content)
    if len(parsed.askers) != len(parsed.others):
        raise MalformedError(f"{len(parsed.askers)} nodes are introduced with {len(parsed.others)}")
    if len(parsed.askers) > most:
        raise TooLargeError(f"{most:,} edges may be introduced, got {len(parsed.askers):,}")
    names: dict[str, str] = {}  # share one string per node: a name is repeated for each of its edges
    askers, others = ([names.setdefault(name, name) for name in part] for part in (parsed.askers, parsed.others))
    return Introduction(askers, others)


def decode_acceptance(content: bytes) -> Acceptance:
    """Decode a peer's answer to our introduction."""
    parsed = _parse(wire.Acceptance, content)
    accepted = _unpack(parsed.accepted, "u1")
    if len(accepted) and accepted.max() > 1:
        raise MalformedError("acceptances must be 0 or 1")
    return Acceptance(parsed.session, accepted.astype(bool))


def decode_erasure(content: bytes) -> Erasure:
    """Decode a peer's request to forget nodes."""
    parsed = _parse(wire.Erasure, content)
    if not 0 < len(parsed.nodes) <= MOST_ERASED:
        raise TooLargeError(f"1 to {MOST_ERASED:,} nodes may be erased at once, got {len(parsed.nodes):,}")
    if not all(is_name(name) for name in parsed.nodes):
        raise MalformedError(f"a node's name must be 1 to {LONGEST_NAME} bytes of printable text")
    return Erasure(tuple(sorted(set(parsed.nodes))))


def decode_receipt(content: bytes) -> Receipt:
    """Decode a peer's receipt."""
    parsed = _parse(wire.Receipt, content)
    if not (0 < len(parsed.id) <= _LONGEST_RECEIPT and parsed.id.isascii() and parsed.id.isalnum()):
        raise MalformedError(f"a receipt must have 1 to {_LONGEST_RECEIPT} letters and digits")
    return Receipt(parsed.id, min(parsed.time, _LAST_TIME))


def decode_pull(content: bytes) -> Pull:
    """Decode a peer's request for rows."""
    parsed = _parse(wire.Pull, content)
    return Pull(parsed.session, _unpack_step(parsed), min(parsed.since, _LAST), _unpack_frame(parsed.frame))


def decode_shown(content: bytes, shape: tuple[int, int, int], most: int) -> Shown:
    """Decode what a peer shows: at most `most` rows of shape (tables, levels, m), or with a single level."""
    parsed = _parse(wire.Shown, content)
    tables, levels, dimensions = shape
    if parsed.levels not in (1, levels):
        raise MalformedError(f"rows must be of 1 or {levels} hops, got {parsed.levels}")
    changed, strengths = _unpack(parsed.changed, "<u4"), np.frombuffer(_whole(parsed.strengths, 8), "<f8")
    if dimensions:
        rows = _unpack_rows(parsed.rows, parsed.half, (tables, parsed.levels, dimensions))
    else:  # at this step nodes show strengths only
        rows = np.zeros((len(strengths), tables, 1, 0), np.float32)
    if len(changed) != len(rows) or len(strengths) != len(rows):
        raise MalformedError(f"{len(changed)} nodes are shown with {len(rows)} rows and {len(strengths)} strengths")
    if len(rows) > most:
        raise MalformedError(f"{most} nodes may be shown, got {len(rows)}")
    if len(parsed.moments) not in (0, tables):
        raise MalformedError(f"moments must be of {tables} tables or of none, got {len(parsed.moments)}")
    sums = _unpack_sums(parsed.sums, dimensions) if parsed.HasField("sums") else None
    of_nodes = Sum(min(parsed.sum.count, _LAST), _unpack_sum(parsed.sum.parts)) if parsed.HasField("sum") else None
    if of_nodes is not None and any(part <= 0.0 for part in of_nodes.parts[:1]):
        raise MalformedError("a sum over nodes must be above 0")
    products = _unpack_products(parsed.products) if parsed.HasField("products") else None
    if parsed.moments and not dimensions:
        raise MalformedError("there are no moments at this step")
    moments = [_unpack_moments(packed, dimensions) for packed in parsed.moments]
    return Shown(
        _unpack_step(parsed),
        min(parsed.version, _LAST),
        changed,
        rows,
        strengths.astype(np.float64),
        moments,
        sums,
        of_nodes,
        products,
        _unpack_frame(parsed.frame),
    )


def bound_shown(shape: tuple[int, int, int], most: int) -> int:
    """Return the most bytes that a Shown of at most `most` rows of this shape may have."""
    tables, levels, dimensions = shape
    moments = 8 * dimensions + 4 * dimensions * (dimensions + 1)
    products = 8 * dimensions * (2 * dimensions + 1)  # of a join, whose rows have twice the columns
    return most * (12 + 4 * tables * levels * dimensions) + tables * moments + products + 8 * dimensions + 4096


def decode_walk_request(content: bytes, lock_step: bool) -> WalkRequest:
    """Decode a peer's request for a round by walks."""
    parsed = _parse(wire.WalkRequest, content)
    edges, steps = _unpack(parsed.edges, "<u4"), _unpack(parsed.steps, "u1")
    firsts, keys = _unpack(parsed.firsts, "u1"), np.frombuffer(_whole(parsed.keys, 8), "<u8").astype(np.uint64)
    if len(steps) != len(edges) or (lock_step and not len(firsts) == len(keys) == len(edges)):
        raise MalformedError("every walk needs an edge and a number of steps, and in lock-step a key")
    asked = len(edges) + parsed.random + len(parsed.numbers) // 4
    if asked > MOST_ASKED:
        raise TooLargeError(f"a request may ask for {MOST_ASKED:,} vectors, got {asked:,}")
    return WalkRequest(
        session=parsed.session, round=parsed.round, neighbours=parsed.neighbours, since=min(parsed.since, _LAST),
        edges=edges, steps=steps, random=parsed.random,
        firsts=firsts if lock_step else None, keys=keys if lock_step else None,
        numbers=_unpack(parsed.numbers, "<u4") if lock_step else None
    )  # fmt: skip


def decode_walk_reply(content: bytes, request: WalkRequest, tables: int, dimensions: int) -> WalkReply:
    """Decode a peer's reply to this request."""
    parsed = _parse(wire.WalkReply, content)
    index, changed = _unpack(parsed.index, "<i4"), _unpack(parsed.changed, "<u4")
    neighbours = _unpack_rows(parsed.neighbours, parsed.half, (tables, dimensions))
    vectors = _unpack_rows(parsed.vectors, parsed.half, (tables, dimensions))
    if len(index) != request.size or len(changed) != len(neighbours):
        raise MalformedError(f"asked for {request.size} vectors, and the index has {len(index)}")
    if len(index) and index.max() >= len(vectors):
        raise MalformedError(f"the index goes to {index.max()}, and there are {len(vectors)} vectors")
    if not request.neighbours and len(changed):
        raise MalformedError("the reply has neighbours that were not requested")
    if len(index) and (index[len(request.edges) :] <= OWN).any():
        raise MalformedError("a random node must not be one of the asker's")
    if len(vectors) > np.count_nonzero(index > NOTHING):
        raise MalformedError("the reply has vectors that were not requested")
    return WalkReply(min(parsed.version, _LAST), changed, neighbours, index, vectors)


def _parse(kind: Any, content: bytes) -> Any:
    parsed = kind()
    try:
        parsed.ParseFromString(content)
    except _PROTOBUF.DecodeError as error:
        raise MalformedError(f"not a {kind.DESCRIPTOR.name} of this protocol") from error
    return parsed


def _pack(array: npt.NDArray[Any] | None, kind: str) -> bytes:
    return b"" if array is None else np.ascontiguousarray(array, dtype=kind).tobytes()


def _pack_rows(rows: npt.NDArray[np.float32], half: bool) -> bytes:
    return to_half(rows).astype("<f2", copy=False).tobytes() if half else _pack(rows, "<f4")


def _pack_frame(frame: Frame) -> Any:
    return wire.VectorFrame(generation=frame.generation, id=frame.id) if frame.generation else None


def _unpack_frame(parsed: Any) -> Frame:
    return Frame(min(parsed.generation, _LAST), min(parsed.id, _LAST))


def _pack_triangle(matrix: Integers) -> bytes:
    return _pack(matrix[np.tril_indices(len(matrix))], "<i8")


def _unpack_triangle(triangle: Integers, size: int) -> Integers:
    """Return the symmetric matrix with this lower triangle."""
    matrix = np.zeros((size, size), np.int64)
    matrix[np.tril_indices(size)] = triangle
    return matrix + np.tril(matrix, -1).T


def _whole(content: bytes, size: int) -> bytes:
    """Return the bytes, or refuse them if they are not a whole number of items."""
    if len(content) % size:
        raise MalformedError(f"{len(content)} bytes are not an array of items of {size}")
    return content


def _unpack(content: bytes, kind: str) -> Integers:
    return np.frombuffer(_whole(content, np.dtype(kind).itemsize), kind).astype(np.int64)


def _unpack_step(parsed: Any) -> Step:
    if not 0 <= parsed.phase <= JOIN:
        raise MalformedError(f"there is no phase {parsed.phase}")
    if parsed.phase != ROUND and parsed.number > 2**16:
        raise MalformedError(f"there is no step {parsed.number}")
    return Step(parsed.phase, min(parsed.number, _LAST), parsed.level)


def _unpack_sum(parts: Any) -> tuple[float, ...]:
    """Return the parts of an exact sum, or refuse too many parts and too large ones."""
    if len(parts) > MOST_PARTS:
        raise TooLargeError(f"a sum may have {MOST_PARTS} parts, got {len(parts)}")
    if not all(abs(part) <= LARGEST_SUM for part in parts):
        raise MalformedError(f"a sum must be at most {LARGEST_SUM:g}")
    return tuple(parts)


def _unpack_rows(content: bytes, half: bool, shape: tuple[int, ...]) -> VectorRows:
    """Return rows of this shape."""
    kind = "<f2" if half else "<f4"
    numbers = np.frombuffer(_whole(content, int(np.prod(shape)) * np.dtype(kind).itemsize), kind)
    rows: VectorRows = from_half(numbers) if half else numbers.astype(np.float32)
    return rows.reshape(-1, *shape)


def _unpack_moments(parsed: Any, dimensions: int) -> Moments:
    """Return the moments in a message, or refuse those that no honest vectors have."""
    total, triangle = _unpack(parsed.total, "<i8"), _unpack(parsed.products, "<i8")
    if len(total) != dimensions or len(triangle) != dimensions * (dimensions + 1) // 2:
        raise MalformedError(f"moments must be of vectors of length {dimensions}, got {len(total)}")
    if not 1 <= parsed.size <= MOST_NODES:
        raise MalformedError(f"moments must be of 1 to {MOST_NODES:,} vectors, got {parsed.size:,}")
    largest = parsed.size * LARGEST / UNIT
    too_long = np.abs(total.astype(np.float64)).max() > largest
    if too_long or np.abs(triangle.astype(np.float64)).max() > largest * LARGEST / UNIT:
        raise MalformedError(f"moments must be of numbers up to {LARGEST:g}")
    return Moments(int(parsed.size), total, _unpack_triangle(triangle, dimensions))


def _unpack_products(parsed: Any) -> Products:
    """Return the products in a message, or refuse those that are of no rows, or cannot be added up."""
    triangle = _unpack(parsed.sums, "<i8")
    columns = math.isqrt(2 * len(triangle))
    if columns == 0 or columns * (columns + 1) != 2 * len(triangle):
        raise MalformedError(f"products must be a triangle, got {len(triangle)}")
    if not 1 <= parsed.size <= MOST_NODES or not 0.0 < parsed.unit <= LARGEST_SUM:
        raise MalformedError(f"products must be of 1 to {MOST_NODES:,} rows, got {parsed.size:,}")
    if (triangle > LARGEST_PRODUCTS).any() or (triangle < -LARGEST_PRODUCTS).any():
        raise MalformedError(f"products must be at most {LARGEST_PRODUCTS:,} units")
    return Products(int(parsed.size), _unpack_triangle(triangle, columns), parsed.unit)


def _unpack_sums(parsed: Any, dimensions: int) -> Sums:
    """Return the sums over vectors in a message, or refuse those of another length."""
    total = _unpack(parsed.total, "<i8")
    if len(total) != dimensions or len(parsed.squares) > 16 or parsed.count > MOST_NODES:
        raise MalformedError(f"sums must be of vectors of length {dimensions}, got {len(total)}")
    return Sums(int(parsed.count), total, int.from_bytes(parsed.squares, "little"))
