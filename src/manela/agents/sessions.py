"""Sessions: which peers have greeted this host, and which edges two hosts have found that both of them have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manela.agents.messages import PROTOCOL, Acceptance, Hello, Integers, Introduction
from manela.agents.neighbourhood import Admitted, Neighbourhood, find_distinct
from manela.errors import ClaimError, MalformedError, RefusedError, SessionError, TermsError
from manela.randomness import derive

_TERMS = ("exchange", "dimensions", "hops", "context", "lock_step", "run")
_IN_WORDS = {"lock_step": "lock-step", "run": "the parameters of a lock-step run"}


@dataclass(frozen=True, eq=False)
class Session:
    """What a peer has introduced."""

    number: int
    admitted: Admitted


@dataclass(eq=False)
class Link:
    """What a peer has accepted: our edges by number, and our neighbours there by number.

    `seen` is the version of its vectors that we know.
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
        What each peer has accepted.
    """

    def __init__(self, near: Neighbourhood, key: int) -> None:
        self._near, self._key, self._opened = near, key, 0
        self.greetings: dict[str, Hello] = {}
        self.links: dict[str, Link] = {}
        self._sessions: dict[str, Session] = {}

    def renew(self, near: Neighbourhood) -> Sessions:
        """Those of the same host with other edges: greetings stay, introductions are made anew."""
        sessions = Sessions(near, self._key)
        sessions.greetings, sessions._opened = dict(self.greetings), self._opened
        return sessions

    def greet(self, peer: str, hello: Hello, mine: Hello) -> None:
        """Take a peer's greeting, if its terms are ours."""
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
        """Our edges with a peer's nodes."""
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
        """Open a session with a peer for edges that were admitted."""
        self._opened += 1
        number = int(derive(self._key, self._opened)) >> 1
        self._sessions[peer] = Session(number, admitted)
        return Acceptance(number, admitted.accepted), refusals

    def find(self, peer: str, number: int) -> Admitted:
        """What a peer that asks by the number of its session has introduced."""
        session = self._sessions.get(peer)
        if session is None or session.number != number:
            raise SessionError(f"{peer} must introduce its edges first")
        return session.admitted

    def count_edges(self, peer: str) -> tuple[int, int]:
        """How many edges with a peer both hosts have, and how many only one of them."""
        link, session = self.links.get(peer), self._sessions.get(peer)
        own = len(self._near.arcs_to(peer))
        agreed = 0 if link is None else len(link.arcs)
        theirs = 0 if session is None else int(np.count_nonzero(~session.admitted.accepted))
        return agreed, (own - agreed if link is not None else 0) + theirs

    def forget_all(self, peer: str) -> None:
        """A peer is no peer any more."""
        for table in (self.links, self._sessions, self.greetings):
            table.pop(peer, None)

    def count_neighbours(self, peer: str) -> int:
        """How many nodes here are neighbours of a peer's."""
        session = self._sessions.get(peer)
        return 0 if session is None else len(session.admitted.neighbours)

    def record_acceptance(self, peer: str, acceptance: Acceptance) -> int:
        """Take a peer's answer to our introduction; returns how many edges it does not have."""
        arcs = self._near.arcs_to(peer)
        if len(acceptance.accepted) != len(arcs):
            raise MalformedError(f"{len(arcs)} edges were introduced, got {len(acceptance.accepted)}")
        arcs = arcs[acceptance.accepted]
        self.links[peer] = Link(acceptance.session, arcs, find_distinct(self._near.indices[arcs]))
        return int(np.count_nonzero(~acceptance.accepted))

    def knows(self, peer: str) -> bool:
        """Whether a peer has accepted our edges."""
        return peer in self.links

    def forget(self, peer: str) -> None:
        """A peer does not know our session any more: it must be introduced to again."""
        self.links.pop(peer, None)
