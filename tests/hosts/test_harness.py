"""Hosts in one process: the same answers and refusals as over a wire."""

import asyncio

import pytest
from harness import MemoryTransport, connect, draw_graph, make_terms, split_over

from manela.errors import MalformedError, PeerError, SessionError, TooLargeError
from manela.hosts.state.messages import Pull, Step
from manela.hosts.wire.calls import GREET, SHOW
from manela.hosts.wire.codec import decode_hello, encode


@pytest.fixture
def hosts():
    return split_over(draw_graph(3), 2, make_terms())[0]


def call(transport, *arguments, **options):
    return asyncio.run(transport.call(*arguments, **options))


def test_an_answer_comes_from_the_host_that_is_called_and_its_bytes_are_counted(hosts):
    transport = MemoryTransport("h1", connect(hosts))
    greeting = encode(hosts["h1"].hello())
    answer = call(transport, "h0", GREET, greeting)
    assert decode_hello(answer).host == "h0"
    assert transport.carried == len(greeting) + len(answer)
    assert hosts["h0"].peers.greetings["h1"].host == "h1"


def test_a_host_that_is_not_there_cannot_be_reached(hosts):
    transport = MemoryTransport("h1", connect(hosts))
    with pytest.raises(PeerError, match="h7 cannot be reached"):
        call(transport, "h7", GREET, b"")
    assert transport.carried == 0


def test_a_refusal_is_of_the_same_kind_and_said_to_be_the_peers(hosts):
    transport = MemoryTransport("h1", connect(hosts))
    for content, kind in ((b"\xff\xff", MalformedError), (encode(Pull(1, Step(1, 0))), SessionError)):
        with pytest.raises(kind, match="^h0 says: ") as caught:
            call(transport, "h0", SHOW, content)
        assert type(caught.value) is kind
        assert caught.value.remote


def test_an_answer_that_is_longer_than_asked_for_is_refused(hosts):
    services = connect(hosts)
    greeting = encode(hosts["h1"].hello())
    size = len(call(MemoryTransport("h1", services), "h0", GREET, greeting))
    assert len(call(MemoryTransport("h1", services), "h0", GREET, greeting, largest=size)) == size
    with pytest.raises(TooLargeError, match=f"may have {size - 1} bytes, got {size}"):
        call(MemoryTransport("h1", services), "h0", GREET, greeting, largest=size - 1)
