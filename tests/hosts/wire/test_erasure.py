"""Requests to forget nodes, and receipts, as bytes."""

import pytest

from manela.errors import MalformedError, TooLargeError
from manela.hosts.state.erasure import MOST_ERASED, Erasure, Receipt
from manela.hosts.wire import host_pb2 as wire
from manela.hosts.wire.codec import LARGEST_ERASURE, decode_erasure, decode_receipt, encode


def test_what_is_encoded_is_decoded():
    assert decode_erasure(encode(Erasure(("ann", "bob@x", "ö")))) == Erasure(("ann", "bob@x", "ö"))
    assert decode_receipt(encode(Receipt("abc123", 1_800_000_000))) == Receipt("abc123", 1_800_000_000)


def test_the_largest_request_is_within_its_bound():
    content = encode(Erasure(tuple(f"{number:0256d}" for number in range(MOST_ERASED))))
    assert len(content) <= LARGEST_ERASURE
    assert len(decode_erasure(content).nodes) == MOST_ERASED


@pytest.mark.parametrize("names", [(), tuple(map(str, range(MOST_ERASED + 1)))])
def test_a_request_of_none_or_of_too_many_is_refused(names):
    with pytest.raises(TooLargeError, match="1 to 1,000 nodes may be erased at once"):
        decode_erasure(encode(Erasure(names)))


@pytest.mark.parametrize("name", ["", "x" * 257, "a\nb", "\x00"])
def test_a_name_that_no_node_can_have_is_refused(name):
    with pytest.raises(MalformedError, match="a node's name must be"):
        decode_erasure(encode(Erasure(("ann", name))))


@pytest.mark.parametrize("receipt", ["", "x" * 65, "a b", "\x1b[2J", "ä"])
def test_a_receipt_that_could_harm_a_terminal_or_a_file_is_refused(receipt):
    with pytest.raises(MalformedError, match="a receipt must have 1 to 64 letters and digits"):
        decode_receipt(encode(Receipt(receipt, 0)))


def test_a_time_after_all_calendars_is_clamped():
    assert decode_receipt(wire.Receipt(id="a", time=2**64 - 1).SerializeToString()).time == 253_402_300_799


@pytest.mark.parametrize("decode", [decode_erasure, decode_receipt])
def test_rubbish_is_refused(decode):
    with pytest.raises(MalformedError):
        decode(b"\xff\xff\xff")
