"""A real daemon that learns, and what peers that mean harm need to attack it over real TLS."""

import asyncio
import subprocess
import time
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from manela.errors import (
    PeerError,
    RefusedError,
)
from manela.hosts.daemon.process import make_command
from manela.hosts.federation import free_ports
from manela.hosts.folder.config import Config
from manela.hosts.folder.home import init, read_status
from manela.hosts.folder.identity import CERTIFICATE, make_identity, read_certificate
from manela.hosts.folder.store import Store
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.messages import ROUND, Acceptance, Pull, Step, WalkRequest
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.terms import PeerOptions, RateLimits
from manela.hosts.transport import rpc
from manela.hosts.walks.host import make_host
from manela.hosts.wire import codec
from manela.hosts.wire.calls import GREET, INTRODUCE, SHOW, WALK

EMPTY = np.zeros(0, np.int64)
PARAMETERS = {
    "dimensions": 8, "ratios": (0.5, 0.5), "rounds": 1_000_000, "pairs": 10**10, "smooth": False
}  # fmt: skip
RATES = RateLimits(requests=15.0, longest_wait=0.2)
PATIENCE = 240.0
"""Seconds to wait for what must come; a busy machine takes long."""


class World:
    """A daemon `a` with peers `b` and `c`, whose keys the test has; it learns by messages or by walks."""

    def __init__(self, folder: Path, exchange: str = "messages") -> None:
        self.exchange, self.kind = exchange, {"messages": SHOW, "walks": WALK}[exchange]
        self.home = folder / "a"
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
            start="random",
            peers=PeerOptions(
                start=0.0, wait=0.0, grace=0.05, deadline=1.5, longest_pause=0.5, half=False, every=1, means=1
            ),
            rates=RATES,
        )
        init(self.home, config)
        self.terms = config.terms(1)
        inner = [Edge(f"n{i}", (f"n{(i + k) % 30}", "a")) for i in range(30) for k in (1, 5)]
        outer = [Edge(f"n{i}", (f"p{i}", "b")) for i in range(10)] + [Edge("n3", ("q", "c"))]
        with Store(self.home) as store:
            store.add_edges(inner + outer)
            for name, port in (("b", self.port_of_b), ("c", 1)):
                store.add_peer(name, f"127.0.0.1:{port}", self.keys[name].certificate.decode())
        self.certificate = read_certificate(self.home / CERTIFICATE)
        command, environment = make_command(self.home, while_stdin=True)
        with (self.home / "log").open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            self.wait_for(lambda status: status.get("round", 0) > 0)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(180)
        self.process.stdin.close()

    def wait_for(self, holds, seconds=PATIENCE):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            status = read_status(self.home)
            if holds(status):
                return status
            assert self.process.poll() is None, (self.home / "log").read_text()
            time.sleep(0.05)
        raise AssertionError(f"did not come: {status}\n{(self.home / 'log').read_text()[-3000:]}")

    def count(self, peer, reason):
        return read_status(self.home).get("refusals", {}).get(peer, {}).get(reason, 0)

    def check_refused(self, peer, reason, before):
        """Counted, in the audit log, and the daemon goes on learning."""
        status = self.wait_for(lambda status: status.get("refusals", {}).get(peer, {}).get(reason, 0) > before)
        self.wait_for(lambda _: self.is_audited(peer, reason))  # what came while others were written is written next
        self.wait_for(lambda later: later["round"] > status["round"] and later["state"] == "learning")

    def is_audited(self, peer, reason):
        with Store(self.home) as store:
            return (peer, reason) in {(who, why) for _, who, why, _ in store.audited(1000)}

    @asynccontextmanager
    async def calling(self, name):
        """Calls of the daemon with some host's key."""
        peers = {"a": rpc.Endpoint("a", f"127.0.0.1:{self.port}", (self.certificate,))}
        transport = rpc.RpcTransport(self.keys[name], peers, 20.0, lambda *_: None)
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
            return codec.encode(Acceptance(1, np.ones(len(codec.decode_introduction(content, 10**6).askers), bool)))
        by_messages = world.kind == SHOW
        found = answer(codec.decode_pull(content) if by_messages else codec.decode_walk_request(content, False))
        return found if isinstance(found, bytes) else await found

    peers = {"a": rpc.Endpoint("a", "", (world.certificate,))}
    server = rpc.RpcServer(
        f"127.0.0.1:{world.port_of_b}", world.keys["b"], peers, serve, lambda *_: 1 << 28, lambda *_: None, 5.0,
        lambda *_: None,
    )  # fmt: skip
    honest = rpc.cut
    rpc.cut = lambda content, call: frames(content, call) if frames and tampering[0] else honest(content, call)
    await server.start()
    try:
        yield
    finally:
        rpc.cut = honest
        await server.stop(0.1)


def attack_with(world, answer, cutting, why):
    before = world.count("b", why)

    async def attack():
        async with hostile_b(world, answer, cutting):
            await asyncio.to_thread(
                world.wait_for, lambda status: status.get("refusals", {}).get("b", {}).get(why, 0) > before
            )

    asyncio.run(attack())
    world.check_refused("b", why, before)
    saved = VectorsFile(world.home).load()
    assert np.isfinite(saved.vectors).all()
