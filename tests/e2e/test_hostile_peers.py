"""A real daemon that learns, and peers that mean harm, over real TLS: everything is refused, counted, written down."""

import asyncio
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from manela.agents import codec
from manela.agents import host_pb2 as wire
from manela.agents.config import Config
from manela.agents.federation import free_ports
from manela.agents.folder import CERTIFICATE, init, read_status
from manela.agents.host import Host
from manela.agents.identity import make_identity, read_certificate
from manela.agents.limits import Rates
from manela.agents.messages import Acceptance, Introduction, Reason, Reply, Request
from manela.agents.neighbourhood import Edge, Neighbourhood
from manela.agents.service import EXCHANGE, GREET, INTRODUCE
from manela.agents.store import Store
from manela.agents.transport import rpc
from manela.errors import PeerError, RefusedError

EMPTY = np.zeros(0, np.int64)
PARAMETERS = {"dimensions": 8, "ratios": (0.5, 0.5), "rounds": 1_000_000, "pairs": 10**10}
RATES = Rates(requests=15.0, longest_wait=0.2)


class World:
    """A daemon `a` with peers `b` and `c`, whose keys the test has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a"
        self.keys = {}
        for name in ("b", "c", "stranger"):
            make_identity(name, folder / f"{name}.key", folder / f"{name}.pem")
            self.keys[name] = rpc.Keys(
                (folder / f"{name}.key").read_bytes(), read_certificate(folder / f"{name}.pem").encode()
            )
        self.files = folder
        self.port, self.port_of_b = free_ports(2)
        config = Config(
            "a",
            f"127.0.0.1:{self.port}",
            PARAMETERS,
            start=0.0,
            grace=0.05,
            deadline=1.5,
            longest_pause=0.5,
            rates=RATES,
            half=False,
        )
        init(self.folder, config)
        self.terms = config.terms(1)
        inner = [Edge(f"n{i}", (f"n{(i + k) % 30}", "a")) for i in range(30) for k in (1, 5)]
        outer = [Edge(f"n{i}", (f"p{i}", "b")) for i in range(10)] + [Edge("n3", ("q", "c"))]
        with Store(self.folder) as store:
            store.add_edges(inner + outer)
            for name, port in (("b", self.port_of_b), ("c", 1)):
                store.add_peer(name, f"127.0.0.1:{port}", self.keys[name].certificate.decode())
        self.certificate = read_certificate(self.folder / CERTIFICATE)
        command = [sys.executable, "-m", "manela", "agent", "run", "--home", str(self.folder), "--while-stdin"]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            self.wait_for(lambda status: status.get("round", 0) > 0)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        self.process.stdin.close()

    def wait_for(self, holds, seconds=30.0):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            status = read_status(self.folder)
            if holds(status):
                return status
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)
        raise AssertionError(f"did not come: {status}\n{(self.folder / 'log').read_text()[-3000:]}")

    def count(self, peer, reason):
        return read_status(self.folder).get("refusals", {}).get(peer, {}).get(reason, 0)

    def check_refused(self, peer, reason, before):
        """Counted, in the audit log, and the daemon goes on learning."""
        status = self.wait_for(lambda status: status.get("refusals", {}).get(peer, {}).get(reason, 0) > before)
        with Store(self.folder) as store:
            assert (peer, reason) in {(who, why) for _, who, why, _ in store.audited(1000)}
        self.wait_for(lambda later: later["round"] > status["round"] and later["state"] == "learning")

    @asynccontextmanager
    async def calling(self, name):
        """Calls of the daemon with some host's key."""
        peers = {"a": rpc.Peer("a", f"127.0.0.1:{self.port}", (self.certificate,))}
        transport = rpc.RpcTransport(self.keys[name], peers, 20.0, rpc.Traffic())
        try:
            yield transport
        finally:
            await transport.close()

    def host(self, name="b"):
        """An honest host of that name."""
        nodes = {"b": [(f"p{i}", f"n{i}") for i in range(10)], "c": [("q", "n3")]}[name]
        return Host(self.terms, Neighbourhood.build(name, [Edge(own, (other, "a")) for own, other in nodes]))

    def ask(self, name, kind, content):
        """Call the daemon once; returns the answer, or the reason of a refusal."""

        async def call():
            async with self.calling(name) as transport:
                try:
                    return await transport.call("a", kind, content)
                except RefusedError as refused:
                    return refused.reason

        return asyncio.run(call())

    def introduce(self, name="b"):
        """Greet and introduce as an honest host would; returns the session."""
        host = self.host(name)
        assert isinstance(self.ask(name, GREET, codec.encode(host.hello())), bytes)
        acceptance = codec.decode_acceptance(self.ask(name, INTRODUCE, codec.encode(host.introduce("a"))))
        assert acceptance.accepted.all()
        return acceptance.session


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    found = World(tmp_path_factory.mktemp("world"))
    try:
        yield found
    finally:
        found.close()


def request(session, edges=(), steps=(), random=0, **more):
    return codec.encode(
        Request(session, 0, False, 0, np.array(edges, np.int64), np.array(steps, np.int64), random, **more)
    )


@asynccontextmanager
async def hostile_b(world, answer, frames=None):
    """A peer b that listens where the daemon looks for it, and answers exchanges with what the test likes."""
    host = world.host()

    tampering = []

    async def serve(peer, kind, content):
        tampering[:] = [kind == EXCHANGE]
        if kind == GREET:
            return codec.encode(host.greet("a", codec.decode_hello(content)))
        if kind == INTRODUCE:
            return codec.encode(Acceptance(1, np.ones(len(codec.decode_introduction(content).askers), bool)))
        found = answer(codec.decode_request(content, False))
        return found if isinstance(found, bytes) else await found

    peers = {"a": rpc.Peer("a", "", (world.certificate,))}
    server = rpc.RpcServer(
        f"127.0.0.1:{world.port_of_b}", world.keys["b"], peers, serve, lambda *_: None, 5.0, rpc.Traffic()
    )
    honest = rpc.cut
    rpc.cut = lambda content, call: frames(content, call) if frames and tampering[0] else honest(content, call)
    await server.start()
    try:
        yield
    finally:
        rpc.cut = honest
        await server.stop(0.1)


def answer_with(vectors, index=None):
    def answer(asked):
        places = np.zeros(asked.size, np.int64) if index is None else index(asked)
        return codec.encode(Reply(1, EMPTY, np.zeros((0, 1, 8), np.float32), places, vectors))

    return answer


def replay(content, call):
    yield wire.Frame(call=call - 1, last=True, content=content).SerializeToString()


def reorder(content, call):
    content = content + b"x" * codec.PIECE
    yield from reversed(list(codec.cut(content, call)))


def truncate(content, call):
    yield wire.Frame(call=call, content=content).SerializeToString()


def oversize(content, call):
    yield wire.Frame(call=call, last=True, content=content + b"x" * (2 * codec.PIECE)).SerializeToString()


HONEST = answer_with(np.zeros((1, 1, 8), np.float32))


@pytest.mark.parametrize(
    ("answer", "frames", "why"),
    [
        (answer_with(np.full((1, 1, 8), np.nan, np.float32)), None, Reason.BAD_VECTOR),
        (answer_with(np.full((1, 1, 8), 1e20, np.float32)), None, Reason.BAD_VECTOR),
        (answer_with(np.zeros((1, 1, 9), np.float32)), None, Reason.MALFORMED),
        (answer_with(np.zeros((1, 1, 8), np.float32), lambda asked: np.full(asked.size, 7)), None, Reason.MALFORMED),
        (lambda asked: b"\xff\xff", None, Reason.MALFORMED),
        (HONEST, replay, Reason.OUT_OF_ORDER),
        (HONEST, reorder, Reason.OUT_OF_ORDER),
        (HONEST, truncate, Reason.MALFORMED),
        (HONEST, oversize, Reason.TOO_LARGE),
    ],
    ids=["nan", "absurd norm", "wrong length", "wrong index", "no message", "replayed", "reordered", "truncated",
         "oversized"],
)  # fmt: skip
def test_a_bad_answer_is_refused_and_learning_goes_on(world, answer, frames, why):
    before = world.count("b", why)

    async def attack():
        async with hostile_b(world, answer, frames):
            await asyncio.to_thread(
                world.wait_for, lambda status: status.get("refusals", {}).get("b", {}).get(why, 0) > before
            )

    asyncio.run(attack())
    world.check_refused("b", why, before)
    with Store(world.folder) as store:
        saved = store.load()
    assert np.isfinite(saved.vectors).all()


def test_a_peer_that_never_answers_is_not_waited_for(world):
    asked = []

    async def hang():
        await asyncio.sleep(3600)

    def answer(request):
        asked.append(request)
        return hang()

    async def attack():
        async with hostile_b(world, answer):
            await asyncio.to_thread(world.wait_for, lambda status: asked)
            seen = read_status(world.folder)["round"]
            await asyncio.to_thread(
                world.wait_for,
                lambda status: status["round"] > seen + 20 and "deadline" in status["peers"]["b"]["trouble"],
            )

    asyncio.run(attack())


def test_an_honest_peer_is_answered(world):
    session = world.introduce()
    content = request(session, edges=[0, 1], steps=[1, 1], random=3)
    asked = codec.decode_request(content, False)
    reply = codec.decode_reply(world.ask("b", EXCHANGE, content), asked, 1, 8, 1e3)
    assert len(reply.index) == 5


def test_the_health_service_answers_peers(world):
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    async def check():
        async with world.calling("b") as transport:
            stub = health_pb2_grpc.HealthStub(transport._channel("a"))
            return await stub.Check(health_pb2.HealthCheckRequest(service=rpc.SERVICE), timeout=5.0)

    assert asyncio.run(check()).status == health_pb2.HealthCheckResponse.SERVING


def test_an_unknown_certificate_does_not_get_in(world):
    before = world.count("unknown", Reason.UNKNOWN_PEER)
    with pytest.raises(PeerError):
        world.ask("stranger", GREET, b"")
    world.check_refused("unknown", Reason.UNKNOWN_PEER, before)


def test_nothing_below_tls_1_3_is_spoken(world):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(world.files / "b.pem", world.files / "b.key")
    context.set_alpn_protocols(["h2"])

    def connect():
        with socket.create_connection(("127.0.0.1", world.port)) as raw, context.wrap_socket(raw) as wrapped:
            return wrapped.version()

    assert connect() == "TLSv1.3"
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError):  # noqa: PT011
        connect()


def test_a_certificate_of_another_peer_is_not_the_peer(world):
    before = world.count("c", Reason.CLAIM)
    assert world.ask("c", GREET, codec.encode(world.host("b").hello())) == Reason.CLAIM
    world.check_refused("c", Reason.CLAIM, before)


def test_a_node_of_another_host_cannot_be_claimed(world):
    before = world.count("c", Reason.CLAIM)
    answer = world.ask("c", INTRODUCE, codec.encode(Introduction(["p1@b"], ["n1"])))
    assert not codec.decode_acceptance(answer).accepted.any()
    world.check_refused("c", Reason.CLAIM, before)


def test_a_node_that_is_not_adjacent_opens_nothing(world):
    before = world.count("b", Reason.NOT_ADJACENT)
    answer = world.ask("b", INTRODUCE, codec.encode(Introduction(["p1@b", "p1@b"], ["n2", "n29"])))
    acceptance = codec.decode_acceptance(answer)
    assert not acceptance.accepted.any()
    # nor does a walk by an edge that was not accepted
    assert world.ask("b", EXCHANGE, request(acceptance.session, edges=[0], steps=[1])) == Reason.NOT_ADJACENT
    world.check_refused("b", Reason.NOT_ADJACENT, before + 2)


@pytest.mark.parametrize("steps", [0, 2, 255])
def test_more_hops_than_agreed_are_refused(world, steps):
    session = world.introduce()
    before = world.count("b", Reason.TOO_FAR)
    assert world.ask("b", EXCHANGE, request(session, edges=[0], steps=[steps])) == Reason.TOO_FAR
    world.check_refused("b", Reason.TOO_FAR, before)


def test_a_session_of_another_peer_is_refused(world):
    session = world.introduce("b")
    before = world.count("c", Reason.SESSION)
    assert world.ask("c", EXCHANGE, request(session, edges=[0], steps=[1])) == Reason.SESSION
    world.check_refused("c", Reason.SESSION, before)


def send(world, frames, pause=0.0):
    """Send frames as they are with b's key; returns the reason of the refusal, or None."""

    async def call():
        async with world.calling("b") as transport:

            async def speak():
                for frame in frames:
                    yield frame
                await asyncio.sleep(pause)

            found = transport._channel("a").stream_stream(f"/{rpc.SERVICE}/{EXCHANGE}")(speak(), timeout=20.0)
            try:
                async for _ in found:
                    pass
            except rpc.grpc.aio.AioRpcError as error:
                return getattr(rpc._as_ours("a", error), "reason", str(error))
            return None

    return asyncio.run(call())


def test_frames_out_of_order_are_refused(world):
    # small ones: whoever still sends when it is refused may see its own sending fail instead of the answer
    frames = [wire.Frame(call=5, number=n, last=n == 1, content=b"x").SerializeToString() for n in range(2)]
    before = world.count("b", Reason.OUT_OF_ORDER)
    assert send(world, [frames[1], frames[0]]) == Reason.OUT_OF_ORDER
    assert send(world, [frames[0], frames[0]]) == Reason.OUT_OF_ORDER
    world.check_refused("b", Reason.OUT_OF_ORDER, before + 1)


def test_a_truncated_message_is_refused(world):
    before = world.count("b", Reason.MALFORMED)
    frames = list(codec.cut(b"x" * (codec.PIECE + 1), 5))
    assert send(world, frames[:1]) == Reason.MALFORMED  # the last frame is missing
    content = request(1, edges=[0], steps=[1])
    assert send(world, codec.cut(content[:-1], 5)) == Reason.MALFORMED
    world.check_refused("b", Reason.MALFORMED, before + 1)


def test_an_oversized_message_is_refused(world):
    before = world.count("b", Reason.TOO_LARGE)
    frame = wire.Frame(call=1, content=b"x" * (codec.PIECE + 1)).SerializeToString()
    assert send(world, [frame]) == Reason.TOO_LARGE
    world.check_refused("b", Reason.TOO_LARGE, before)
    # a frame that is larger still does not even get to be looked at
    assert send(world, [wire.Frame(content=b"x" * (3 * codec.PIECE)).SerializeToString()]) == Reason.TOO_LARGE


def test_ids_that_are_not_utf8_are_refused(world):
    before = world.count("b", Reason.MALFORMED)
    content = wire.Introduction(askers=["xyz@b"], others=["n1"]).SerializeToString().replace(b"xyz", b"\xff\xfe\xfd")
    assert world.ask("b", INTRODUCE, content) == Reason.MALFORMED
    world.check_refused("b", Reason.MALFORMED, before)


def test_a_peer_that_sends_nothing_is_let_go(world):
    before = world.count("b", Reason.TOO_SLOW)
    assert send(world, [], pause=10.0) == Reason.TOO_SLOW
    world.check_refused("b", Reason.TOO_SLOW, before)


def test_connections_that_say_nothing_do_no_harm(world):
    before = read_status(world.folder)["round"]
    silent = [socket.create_connection(("127.0.0.1", world.port)) for _ in range(50)]
    try:
        assert isinstance(world.introduce(), int)
        world.wait_for(lambda status: status["round"] > before + 10)
    finally:
        for one in silent:
            one.close()


def test_many_handshakes_at_once_do_no_harm(world):
    before = read_status(world.folder)["round"]

    async def call():
        async with world.calling("b") as transport:
            return await transport.call("a", GREET, codec.encode(world.host().hello()))

    async def call_all():
        return await asyncio.gather(*(call() for _ in range(60)), return_exceptions=True)

    found = asyncio.run(call_all())
    assert any(isinstance(one, bytes) for one in found)
    # some may not get their handshake in time, none may bring the daemon down
    assert all(isinstance(one, bytes | RefusedError | PeerError) for one in found), found
    world.wait_for(lambda status: status["round"] > before + 10)


def test_a_flood_is_held_back_and_others_are_served(world):
    session = world.introduce()
    before = world.count("b", Reason.TOO_OFTEN)

    async def flood():
        async with world.calling("b") as transport:
            calls = [transport.call("a", EXCHANGE, request(session, random=1)) for _ in range(400)]
            return await asyncio.gather(*calls, return_exceptions=True)

    found = asyncio.run(flood())
    reasons = {getattr(one, "reason", None) for one in found if isinstance(one, RefusedError)}
    assert Reason.TOO_OFTEN in reasons
    world.check_refused("b", Reason.TOO_OFTEN, before)
    assert isinstance(world.introduce("c"), int)


def test_the_daemon_ends_in_time_with_its_state_saved(tmp_path):
    world = World(tmp_path)
    try:
        seen = world.wait_for(lambda status: status["round"] > 20)["round"]
        begun = time.monotonic()
        world.process.send_signal(signal.SIGTERM)
        assert world.process.wait(10) == 0
        assert time.monotonic() - begun < 2.0
        with Store(world.folder) as store:
            assert store.load().round >= seen
        status = read_status(world.folder)
        assert (status["state"], status["running"]) == ("stopped", False)
    finally:
        world.close()
