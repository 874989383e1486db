"""Service: answers what peers ask, within limits; every refusal is counted and told."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Protocol

from manela.agents.codec import decode_acceptance, decode_hello, decode_introduction, encode
from manela.agents.exchanges import GREET, INTRODUCE, Cost, calls_of
from manela.agents.frames import LARGEST
from manela.agents.host import Host, NotReadyError
from manela.agents.limits import Limits
from manela.agents.options import Rates
from manela.agents.walk_answering import Pending
from manela.errors import MalformedError, PeerError, RefusedError, SessionError, TooOftenError, TooSlowError

_GREETING = 4096
"""Bytes of a greeting, where hosts do not go in lock-step."""
_MORE_EDGES, _FEW_EDGES = 2, 10_000
"""A peer may introduce twice as many edges as are listed with it, and some more: lists are not always of one day."""
_LONG = 1 << 16
"""Bytes of a message that is read in a thread, so that others are answered meanwhile."""
_RELAY = 0.2
"""The part of a request's time that a relayed one may take; with more, one slow host holds up all."""


class Transport(Protocol):
    """How bytes get to a peer and its answer back; PeerError where they do not, RefusedError where it refuses."""

    async def call(self, peer: str, kind: str, content: bytes, largest: int = LARGEST) -> bytes:
        """Ask a peer; an answer of more than `largest` bytes is refused."""
        ...


class Service:
    """One host, asked by its peers.

    Attributes
    ----------
    host : Host
        May be replaced by another when edges change.
    refusals : Counter
        How often what was refused, by peer and reason.
    asked : dict of float
        When each peer has asked for something last, in seconds since 1970.
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
        self._calls, self._rates, self._tell = calls_of(host), rates or Rates(), tell
        self._limits: dict[str, Limits] = defaultdict(lambda: Limits(self._rates))
        self._turns: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(self._rates.at_once))
        self._waiting: Counter[str] = Counter()
        self._moved = asyncio.Event()
        self.asked: dict[str, float] = {}
        self._listed_of: Any = None
        self._listed: dict[str, tuple[int, int]] = {}

    async def serve(self, peer: str, kind: str, content: bytes) -> bytes:
        """Answer a peer; raises RefusedError, and nothing else that a peer could cause."""
        self.asked[peer] = time.time()
        try:
            if self._waiting[peer] >= 4 * self._rates.at_once:
                raise TooOftenError(f"{peer} has {self._waiting[peer]} requests waiting")
            self._waiting[peer] += 1
            try:
                async with self._turns[peer]:
                    # whatever it is, it has come, and counts
                    self._limits[peer].charge(time.monotonic(), len(content))
                    await self._wait_for_turn(peer, Cost(0, 0), requests=1)
                    answer = await self._serve(peer, kind, content)
                    self._limits[peer].charge(time.monotonic(), len(answer))
                    return answer
            finally:
                self._waiting[peer] -= 1
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    def bound_request(self, peer: str, kind: str) -> int:
        """Bytes that a request of a peer may have: of edges, what those would take that are listed with it here."""
        host = self.host
        if kind == GREET:
            return LARGEST if host.terms.lock_step else _GREETING
        if kind == INTRODUCE:
            return _bound_introduction(*self._listed_with(peer))
        return self._calls.bound_request(host, peer) if kind == self._calls.kind else _GREETING

    def forget(self, peer: str) -> None:
        """A peer is no peer any more: keep nothing of it."""
        for key in [key for key in self.refusals if key[0] == peer]:
            del self.refusals[key]
        self._limits.pop(peer, None)
        self.asked.pop(peer, None)
        self.host.forget(peer)

    def _listed_with(self, peer: str) -> tuple[int, int]:
        """Edges with a peer's nodes, and bytes of their names; counted once for each list of edges."""
        near = self.host.neighbourhood
        if self._listed_of is not near:
            self._listed_of, self._listed = near, {}
        if peer not in self._listed:
            self._listed[peer] = near.count_bytes(peer)
        return self._listed[peer]

    def refuse(self, peer: str, refusal: RefusedError) -> None:
        """Count and tell a refusal; one of a peer that refuses us is none of ours, and some are no peer's fault."""
        if not refusal.remote and not refusal.expected:
            self.refusals[peer, refusal.reason] += refusal.times
            self._tell(peer, refusal)

    def moved(self) -> None:
        """The host has moved on: those who wait for it may look again."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def ask(self, peer: str, request: Any) -> Any:
        """Ask a peer; what it answers is checked, and refused where it is not what it should be."""
        host, calls = self.host, self._calls
        try:
            largest = calls.bound_reply(host, peer, request)
            content = await self.transport.call(peer, calls.kind, encode(request), largest)
            return await _away(len(content), calls.decode_reply, host, peer, request, content)
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    def receive(self, peer: str, request: Any, reply: Any) -> None:
        """Hand a peer's answer to the host; what it refuses of it is counted."""
        try:
            refusals = self.host.receive(peer, request, reply)
        except RefusedError as error:
            refusals = [error]
        for refusal in refusals:
            self.refuse(peer, refusal)

    async def meet(self, peer: str) -> int:
        """Greet a peer and introduce our edges to it; returns how many of them it does not have."""
        host = self.host
        try:
            lock_step = host.terms.lock_step
            greeting = await self.transport.call(peer, GREET, encode(host.hello()), LARGEST if lock_step else _GREETING)
            hello = decode_hello(greeting, lock_step)
            host.greet(peer, hello)
            introduction = host.sessions.introduce(peer)
            largest = len(introduction.askers) + 4096
            content = await self.transport.call(peer, INTRODUCE, encode(introduction), largest)
            acceptance = decode_acceptance(content)
            if self.host is not host:
                raise PeerError(f"edges have changed while {peer} was met")
            return host.record_acceptance(peer, acceptance)
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    async def _serve(self, peer: str, kind: str, content: bytes) -> bytes:
        # after each wait the host may be another one
        if kind == GREET:
            hello = decode_hello(content, self.host.terms.lock_step)
            return encode(self.host.greet(peer, hello))
        if kind == INTRODUCE:
            most = _MORE_EDGES * self._listed_with(peer)[0] + _FEW_EDGES
            introduction = await _away(len(content), decode_introduction, content, most)
            await self._wait_for_turn(peer, Cost(0, len(introduction.askers)))
            host = self.host
            found = await _away(
                len(content), host.neighbourhood.admit_edges, peer, introduction.askers, introduction.others
            )
            if self.host is not host:
                raise SessionError("edges have changed meanwhile")
            acceptance, refusals = host.admit_edges(peer, introduction, found)
            for refusal in refusals:
                self.refuse(peer, refusal)
            return encode(acceptance)
        if kind == self._calls.kind:
            request = self._calls.decode_request(self.host, content)
            await self._wait_for_turn(peer, self._calls.count(self.host, peer, request))
            return self._calls.encode_reply(self.host, peer, await self._answer(peer, request))
        raise MalformedError(f"nothing is called {kind} here")

    async def _answer(self, peer: str, request: Any) -> Any:
        until = time.monotonic() + self.deadline
        while True:
            waiter = self._moved
            try:
                answer = self.host.answer(peer, request)
                break
            except NotReadyError:
                try:
                    await asyncio.wait_for(waiter.wait(), until - time.monotonic())
                except TimeoutError:
                    raise TooSlowError("what is asked for has not begun here") from None
        return await self._relay(answer) if isinstance(answer, Pending) else answer

    async def _relay(self, pending: Pending) -> Any:
        """Ask other hosts for the rest of an answer by walks."""
        host: Any = self.host
        # whoever waits for this host must not have to wait for another one that hangs
        limit = self.deadline if host.terms.lock_step else _RELAY * self.deadline

        async def ask(peer: str) -> Any:
            try:
                return await asyncio.wait_for(self.ask(peer, pending.requests[peer]), limit)
            except (PeerError, RefusedError, TimeoutError):
                return None

        peers = list(pending.requests)
        replies = await asyncio.gather(*(ask(peer) for peer in peers))
        try:
            reply, refused = host.resume(pending, dict(zip(peers, replies, strict=True)))
        except PeerError as error:
            raise TooSlowError(str(error)) from error
        for peer, refusal in refused.items():
            self.refuse(peer, refusal)
        return reply

    async def _wait_for_turn(self, peer: str, cost: Cost, requests: int = 0) -> None:
        wait = self._limits[peer].take(time.monotonic(), *cost, requests)
        if wait > 0:
            await asyncio.sleep(wait)


def _bound_introduction(edges: int, names: int) -> int:
    """Bytes of an introduction, where so many edges are listed, with names of so many bytes."""
    # each name has two bytes of its own and may be followed by the host's; short names are the most of them
    return _MORE_EDGES * (names + 80 * edges) + 32 * _FEW_EDGES


async def _away(size: int, work: Callable[..., Any], *given: Any) -> Any:
    """What a function gives; of long messages in a thread, so that others are answered meanwhile."""
    return await asyncio.to_thread(work, *given) if size > _LONG else work(*given)
