"""Calls between hosts over real sockets: who is let in, what comes back, and what trouble looks like."""

import asyncio
import contextlib
import socket
import threading

import pytest

from manela.errors import (
    REFUSALS,
    MalformedError,
    PeerError,
    RefusedError,
    TermsError,
    TooFarError,
    TooLargeError,
    TooOftenError,
    TooSlowError,
    UnknownPeerError,
)
from manela.hosts.folder.identity import fingerprint
from manela.hosts.transport import rpc
from manela.hosts.transport.rpc import Endpoint, Keys, RpcServer, RpcTransport
from manela.hosts.wire.calls import GREET, SHOW
from manela.hosts.wire.frames import PIECE


class Listener:
    """A server `a` that peers `b` and `c` may call, and what it was asked and has refused."""

    def __init__(self, identities, serve=None, bound=10 * PIECE, kind=RpcServer, **options):
        self.asked, self.told = [], []
        self.counted, self.counted_by_callers = [], []
        self.identities = identities
        self.known = {name: Endpoint(name, "127.0.0.1:1", (pem(identities, name),)) for name in ("b", "c")}

        async def echo(peer, kind, content):
            self.asked.append((peer, kind, content))
            return content

        self.server = kind(
            "127.0.0.1:0", identities["a"], self.known, serve or echo, lambda peer, kind: bound,
            lambda peer, refusal: self.told.append((peer, refusal)), 30.0, lambda *counts: self.counted.append(counts),
            **options,
        )  # fmt: skip

    async def __aenter__(self):
        await self.server.start()
        return self

    async def __aexit__(self, *_):
        await self.server.stop(0.1)

    @contextlib.asynccontextmanager
    async def calling(self, name, pinned="a", deadline=30.0):
        """What a host of this name calls the server with."""
        peer = Endpoint("a", f"127.0.0.1:{self.server.port}", (pem(self.identities, pinned),))
        transport = RpcTransport(
            self.identities[name], {"a": peer}, deadline, lambda *counts: self.counted_by_callers.append(counts)
        )
        try:
            yield transport
        finally:
            await transport.close()


def pem(identities, name):
    return identities[name].certificate.decode()


def test_a_call_brings_the_request_and_the_answer_whole_and_counts_their_bytes(identities):
    content = bytes(range(256)) * (3 * PIECE // 256) + b"end"

    async def call():
        async with Listener(identities) as listener, listener.calling("b") as transport:
            assert await transport.call("a", SHOW, content) == content
            assert await transport.call("a", GREET, b"") == b""
            assert listener.asked == [("b", SHOW, content), ("b", GREET, b"")]
            assert listener.counted == [("b", len(content), len(content)), ("b", 0, 0)]
            assert listener.counted_by_callers == [("a", len(content), len(content)), ("a", 0, 0)]
            assert listener.server.shown == {"b": pem(identities, "b")}

    asyncio.run(call())


@pytest.mark.parametrize("kind", REFUSALS.values(), ids=lambda kind: kind.__name__)
def test_a_refusal_is_of_the_same_kind_on_the_other_side(identities, kind):
    async def refuse(peer, call, content):
        raise kind("no, \x1b[31m that is too much")

    async def call():
        async with Listener(identities, refuse) as listener, listener.calling("b") as transport:
            with pytest.raises(RefusedError) as caught:
                await transport.call("a", SHOW, b"x")
            assert type(caught.value) is kind
            assert caught.value.remote
            assert str(caught.value) == "a says: no, ?[31m that is too much"
            assert listener.counted == listener.counted_by_callers == []

    asyncio.run(call())


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (TermsError, "FAILED_PRECONDITION"),
        (TooFarError, "PERMISSION_DENIED"),
        (TooOftenError, "RESOURCE_EXHAUSTED"),
        (MalformedError, "INVALID_ARGUMENT"),
    ],
)
def test_a_refusal_has_the_status_that_other_programs_know(identities, kind, code):
    async def refuse(peer, call, content):
        raise kind("no")

    async def call():
        async with Listener(identities, refuse) as listener, listener.calling("b") as transport:
            with pytest.raises(kind) as caught:
                await transport.call("a", SHOW, b"x")
            assert caught.value.__cause__.code().name == code

    asyncio.run(call())


def test_one_whose_certificate_is_not_known_is_hung_up_and_others_are_still_answered(identities):
    async def call():
        async with Listener(identities) as listener:
            async with listener.calling("stranger") as transport:
                with pytest.raises(PeerError, match="a cannot be reached"):
                    await transport.call("a", SHOW, b"x")
            async with listener.calling("c") as transport:
                assert await transport.call("a", SHOW, b"y") == b"y"
            assert [peer for peer, *_ in listener.asked] == ["c"]

    asyncio.run(call())


@pytest.mark.parametrize("ask", [lambda transport: transport.call("a", SHOW, b"x"), lambda one: one.ping("a")])
def test_a_server_with_another_certificate_than_the_pinned_one_is_told_by_both_fingerprints(identities, ask):
    async def call():
        async with Listener(identities) as listener, listener.calling("b", pinned="stranger") as transport:
            with pytest.raises(PeerError) as caught:
                await ask(transport)
            assert fingerprint(pem(identities, "a")) in str(caught.value)
            assert fingerprint(pem(identities, "stranger")) in str(caught.value)
            assert listener.asked == []

    asyncio.run(call())


def test_one_that_is_no_peer_is_not_called(identities):
    async def call():
        async with Listener(identities) as listener, listener.calling("b") as transport:
            with pytest.raises(PeerError, match="nobody is not a peer of this host"):
                await transport.call("nobody", SHOW, b"x")
            assert listener.asked == []

    asyncio.run(call())


def test_a_port_where_nobody_listens_is_a_peer_that_cannot_be_reached(identities):
    async def call():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and does not listen
            peer = Endpoint("a", f"127.0.0.1:{taken.getsockname()[1]}", (pem(identities, "a"),))
            transport = RpcTransport(identities["b"], {"a": peer}, 5.0, lambda *_: None)
            try:
                for ask in (transport.call("a", SHOW, b"x"), transport.ping("a")):
                    with pytest.raises(PeerError, match=r"a cannot be reached \(unavailable"):
                        await ask
            finally:
                await transport.close()

    asyncio.run(call())


def test_an_answer_that_is_longer_than_asked_for_is_refused_and_one_that_is_not_is_taken(identities):
    async def answer(peer, kind, content):
        return b"x" * 1000

    async def call():
        async with Listener(identities, answer) as listener, listener.calling("b") as transport:
            assert len(await transport.call("a", SHOW, b"", largest=1000)) == 1000
            with pytest.raises(TooLargeError) as caught:
                await transport.call("a", SHOW, b"", largest=999)
            assert not caught.value.remote

    asyncio.run(call())


def test_a_request_that_is_longer_than_it_may_be_is_refused_and_told(identities):
    async def call():
        async with Listener(identities, bound=1000) as listener, listener.calling("b") as transport:
            assert await transport.call("a", SHOW, bytes(1000)) == bytes(1000)
            with pytest.raises(TooLargeError, match="a says: a message may have 1,000 bytes"):
                await transport.call("a", SHOW, bytes(1001))
            assert [(peer, type(refusal)) for peer, refusal in listener.told] == [("b", TooLargeError)]

    asyncio.run(call())


def test_bytes_that_are_no_frame_are_refused_and_told(identities):
    async def speak():
        yield b"\xff\xff\xff"

    async def call():
        async with Listener(identities) as listener, listener.calling("b") as transport:
            method = transport.channel("a").stream_stream(f"/{rpc.SERVICE}/{SHOW}")
            with pytest.raises(rpc.grpc.aio.AioRpcError) as caught:
                async for _ in method(speak(), timeout=60.0):
                    pass
            assert ("manela-reason", "malformed") in tuple(caught.value.trailing_metadata())
            assert [(peer, type(refusal)) for peer, refusal in listener.told] == [("b", MalformedError)]
            assert listener.asked == []

    asyncio.run(call())


def test_a_request_that_does_not_come_to_its_end_in_time_is_refused_and_told(identities):
    async def call():
        async with Listener(identities) as listener, listener.calling("b") as transport:
            listener.server.deadline = 0.05  # from here on: a busy machine takes longer to greet
            forever = asyncio.Event()

            async def speak():
                await forever.wait()
                yield b""

            method = transport.channel("a").stream_stream(f"/{rpc.SERVICE}/{SHOW}")
            with pytest.raises(rpc.grpc.aio.AioRpcError, match="the request did not arrive in time"):
                async for _ in method(speak(), timeout=60.0):
                    pass
            assert [(peer, type(refusal)) for peer, refusal in listener.told] == [("b", TooSlowError)]

    asyncio.run(call())


def test_a_peer_may_have_so_many_requests_open_and_another_peer_is_answered_beside_them(identities, monkeypatch):
    async def call():
        open_now, all_open, go = [], asyncio.Event(), asyncio.Event()

        async def serve(peer, kind, content):
            if peer == "b":
                open_now.append(content)
                if len(open_now) == 3:
                    all_open.set()
                await go.wait()
            return content

        async with (
            Listener(identities, serve, most_open=3) as listener,
            listener.calling("b") as transport,
            listener.calling("c") as other,
        ):
            calls = [asyncio.create_task(transport.call("a", SHOW, bytes([number]))) for number in range(3)]
            await all_open.wait()
            with pytest.raises(TooOftenError, match="b has 3 requests open"):
                await transport.call("a", SHOW, b"one more")
            assert await other.call("a", SHOW, b"y") == b"y"
            go.set()
            assert await asyncio.gather(*calls) == [b"\0", b"\1", b"\2"]
            assert await transport.call("a", SHOW, b"again") == b"again"
            assert [(peer, type(refusal)) for peer, refusal in listener.told] == [("b", TooOftenError)]

    asyncio.run(call())


def test_one_that_was_a_peer_is_refused_at_once_on_the_connection_that_it_has(identities):
    async def call():
        async with Listener(identities) as listener, listener.calling("b") as transport:
            assert await transport.call("a", SHOW, b"x") == b"x"
            await transport.ping("a")
            listener.server.change(identities["a"], {"c": listener.known["c"]})
            with pytest.raises(UnknownPeerError, match="the certificate of 'b', [0-9A-F:]{23}…, is not known here"):
                await transport.call("a", SHOW, b"x")
            with pytest.raises(PeerError, match="a cannot be reached"):
                await transport.ping("a")
            assert {peer for peer, _ in listener.told} == {"unknown"}
            assert len(listener.asked) == 1

    asyncio.run(call())


def test_one_that_becomes_a_peer_is_let_in_by_its_next_connection(identities):
    async def call():
        async with Listener(identities) as listener:
            new = Endpoint("stranger", "127.0.0.1:1", (pem(identities, "stranger"),))
            listener.server.change(identities["a"], {**listener.known, "stranger": new})
            async with listener.calling("stranger") as transport:
                assert await transport.call("a", SHOW, b"x") == b"x"
            assert listener.asked == [("stranger", SHOW, b"x")]

    asyncio.run(call())


def test_connections_to_peers_that_are_as_before_stay_and_others_are_made_anew(identities):
    async def call():
        async with Listener(identities) as listener, listener.calling("b") as transport:
            await transport.call("a", SHOW, b"x")
            peers, channel = dict(transport.peers), transport.channel("a")
            await transport.change(identities["b"], {**peers, "c": listener.known["c"]})
            assert transport.channel("a") is channel
            await transport.change(identities["c"], peers)
            assert transport.channel("a") is not channel
            await transport.call("a", SHOW, b"y")
            assert [peer for peer, *_ in listener.asked] == ["b", "c"]
            await transport.change(identities["c"], {})
            with pytest.raises(PeerError, match="a is not a peer"):
                await transport.call("a", SHOW, b"z")

    asyncio.run(call())


def test_a_connection_that_never_shows_a_certificate_is_counted_once(identities):
    begun = threading.Event()

    class Watched(RpcServer):
        def _begin_handshake(self):
            found = super()._begin_handshake()
            begun.set()
            return found

    async def call():
        async with Listener(identities, kind=Watched) as listener:
            server = listener.server
            with socket.create_connection(("127.0.0.1", server.port)):
                assert await asyncio.to_thread(begun.wait, 60)
                server.sweep()
                assert listener.told == []  # it still has time
                server.deadline = -1.0
                server.sweep()
                server.sweep()
            [(peer, refusal)] = listener.told
            assert (peer, type(refusal), refusal.times) == ("unknown", UnknownPeerError, 1)

    asyncio.run(call())


def test_a_port_in_use_is_told(identities):
    async def call():
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            server = RpcServer(address, identities["a"], {}, None, None, None, 1.0, lambda *_: None)
            try:
                with pytest.raises(PeerError, match=rf"cannot listen on {address}; is the port in use\?"):
                    await server.start()
            finally:
                await server.stop(0.0)

    asyncio.run(call())


def test_a_server_that_was_not_started_can_be_stopped(identities):
    server = RpcServer("127.0.0.1:0", identities["a"], {}, None, None, None, 1.0, lambda *_: None)
    asyncio.run(server.stop(0.0))
    assert server.port == 0


def test_keys_are_compared_by_what_they_hold(identities):
    key = identities["a"]
    assert Keys(key.key, key.certificate) == key
    assert key != identities["b"]
