"""Learner: follows a host's script, exchanging messages with the peers that can be reached."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from manela.errors import PeerError, RefusedError, SessionError, TooSlowError
from manela.hosts.daemon.contacts import FIRST_PAUSE, Contact
from manela.hosts.daemon.service import Service
from manela.hosts.state.host import Host
from manela.hosts.state.instructions import Ask, Commit, Compute, Instruction

_POLL = 0.1
"""Seconds between two checks of peers that are away; larger values waste more time once a peer is back."""
_LATE = 0.25
"""Seconds for which a step waits for peers that it has waited for in vain; larger lets them hold up all others."""
_REFILL = 0.05
"""Seconds of patience that a peer regains per second in which it answers; larger values let it slow others down."""
_REFRESH = 2.0
"""Seconds between two requests to peers after the last round; larger values notice new peers and edges later."""


@dataclass
class Learner:
    """Follows a host's script."""

    service: Service  # the service whose host learns
    peers: list[str]  # the peers to learn with
    # awaited after each round, to save what was learned; in lock-step before peers see it
    on_commit: Callable[[], Awaitable[None]]
    tell: Callable[[str], None] = lambda _: None  # called with a message for each change of a peer's state
    grace: float = 1.0  # seconds that a free-running round waits for replies
    # seconds for which rounds pause while a peer is away; a peer that comes and goes uses this time up
    wait: float = 60.0
    finish: float = 60.0  # seconds that a step of the start or of smoothing waits for peers
    longest_pause: float = 30.0  # longest pause in seconds between two retries of a peer that is away
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    # awaited with the work of a `Compute`; by default it runs in a thread
    run_beside: Callable[[Callable[[], None]], Awaitable[None]] = asyncio.to_thread

    def end(self) -> None:
        """Stop as soon as possible and discard the unfinished round."""
        self.stop.set()
        self.host.abandon()

    @property
    def host(self) -> Host:
        """The host; it is replaced when edges change."""
        return self.service.host

    async def meet_all(self, patience: float) -> None:
        """Meet all peers; after `patience` seconds go on without those that are missing."""
        until = _now() + patience
        missing = list(self.peers)
        pause = FIRST_PAUSE / 2
        while missing and not self.stop.is_set():
            met = await asyncio.gather(*(self._meet(peer) for peer in missing))
            missing = [peer for peer, was_met in zip(missing, met, strict=True) if not was_met]
            if not missing or _now() > until:
                break
            await asyncio.sleep(pause)
            pause = min(1.0, 1.5 * pause)
        if missing and self.host.terms.lock_step and not self.stop.is_set():
            raise PeerError(f"lock-step needs all peers, but {', '.join(missing)} did not answer")
        if missing:
            self.tell(f"continues without {', '.join(missing)}")

    async def run(self, changed: Callable[[], bool] = lambda: False) -> None:
        """Follow the host's script to its end.

        `changed` is called after each round and returns whether the host was replaced because edges have changed. If
        so, the script of the new host is followed.
        """
        if self.host.terms.lock_step:
            self.host.check_numbers()
        while not self.stop.is_set() and await self._follow(self.host.script(), changed):
            pass

    async def _follow(self, script: Iterator[Instruction], changed: Callable[[], bool]) -> bool:
        """Follow a script to its end; return whether it was left because the host was replaced."""
        for instruction in script:
            if isinstance(instruction, Ask):
                self.service.moved()
                await self._ask(instruction)
            elif isinstance(instruction, Compute):
                await self.run_beside(self.host.compute)
                if self.stop.is_set():
                    next(script, None)  # lets the host undo the unfinished round
                    return False
            elif isinstance(instruction, Commit):
                await self.on_commit()
                if changed():
                    return True
            if self.stop.is_set():
                return False
        self.service.moved()
        return False

    async def stay(self, changed: Callable[[], bool] = lambda: False) -> None:
        """After the last round, stay in contact with peers until `changed` returns True."""
        while not self.stop.is_set():
            self._meet_again()
            if changed():
                return
            requests = self.host.refresh()
            await asyncio.gather(*(self._refresh(peer, request) for peer, request in requests.items()))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), _REFRESH)

    # asking

    async def _ask(self, instruction: Ask) -> None:
        """Ask peers as the instruction and the terms say: all, patiently, or those that are ready."""
        if self.host.terms.lock_step:
            await self._ask_all(self.host.requests())
        elif instruction.patient:
            await self._ask_patiently()
        else:
            await self._ask_freely()

    async def _ask_all(self, requests: Any) -> None:
        """In lock-step, ask all peers, and wait for all of them."""

        async def ask(peer: str) -> Any:
            while True:
                try:
                    return await self.service.ask(peer, requests[peer])
                except TooSlowError:  # the peer is still at an earlier step
                    if self.stop.is_set():
                        raise
                    await asyncio.sleep(_POLL)

        peers = list(requests)
        for peer, reply in zip(peers, await asyncio.gather(*(ask(peer) for peer in peers)), strict=True):
            for refusal in self.host.receive(peer, requests[peer], reply):
                raise PeerError(f"{peer} sent a reply that cannot be used: {refusal}")

    async def _ask_patiently(self) -> None:
        """Ask all peers and wait for slower ones until a deadline; then go on without those that are missing."""
        until = _now() + self.finish

        async def ask(peer: str) -> None:
            while _now() < until and not self.stop.is_set():
                request = self.host.requests().get(peer)
                if request is None and not await self._meet(peer):
                    await asyncio.sleep(_POLL)
                if request is None:
                    continue
                try:
                    reply = await self.service.ask(peer, request)
                except TooSlowError:  # the peer is still at an earlier step
                    await asyncio.sleep(_POLL)
                except (PeerError, RefusedError) as error:
                    self._note_failure(peer, error)
                    await asyncio.sleep(_POLL)
                else:
                    self.service.receive(peer, request, reply)
                    self._contact(peer).late = False
                    return
                if self._contact(peer).late:
                    return  # it was late before, so it is asked only once

        asking = {asyncio.create_task(ask(peer)): peer for peer in self.host.requests()}
        stopping = asyncio.create_task(self.stop.wait())
        waiting: set[asyncio.Task[Any]] = set(asking)
        late_until = _now() + min(_LATE, self.finish)
        while waiting and not stopping.done():
            ends = late_until if all(self._is_late(asking[task]) for task in waiting) else until
            if _now() >= ends:
                break
            done, _ = await asyncio.wait(  # meanwhile a peer may say that it is in a newer start
                {*waiting, stopping}, timeout=min(ends - _now(), _LATE), return_when=asyncio.FIRST_COMPLETED
            )
            waiting -= done
        for task in waiting:
            self._contact(asking[task]).late = True
        for task in (*waiting, stopping):
            task.cancel()
        await asyncio.gather(*asking, stopping, return_exceptions=True)

    def _is_late(self, peer: str) -> bool:
        """Return whether to wait for a peer no longer: it has been away for long, or the host does not need it."""
        contact = self._contact(peer)
        is_gone = bool(contact.trouble) and _now() - contact.answered > self.finish
        return is_gone or not self.host.waits_for(peer, contact.late)

    async def _ask_freely(self) -> None:
        """Ask the peers that have no open call, wait for `grace` seconds, and store the replies that have come.

        Later replies are stored in a later round.
        """
        for contact in self.service.contacts.values():
            contact.late = False
        self._meet_again()
        while (self._should_wait() or self.host.stranded) and not self.stop.is_set():
            await asyncio.sleep(_POLL)
            self._meet_again()
        asked = []
        for peer, request in self.host.requests().items():
            contact = self._contact(peer)
            if contact.call is None and _now() >= contact.again:
                contact.request = request
                contact.call = asyncio.create_task(self._try(peer, self.service.ask(peer, request)))
                asked.append(contact.call)
        if asked:
            await asyncio.wait(asked, timeout=self.grace)
        for peer, contact in list(self.service.contacts.items()):
            if contact.call is not None and contact.call.done():
                reply, request = contact.call.result(), contact.request
                contact.call = contact.request = None
                if reply is not None:
                    self.service.receive(peer, request, reply)

    def _should_wait(self) -> bool:
        """Return whether a peer is away for which patience is left; each call uses up some of it."""
        waits = False
        for peer in self.peers:
            contact = self._contact(peer)
            if contact.trouble and (contact.patience or 0.0) > 0.0:
                contact.patience = (contact.patience or 0.0) - _POLL
                waits = True
        return waits

    def _contact(self, peer: str) -> Contact:
        """Return what is known about a peer's answers so far."""
        contact = self.service.contacts[peer]
        if contact.patience is None:
            contact.patience, contact.answered = self.wait, _now()
        return contact

    async def _refresh(self, peer: str, request: Any) -> None:
        """Ask a peer after the last round, unless it is in a pause, and pass on its reply."""
        host = self.host
        if _now() >= self._contact(peer).again:
            reply = await self._try(peer, self.service.ask(peer, request))
            if reply is not None and self.host is host:
                self.service.receive(peer, request, reply)

    async def _try(self, peer: str, answer: Awaitable[Any]) -> Any:
        """Wait for a peer's answer and record that it came; return None if it did not."""
        contact = self._contact(peer)
        try:
            reply = await answer
        except (PeerError, RefusedError) as error:
            self._note_failure(peer, error)
            return None
        if contact.trouble:
            self.tell(f"{peer} is back")
        now = _now()
        contact.patience = min(self.wait, (contact.patience or 0.0) + _REFILL * (now - contact.answered))
        contact.pause, contact.trouble, contact.answered, contact.seen = FIRST_PAUSE, "", now, time.time()
        return reply

    # meeting

    def _note_failure(self, peer: str, error: PeerError | RefusedError) -> None:
        """Handle a failed call: retry later, or at once if the peer only needs a new introduction."""
        contact = self._contact(peer)
        if isinstance(error, SessionError):
            self.host.sessions.forget(peer)
            if contact.pause == FIRST_PAUSE:
                # the peer answered before, so it was restarted or its edges have changed: meet it again at once
                contact.pause *= 2
                return
        self._back_off(peer, str(error))

    def _back_off(self, peer: str, message: str) -> None:
        """Leave a peer alone for a pause, which doubles each time."""
        contact = self._contact(peer)
        contact.again = _now() + contact.pause
        contact.pause = min(self.longest_pause, 2 * contact.pause)
        if not contact.trouble:
            self.tell(f"{peer} is away: {message}")
        contact.trouble = message

    async def _meet(self, peer: str) -> bool:
        """Greet a peer and introduce own edges; return whether it answered."""
        contact = self._contact(peer)
        try:
            refused = await self.service.meet(peer)
        except (PeerError, RefusedError) as error:
            self._back_off(peer, str(error))
            return False
        if refused:
            self.tell(f"{peer} does not have {refused:,} of the edges with it; they are not used")
        if contact.trouble:
            self.tell(f"{peer} is here")
        contact.seen = time.time()
        # the pause is reset only when the peer answers a request
        contact.trouble, contact.again = "", 0.0
        return True

    def _meet_again(self) -> None:
        """Start to meet the peers that are away and due for a retry."""
        for peer in self.peers:
            contact = self._contact(peer)
            if contact.meeting is not None and contact.meeting.done():
                contact.meeting = None
            # a peer that does not answer may have been restarted, and must then be met again
            is_away = bool(contact.trouble) or not self.host.sessions.knows(peer)
            if is_away and contact.meeting is None and _now() >= contact.again:
                contact.meeting = asyncio.create_task(self._meet(peer))


def _now() -> float:
    """Return the time of the event loop, which for a loop of asyncio is `time.monotonic()`."""
    return asyncio.get_running_loop().time()
