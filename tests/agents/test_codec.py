"""Messages and bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.agents import codec
from manela.agents import host_pb2 as wire
from manela.agents.messages import Acceptance, Hello, Introduction, Reason, Reply, Request
from manela.errors import RefusedError

EMPTY = np.zeros(0, np.int64)
ASKED = Request(7, 3, True, 2, np.array([0, 5]), np.array([1, 1]), random=1)


def rows(count, tables=1, dimensions=4):
    return np.random.default_rng(count).normal(size=(count, tables, dimensions)).astype(np.float32)


def same(one, other):
    assert type(one) is type(other)
    for name in one.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def reason(call, *arguments):
    with pytest.raises(RefusedError) as refused:
        call(*arguments)
    return refused.value.reason


def decode_reply(content, request=ASKED, tables=1, dimensions=4, largest=100.0):
    return codec.decode_reply(content, request, tables, dimensions, largest)


@pytest.mark.parametrize(
    ("message", "decode"),
    [
        (Hello("a", 128, 2, True, False, True, 10, (1.5, 1e-20)), codec.decode_hello),
        (Hello("a", 8, 1, False, True, False, 2, (2.0,), "run", np.array([3, 9])), codec.decode_hello),
        (Introduction(["ä@b", "x@b"], ["1", "2"]), codec.decode_introduction),
        (Acceptance(2**60, np.array([True, False])), codec.decode_acceptance),
        (ASKED, lambda content: codec.decode_request(content, False)),
        (
            Request(
                1, 2, False, 0, np.array([4]), np.array([2]), 0, np.array([1]), np.array([2**63], np.uint64), EMPTY
            ),
            lambda content: codec.decode_request(content, True),
        ),
        (Reply(4, np.array([1]), rows(1), np.array([0, -1, 1]), rows(2)), decode_reply),
    ],
)
def test_a_message_survives_the_wire(message, decode):
    same(decode(codec.encode(message)), message)


def test_half_precision_halves_the_vectors():
    reply = Reply(4, EMPTY, rows(0), np.array([0, -1, 0]), rows(1, dimensions=256))
    whole, half = codec.encode(reply), codec.encode(reply, half=True)
    assert len(whole) - len(half) >= 500
    found = decode_reply(half, dimensions=256)
    np.testing.assert_allclose(found.vectors, reply.vectors, rtol=1e-3)
    assert found.vectors.dtype == np.float32


def reply_of(index=(0, -1, 1), vectors=None, changed=(), neighbours=None, half=False):
    vectors = rows(2) if vectors is None else vectors
    neighbours = rows(len(changed)) if neighbours is None else neighbours
    return codec.encode(Reply(1, np.array(changed, np.int64), neighbours, np.array(index), vectors), half)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (reply_of(vectors=np.full((2, 1, 4), np.nan, np.float32)), Reason.BAD_VECTOR),
        (reply_of(vectors=np.full((2, 1, 4), np.inf, np.float32)), Reason.BAD_VECTOR),
        (reply_of(vectors=np.full((2, 1, 4), 1e6, np.float32), half=True), Reason.BAD_VECTOR),  # inf as float16
        (reply_of(vectors=np.full((2, 1, 4), 51.0, np.float32)), Reason.BAD_VECTOR),  # norm 102
        (reply_of(changed=[0], neighbours=np.full((1, 1, 4), -1e30, np.float32)), Reason.BAD_VECTOR),
        (reply_of(vectors=rows(2, dimensions=5)), Reason.MALFORMED),  # wrong length
        (reply_of(vectors=rows(2, dimensions=3)), Reason.MALFORMED),
        (reply_of(index=(0, 1)), Reason.MALFORMED),  # too few
        (reply_of(index=(0, 1, 2)), Reason.MALFORMED),  # beyond the vectors
        (reply_of(index=(0, -1, -2)), Reason.MALFORMED),  # a random node that is the asker's
        (reply_of(vectors=rows(3)), Reason.MALFORMED),  # more than asked for
        (reply_of(changed=[0, 1], neighbours=rows(1)), Reason.MALFORMED),
        (reply_of()[:-1], Reason.MALFORMED),  # truncated
        (b"\xff" * 20, Reason.MALFORMED),
    ],
)
def test_a_bad_reply_is_refused(content, why):
    assert reason(decode_reply, content) == why


def test_neighbours_that_nobody_asked_for_are_refused():
    quiet = Request(7, 3, False, 2, np.array([0, 5]), np.array([1, 1]), random=1)
    assert reason(decode_reply, reply_of(changed=[0]), quiet) == Reason.MALFORMED


def test_ids_must_be_utf8():
    content = wire.Introduction(askers=["xyz@b"], others=["w"]).SerializeToString()
    assert reason(codec.decode_introduction, content.replace(b"xyz", b"\xff\xfe\xfd")) == Reason.MALFORMED


def test_odd_lengths_are_refused():
    for content in (
        wire.Request(edges=b"\0\0\0", steps=b"\1").SerializeToString(),
        wire.Request(edges=b"\0\0\0\0", steps=b"").SerializeToString(),
        wire.Request(keys=b"\0").SerializeToString(),
    ):
        assert reason(codec.decode_request, content, False) == Reason.MALFORMED
    assert reason(codec.decode_request, wire.Request(random=2**31).SerializeToString(), False) == Reason.TOO_LARGE
    assert reason(codec.decode_acceptance, wire.Acceptance(accepted=b"\2").SerializeToString()) == Reason.MALFORMED
    crooked = wire.Hello(nodes=2, numbers=np.array([5, 5], "<u4").tobytes()).SerializeToString()
    assert reason(codec.decode_hello, crooked) == Reason.MALFORMED
    assert reason(codec.decode_hello, wire.Hello(strengths=[1.0] * 100).SerializeToString()) == Reason.TOO_LARGE
    uneven = wire.Introduction(askers=["x@b"]).SerializeToString()
    assert reason(codec.decode_introduction, uneven) == Reason.MALFORMED


@pytest.mark.parametrize("size", [0, 1, codec.PIECE, codec.PIECE + 1, 3 * codec.PIECE + 5])
def test_frames_join_to_what_was_cut(size):
    content = np.random.default_rng(size).bytes(size)
    frames = list(codec.cut(content, 9))
    assert all(len(frame) <= codec.PIECE + 100 for frame in frames)
    assert codec.join(frames) == content


def test_frames_out_of_order_or_of_another_call_are_refused():
    frames = list(codec.cut(b"x" * (2 * codec.PIECE + 1), 9))
    other = list(codec.cut(b"y" * (2 * codec.PIECE + 1), 8))
    for wrong in (
        [frames[1], frames[0], frames[2]],  # reordered
        [frames[0], frames[0]],  # replayed
        [frames[0], other[1]],  # of another call
        [*frames, frames[2]],  # after the last
        frames[1:],
    ):
        assert reason(codec.join, wrong) == Reason.OUT_OF_ORDER
    assert reason(codec.join, frames[:2]) == Reason.MALFORMED  # truncated
    assert reason(codec.join, []) == Reason.MALFORMED


def test_a_message_or_frame_that_is_too_large_is_refused():
    def add(largest, frames):
        joiner = codec.Joiner(largest=largest)
        for frame in frames:
            joiner.add(frame)

    assert reason(add, 10, codec.cut(b"x" * 11, 1)) == Reason.TOO_LARGE
    large = wire.Frame(content=b"x" * (codec.PIECE + 1), last=True).SerializeToString()
    assert reason(add, 1 << 30, [large]) == Reason.TOO_LARGE


DECODERS = [
    codec.decode_hello,
    codec.decode_introduction,
    codec.decode_acceptance,
    lambda content: codec.decode_request(content, False),
    lambda content: codec.decode_request(content, True),
    decode_reply,
    lambda content: codec.join([content]),
]


@given(st.binary(max_size=200), st.sampled_from(DECODERS))
def test_any_bytes_are_a_message_or_refused(content, decode):
    try:
        decode(content)
    except RefusedError as refused:
        assert refused.reason in set(Reason)


@given(st.data())
def test_a_message_with_bytes_changed_is_a_message_or_refused(data):
    message = data.draw(st.sampled_from([
        (codec.encode(Hello("a", 128, 2, True, False, True, 10, (1.5,))), DECODERS[0]),
        (codec.encode(Introduction(["x@b"] * 3, ["y"] * 3)), DECODERS[1]),
        (codec.encode(ASKED), DECODERS[3]),
        (reply_of(), decode_reply),
    ]))  # fmt: skip
    content, decode = bytearray(message[0]), message[1]
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(content))
    except RefusedError as refused:
        assert refused.reason in set(Reason)
