"""gRPC transport: calls between hosts over mutual TLS 1.3, where the pinned certificate identifies the caller."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import os
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from manela.errors import (
    REFUSALS,
    ClaimError,
    ManelaError,
    NotAdjacentError,
    PeerError,
    RefusedError,
    SessionError,
    TermsError,
    TooFarError,
    TooLargeError,
    TooOftenError,
    TooSlowError,
    UnknownPeerError,
    import_extra,
)
from manela.hosts.folder.identity import expiry_of, fetch_certificate, fingerprint, name_of
from manela.hosts.wire.calls import FORGET, GREET, INTRODUCE, SHOW, WALK
from manela.hosts.wire.frames import LARGEST, PIECE, Joiner, cut

# Force TLS 1.3: below it only this RSA suite is allowed, and hosts have elliptic-curve certificates.
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES256-GCM-SHA384"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

grpc: Any = import_extra("grpc", "agents", "a host")

SERVICE = "manela.v1.Host"
_REASON = "manela-reason"
_UNKNOWN = "unknown"
_KINDS_OF_CALLS = (GREET, INTRODUCE, SHOW, WALK, FORGET)
_MOST_OPEN = 48
"""Requests that one peer may have open; more would let it take more memory."""
_HANDSHAKE = 3.0
"""Most seconds of a handshake; if larger, silent connections use up file descriptors for longer.

Under a flood of them against 256 descriptors, 16 of 57 new connections of a peer failed with 10 seconds, and none of 74
with 3. Closing those beyond 64 after a second, looked up among the open files, changed neither.
"""
_IDLE = 20.0
"""Seconds after which a connection without requests is closed; if larger, a peer may keep more of them open."""
_OPTIONS = [
    ("grpc.max_receive_message_length", PIECE + 4096),
    ("grpc.max_send_message_length", PIECE + 4096),
    ("grpc.max_metadata_size", 16384),
]


@dataclass(frozen=True)
class Endpoint:
    """The address of a peer, and the certificates that are pinned for it."""

    name: str
    address: str
    certificates: tuple[str, ...]


@dataclass(frozen=True)
class Keys:
    """A host's own key and certificate, in PEM."""

    key: bytes
    certificate: bytes


Count = Callable[[str, int, int], None]
"""Called with a peer, and the bytes of a message that was sent to it and of one that was received."""


class RpcTransport:
    """Sends requests to peers; must be closed with `close`."""

    def __init__(self, keys: Keys, peers: Mapping[str, Endpoint], deadline: float, count: Count) -> None:
        self._keys, self.peers, self.deadline = keys, dict(peers), deadline
        self._count = count
        self._channels: dict[str, Any] = {}
        self._calls = itertools.count(int.from_bytes(os.urandom(6), "big"))

    async def call(self, peer: str, kind: str, content: bytes, largest: int = LARGEST) -> bytes:
        """Send a request and return the reply; refuse a reply of more than `largest` bytes."""
        if peer not in self.peers:
            raise PeerError(f"{peer} is not a peer of this host")
        number = next(self._calls)
        joiner = Joiner(number, largest)
        frames = list(cut(content, number))

        async def send() -> AsyncIterator[bytes]:
            for frame in frames:
                yield frame

        try:
            method = self.channel(peer).stream_stream(f"/{SERVICE}/{kind}")
            call = method(send(), timeout=self.deadline)
            try:
                async for frame in call:
                    joiner.add(frame)
            finally:
                call.cancel()
        except grpc.aio.AioRpcError as error:
            ours = as_ours(peer, error)
            if isinstance(ours, WrongCertificateError):
                ours = await asyncio.to_thread(self._describe_certificate, ours, self.peers.get(peer))
            raise ours from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise PeerError(f"the connection to {peer} was replaced") from error
        reply = joiner.content
        self._count(peer, len(content), len(reply))
        return reply

    async def ping(self, peer: str) -> None:
        """Raise unless a peer answers and accepts this host."""
        if peer not in self.peers:
            raise PeerError(f"{peer} is not a peer of this host")
        health: Any = import_extra("grpc_health.v1.health_pb2", "agents", "a host")
        try:
            check = self.channel(peer).unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health.HealthCheckRequest.SerializeToString,
                response_deserializer=health.HealthCheckResponse.FromString,
            )
            await check(health.HealthCheckRequest(service=SERVICE), timeout=self.deadline)
        except grpc.aio.AioRpcError as error:
            ours = as_ours(peer, error)
            if isinstance(ours, WrongCertificateError):
                ours = await asyncio.to_thread(self._describe_certificate, ours, self.peers.get(peer))
            raise ours from error

    def _describe_certificate(self, error: PeerError, peer: Endpoint | None) -> PeerError:
        if peer is None:
            return error
        try:
            certificate = fetch_certificate(peer.address, self.deadline)
            ends, now = expiry_of(certificate), datetime.datetime.now(datetime.UTC)
            if certificate in peer.certificates and ends < now:
                return PeerError(f"the certificate of {peer.name} expired on {ends:%Y-%m-%d}; it must be renewed there")
            shown = fingerprint(certificate)
        except ManelaError as trouble:
            return PeerError(f"{error}: {trouble}")
        expected = " or ".join(fingerprint(pem) for pem in peer.certificates) or "none"
        return PeerError(f"{error}: it presented {shown}, but {expected} is pinned")

    async def change(self, keys: Keys, peers: Mapping[str, Endpoint]) -> None:
        """Use these keys and peers from now on; connections to unchanged peers stay open."""
        stale = [name for name in self._channels if keys != self._keys or peers.get(name) != self.peers.get(name)]
        self._keys, self.peers = keys, dict(peers)
        for name in stale:
            await self._channels.pop(name).close(grace=1.0)

    async def close(self) -> None:
        """Close all connections."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

    def channel(self, name: str) -> Any:
        """Return the connection to a peer, which is opened when it is first used."""
        if name not in self._channels:
            peer = self.peers[name]
            credentials = grpc.ssl_channel_credentials(
                "".join(peer.certificates).encode(), self._keys.key, self._keys.certificate
            )
            options = [
                *_OPTIONS,
                ("grpc.ssl_target_name_override", name),
                ("grpc.initial_reconnect_backoff_ms", 200),
                ("grpc.min_reconnect_backoff_ms", 200),
                ("grpc.max_reconnect_backoff_ms", 5000),
                ("grpc.use_local_subchannel_pool", 1),
            ]
            self._channels[name] = grpc.aio.secure_channel(peer.address, credentials, options)
        return self._channels[name]


Serve = Callable[[str, str, bytes], Awaitable[bytes]]


class RpcServer:
    """Listens, and passes the requests of known peers to `serve`; call `start` and `stop`."""

    def __init__(
        self,
        listen: str,
        keys: Keys,
        peers: Mapping[str, Endpoint],
        serve: Serve,
        bound: Callable[[str, str], int],
        refuse: Callable[[str, RefusedError], None],
        deadline: float,
        count: Count,
        most_open: int = _MOST_OPEN,
    ) -> None:
        self._most_open = most_open
        self._listen, self._serve, self._refuse, self.deadline = listen, serve, refuse, deadline
        self._count, self._bound = count, bound
        self._opened: deque[float] = deque()
        self._asked: dict[str, float] = {}
        self.shown: dict[str, str] = {}  # the certificate that each peer has shown last
        self._open: Counter[str] = Counter()
        self._changed: Any = None
        self.change(keys, peers)
        self._server: Any = None
        self._health: Any = None
        self.port = 0  # the port that it listens on

    def change(self, keys: Keys, peers: Mapping[str, Endpoint]) -> None:
        """Use these keys and peers for new connections; requests of hosts that are no peers are refused at once."""
        self._names = {pem: peer.name for peer in peers.values() for pem in peer.certificates}
        roots = "".join(self._names) or keys.certificate.decode()
        self._changed = grpc.ssl_server_certificate_configuration(
            [(keys.key, keys.certificate)], root_certificates=roots.encode()
        )

    async def start(self) -> None:
        """Start listening."""
        health: Any = import_extra("grpc_health.v1.health", "agents", "a host")
        pb: Any = import_extra("grpc_health.v1.health_pb2", "agents", "a host")
        added: Any = import_extra("grpc_health.v1.health_pb2_grpc", "agents", "a host")
        options = [
            *_OPTIONS,
            ("grpc.server_handshake_timeout_ms", int(1000 * min(_HANDSHAKE, self.deadline))),
            ("grpc.max_connection_idle_ms", int(1000 * _IDLE)),
            ("grpc.max_concurrent_streams", 64),
            ("grpc.so_reuseport", 0),
        ]
        self._server = grpc.aio.server(options=options)
        handlers = {kind: grpc.stream_stream_rpc_method_handler(self._handler(kind)) for kind in _KINDS_OF_CALLS}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        identify = self._identify

        class Health(health.aio.HealthServicer):  # type: ignore[misc]
            """The health service, for peers only."""

            async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 - as gRPC calls it
                try:
                    identify(context)
                except RefusedError as refusal:
                    await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(refusal))
                return await super().Check(request, context)

        self._health = Health()
        added.add_HealthServicer_to_server(self._health, self._server)
        await self._health.set(SERVICE, pb.HealthCheckResponse.SERVING)
        first, self._changed = self._changed, None
        credentials = grpc.dynamic_ssl_server_credentials(
            first, self._begin_handshake, require_client_authentication=True
        )
        try:
            self.port = self._server.add_secure_port(self._listen, credentials)
        except RuntimeError as error:
            raise PeerError(f"cannot listen on {self._listen}; is the port in use?") from error
        if self.port == 0:
            raise PeerError(f"cannot listen on {self._listen}; is the port in use?")
        await self._server.start()

    async def stop(self, grace: float) -> None:
        """Stop listening; open requests have `grace` seconds to finish."""
        if self._server is not None:
            await self._health.enter_graceful_shutdown()
            await self._server.stop(grace)

    def sweep(self) -> None:
        """Report the connections that have never presented a known certificate."""
        now, late = time.monotonic(), 0
        # a connection that has been silent for longer is closed, and its address may be that of another by now
        self._asked = {address: asked for address, asked in self._asked.items() if now - asked < _IDLE}
        while self._opened and self._opened[0] < now - self.deadline:
            self._opened.popleft()
            late += 1
        if late:
            message = "a connection never presented a known certificate"
            self._refuse(_UNKNOWN, UnknownPeerError(message, times=late))

    def _begin_handshake(self) -> Any:
        """Return a changed TLS configuration, or None; gRPC calls this for each connection, in a separate thread."""
        self._opened.append(time.monotonic())
        # gRPC rebuilds its TLS state for every configuration it gets, so return each only once
        changed, self._changed = self._changed, None
        return changed

    def _handler(self, kind: str) -> Callable[[Any, Any], Awaitable[None]]:
        """Return the function that handles requests of one kind and reports refusals to the peer."""

        async def handle(frames: AsyncIterator[bytes], context: Any) -> None:
            peer = ""
            try:
                peer = self._identify(context)
                if self._open[peer] >= self._most_open:
                    raise self._report(peer, TooOftenError(f"{peer} has {self._most_open} requests open"))
                self._open[peer] += 1
                try:
                    await self._read_and_answer(peer, kind, frames, context)
                finally:
                    self._open[peer] -= 1
            except RefusedError as refusal:
                await context.abort(
                    _CODES.get(type(refusal), grpc.StatusCode.INVALID_ARGUMENT),
                    str(refusal),
                    ((_REASON, _as_word(type(refusal))),),
                )

        return handle

    async def _read_and_answer(self, peer: str, kind: str, frames: AsyncIterator[bytes], context: Any) -> None:
        """Read a request in frames, within its bound and the deadline, and send the answer."""
        joiner = Joiner(largest=self._bound(peer, kind))
        try:
            async with asyncio.timeout(self.deadline):
                async for frame in frames:
                    joiner.add(frame)
                    if joiner.done:
                        break
            content = joiner.content
        except TimeoutError:
            raise self._report(peer, TooSlowError("the request did not arrive in time")) from None
        except RefusedError as refusal:
            raise self._report(peer, refusal) from None
        answer = await self._serve(peer, kind, content)
        self._count(peer, len(answer), len(content))
        try:
            async with asyncio.timeout(self.deadline):
                for frame in cut(answer, joiner.call or 0):
                    await context.write(frame)
        except TimeoutError:
            raise self._report(peer, TooSlowError("the answer was not read in time")) from None

    def _report(self, peer: str, refusal: RefusedError) -> RefusedError:
        self._refuse(peer, refusal)
        return refusal

    def _identify(self, context: Any) -> str:
        """Return the peer whose certificate the caller has shown; refuse an unknown certificate."""
        shown = context.auth_context().get("x509_pem_cert", [b""])[0].decode("ascii", "replace")
        name = self._names.get(shown)
        if name is None:
            raise self._report(_UNKNOWN, UnknownPeerError(f"the certificate {_describe(shown)} is not known here"))
        self.shown[name] = shown
        address = context.peer()
        if address not in self._asked and self._opened:  # the first request of a connection
            self._opened.popleft()
        self._asked[address] = time.monotonic()
        return name


def _describe(certificate: str) -> str:
    """Return whose certificate it is by its own account, and the beginning of its fingerprint."""
    try:
        return f"of {name_of(certificate)!r}, {fingerprint(certificate)[:23]}…,"
    except ValueError:
        return "that was presented"


_HUNG_UP = ("Socket closed", "Connection reset", "Broken pipe", "recvmsg:", "handshake")
"""Words in gRPC's errors when a peer has closed the connection, as it does if it does not know our certificate."""


class WrongCertificateError(PeerError):
    """The server at a peer's address shows a certificate that is not pinned."""


_CODES: dict[type[RefusedError], Any] = {
    UnknownPeerError: grpc.StatusCode.UNAUTHENTICATED,
    ClaimError: grpc.StatusCode.PERMISSION_DENIED,
    NotAdjacentError: grpc.StatusCode.PERMISSION_DENIED,
    TooFarError: grpc.StatusCode.PERMISSION_DENIED,
    TermsError: grpc.StatusCode.FAILED_PRECONDITION,
    SessionError: grpc.StatusCode.FAILED_PRECONDITION,
    TooOftenError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    TooLargeError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    TooSlowError: grpc.StatusCode.DEADLINE_EXCEEDED,
}


def _as_word(kind: type[RefusedError]) -> str:
    return kind.reason.replace(" ", "-").replace("'", "")


_KINDS = {_as_word(kind): kind for kind in REFUSALS.values()}


def as_ours(peer: str, error: Any) -> PeerError | RefusedError:
    """Return a gRPC error as one of ours; text from the network is cut and made printable."""
    message = error.details() or ""
    metadata = {key: value for key, value in (error.trailing_metadata() or ()) if isinstance(value, str)}
    kind = _KINDS.get(metadata.get(_REASON, ""))
    if kind is not None:
        return kind(f"{peer} says: {message}", remote=True)
    if "larger than max" in message:
        return TooLargeError(f"{peer} sent a frame that is too large")
    if "CERTIFICATE_VERIFY_FAILED" in message or "Peer name" in message:
        return WrongCertificateError(f"the server of {peer} presented a certificate that is not pinned for it")
    message = "".join(c if c.isprintable() else "?" for c in message[:300])
    if any(sign in message for sign in _HUNG_UP):
        message += "; the peer closed the connection: it may have stopped, or not know the certificate of this host"
    return PeerError(f"{peer} cannot be reached ({error.code().name.lower().replace('_', ' ')}: {message})")
