"""The calls between hosts: their names, what they may cost, and how their contents become bytes.

Hosts that learn by messages and hosts that learn by walks call each other by different names, and bound and encode
requests and replies differently; all other code need not know which kind a host is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from manela.hosts.state.host import Host
from manela.hosts.state.messages import Pull, Shown, WalkReply, WalkRequest
from manela.hosts.state.rounds import MessageHost
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
GREET, INTRODUCE, SHOW, WALK, FORGET = "Greet", "Introduce", "Show", "Walk", "Forget"


class Cost(NamedTuple):
    """The most that a request asks for."""

    walks: int
    vectors: int


def name_call(host: Host) -> str:
    """Return the name of the call by which a host learns from its peers."""
    return SHOW if isinstance(host, MessageHost) else WALK


def bound_request(host: Host) -> int:
    """Return the most bytes that a peer's request may have."""
    return _SMALL if isinstance(host, MessageHost) else _WALKS


def decode_request(host: Host, content: bytes) -> Pull | WalkRequest:
    """Decode a peer's request."""
    return decode_pull(content) if isinstance(host, MessageHost) else decode_walk_request(content, host.terms.lock_step)


def count_cost(host: Host, peer: str, request: Any) -> Cost:
    """Return the most that a peer's request asks for."""
    neighbours = host.sessions.count_neighbours(peer)
    if isinstance(host, MessageHost):
        tables, levels, _ = host.count_rows(request)
        return Cost(0, tables * levels * neighbours)
    return Cost(len(request.edges), request.size + (neighbours if request.neighbours else 0))


def encode_reply(host: Host, peer: str, reply: Shown | WalkReply) -> bytes:
    """Encode a reply to a peer; walks are answered in half precision outside lock-step, if both hosts want it."""
    if isinstance(host, MessageHost):
        return encode(reply)
    greeting = host.peers.greetings.get(peer)
    halves = host.terms.peers.half and not host.terms.lock_step and greeting is not None and greeting.half
    return encode(reply, half=halves)


def bound_reply(host: Host, peer: str, request: Any) -> int:
    """Return the most bytes that a peer's reply to our request may have."""
    neighbours = _count_neighbours(host, peer)
    if isinstance(host, MessageHost):
        return bound_shown(host.count_rows(request), neighbours)
    bytes_per_row = 16 + 4 * host.terms.tables * host.terms.settings.dimensions
    bound: int = bytes_per_row * (request.size + neighbours) + 4096
    return min(LARGEST, bound)


def decode_reply(host: Host, peer: str, request: Any, content: bytes) -> Shown | WalkReply:
    """Decode a peer's reply to our request."""
    if isinstance(host, MessageHost):
        return decode_shown(content, host.count_rows(request), _count_neighbours(host, peer))
    return decode_walk_reply(content, request, host.terms.tables, host.terms.settings.dimensions)


def _count_neighbours(host: Host, peer: str) -> int:
    """Return how many of a peer's nodes are neighbours of nodes here."""
    link = host.peers.links.get(peer)
    return 0 if link is None else len(link.neighbours)
