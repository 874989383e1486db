"""Frames of a message."""

import numpy as np
import pytest

from manela.errors import MalformedError, OutOfOrderError, RefusedError, TooLargeError
from manela.hosts.wire import frames
from manela.hosts.wire import host_pb2 as wire


def reason(call, *arguments):
    with pytest.raises(RefusedError) as refused:
        call(*arguments)
    return refused.value.reason


@pytest.mark.parametrize("size", [0, 1, frames.PIECE, frames.PIECE + 1, 3 * frames.PIECE + 5])
def test_frames_join_to_what_was_cut(size):
    content = np.random.default_rng(size).bytes(size)
    pieces = list(frames.cut(content, 9))
    assert all(len(frame) <= frames.PIECE + 100 for frame in pieces)
    assert frames.join(pieces) == content


def test_frames_out_of_order_or_of_another_call_are_refused():
    pieces = list(frames.cut(b"x" * (2 * frames.PIECE + 1), 9))
    other = list(frames.cut(b"y" * (2 * frames.PIECE + 1), 8))
    for wrong in (
        [pieces[1], pieces[0], pieces[2]],  # reordered
        [pieces[0], pieces[0]],  # replayed
        [pieces[0], other[1]],  # of another call
        [*pieces, pieces[2]],  # after the last
        pieces[1:],
    ):
        assert reason(frames.join, wrong) == OutOfOrderError.reason
    assert reason(frames.join, pieces[:2]) == MalformedError.reason  # truncated
    assert reason(frames.join, []) == MalformedError.reason


def test_a_message_or_frame_that_is_too_large_is_refused():
    def add(largest, pieces):
        joiner = frames.Joiner(largest=largest)
        for frame in pieces:
            joiner.add(frame)

    assert reason(add, 10, frames.cut(b"x" * 11, 1)) == TooLargeError.reason
    large = wire.Frame(content=b"x" * (frames.PIECE + 1), last=True).SerializeToString()
    assert reason(add, 1 << 30, [large]) == TooLargeError.reason
