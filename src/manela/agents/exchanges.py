"""Exchanges: the two ways to learn between hosts, with the host of each and how its requests become bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from manela.agents.codec import (
    bound_shown,
    decode_pull,
    decode_shown,
    decode_walk_reply,
    decode_walk_request,
    encode,
)
from manela.agents.frames import LARGEST
from manela.agents.host import Host
from manela.agents.message_host import MessageHost
from manela.agents.messages import Pull, Shown, WalkReply, WalkRequest
from manela.agents.names import Node
from manela.agents.neighbourhood import Neighbourhood
from manela.agents.terms import Terms
from manela.agents.walk_host import WalkHost

_SMALL, _WALKS = 1 << 12, 1 << 26
"""Bytes of a request by messages, and of one by walks."""
GREET, INTRODUCE, SHOW, WALK = "Greet", "Introduce", "Show", "Walk"


class Cost(NamedTuple):
    """What a request asks for at most."""

    walks: int
    vectors: int


class Calls(Protocol):
    """How a host of one kind asks and answers; `kind` is the name of the call."""

    kind: str

    def decode_request(self, host: Any, content: bytes) -> Any:
        """A peer's request."""
        ...

    def bound_request(self, host: Any, peer: str) -> int:
        """Bytes that a peer's request may have."""
        ...

    def count(self, host: Any, peer: str, request: Any) -> Cost:
        """What it asks for at most."""
        ...

    def encode_reply(self, host: Any, peer: str, reply: Any) -> bytes:
        """An answer to a peer."""
        ...

    def bound_reply(self, host: Any, peer: str, request: Any) -> int:
        """Bytes that the answer to our request may have."""
        ...

    def decode_reply(self, host: Any, peer: str, request: Any, content: bytes) -> Any:
        """A peer's answer to our request."""
        ...


class MessageCalls:
    """How hosts that learn by messages ask and answer."""

    kind = SHOW

    def decode_request(self, host: MessageHost, content: bytes) -> Pull:
        """A peer's request."""
        return decode_pull(content)

    def bound_request(self, host: MessageHost, peer: str) -> int:
        """Bytes that a peer's request may have."""
        return _SMALL

    def count(self, host: MessageHost, peer: str, request: Pull) -> Cost:
        """What it asks for at most."""
        tables, levels, _ = host.count_rows(request)
        return Cost(0, tables * levels * host.sessions.count_neighbours(peer))

    def encode_reply(self, host: MessageHost, peer: str, reply: Shown) -> bytes:
        """An answer to a peer."""
        return encode(reply)

    def bound_reply(self, host: MessageHost, peer: str, request: Pull) -> int:
        """Bytes that the answer to our request may have."""
        return bound_shown(host.count_rows(request), _count_known(host, peer))

    def decode_reply(self, host: MessageHost, peer: str, request: Pull, content: bytes) -> Shown:
        """A peer's answer to our request."""
        return decode_shown(content, host.count_rows(request), _count_known(host, peer))


class WalkCalls:
    """How hosts that learn by walks ask and answer."""

    kind = WALK

    def decode_request(self, host: WalkHost, content: bytes) -> WalkRequest:
        """A peer's request."""
        return decode_walk_request(content, host.terms.lock_step)

    def bound_request(self, host: WalkHost, peer: str) -> int:
        """Bytes that a peer's request may have."""
        return _WALKS

    def count(self, host: WalkHost, peer: str, request: WalkRequest) -> Cost:
        """What it asks for at most."""
        neighbours = host.sessions.count_neighbours(peer) if request.neighbours else 0
        return Cost(len(request.edges), request.size + neighbours)

    def encode_reply(self, host: WalkHost, peer: str, reply: WalkReply) -> bytes:
        """An answer to a peer."""
        return encode(reply, half=_may_halve(host, peer))

    def bound_reply(self, host: WalkHost, peer: str, request: WalkRequest) -> int:
        """Bytes that the answer to our request may have."""
        a_row = 16 + 4 * host.terms.tables * host.terms.settings.dimensions
        return min(LARGEST, a_row * (request.size + _count_known(host, peer)) + 4096)

    def decode_reply(self, host: WalkHost, peer: str, request: WalkRequest, content: bytes) -> WalkReply:
        """A peer's answer to our request."""
        return decode_walk_reply(content, request, host.terms.tables, host.terms.settings.dimensions)


def make_host(
    terms: Terms,
    neighbourhood: Neighbourhood,
    numbers: Mapping[Node, int] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Host:
    """A host that learns as its terms say."""
    kind = MessageHost if terms.settings.exchange == "messages" else WalkHost
    return kind(terms, neighbourhood, numbers, sizes)


def calls_of(host: Host) -> Calls:
    """How a host asks and answers."""
    return MessageCalls() if isinstance(host, MessageHost) else WalkCalls()


def _count_known(host: Host, peer: str) -> int:
    """How many of a peer's nodes are known here."""
    link = host.sessions.links.get(peer)
    return 0 if link is None else len(link.neighbours)


def _may_halve(host: Host, peer: str) -> bool:
    greeting = host.sessions.greetings.get(peer)
    return host.terms.peers.half and not host.terms.lock_step and greeting is not None and greeting.half
