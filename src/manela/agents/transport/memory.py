"""Hosts in one process that call each other directly, for fast tests: the same bytes as on a wire, without one."""

from __future__ import annotations

from manela.agents.codec import cut, join
from manela.agents.service import Service
from manela.errors import PeerError, RefusedError


class MemoryTransport:
    """What connects hosts; `services` are those that can be reached, and `carried` the bytes that went."""

    def __init__(self, name: str, services: dict[str, Service]) -> None:
        self.name, self.services = name, services
        self.carried = 0

    async def call(self, peer: str, kind: str, content: bytes) -> bytes:
        """Ask a peer."""
        if peer not in self.services:
            raise PeerError(f"{peer} cannot be reached")
        try:
            answer = await self.services[peer].serve(self.name, kind, join(cut(content, 1)))
        except RefusedError as refusal:
            raise RefusedError(refusal.reason, f"{peer} says: {refusal}", remote=True) from refusal
        self.carried += len(content) + len(answer)
        return join(cut(answer, 1))
