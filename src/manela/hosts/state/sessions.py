"""Sessions: the handshake of two hosts, in which they greet each other and find the edges that both have."""

from __future__ import annotations

import numpy as np

from manela.errors import ClaimError, MalformedError, RefusedError, SessionError, TermsError
from manela.hosts.state.messages import PROTOCOL, Acceptance, Hello, Introduction
from manela.hosts.state.neighbourhood import Admitted, Neighbourhood, find_distinct
from manela.hosts.state.peers import Link, Peers, Session
from manela.kernels.randomness import derive

_TERMS = ("exchange", "dimensions", "hops", "context", "lock_step", "run")
_IN_WORDS = {"lock_step": "lock-step", "run": "the parameters of a lock-step run"}


class Sessions:
    """The handshakes of a host, whose results are kept in its records of peers.

    Parameters
    ----------
    near : Neighbourhood
    key : int
        Seed of the numbers of sessions.
    peers : Peers
    opened : int
        The number of sessions that the host has opened with other edges.
    """

    def __init__(self, near: Neighbourhood, key: int, peers: Peers, opened: int = 0) -> None:
        self._near, self._key, self._peers, self.opened = near, key, peers, opened

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
        self._peers[peer].greeting = hello

    def introduce(self, peer: str) -> Introduction:
        """Return the introduction of our edges with a peer's nodes."""
        near = self._near
        arcs = near.arcs_to(peer)
        names = [f"{name}@{near.host}" for name in near.nodes]
        own = len(near.nodes)
        return Introduction(
            [names[row] for row in near.sources[arcs].tolist()],
            [near.remotes[row - own][0] for row in near.indices[arcs].tolist()],
        )

    def open(
        self, peer: str, admitted: Admitted, refusals: list[RefusedError]
    ) -> tuple[Acceptance, list[RefusedError]]:
        """Open a session with a peer for its admitted edges."""
        self.opened += 1
        number = int(derive(self._key, self.opened)) >> 1
        self._peers[peer].session = Session(number, admitted)
        return Acceptance(number, admitted.accepted), refusals

    def find(self, peer: str, number: int) -> Admitted:
        """Return the admitted edges of a peer; refuse a session number that is not its current one."""
        known = self._peers.get(peer)
        if known is None or known.session is None or known.session.number != number:
            raise SessionError(f"{peer} must introduce its edges first")
        return known.session.admitted

    def count_edges(self, peer: str) -> tuple[int, int]:
        """Return how many edges with a peer both hosts have, and how many only one of them has."""
        known, own = self._peers.get(peer), len(self._near.arcs_to(peer))
        agreed = missing = 0
        if known is not None and known.link is not None:
            agreed, missing = len(known.link.arcs), own - len(known.link.arcs)
        if known is not None and known.session is not None:
            missing += int(np.count_nonzero(~known.session.admitted.accepted))
        return agreed, missing

    def count_neighbours(self, peer: str) -> int:
        """Return how many nodes here are neighbours of a peer's nodes."""
        known = self._peers.get(peer)
        return 0 if known is None or known.session is None else len(known.session.admitted.neighbours)

    def record_acceptance(self, peer: str, acceptance: Acceptance) -> int:
        """Record a peer's answer to our introduction; return how many of our edges it does not have."""
        arcs = self._near.arcs_to(peer)
        if len(acceptance.accepted) != len(arcs):
            raise MalformedError(f"{len(arcs)} edges were introduced, got {len(acceptance.accepted)}")
        arcs = arcs[acceptance.accepted]
        self._peers[peer].link = Link(acceptance.session, arcs, find_distinct(self._near.indices[arcs]))
        return int(np.count_nonzero(~acceptance.accepted))

    def knows(self, peer: str) -> bool:
        """Return whether a peer has answered our introduction."""
        return peer in self._peers and self._peers[peer].link is not None

    def forget(self, peer: str) -> None:
        """Drop the link to a peer that has lost our session, so that our edges are introduced again."""
        if peer in self._peers:
            self._peers[peer].link = None
