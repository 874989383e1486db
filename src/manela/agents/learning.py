"""Learning: takes a host through its rounds, with whoever of its peers is there."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from manela.agents.host import Host
from manela.agents.messages import Reason, Reply, Request
from manela.agents.plan import Plan
from manela.agents.service import Service, meet
from manela.errors import PeerError, RefusedError

_FIRST_PAUSE = 0.2
_STAY = 2.0
"""Seconds between two looks at peers after the last round."""


@dataclass
class _Contact:
    """Where a peer stands: asked, away, or free to be asked."""

    call: asyncio.Task[Reply | None] | None = None
    plan: Plan | None = None
    meeting: asyncio.Task[bool] | None = None
    pause: float = _FIRST_PAUSE
    again: float = 0.0
    trouble: str = ""


@dataclass
class Learner:
    """Takes a host through its rounds.

    Attributes
    ----------
    service : Service
        Whose host learns.
    peers : list of str
        Whom to learn with.
    committed : callable
        Awaited after each round, to keep what was learned; in lock-step before peers see it.
    tell : callable
        Told in words what happens with peers, once for each change.
    grace : float
        Seconds that a free-running round waits for peers that are slower than the computing.
    longest_pause : float
        Seconds between two attempts at a peer that is away, at most.
    """

    service: Service
    peers: list[str]
    committed: Callable[[], Awaitable[None]]
    tell: Callable[[str], None] = lambda _: None
    grace: float = 1.0
    longest_pause: float = 30.0
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    contacts: dict[str, _Contact] = field(default_factory=dict)
    _computing: Plan | None = None

    def end(self) -> None:
        """Stop within moments; nothing of the round that is being computed counts."""
        self.stop.set()
        if self._computing is not None:
            self._computing.stop[0] = 1

    def trouble_with(self, peer: str) -> str:
        """Why a peer is away, empty if it is not."""
        return self.contacts[peer].trouble if peer in self.contacts else ""

    @property
    def host(self) -> Host:
        """The host, as it is now."""
        return self.service.host

    async def meet_all(self, patience: float) -> None:
        """Meet all peers, or those that are there when patience is over."""
        until = time.monotonic() + patience
        missing = list(self.peers)
        pause = _FIRST_PAUSE / 2
        while missing and not self.stop.is_set():
            met = await asyncio.gather(*(self._meet(peer) for peer in missing))
            missing = [peer for peer, there in zip(missing, met, strict=True) if not there]
            if not missing or time.monotonic() > until:
                break
            await asyncio.sleep(pause)
            pause = min(1.0, 1.5 * pause)
        if missing and self.host.terms.lock_step and not self.stop.is_set():
            raise PeerError(f"lock-step needs all peers, and {', '.join(missing)} did not come")
        if missing:
            self.tell(f"goes on without {', '.join(missing)}")

    async def run_lock_step(self) -> None:
        """All rounds, together with all peers."""
        self.host.check_numbers()
        while not self.host.done and not self.stop.is_set():
            host = self.host
            host.receive_neighbours(await self._ask_all(host.ask_neighbours()))
            self.service.moved()
            plan = host.plan()
            host.receive(plan, await self._ask_all(plan.requests))
            self._computing = plan
            result = await asyncio.to_thread(plan.compute)
            if self.stop.is_set():
                break
            host.commit(plan, result)
            await self.committed()
            self.service.moved()

    async def run_freely(self, changed: Callable[[], bool] = lambda: False) -> None:
        """All rounds, at this host's own pace; next round's vectors are fetched while this one computes.

        `changed` is asked before each round whether the host was replaced, so that what was planned is void.
        """
        plan = await self._begin()
        while not self.host.done and not self.stop.is_set():
            host = self.host
            await self._take(plan)
            upcoming = None
            self._computing = plan
            computing = asyncio.create_task(asyncio.to_thread(plan.compute))
            try:
                if host.round + 1 < host.rounds:
                    upcoming = self._ask(host.plan(ahead=1))
                self._meet_again()
            finally:
                result = await computing
            if self.stop.is_set():
                break
            host.commit(plan, result)
            await self.committed()
            if changed() or upcoming is None or host.stranded:
                if self.host.done:
                    break
                upcoming = await self._begin()
            plan = upcoming

    async def _begin(self) -> Plan:
        """Ask for the next round, as soon as there is anyone to learn from."""
        while self.host.stranded and not self.stop.is_set():
            self._meet_again()
            await asyncio.sleep(_FIRST_PAUSE)
        return self._ask(self.host.plan())

    async def stay(self, changed: Callable[[], bool] = lambda: False) -> None:
        """After the last round, keep knowing peers and their vectors, so that walks through this host go on."""
        while not self.stop.is_set():
            changed()
            self._meet_again()
            await asyncio.gather(*(self._refresh(peer) for peer in self.peers))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), _STAY)

    async def _refresh(self, peer: str) -> None:
        host, request = self.host, self.host.ask_neighbours_of(peer)
        if request is None or time.monotonic() < self.contacts.setdefault(peer, _Contact()).again:
            return
        reply = await self._try(peer, self.service.ask(peer, request))
        if reply is not None and self.host is host:
            try:
                host.receive_late(peer, request, reply)
            except RefusedError as refusal:
                self.service.refuse(peer, refusal)

    def _ask(self, plan: Plan) -> Plan:
        """Begin to ask all peers that are free for what a plan needs."""
        for peer, request in plan.requests.items():
            contact = self.contacts.setdefault(peer, _Contact())
            if contact.call is None and time.monotonic() >= contact.again:
                contact.plan = plan
                contact.call = asyncio.create_task(self._try(peer, self.service.ask(peer, request)))
        return plan

    async def _take(self, plan: Plan) -> None:
        """Wait a while for the answers to a plan, and take those that have come."""
        mine = [c.call for c in self.contacts.values() if c.call is not None and c.plan is plan]
        if mine:
            await asyncio.wait(mine, timeout=self.grace)
        replies: dict[str, Reply | None] = {}
        for peer, contact in self.contacts.items():
            if contact.call is None or not contact.call.done():
                continue
            reply, asked = contact.call.result(), contact.plan
            contact.call = contact.plan = None
            if asked is plan:
                replies[peer] = reply
            elif asked is not None and reply is not None:
                try:
                    self.host.receive_late(peer, asked.requests[peer], reply)
                except RefusedError as refusal:
                    self.service.refuse(peer, refusal)
        for peer, refused in self.host.receive(plan, replies).items():
            self.service.refuse(peer, refused)

    async def _try(self, peer: str, answer: Awaitable[Reply]) -> Reply | None:
        contact = self.contacts.setdefault(peer, _Contact())
        try:
            reply = await answer
        except (PeerError, RefusedError) as error:
            if isinstance(error, RefusedError) and error.reason == Reason.SESSION:
                self.host.forget(peer)
                if contact.pause == _FIRST_PAUSE:
                    # it has answered before and was restarted, or its edges have changed: meet it at once
                    contact.pause *= 2
                    return None
            self._back_off(peer, str(error))
            return None
        if contact.trouble:
            self.tell(f"{peer} answers again")
        contact.pause, contact.trouble = _FIRST_PAUSE, ""
        return reply

    def _back_off(self, peer: str, why: str) -> None:
        contact = self.contacts.setdefault(peer, _Contact())
        contact.again = time.monotonic() + contact.pause
        contact.pause = min(self.longest_pause, 2 * contact.pause)
        if not contact.trouble:
            self.tell(f"{peer} is away: {why}")
        contact.trouble = why

    async def _meet(self, peer: str) -> bool:
        contact = self.contacts.setdefault(peer, _Contact())
        try:
            refused = await meet(self.service, peer)
        except (PeerError, RefusedError) as error:
            self._back_off(peer, str(error))
            return False
        if refused:
            self.tell(f"{peer} does not have {refused:,} of the edges with it; they are not used")
        if contact.trouble:
            self.tell(f"{peer} is here")
        # the pause stays until it has answered for once
        contact.trouble, contact.again = "", 0.0
        return True

    def _meet_again(self) -> None:
        """Begin to meet those who are away, when it is time again."""
        for peer in self.peers:
            contact = self.contacts.setdefault(peer, _Contact())
            if contact.meeting is not None and contact.meeting.done():
                contact.meeting = None
            if not self.host.knows(peer) and contact.meeting is None and time.monotonic() >= contact.again:
                contact.meeting = asyncio.create_task(self._meet(peer))

    async def _ask_all(self, requests: dict[str, Request]) -> dict[str, Reply | None]:
        async def ask(peer: str) -> Reply:
            while True:
                try:
                    return await self.service.ask(peer, requests[peer])
                except RefusedError as refusal:
                    # it is still at the round before
                    if refusal.reason != Reason.TOO_SLOW or self.stop.is_set():
                        raise

        peers = list(requests)
        replies = await asyncio.gather(*(ask(peer) for peer in peers))
        return dict(zip(peers, replies, strict=True))
