"""Service: answers what peers ask, within limits; every refusal is counted and told."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Protocol

from manela.agents.codec import (
    decode_hello,
    decode_introduction,
    decode_reply,
    decode_request,
    encode,
)  # fmt: skip
from manela.agents.host import Host, NotReadyError, Relay
from manela.agents.limits import Limits, Rates
from manela.agents.messages import Acceptance, Reason, Reply, Request
from manela.errors import PeerError, RefusedError

GREET, INTRODUCE, EXCHANGE = "Greet", "Introduce", "Exchange"
_RELAY = 0.2
"""The part of a request's time that a relayed one may take."""


class Transport(Protocol):
    """How bytes get to a peer and its answer back; PeerError where they do not, RefusedError where it refuses."""

    async def call(self, peer: str, kind: str, content: bytes) -> bytes:
        """Ask a peer."""
        ...


class Service:
    """One host, asked by its peers.

    Attributes
    ----------
    host : Host
        May be replaced by another when edges change.
    refusals : Counter
        How often what was refused, by peer and reason.
    """

    def __init__(
        self,
        host: Host,
        transport: Transport,
        rates: Rates | None = None,
        tell: Callable[[str, RefusedError], None] = lambda *_: None,
        deadline: float = 30.0,
    ) -> None:
        self.host, self.transport, self.deadline = host, transport, deadline
        self.refusals: Counter[tuple[str, str]] = Counter()
        self._rates, self._tell = rates or Rates(), tell
        self._limits: dict[str, Limits] = defaultdict(lambda: Limits(self._rates))
        self._turns: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(self._rates.at_once))
        self._waiting: Counter[str] = Counter()
        self._moved = asyncio.Event()

    async def serve(self, peer: str, kind: str, content: bytes) -> bytes:
        """Answer a peer; raises RefusedError, and nothing else that a peer could cause."""
        try:
            if self._waiting[peer] >= 4 * self._rates.at_once:
                raise RefusedError(Reason.TOO_OFTEN, f"{peer} has {self._waiting[peer]} requests waiting")
            self._waiting[peer] += 1
            try:
                async with self._turns[peer]:
                    return await self._serve(peer, kind, content)
            finally:
                self._waiting[peer] -= 1
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    def refuse(self, peer: str, refusal: RefusedError) -> None:
        """Count and tell a refusal; one of a peer that refuses us is none of ours."""
        if not refusal.remote:
            self.refusals[peer, refusal.reason] += refusal.times
            self._tell(peer, refusal)

    def moved(self) -> None:
        """The host has moved on: those who wait for it may look again."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def ask(self, peer: str, request: Request) -> Reply:
        """Ask a peer; what it answers is checked, and refused where it is not what it should be."""
        terms = self.host.terms
        try:
            content = await self.transport.call(peer, EXCHANGE, encode(request))
            return decode_reply(
                content, request, 1 + terms.settings.context, terms.settings.dimensions, terms.largest_norm
            )
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    async def _serve(self, peer: str, kind: str, content: bytes) -> bytes:
        # after each wait the host may be another one
        if kind == GREET:
            hello = decode_hello(content)
            await self._wait_for_turn(peer, 0, 0)
            return encode(self.host.greet(peer, hello))
        if kind == INTRODUCE:
            introduction = decode_introduction(content)
            await self._wait_for_turn(peer, 0, len(introduction.askers))
            acceptance, refusals = self.host.accept(peer, introduction)
            for refusal in refusals:
                self.refuse(peer, refusal)
            return encode(acceptance)
        if kind == EXCHANGE:
            request = decode_request(content, self.host.terms.lock_step)
            await self._wait_for_turn(peer, len(request.edges), self.host.cost(peer, request))
            reply = await self._answer(peer, request)
            known, terms = self.host.peers.get(peer), self.host.terms
            return encode(reply, half=terms.half and not terms.lock_step and known is not None and known.half)
        raise RefusedError(Reason.MALFORMED, f"nothing is called {kind}")

    async def _answer(self, peer: str, request: Request) -> Reply:
        until = time.monotonic() + self.deadline
        while True:
            waiter = self._moved
            try:
                found = self.host.answer(peer, request)
                break
            except NotReadyError:
                try:
                    await asyncio.wait_for(waiter.wait(), until - time.monotonic())
                except TimeoutError:
                    raise RefusedError(Reason.TOO_SLOW, f"round {request.round} has not begun here") from None
        if not isinstance(found, Relay):
            return found
        peers = list(found.requests)
        replies = await asyncio.gather(*(self._relay(other, found.requests[other]) for other in peers))
        try:
            reply, refused = found.finish(dict(zip(peers, replies, strict=True)))
        except PeerError as error:
            raise RefusedError(Reason.TOO_SLOW, str(error)) from error
        for other, refusal in refused.items():
            self.refuse(other, refusal)
        return reply

    async def _relay(self, peer: str, request: Request) -> Reply | None:
        # whoever waits for this host must not have to wait for another one that hangs
        limit = self.deadline if self.host.terms.lock_step else _RELAY * self.deadline
        try:
            return await asyncio.wait_for(self.ask(peer, request), limit)
        except (PeerError, RefusedError, TimeoutError):
            return None

    async def _wait_for_turn(self, peer: str, walks: int, vectors: int) -> None:
        wait = self._limits[peer].take(time.monotonic(), walks, vectors)
        if wait > 0:
            await asyncio.sleep(wait)


async def meet(service: Service, peer: str) -> int:
    """Greet a peer and introduce our edges to it; returns how many of them it does not have."""
    from manela.agents.codec import decode_acceptance

    host = service.host
    try:
        hello = decode_hello(await service.transport.call(peer, GREET, encode(host.hello())))
        host.greet(peer, hello)
        content = await service.transport.call(peer, INTRODUCE, encode(host.introduce(peer)))
        acceptance: Acceptance = decode_acceptance(content)
        if service.host is not host:
            raise PeerError(f"edges have changed while {peer} was met")
        return host.accepted(peer, acceptance)
    except RefusedError as refusal:
        service.refuse(peer, refusal)
        raise
