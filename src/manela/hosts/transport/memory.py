"""MemoryTransport: direct calls between hosts in one process, with the same bytes as on a network, for fast tests."""

from __future__ import annotations

from manela.errors import PeerError, RefusedError, TooLargeError
from manela.hosts.daemon.service import Service
from manela.hosts.wire.frames import LARGEST, cut, join


class MemoryTransport:
    """Calls the services of other hosts; `services` are those that can be reached, `carried` counts bytes."""

    def __init__(self, name: str, services: dict[str, Service]) -> None:
        self.name, self.services = name, services
        self.carried = 0

    async def call(self, peer: str, kind: str, content: bytes, largest: int = LARGEST) -> bytes:
        """Send a request and return the reply; refuse a reply of more than `largest` bytes."""
        if peer not in self.services:
            raise PeerError(f"{peer} cannot be reached")
        try:
            answer = await self.services[peer].serve(self.name, kind, join(cut(content, 1)))
        except RefusedError as refusal:
            raise type(refusal)(f"{peer} says: {refusal}", remote=True) from refusal
        self.carried += len(content) + len(answer)
        if len(answer) > largest:
            raise TooLargeError(f"an answer may have {largest:,} bytes, got {len(answer):,}")
        return join(cut(answer, 1))
