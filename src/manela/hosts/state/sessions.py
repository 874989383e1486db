"""Sessions: keeps the greetings of peers, and the edges that both hosts have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manela.errors import ClaimError, MalformedError, RefusedError, SessionError, TermsError
from manela.hosts.state.messages import PROTOCOL, Acceptance, Hello, Integers, Introduction
from manela.hosts.state.neighbourhood import Admitted, Neighbourhood, find_distinct
from manela.kernels.randomness import derive

_TERMS = ("exchange", "dimensions", "hops", "context", "lock_step", "run")
_IN_WORDS = {"lock_step": "lock-step", "run": "the parameters of a lock-step run"}


@dataclass(frozen=True, eq=False)
class Session:
    """The edges that a peer has introduced to us and that we have admitted."""

    number: int
    admitted: Admitted


@dataclass(eq=False)
class Link:
    """The edges that we have introduced to a peer and that it has accepted, and our neighbours there, both numbered.

    `seen` is the version of the peer's vectors that we have.
    """

    session: int
    arcs: Integers
    neighbours: Integers
    seen: int = 0


class Sessions:
    """A host's sessions with its peers.

    Attributes
    ----------
    greetings : dict
        The last greeting of each peer.
    links : dict
        The edges that each peer has accepted.
    """

    def __init__(self, near: Neighbourhood, key: int) -> None:
        self._near, self._key, self._opened = near, key, 0
        self.greetings: dict[str, Hello] = {}
        self.links: dict[str, Link] = {}
        self._sessions: dict[str, Session] = {}

    def renew(self, near: Neighbourhood) -> Sessions:
        """Return the sessions of the same host with other edges: greetings are kept, introductions must be repeated."""
        sessions = Sessions(near, self._key)
        sessions.greetings, sessions._opened = dict(self.greetings), self._opened
        return sessions

    def greet(self, peer: str, hello: Hello, mine: Hello) -> None:
        """Record a peer's greeting; refuse a peer with other terms."""
        if hello.host != peer:
            raise ClaimError(f"{peer} greets as {hello.host}")
        if hello.protocol != PROTOCOL:
            raise TermsError(f"protocol must be {PROTOCOL}, got {hello.protocol}: update the older")
        for name in _TERMS:
            ours, theirs = getattr(mine, name), getattr(hello, name)
            if ours != theirs:
                raise TermsError(f"{_IN_WORDS.get(name, name)} must be {ours} as at {mine.host}, got {theirs}")
        self.greetings[peer] = hello

    def introduce(self, peer: str) -> Introduction:
        """Return the introduction of our edges with a peer's nodes."""
        near = self._near
        arcs = near.arcs_to(peer)
        names = [f"{name}@{near.host}" for name in near.nodes]
        own = len(near.nodes)
        return Introduction(
            [names[row] for row in near.sources[arcs].tolist()],
            [near.strangers[row - own][0] for row in near.indices[arcs].tolist()],
        )

    def open(
        self, peer: str, admitted: Admitted, refusals: list[RefusedError]
    ) -> tuple[Acceptance, list[RefusedError]]:
        """Open a session with a peer for its admitted edges."""
        self._opened += 1
        number = int(derive(self._key, self._opened)) >> 1
        self._sessions[peer] = Session(number, admitted)
        return Acceptance(number, admitted.accepted), refusals

    def find(self, peer: str, number: int) -> Admitted:
        """Return the admitted edges of a peer; refuse a session number that is not its current one."""
        session = self._sessions.get(peer)
        if session is None or session.number != number:
            raise SessionError(f"{peer} must introduce its edges first")
        return session.admitted

    def count_edges(self, peer: str) -> tuple[int, int]:
        """Return how many edges with a peer both hosts have, and how many only one of them has."""
        link, session = self.links.get(peer), self._sessions.get(peer)
        own = len(self._near.arcs_to(peer))
        agreed = 0 if link is None else len(link.arcs)
        theirs = 0 if session is None else int(np.count_nonzero(~session.admitted.accepted))
        return agreed, (own - agreed if link is not None else 0) + theirs

    def forget_all(self, peer: str) -> None:
        """Delete everything about a host that is no longer a peer."""
        for table in (self.links, self._sessions, self.greetings):
            table.pop(peer, None)

    def count_neighbours(self, peer: str) -> int:
        """Return how many nodes here are neighbours of a peer's nodes."""
        session = self._sessions.get(peer)
        return 0 if session is None else len(session.admitted.neighbours)

    def record_acceptance(self, peer: str, acceptance: Acceptance) -> int:
        """Record a peer's answer to our introduction; return how many of our edges it does not have."""
        arcs = self._near.arcs_to(peer)
        if len(acceptance.accepted) != len(arcs):
            raise MalformedError(f"{len(arcs)} edges were introduced, got {len(acceptance.accepted)}")
        arcs = arcs[acceptance.accepted]
        self.links[peer] = Link(acceptance.session, arcs, find_distinct(self._near.indices[arcs]))
        return int(np.count_nonzero(~acceptance.accepted))

    def knows(self, peer: str) -> bool:
        """Return whether a peer has answered our introduction."""
        return peer in self.links

    def forget(self, peer: str) -> None:
        """Drop the link to a peer that has lost our session, so that our edges are introduced again."""
        self.links.pop(peer, None)
