"""Messages and bytes."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.errors import REFUSALS, MalformedError, RefusedError, TermsError, TooLargeError
from manela.hosts.state.messages import (
    AFFINITY,
    JOIN,
    ROUND,
    SMOOTH,
    START,
    Acceptance,
    Hello,
    Introduction,
    Products,
    Pull,
    Shown,
    Step,
    Sum,
    Sums,
    Totals,
    WalkReply,
    WalkRequest,
)
from manela.hosts.wire import codec, frames
from manela.hosts.wire import host_pb2 as wire
from manela.kernels.moments import measure

NOW = Step(ROUND, 7)
EMPTY = np.zeros(0, np.int64)
ASKED = WalkRequest(7, 3, True, 2, np.array([0, 5]), np.array([1, 1]), random=1)

decode_introduction = partial(codec.decode_introduction, most=1000)


def rows(count, tables=1, dimensions=4):
    return np.random.default_rng(count).normal(size=(count, tables, dimensions)).astype(np.float32)


def same(one, other):
    assert type(one) is type(other)
    for name in one.__dataclass_fields__:
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, list) and mine and not isinstance(mine[0], str):
            for a, b in zip(mine, theirs, strict=True):
                assert a.size == b.size
                np.testing.assert_array_equal(a.total, b.total)
                np.testing.assert_array_equal(a.products, b.products)
        elif isinstance(mine, Sums | Products):
            same(mine, theirs)
        else:
            np.testing.assert_array_equal(mine, theirs, err_msg=name)


def reason(call, *arguments):
    with pytest.raises(RefusedError) as refused:
        call(*arguments)
    return refused.value.reason


def decode_reply(content, request=ASKED, tables=1, dimensions=4):
    return codec.decode_walk_reply(content, request, tables, dimensions)


def decode_shown(content, shape=(2, 2, 4), most=5):
    return codec.decode_shown(content, shape, most)


def shown_of(changed=(0, 3), rows_=None, strengths=None, moments=2, step=NOW, sums=None, kind=np.float32):
    rows_ = rows(len(changed), 2, 8).reshape(-1, 2, 2, 4) if rows_ is None else rows_
    strengths = np.arange(len(changed)) + 1.5 if strengths is None else strengths
    measured = [measure(rows(40, 1, 4)[:, 0]) for _ in range(moments)]
    return Shown(step, 9, np.array(changed, np.int64), rows_.astype(kind), strengths, measured, sums)


def products_of(columns, size=40, unit=2.0**-20):
    rows = np.random.default_rng(columns).integers(-9, 9, size=(size, columns))
    return Products(size, rows.T @ rows, unit)


@pytest.mark.parametrize(
    "products",
    [
        products_of(4, size=0),
        products_of(4, unit=0.0),
        products_of(4, unit=float("nan")),
        products_of(4, unit=float("inf")),
        Products(40, np.full((4, 4), 2**63 - 1), 1.0),
        Products(40, np.full((4, 4), -(2**63)), 1.0),
    ],
)
def test_products_that_cannot_be_added_up_are_refused(products):
    content = codec.encode(replace(shown_of(changed=(), moments=0, step=Step(JOIN, 0)), products=products))
    assert reason(decode_shown, content) == "malformed"


@pytest.mark.parametrize(
    ("message", "decode"),
    [
        (Hello("a", "messages", 128, 2, True, False, True, 10), codec.decode_hello),
        (
            Hello(
                "a",
                "walks",
                8,
                1,
                False,
                True,
                False,
                2,
                "run",
                np.array([3, 9]),
                Totals(2, 7, (1.5, 1e-20), (2.0,), (0.5,)),
            ),
            codec.decode_hello,
        ),
        (Pull(2**60, Step(SMOOTH, 3), 17), codec.decode_pull),
        (Pull(1, Step(START, 2, 1)), codec.decode_pull),
        (shown_of(), decode_shown),
        (shown_of(moments=0, sums=Sums(3, np.array([1, -2, 3, 4]), 2**90)), decode_shown),
        (shown_of(changed=(), moments=0, step=Step(SMOOTH, 1)), decode_shown),
        (
            replace(
                shown_of(rows_=np.zeros((2, 1, 1, 0)), moments=0, step=Step(AFFINITY, 0, 1)), sum=Sum(9, (2.0, 1e-20))
            ),
            partial(decode_shown, shape=(1, 1, 0)),
        ),
        (replace(shown_of(changed=(), moments=0, step=Step(JOIN, 0)), products=products_of(8)), decode_shown),
        (Introduction(["ä@b", "x@b"], ["1", "2"]), decode_introduction),
        (Acceptance(2**60, np.array([True, False])), codec.decode_acceptance),
        (ASKED, lambda content: codec.decode_walk_request(content, False)),
        (
            WalkRequest(
                1, 2, False, 0, np.array([4]), np.array([2]), 0, np.array([1]), np.array([2**63], np.uint64), EMPTY
            ),
            lambda content: codec.decode_walk_request(content, True),
        ),
        (WalkReply(4, np.array([1]), rows(1), np.array([0, -1, 1]), rows(2)), decode_reply),
    ],
)
def test_a_message_survives_the_wire(message, decode):
    same(decode(codec.encode(message)), message)


def test_half_precision_halves_the_vectors():
    reply = WalkReply(4, EMPTY, rows(0), np.array([0, -1, 0]), rows(1, dimensions=256))
    whole, half = codec.encode(reply), codec.encode(reply, half=True)
    assert len(whole) - len(half) >= 500
    found = decode_reply(half, dimensions=256)
    np.testing.assert_allclose(found.vectors, reply.vectors, rtol=1e-3)
    assert found.vectors.dtype == np.float32


def reply_of(index=(0, -1, 1), vectors=None, changed=(), neighbours=None, half=False):
    vectors = rows(2) if vectors is None else vectors
    neighbours = rows(len(changed)) if neighbours is None else neighbours
    return codec.encode(WalkReply(1, np.array(changed, np.int64), neighbours, np.array(index), vectors), half)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (reply_of(vectors=rows(2, dimensions=5)), MalformedError.reason),  # wrong length
        (reply_of(vectors=rows(2, dimensions=3)), MalformedError.reason),
        (reply_of(index=(0, 1)), MalformedError.reason),  # too few
        (reply_of(index=(0, 1, 2)), MalformedError.reason),  # beyond the vectors
        (reply_of(index=(0, -1, -2)), MalformedError.reason),  # a random node that is the asker's
        (reply_of(vectors=rows(3)), MalformedError.reason),  # more than asked for
        (reply_of(changed=[0, 1], neighbours=rows(1)), MalformedError.reason),
        (reply_of()[:-1], MalformedError.reason),  # truncated
        (b"\xff" * 20, MalformedError.reason),
    ],
)
def test_a_bad_reply_is_refused(content, why):
    assert reason(decode_reply, content) == why


@pytest.mark.parametrize(
    "message",
    [
        shown_of(changed=range(6)),  # more nodes than there are
        shown_of(rows_=rows(2, 2, 12).reshape(-1, 2, 2, 6)),  # wrong length
        shown_of(rows_=rows(2, 2, 12).reshape(-1, 2, 3, 4)),  # more hops
        shown_of(strengths=np.ones(3)),
        shown_of(moments=1),  # of one table of two
        shown_of(sums=Sums(1, np.zeros(3, np.int64), 0)),
    ],
)
def test_what_is_shown_in_a_wrong_shape_is_refused(message):
    assert reason(decode_shown, codec.encode(message)) == MalformedError.reason


@pytest.mark.parametrize(
    ("size", "total", "products"),
    [(0, 4, 10), (2**40, 4, 10), (40, 3, 10), (40, 4, 9), (40, 5, 15)],
)
def test_moments_of_a_wrong_shape_are_refused(size, total, products):
    sent = wire.Moments(size=size, total=b"\0" * 8 * total, products=b"\0" * 8 * products)
    content = wire.Shown(phase=1, levels=1, moments=[sent, sent]).SerializeToString()
    assert reason(decode_shown, content) == MalformedError.reason


def test_moments_of_numbers_that_no_vector_has_are_refused():
    huge = wire.Moments(size=40, total=b"\0" * 32, products=np.full(10, 2**62, "<i8").tobytes())
    content = wire.Shown(phase=1, levels=1, moments=[huge, huge]).SerializeToString()
    assert reason(decode_shown, content) == MalformedError.reason


def test_what_is_shown_in_halves_stays_halves():
    whole, half = codec.encode(shown_of()), codec.encode(shown_of(kind=np.float16))
    assert 60 <= len(whole) - len(half) <= 64  # 32 numbers in two bytes fewer each
    found = decode_shown(half)
    assert found.rows.dtype == np.float32
    np.testing.assert_array_equal(found.rows, shown_of(kind=np.float16).rows.astype(np.float32))


@pytest.mark.parametrize("fields", [{"phase": 8}, {"phase": 0, "number": 2**17}])
def test_steps_that_there_are_not_are_refused(fields):
    assert reason(codec.decode_pull, wire.Pull(**fields).SerializeToString()) == MalformedError.reason


def test_a_reply_of_as_much_as_may_be_shown_is_within_its_bound():
    full = shown_of(changed=range(5), sums=Sums(2**30, np.full(4, 2**60), 2**120))
    assert len(codec.encode(full)) <= codec.bound_shown((2, 2, 4), 5)


def test_neighbours_that_nobody_asked_for_are_refused():
    quiet = WalkRequest(7, 3, False, 2, np.array([0, 5]), np.array([1, 1]), random=1)
    assert reason(decode_reply, reply_of(changed=[0]), quiet) == MalformedError.reason


def test_ids_must_be_utf8():
    content = wire.Introduction(askers=["xyz@b"], others=["w"]).SerializeToString()
    assert reason(decode_introduction, content.replace(b"xyz", b"\xff\xfe\xfd")) == MalformedError.reason


def test_odd_lengths_are_refused():
    for content in (
        wire.WalkRequest(edges=b"\0\0\0", steps=b"\1").SerializeToString(),
        wire.WalkRequest(edges=b"\0\0\0\0", steps=b"").SerializeToString(),
        wire.WalkRequest(keys=b"\0").SerializeToString(),
    ):
        assert reason(codec.decode_walk_request, content, False) == MalformedError.reason
    assert (
        reason(codec.decode_walk_request, wire.WalkRequest(random=2**31).SerializeToString(), False)
        == TooLargeError.reason
    )
    assert reason(codec.decode_acceptance, wire.Acceptance(accepted=b"\2").SerializeToString()) == MalformedError.reason
    crooked = wire.Hello(nodes=2, numbers=np.array([5, 5], "<u4").tobytes()).SerializeToString()
    assert reason(codec.decode_hello, crooked) == MalformedError.reason
    many = wire.Hello(totals=wire.Totals(strengths=[1.0] * 100)).SerializeToString()
    assert reason(codec.decode_hello, many) == TooLargeError.reason
    for absurd in (float("nan"), float("inf"), 1e200):
        content = wire.Hello(totals=wire.Totals(sizes=[absurd])).SerializeToString()
        assert reason(codec.decode_hello, content) == MalformedError.reason
    uneven = wire.Introduction(askers=["x@b"]).SerializeToString()
    assert reason(decode_introduction, uneven) == MalformedError.reason


DECODERS = [
    codec.decode_hello,
    decode_introduction,
    codec.decode_acceptance,
    lambda content: codec.decode_walk_request(content, False),
    lambda content: codec.decode_walk_request(content, True),
    decode_reply,
    codec.decode_pull,
    decode_shown,
    lambda content: frames.join([content]),
]


@given(st.binary(max_size=200), st.sampled_from(DECODERS))
def test_any_bytes_are_a_message_or_refused(content, decode):
    try:
        decode(content)
    except RefusedError as refused:
        assert refused.reason in REFUSALS


@given(st.data())
def test_a_message_with_bytes_changed_is_a_message_or_refused(data):
    message = data.draw(st.sampled_from([
        (codec.encode(Hello("a", "walks", 128, 2, True, False, True, 10)), DECODERS[0]),
        (codec.encode(shown_of()), decode_shown),
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
        assert refused.reason in REFUSALS


HELLO = {"protocol": 2, "host": "b", "exchange": "messages", "dimensions": 4, "hops": 2, "nodes": 3, "run": "r"}


def test_a_host_of_more_nodes_than_there_may_be_is_refused():
    assert codec.decode_hello(wire.Hello(**HELLO | {"nodes": codec.MOST_NODES}).SerializeToString()).nodes
    with pytest.raises(TooLargeError, match="nodes, got"):
        codec.decode_hello(wire.Hello(**HELLO | {"nodes": codec.MOST_NODES + 1}).SerializeToString())


def test_no_more_edges_than_are_listed_may_be_introduced():
    content = codec.encode(Introduction(["p@b"] * 3, ["x"] * 3))
    assert len(codec.decode_introduction(content, most=3).askers) == 3
    with pytest.raises(TooLargeError, match="2 edges may be introduced, got 3"):
        codec.decode_introduction(content, most=2)


def test_what_a_program_calls_itself_is_cut_and_printable():
    content = wire.Hello(**HELLO, program="manela 1\x1b[31m\n" + "x" * 100).SerializeToString()
    assert codec.decode_hello(content).program == "manela 1[31m" + "x" * 18


def test_numbers_are_for_lock_step_alone():
    content = wire.Hello(**HELLO, numbers=np.arange(3, dtype="<u4").tobytes()).SerializeToString()
    assert codec.decode_hello(content, lock_step=True).numbers.tolist() == [0, 1, 2]
    with pytest.raises(TermsError, match="lock-step must be False"):
        codec.decode_hello(content, lock_step=False)
