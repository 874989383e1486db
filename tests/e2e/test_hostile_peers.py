"""A real daemon that learns, and peers that mean harm, over real TLS: everything is refused, counted, written down."""

import asyncio
import signal
import socket
import ssl
import subprocess
import time
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from manela.agents import codec, frames
from manela.agents import host_pb2 as wire
from manela.agents.config import Config
from manela.agents.exchanges import GREET, INTRODUCE, SHOW, WALK, make_host
from manela.agents.federation import free_ports
from manela.agents.folder import init, read_status
from manela.agents.identity import CERTIFICATE, make_identity, read_certificate
from manela.agents.messages import ROUND, Acceptance, Introduction, Pull, Shown, Step, WalkReply, WalkRequest
from manela.agents.neighbourhood import Edge, Neighbourhood
from manela.agents.options import PeerOptions, Rates
from manela.agents.process import make_command
from manela.agents.store import Store
from manela.agents.transport import rpc
from manela.agents.vectors_file import VectorsFile
from manela.errors import (
    BadVectorError,
    ClaimError,
    MalformedError,
    NotAdjacentError,
    OutOfOrderError,
    PeerError,
    RefusedError,
    SessionError,
    TooFarError,
    TooLargeError,
    TooOftenError,
    TooSlowError,
    UnknownPeerError,
)

EMPTY = np.zeros(0, np.int64)
PARAMETERS = {
    "dimensions": 8, "ratios": (0.5, 0.5), "rounds": 1_000_000, "pairs": 10**10, "start": "random", "smooth": False
}  # fmt: skip
RATES = Rates(requests=15.0, longest_wait=0.2)


PATIENCE = 120.0


class World:
    """A daemon `a` with peers `b` and `c`, whose keys the test has; it learns by messages or by walks."""

    def __init__(self, folder: Path, exchange: str = "messages") -> None:
        self.exchange, self.kind = exchange, {"messages": SHOW, "walks": WALK}[exchange]
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
            {**PARAMETERS, "exchange": exchange},
            peers=PeerOptions(
                start=0.0, wait=0.0, grace=0.05, deadline=1.5, longest_pause=0.5, half=False, every=1, means=1
            ),
            rates=RATES,
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
        command, environment = make_command(self.folder, while_stdin=True)
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            self.wait_for(lambda status: status.get("round", 0) > 0)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.process.stdin.close()

    def wait_for(self, holds, seconds=PATIENCE):
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
        return make_host(self.terms, Neighbourhood.build(name, [Edge(own, (other, "a")) for own, other in nodes]))

    def ask(self, name, kind, content):
        """Call the daemon once; returns the answer, or the reason of a refusal."""

        async def call():
            async with self.calling(name) as transport:
                try:
                    return await transport.call("a", kind, content)
                except RefusedError as refused:
                    return refused.reason

        return asyncio.run(call()) if name == "stranger" else reach(call)

    def introduce(self, name="b"):
        """Greet and introduce as an honest host would; returns the session."""
        host = self.host(name)
        assert isinstance(self.ask(name, GREET, codec.encode(host.hello())), bytes)
        acceptance = codec.decode_acceptance(self.ask(name, INTRODUCE, codec.encode(host.sessions.introduce("a"))))
        assert acceptance.accepted.all()
        return acceptance.session


def reach(call):
    """Call the daemon until it is reached, as a host does: on a busy machine it may hang up on a slow handshake."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return asyncio.run(call())
        except PeerError:
            if time.monotonic() > until:
                raise


def run_world(folder, exchange):
    found = World(folder, exchange)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    yield from run_world(tmp_path_factory.mktemp("world"), "messages")


@pytest.fixture(scope="module")
def walking(tmp_path_factory):
    yield from run_world(tmp_path_factory.mktemp("walking"), "walks")


def request(session, edges=(), steps=(), random=0, **more):
    return codec.encode(
        WalkRequest(session, 0, False, 0, np.array(edges, np.int64), np.array(steps, np.int64), random, **more)
    )


def pull(session, number=0, since=0):
    return codec.encode(Pull(session, Step(ROUND, number), since))


@asynccontextmanager
async def hostile_b(world, answer, frames=None):
    """A peer b that listens where the daemon looks for it, and answers exchanges with what the test likes."""
    host = world.host()

    tampering = []

    async def serve(peer, kind, content):
        tampering[:] = [kind == world.kind]
        if kind == GREET:
            return codec.encode(host.greet("a", codec.decode_hello(content)))
        if kind == INTRODUCE:
            return codec.encode(Acceptance(1, np.ones(len(codec.decode_introduction(content).askers), bool)))
        by_messages = world.kind == SHOW
        found = answer(codec.decode_pull(content) if by_messages else codec.decode_walk_request(content, False))
        return found if isinstance(found, bytes) else await found

    peers = {"a": rpc.Peer("a", "", (world.certificate,))}
    server = rpc.RpcServer(
        f"127.0.0.1:{world.port_of_b}", world.keys["b"], peers, serve, lambda *_: 1 << 28, lambda *_: None, 5.0,
        rpc.Traffic(),
    )  # fmt: skip
    honest = rpc.cut
    rpc.cut = lambda content, call: frames(content, call) if frames and tampering[0] else honest(content, call)
    await server.start()
    try:
        yield
    finally:
        rpc.cut = honest
        await server.stop(0.1)


def answer_with(vectors, index=None):
    """An answer by walks."""

    def answer(asked):
        places = np.zeros(asked.size, np.int64) if index is None else index(asked)
        return codec.encode(WalkReply(1, EMPTY, np.zeros((0, 1, 8), np.float32), places, vectors))

    return answer


def show(rows, changed=None, strengths=None):
    """An answer by messages; always of a new version."""
    versions = iter(range(1, 10**9))

    def answer(asked):
        numbers = np.arange(len(rows)) if changed is None else changed
        sums = np.full(len(rows), 3.0) if strengths is None else strengths
        return codec.encode(Shown(asked.step, next(versions), numbers, rows, sums))

    return answer


def rows_of(value, count=10, dimensions=8):
    return np.full((count, 1, 2, dimensions), value, np.float32)


def replay(content, call):
    yield wire.Frame(call=call - 1, last=True, content=content).SerializeToString()


def reorder(content, call):
    content = content + b"x" * frames.PIECE
    yield from reversed(list(frames.cut(content, call)))


def truncate(content, call):
    yield wire.Frame(call=call, content=content).SerializeToString()


def oversize(content, call):
    yield wire.Frame(call=call, last=True, content=content + b"x" * (2 * frames.PIECE)).SerializeToString()


HONEST = show(rows_of(0.1))


@pytest.mark.parametrize(
    ("answer", "cutting", "kind"),
    [
        (show(rows_of(np.nan)), None, BadVectorError),
        (show(rows_of(np.inf)), None, BadVectorError),
        (show(rows_of(0.1, dimensions=9)), None, MalformedError),
        (show(rows_of(0.1, count=11)), None, MalformedError),
        (show(rows_of(0.1), changed=np.zeros(10, np.int64)), None, MalformedError),
        (show(rows_of(0.1), changed=np.arange(10) + 5), None, MalformedError),
        (show(rows_of(0.1), changed=np.arange(10)[::-1]), None, MalformedError),
        (show(rows_of(0.1, count=400_000), changed=np.zeros(400_000, np.int64)), None, TooLargeError),
        (lambda asked: b"\xff\xff", None, MalformedError),
        (HONEST, replay, OutOfOrderError),
        (HONEST, reorder, OutOfOrderError),
        (HONEST, truncate, MalformedError),
        (HONEST, oversize, TooLargeError),
    ],
    ids=["nan", "infinite", "wrong length", "more nodes", "one node ten times", "other nodes", "wrong order",
         "one node 400,000 times", "no message", "replayed", "reordered", "truncated", "oversized"],
)  # fmt: skip
def test_a_bad_answer_is_refused_and_learning_goes_on(world, answer, cutting, kind):
    attack_with(world, answer, cutting, kind.reason)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (answer_with(np.full((1, 1, 8), np.nan, np.float32)), BadVectorError),
        (answer_with(np.zeros((1, 1, 9), np.float32)), MalformedError),
        (answer_with(np.zeros((1, 1, 8), np.float32), lambda asked: np.full(asked.size, 7)), MalformedError),
        (lambda asked: b"\xff\xff", MalformedError),
    ],
    ids=["nan", "wrong length", "wrong index", "no message"],
)
def test_a_bad_answer_by_walks_is_refused_and_learning_goes_on(walking, answer, kind):
    attack_with(walking, answer, None, kind.reason)


def attack_with(world, answer, cutting, why):
    before = world.count("b", why)

    async def attack():
        async with hostile_b(world, answer, cutting):
            await asyncio.to_thread(
                world.wait_for, lambda status: status.get("refusals", {}).get("b", {}).get(why, 0) > before
            )

    asyncio.run(attack())
    world.check_refused("b", why, before)
    saved = VectorsFile(world.folder).load()
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
    shown = codec.decode_shown(world.ask("b", SHOW, pull(session)), (1, 2, 8), 10)
    assert shown.changed.tolist() == list(range(10))
    assert np.isfinite(shown.rows).all()
    assert (shown.strengths >= 4).all()
    assert shown.moments == []  # of 30 nodes they would tell of single ones


def test_an_honest_peer_is_answered_by_walks(walking):
    session = walking.introduce()
    content = request(session, edges=[0, 1], steps=[1, 1], random=3)
    asked = codec.decode_walk_request(content, False)
    reply = codec.decode_walk_reply(walking.ask("b", WALK, content), asked, 1, 8)
    assert len(reply.index) == 5


def test_the_call_of_the_other_exchange_is_refused(world, walking):
    assert world.ask("b", WALK, request(world.introduce())) == MalformedError.reason
    assert walking.ask("b", SHOW, pull(walking.introduce())) == MalformedError.reason


def test_the_health_service_answers_peers(world):
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    async def check():
        async with world.calling("b") as transport:
            stub = health_pb2_grpc.HealthStub(transport._channel("a"))
            try:
                return await stub.Check(health_pb2.HealthCheckRequest(service=rpc.SERVICE), timeout=20.0)
            except rpc.grpc.aio.AioRpcError as error:
                raise rpc._as_ours("a", error) from error

    assert reach(check).status == health_pb2.HealthCheckResponse.SERVING


def test_an_unknown_certificate_does_not_get_in(world):
    before = world.count("unknown", UnknownPeerError.reason)
    with pytest.raises(PeerError):
        world.ask("stranger", GREET, b"")
    world.check_refused("unknown", UnknownPeerError.reason, before)


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
    before = world.count("c", ClaimError.reason)
    assert world.ask("c", GREET, codec.encode(world.host("b").hello())) == ClaimError.reason
    world.check_refused("c", ClaimError.reason, before)


def test_a_node_of_another_host_cannot_be_claimed(world):
    before = world.count("c", ClaimError.reason)
    answer = world.ask("c", INTRODUCE, codec.encode(Introduction(["p1@b"], ["n1"])))
    assert not codec.decode_acceptance(answer).accepted.any()
    world.check_refused("c", ClaimError.reason, before)


def test_a_node_that_is_not_adjacent_opens_nothing(world):
    answer = world.ask("b", INTRODUCE, codec.encode(Introduction(["p1@b", "p1@b"], ["n2", "n29"])))
    acceptance = codec.decode_acceptance(answer)
    assert not acceptance.accepted.any()
    shown = codec.decode_shown(world.ask("b", SHOW, pull(acceptance.session)), (1, 2, 8), 10)
    assert len(shown.rows) == 0


def test_a_walk_through_a_node_that_is_not_adjacent_goes_nowhere(walking):
    world = walking
    before = world.count("b", NotAdjacentError.reason)
    answer = world.ask("b", INTRODUCE, codec.encode(Introduction(["p1@b", "p1@b"], ["n2", "n29"])))
    acceptance = codec.decode_acceptance(answer)
    assert not acceptance.accepted.any()
    # nor does a walk by an edge that was not accepted
    assert world.ask("b", WALK, request(acceptance.session, edges=[0], steps=[1])) == NotAdjacentError.reason
    world.check_refused("b", NotAdjacentError.reason, before + 2)


@pytest.mark.parametrize("steps", [0, 2, 255])
def test_more_hops_than_agreed_are_refused(walking, steps):
    world = walking
    session = world.introduce()
    before = world.count("b", TooFarError.reason)
    assert world.ask("b", WALK, request(session, edges=[0], steps=[steps])) == TooFarError.reason
    world.check_refused("b", TooFarError.reason, before)


def test_a_session_of_another_peer_is_refused(world):
    session = world.introduce("b")
    assert world.ask("c", SHOW, pull(session)) == SessionError.reason
    # which is what a host is told that has missed a change of edges, so it is not held against it
    assert world.count("c", SessionError.reason) == 0


def send(world, pieces, pause=0.0, kind=WALK):
    """Send frames as they are with b's key; returns the reason of the refusal, or None."""

    async def call():
        async with world.calling("b") as transport:

            async def speak():
                for frame in pieces:
                    yield frame
                await asyncio.sleep(pause)

            found = transport._channel("a").stream_stream(f"/{rpc.SERVICE}/{kind}")(speak(), timeout=20.0)
            try:
                async for _ in found:
                    pass
            except rpc.grpc.aio.AioRpcError as error:
                ours = rpc._as_ours("a", error)
                if isinstance(ours, PeerError):
                    raise ours from error
                return getattr(ours, "reason", str(error))
            return None

    return reach(call)


def test_frames_out_of_order_are_refused(world):
    pieces = [wire.Frame(call=5, number=n, last=n == 1, content=b"x").SerializeToString() for n in range(2)]
    before = world.count("b", OutOfOrderError.reason)
    # nothing follows the frame that is refused: gRPC may report a failed send instead of the refusal
    assert send(world, [pieces[1]]) == OutOfOrderError.reason
    assert send(world, [pieces[0], pieces[0]]) == OutOfOrderError.reason
    world.check_refused("b", OutOfOrderError.reason, before + 1)


def test_a_truncated_message_is_refused(world):
    before = world.count("b", MalformedError.reason)
    first = wire.Frame(call=5, number=0, last=False, content=b"x").SerializeToString()
    assert send(world, [first]) == MalformedError.reason  # the last frame is missing
    assert send(world, frames.cut(pull(1)[:-1], 5), kind=SHOW) == MalformedError.reason
    world.check_refused("b", MalformedError.reason, before + 1)


def test_an_introduction_of_more_than_is_listed_is_refused_before_it_is_looked_at(world):
    before = world.count("b", TooLargeError.reason)
    # few bytes and many edges; and more bytes than all edges that are listed with b could take
    assert world.ask("b", INTRODUCE, codec.encode(Introduction([""] * 40_000, [""] * 40_000))) == TooLargeError.reason
    assert send(world, frames.cut(b"x" * 400_000, 1), kind=INTRODUCE) == TooLargeError.reason
    world.check_refused("b", TooLargeError.reason, before + 1)


def test_an_oversized_message_is_refused(world):
    before = world.count("b", TooLargeError.reason)
    frame = wire.Frame(call=1, content=b"x" * (frames.PIECE + 1)).SerializeToString()
    assert send(world, [frame]) == TooLargeError.reason
    assert send(world, frames.cut(b"x" * 5000, 1), kind=SHOW) == TooLargeError.reason  # a request has a few bytes
    world.check_refused("b", TooLargeError.reason, before)
    # a frame that is larger still does not even get to be looked at
    assert send(world, [wire.Frame(content=b"x" * (3 * frames.PIECE)).SerializeToString()]) == TooLargeError.reason


def test_ids_that_are_not_utf8_are_refused(world):
    before = world.count("b", MalformedError.reason)
    content = wire.Introduction(askers=["xyz@b"], others=["n1"]).SerializeToString().replace(b"xyz", b"\xff\xfe\xfd")
    assert world.ask("b", INTRODUCE, content) == MalformedError.reason
    world.check_refused("b", MalformedError.reason, before)


def test_a_peer_that_sends_nothing_is_let_go(world):
    before = world.count("b", TooSlowError.reason)
    assert send(world, [], pause=10.0) == TooSlowError.reason
    world.check_refused("b", TooSlowError.reason, before)


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
    before = world.count("b", TooOftenError.reason)

    async def flood():
        async with world.calling("b") as transport:
            calls = [transport.call("a", SHOW, pull(session)) for _ in range(400)]
            return await asyncio.gather(*calls, return_exceptions=True)

    answers, until = [], time.monotonic() + PATIENCE
    while not any(isinstance(answer, TooOftenError) for answer in answers):  # a slow machine floods slowly
        assert time.monotonic() < until, {str(answer)[:200] for answer in answers}
        answers = asyncio.run(flood())
    world.check_refused("b", TooOftenError.reason, before)
    assert isinstance(world.introduce("c"), int)


def test_the_daemon_ends_in_time_with_its_state_saved(tmp_path):
    world = World(tmp_path)
    try:
        seen = world.wait_for(lambda status: status["round"] > 20)["round"]
        world.process.send_signal(signal.SIGTERM)
        assert world.process.wait(60) == 0
        assert VectorsFile(world.folder).load().round >= seen
        status = read_status(world.folder)
        assert (status["state"], status["running"]) == ("stopped", False)
    finally:
        world.close()
