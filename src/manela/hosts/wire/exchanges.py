"""Exchanges: selects the host class and the encoding of requests for each of the two ways to learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from manela.hosts.state.host import Host
from manela.hosts.state.messages import Pull, Shown, WalkReply, WalkRequest
from manela.hosts.state.names import Node
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.rounds import MessageHost
from manela.hosts.state.terms import Terms
from manela.hosts.walks.host import WalkHost
from manela.hosts.wire.codec import (
    bound_shown,
    decode_pull,
    decode_shown,
    decode_walk_reply,
    decode_walk_request,
    encode,
)
from manela.hosts.wire.frames import LARGEST

_SMALL, _WALKS = 1 << 12, 1 << 26
"""Most bytes of a request by messages, and of one by walks; more would let a peer take more memory."""
GREET, INTRODUCE, SHOW, WALK = "Greet", "Introduce", "Show", "Walk"


class Cost(NamedTuple):
    """The most that a request asks for."""

    walks: int
    vectors: int


class Calls(Protocol):
    """How one kind of host encodes, decodes and bounds requests and replies; `kind` is the name of the call."""

    kind: str

    def decode_request(self, host: Any, content: bytes) -> Any:
        """Decode a peer's request."""
        ...

    def bound_request(self, host: Any, peer: str) -> int:
        """Return the most bytes that a peer's request may have."""
        ...

    def count(self, host: Any, peer: str, request: Any) -> Cost:
        """Return the most that a request asks for."""
        ...

    def encode_reply(self, host: Any, peer: str, reply: Any) -> bytes:
        """Encode a reply to a peer."""
        ...

    def bound_reply(self, host: Any, peer: str, request: Any) -> int:
        """Return the most bytes that the reply to our request may have."""
        ...

    def decode_reply(self, host: Any, peer: str, request: Any, content: bytes) -> Any:
        """Decode a peer's reply to our request."""
        ...


class MessageCalls:
    """The calls of hosts that learn by messages."""

    kind = SHOW

    def decode_request(self, host: MessageHost, content: bytes) -> Pull:
        """Decode a peer's request."""
        return decode_pull(content)

    def bound_request(self, host: MessageHost, peer: str) -> int:
        """Return the most bytes that a peer's request may have."""
        return _SMALL

    def count(self, host: MessageHost, peer: str, request: Pull) -> Cost:
        """Return the most that a request asks for."""
        tables, levels, _ = host.count_rows(request)
        return Cost(0, tables * levels * host.sessions.count_neighbours(peer))

    def encode_reply(self, host: MessageHost, peer: str, reply: Shown) -> bytes:
        """Encode a reply to a peer."""
        return encode(reply)

    def bound_reply(self, host: MessageHost, peer: str, request: Pull) -> int:
        """Return the most bytes that the reply to our request may have."""
        return bound_shown(host.count_rows(request), _count_known(host, peer))

    def decode_reply(self, host: MessageHost, peer: str, request: Pull, content: bytes) -> Shown:
        """Decode a peer's reply to our request."""
        return decode_shown(content, host.count_rows(request), _count_known(host, peer))


class WalkCalls:
    """The calls of hosts that learn by walks."""

    kind = WALK

    def decode_request(self, host: WalkHost, content: bytes) -> WalkRequest:
        """Decode a peer's request."""
        return decode_walk_request(content, host.terms.lock_step)

    def bound_request(self, host: WalkHost, peer: str) -> int:
        """Return the most bytes that a peer's request may have."""
        return _WALKS

    def count(self, host: WalkHost, peer: str, request: WalkRequest) -> Cost:
        """Return the most that a request asks for."""
        neighbours = host.sessions.count_neighbours(peer) if request.neighbours else 0
        return Cost(len(request.edges), request.size + neighbours)

    def encode_reply(self, host: WalkHost, peer: str, reply: WalkReply) -> bytes:
        """Encode a reply to a peer."""
        return encode(reply, half=_may_halve(host, peer))

    def bound_reply(self, host: WalkHost, peer: str, request: WalkRequest) -> int:
        """Return the most bytes that the reply to our request may have."""
        bytes_per_row = 16 + 4 * host.terms.tables * host.terms.settings.dimensions
        return min(LARGEST, bytes_per_row * (request.size + _count_known(host, peer)) + 4096)

    def decode_reply(self, host: WalkHost, peer: str, request: WalkRequest, content: bytes) -> WalkReply:
        """Decode a peer's reply to our request."""
        return decode_walk_reply(content, request, host.terms.tables, host.terms.settings.dimensions)


def make_host(
    terms: Terms,
    neighbourhood: Neighbourhood,
    numbers: Mapping[Node, int] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Host:
    """Create a host of the kind that its terms ask for."""
    kind = MessageHost if terms.settings.exchange == "messages" else WalkHost
    return kind(terms, neighbourhood, numbers, sizes)


def calls_of(host: Host) -> Calls:
    """Return the calls of a host."""
    return MessageCalls() if isinstance(host, MessageHost) else WalkCalls()


def _count_known(host: Host, peer: str) -> int:
    """Return how many of a peer's nodes are neighbours of nodes here."""
    link = host.sessions.links.get(peer)
    return 0 if link is None else len(link.neighbours)


def _may_halve(host: Host, peer: str) -> bool:
    """Return whether a peer is sent vectors in half precision: outside lock-step, if both hosts want it."""
    greeting = host.sessions.greetings.get(peer)
    return host.terms.peers.half and not host.terms.lock_step and greeting is not None and greeting.half
