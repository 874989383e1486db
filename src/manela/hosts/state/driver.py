"""Driver: moves hosts through their scripts by turns, without clock, thread or socket.

A daemon does the same with real peers (`hosts.daemon.learner`). Here every run with the same seed is the same run, with
the losses, delays and orders that were chosen: for tests, for transcripts, and to warm up kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manela.errors import PeerError, RefusedError, SessionError
from manela.hosts.state.host import Host
from manela.hosts.state.instructions import Ask, Compute, Instruction, NotReadyError, Relay

_MOST_IDLE = 1000
"""Turns without an event after which hosts in lock-step are given up; more find out later that they wait forever."""


@dataclass
class _Player:
    """A host, where it is in its script, and whom it waits for."""

    host: Host
    script: Iterator[Instruction]
    now: Instruction | None = None
    turns: int = 0
    waiting: list[str] = field(default_factory=list)
    late: list[tuple[int, str, Any, Any]] = field(default_factory=list)
    ended: bool = False


class Driver:
    """Moves hosts by turns; in each turn, every host does one instruction, or waits.

    Parameters
    ----------
    hosts : dict of Host
    seed : int or None
        Draws the order of hosts in each turn, losses and delays; with None hosts move in the given order.
    loss : float
        The share of calls that fail.
    delay : int
        The most turns that a reply takes.
    grace, finish : int
        The turns for which a host waits for replies: in a round, and in a step of the start or of smoothing.
    carry : callable
        Called as carry(asker, answerer, request, reply) with each reply; returns it as the asker gets it.
    tell : callable
        Called with a line for everything that happens.
    """

    def __init__(
        self,
        hosts: Mapping[str, Host],
        *,
        seed: int | None = None,
        loss: float = 0.0,
        delay: int = 0,
        grace: int = 0,
        finish: int = 20,
        carry: Callable[[Host, Host, Any, Any], Any] = lambda asker, answerer, request, reply: reply,  # noqa: ARG005
        tell: Callable[[str], None] = lambda line: None,  # noqa: ARG005
    ) -> None:
        self._players = {name: _Player(host, host.script()) for name, host in hosts.items()}
        self._random = None if seed is None else np.random.default_rng(seed)
        self._loss, self._delay, self._grace, self._finish = loss, delay, grace, finish
        self._carry, self._tell = carry, tell
        self.away: set[str] = set()  # hosts that neither act nor answer
        self.broken: dict[tuple[str, str], str] = {}  # why the calls of a pair (asker, answerer) fail

    @property
    def hosts(self) -> dict[str, Host]:
        """The hosts by name."""
        return {name: player.host for name, player in self._players.items()}

    def restart(self, host: Host) -> None:
        """Put a host, which may be new, in its place, at the beginning of its script."""
        self._players[host.name] = _Player(host, host.script())
        self.away.discard(host.name)

    def has_ended(self, name: str) -> bool:
        """Return whether a host has done all of its script."""
        return self._players[name].ended

    def instruction(self, name: str) -> Instruction | None:
        """Return what a host is at; None before its first turn and after its last."""
        return self._players[name].now

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Take turns until all hosts that are here have ended, or `until` returns True."""
        idle = 0
        while not until() and any(not player.ended for name, player in self._players.items() if name not in self.away):
            idle = 0 if self.turn() else idle + 1
            if idle > _MOST_IDLE:
                waiting = ", ".join(
                    f"{name} ({player.now})" for name, player in self._players.items() if player.waiting
                )
                raise PeerError(f"hosts wait for each other: {waiting}")

    def turn(self) -> bool:
        """Let every host that is here move once; return whether any host has moved."""
        names = [name for name in self._players if name not in self.away]
        if self._random is not None:
            names = [names[position] for position in self._random.permutation(len(names))]
        moved = [self.move(name) for name in names]
        return any(moved)

    def move(self, name: str) -> bool:
        """Let a host meet peers, take late replies, and do one instruction; return whether it has done one."""
        player = self._players[name]
        self._take_late(player)
        for peer in self._players:
            if peer != name and not player.host.sessions.knows(peer):
                self.meet(name, peer)
        if player.ended:
            return False
        if player.now is None and not self._go_on(player):
            return False
        if isinstance(player.now, Ask):
            if not self._ask(player):
                player.turns += 1
                return False
        elif isinstance(player.now, Compute):
            player.host.compute()
        if not isinstance(player.now, Ask):
            self._tell(f"{name}: {player.now}")
        self._go_on(player)
        return True

    def meet(self, name: str, peer: str) -> bool:
        """Have a host greet a peer and introduce its edges; return whether the peer has answered."""
        host = self._players[name].host
        try:
            self._reach(name, peer)
            other = self._players[peer].host
            host.greet(peer, other.greet(name, host.hello()))
            acceptance, _ = other.admit_edges(name, host.sessions.introduce(peer))
            missing = host.record_acceptance(peer, acceptance)
        except (PeerError, RefusedError) as error:
            self._tell(f"{name} cannot meet {peer}: {error}")
            return False
        edges = len(acceptance.accepted)
        self._tell(f"{name} meets {peer}, which accepts {edges - missing} of {edges} edges")
        return True

    def call(self, name: str, peer: str) -> bool:
        """Ask a peer what a host's instruction asks of it; return whether this is settled, by a reply or a failure."""
        player = self._players[name]
        patient = isinstance(player.now, Ask) and player.now.patient
        request = player.host.requests().get(peer)
        if request is None:
            return not patient
        try:
            self._reach(name, peer)
            reply = self._answer(name, peer, request)
        except NotReadyError:
            self._tell(f"{name} waits for {peer}")
            return False
        except (PeerError, RefusedError) as error:
            if player.host.terms.lock_step:
                raise
            if isinstance(error, SessionError):
                player.host.sessions.forget(peer)
            self._tell(f"{name} gets nothing from {peer}: {error}")
            return not patient
        reply = self._carry(player.host, self._players[peer].host, request, reply)
        turns = 0 if self._random is None or not self._delay else int(self._random.integers(0, self._delay + 1))
        if turns:
            player.late.append((turns, peer, request, reply))
        else:
            self._take(player, peer, request, reply)
        return True

    def drop(self, name: str, peer: str) -> None:
        """Lose the request that a host has for a peer, which it then does without."""
        self._players[name].waiting.remove(peer)
        self._tell(f"{name} gets nothing from {peer}: the request is lost")

    def _go_on(self, player: _Player) -> bool:
        """Let a host say what it wants next; return whether it wants anything."""
        player.now, player.turns, player.waiting = next(player.script, None), 0, []
        player.ended = player.now is None
        if isinstance(player.now, Ask):
            player.waiting = list(player.host.requests())
        return not player.ended

    def _ask(self, player: _Player) -> bool:
        """Call the peers that have not answered yet; return whether the host can continue."""
        player.waiting = [peer for peer in player.waiting if not self.call(player.host.name, peer)]
        if not player.waiting or player.host.terms.lock_step:
            return not player.waiting
        patient = isinstance(player.now, Ask) and player.now.patient
        if player.turns < (self._finish if patient else self._grace):
            return False
        self._tell(f"{player.host.name} continues without {', '.join(player.waiting)}")
        return True

    def _reach(self, name: str, peer: str) -> None:
        if peer in self.away:
            raise PeerError(f"{peer} cannot be reached")
        if (name, peer) in self.broken:
            raise PeerError(self.broken[name, peer])
        if self._loss and self._random is not None and self._random.random() < self._loss:
            raise PeerError("the call is lost")

    def _answer(self, name: str, peer: str, request: Any) -> Any:
        """Return a peer's reply to a request, for which it may ask other hosts."""
        other = self._players[peer].host
        reply = other.answer(name, request)
        if not isinstance(reply, Relay):
            return reply
        replies: dict[str, Any] = {}
        for third, relayed in reply.requests.items():
            self._tell(f"{peer} asks {third} for {name}")
            try:
                self._reach(peer, third)
                replies[third] = self._answer(peer, third, relayed)
            except (PeerError, RefusedError):
                replies[third] = None
        return other.resume(reply, replies)[0]

    def _take_late(self, player: _Player) -> None:
        """Give a host the replies that have been on their way for long enough."""
        late, player.late = player.late, []
        for turns, peer, request, reply in late:
            if turns > 1:
                player.late.append((turns - 1, peer, request, reply))
            else:
                self._take(player, peer, request, reply)

    def _take(self, player: _Player, peer: str, request: Any, reply: Any) -> None:
        try:
            refusals = player.host.receive(peer, request, reply)
        except RefusedError as error:
            refusals = [error]
        step = getattr(reply, "step", None)
        self._tell(f"{player.host.name} gets {step if step is not None else 'walks'} from {peer}")
        for refusal in refusals:
            if player.host.terms.lock_step:
                raise PeerError(f"{peer} sent a reply that cannot be used: {refusal}")
            self._tell(f"{player.host.name} refuses what {peer} sent: {refusal}")


def drive(hosts: Mapping[str, Host], **options: Any) -> Driver:
    """Move hosts by turns to the end of their scripts; `options` are those of `Driver`."""
    driver = Driver(hosts, **options)
    for name in hosts:
        for peer in hosts:
            if peer != name:
                driver.meet(name, peer)
    for host in hosts.values():
        if host.terms.lock_step:
            host.check_numbers()
    driver.run()
    return driver
