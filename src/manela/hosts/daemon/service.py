"""Service: exchanges requests with peers, within limits, and counts and reports every refusal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from manela.errors import (
    MalformedError,
    ManelaError,
    PeerError,
    RefusedError,
    SessionError,
    TooOftenError,
    TooSlowError,
)
from manela.hosts.daemon.contacts import Contacts
from manela.hosts.state.erasure import Erasure, Receipt
from manela.hosts.state.host import Host
from manela.hosts.state.instructions import NotReadyError, Relay
from manela.hosts.wire.calls import (
    FORGET,
    GREET,
    INTRODUCE,
    Cost,
    bound_reply,
    bound_request,
    count_cost,
    decode_reply,
    decode_request,
    encode_reply,
    name_call,
)
from manela.hosts.wire.codec import (
    LARGEST_ERASURE,
    decode_acceptance,
    decode_erasure,
    decode_hello,
    decode_introduction,
    decode_receipt,
    encode,
)
from manela.hosts.wire.frames import LARGEST

_GREETING = 4096
"""Most bytes of a greeting outside lock-step; larger ones would let a peer take more memory."""
_MORE_EDGES, _FEW_EDGES = 2, 10_000
"""A peer may introduce this many times the edges listed here with it, plus a constant, as lists may differ in age.

Larger values let a peer take more memory.
"""
_LONG = 1 << 16
"""Longer messages, in bytes, are decoded in a thread; if larger, decoding holds up other peers for longer."""
_ERASURE = 100
"""Requests for which an erasure counts, as files are written anew; if smaller, a peer may keep the disk busy."""
_RELAY = 0.2
"""The part of the deadline that a relayed request may take; if larger, one slow host holds up the others."""


class Transport(Protocol):
    """Sends bytes to a peer and returns its reply; raises PeerError if it fails, RefusedError if the peer refuses."""

    async def call(self, peer: str, kind: str, content: bytes, largest: int = LARGEST) -> bytes:
        """Send a request and return the reply; refuse a reply of more than `largest` bytes."""
        ...


class Service:
    """The requests between one host and its peers."""

    def __init__(
        self,
        host: Host,
        transport: Transport,
        contacts: Contacts | None = None,
        tell: Callable[[str, RefusedError], None] = lambda *_: None,
        deadline: float = 30.0,
        forget: Callable[[str, Sequence[str]], Receipt] | None = None,
    ) -> None:
        self.host, self.transport, self.deadline = host, transport, deadline  # host: is replaced when edges change
        self.contacts = Contacts() if contacts is None else contacts  # the calls of each peer and to it
        self._call, self._tell = name_call(host), tell
        self._moved = asyncio.Event()
        # removes what is kept of a peer's nodes; runs in a thread, one call at a time
        self._forget_nodes, self._erasing = forget, asyncio.Lock()

    async def serve(self, peer: str, kind: str, content: bytes) -> bytes:
        """Answer a peer; nothing that a peer sends makes this raise anything but RefusedError."""
        contact, most = self.contacts[peer], 4 * self.contacts.limits.at_once
        contact.asked = time.time()
        try:
            if contact.waiting >= most:
                raise TooOftenError(f"{peer} has {contact.waiting} requests waiting")
            contact.waiting += 1
            try:
                async with contact.slots:
                    # a request counts even if it turns out to be malformed
                    contact.buckets.charge(time.monotonic(), len(content))
                    await self._wait_for_turn(peer, Cost(0, 0), requests=1)
                    answer = await self._serve(peer, kind, content)
                    contact.buckets.charge(time.monotonic(), len(answer))
                    return answer
            finally:
                contact.waiting -= 1
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    def bound_request(self, peer: str, kind: str) -> int:
        """Return the most bytes that a peer's request may have; for edges this depends on those listed here with it."""
        host = self.host
        if kind == GREET:
            return LARGEST if host.terms.lock_step else _GREETING
        if kind == INTRODUCE:
            return _bound_introduction(*self._listed_with(peer))
        if kind == FORGET:
            return LARGEST_ERASURE
        return bound_request(host) if kind == self._call else _GREETING

    def forget(self, peer: str) -> None:
        """Delete everything about a host that is no longer a peer, and end the calls to it."""
        if peer in self.contacts:
            self.contacts.pop(peer).end()
        self.host.forget(peer)

    def _listed_with(self, peer: str) -> tuple[int, int]:
        """Return the number of edges with a peer's nodes, and the bytes of their names; cached until edges change."""
        near, contact = self.host.neighbourhood, self.contacts[peer]
        if contact.listed is None or contact.listed[0] is not near:
            contact.listed = near, near.count_bytes(peer)
        return contact.listed[1]

    def refuse(self, peer: str, refusal: RefusedError) -> None:
        """Count and report a refusal, unless the peer refused us or the refusal is nobody's fault."""
        if not refusal.remote and not refusal.expected:
            self.contacts[peer].refusals[refusal.reason] += refusal.times
            self._tell(peer, refusal)

    def moved(self) -> None:
        """Wake up the requests that wait for the host to reach a later step."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def ask(self, peer: str, request: Any) -> Any:
        """Send a request to a peer and return its decoded reply; refuse a reply that is not valid."""
        host = self.host
        try:
            largest = bound_reply(host, peer, request)
            content = await self.transport.call(peer, self._call, encode(request), largest)
            return await _run_by_size(len(content), decode_reply, host, peer, request, content)
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    def receive(self, peer: str, request: Any, reply: Any) -> None:
        """Pass a peer's reply to the host, and count what the host refuses of it."""
        try:
            refusals = self.host.receive(peer, request, reply)
        except RefusedError as error:
            refusals = [error]
        for refusal in refusals:
            self.refuse(peer, refusal)

    async def meet(self, peer: str) -> int:
        """Greet a peer and introduce our edges to it; return how many of them it does not have."""
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
                raise PeerError(f"the edges changed while meeting {peer}")
            return host.record_acceptance(peer, acceptance)
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    async def ask_to_forget(self, peer: str, names: Sequence[str]) -> Receipt:
        """Ask a peer to forget own nodes; return its receipt."""
        try:
            return decode_receipt(await self.transport.call(peer, FORGET, encode(Erasure(tuple(names))), _GREETING))
        except RefusedError as refusal:
            self.refuse(peer, refusal)
            raise

    async def _serve(self, peer: str, kind: str, content: bytes) -> bytes:
        # the host may be replaced during each await, so read self.host again afterwards
        if kind == GREET:
            hello = decode_hello(content, self.host.terms.lock_step)
            return encode(self.host.greet(peer, hello))
        if kind == INTRODUCE:
            most = _MORE_EDGES * self._listed_with(peer)[0] + _FEW_EDGES
            introduction = await _run_by_size(len(content), decode_introduction, content, most)
            await self._wait_for_turn(peer, Cost(0, len(introduction.askers)))
            host = self.host
            admitted = await _run_by_size(
                len(content), host.neighbourhood.admit_edges, peer, introduction.askers, introduction.others
            )
            if self.host is not host:
                raise SessionError("the edges changed in the meantime")
            acceptance, refusals = host.admit_edges(peer, introduction, admitted)
            for refusal in refusals:
                self.refuse(peer, refusal)
            return encode(acceptance)
        if kind == FORGET and self._forget_nodes is not None:
            erasure = decode_erasure(content)
            await self._wait_for_turn(peer, Cost(0, len(erasure.nodes)), requests=_ERASURE)
            async with self._erasing:
                return encode(await asyncio.to_thread(_forget, self._forget_nodes, peer, erasure))
        if kind == self._call:
            request = decode_request(self.host, content)
            await self._wait_for_turn(peer, count_cost(self.host, peer, request))
            return encode_reply(self.host, peer, await self._answer(peer, request))
        raise MalformedError(f"there is no call named {kind}")

    async def _answer(self, peer: str, request: Any) -> Any:
        """Answer a request when the host has reached its step, which may take until the deadline."""
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
                    raise TooSlowError("this host has not reached the requested step") from None
        return await self._relay(answer) if isinstance(answer, Relay) else answer

    async def _relay(self, relay: Relay) -> Any:
        """Ask other hosts for what a reply lacks, and return the reply."""
        host: Any = self.host
        # a host that hangs must not hold up the peer that waits for this one
        limit = self.deadline if host.terms.lock_step else _RELAY * self.deadline

        async def ask(peer: str) -> Any:
            try:
                return await asyncio.wait_for(self.ask(peer, relay.requests[peer]), limit)
            except (PeerError, RefusedError, TimeoutError):
                return None

        peers = list(relay.requests)
        replies = await asyncio.gather(*(ask(peer) for peer in peers))
        try:
            reply, refused = host.resume(relay, dict(zip(peers, replies, strict=True)))
        except PeerError as error:
            raise TooSlowError(str(error)) from error
        for peer, refusal in refused.items():
            self.refuse(peer, refusal)
        return reply

    async def _wait_for_turn(self, peer: str, cost: Cost, requests: int = 0) -> None:
        """Wait until a peer's limits allow a request of this cost."""
        wait = self.contacts[peer].buckets.take(time.monotonic(), *cost, requests)
        if wait > 0:
            await asyncio.sleep(wait)


def _forget(forget: Callable[[str, Sequence[str]], Receipt], peer: str, erasure: Erasure) -> Receipt:
    """Forget a peer's nodes; a failure of this host is not the peer's fault, and it asks again."""
    try:
        return forget(peer, erasure.nodes)
    except RefusedError:
        raise
    except ManelaError:
        raise TooSlowError("this host cannot forget nodes now; ask again later") from None


def _bound_introduction(edges: int, names: int) -> int:
    """Return the most bytes of an introduction, for this many listed edges whose names have this many bytes."""
    # each name adds two bytes of encoding, and may be followed by the name of its host
    return _MORE_EDGES * (names + 80 * edges) + 32 * _FEW_EDGES


async def _run_by_size(size: int, work: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function; for long messages run it in a thread, so that other peers need not wait."""
    return await asyncio.to_thread(work, *arguments) if size > _LONG else work(*arguments)
