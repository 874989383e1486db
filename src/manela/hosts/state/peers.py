"""Peer: everything that a host knows of a peer, in one record; Sessions: the handshake in which two hosts meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from manela.errors import ClaimError, MalformedError, RefusedError, SessionError, TermsError
from manela.hosts.state.messages import (
    NO_FRAME,
    PROTOCOL,
    Acceptance,
    Frame,
    Hello,
    Integers,
    Introduction,
    Products,
    Sum,
    Sums,
)
from manela.hosts.state.neighbourhood import Admitted, Neighbourhood, find_distinct
from manela.hosts.state.turning import Apart
from manela.kernels.moments import Moments
from manela.kernels.randomness import derive

_SPOILT, _SHARE = 2, 0.25
"""Exchanges, and their share, in which a peer is not believed after which the start is done again without it.

If larger, some liars are missed; if smaller, chance accuses honest peers.
"""


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


@dataclass(eq=False)
class Peer:
    """Everything that a host knows of a peer."""

    name: str
    size: int | None = None  # the number of its nodes, as the operator wrote it down
    greeting: Hello | None = None  # its last greeting
    session: Session | None = None  # the edges that it has introduced, while its vectors can be asked for here
    link: Link | None = None  # the edges that it has accepted, while we can ask for its vectors
    heard: int | None = None  # the round of this host in which it answered last; None if its vectors are not used
    taught: int = 0  # the number of edges with it that have been learned from
    alarms: Counter[str] = field(default_factory=Counter)  # how often its vectors were suspicious, by kind
    distrust: int = 0  # the number of times that its vectors were not believed since they last were; 0 while they are
    started: bool = False  # whether the start used its rows
    judged: int = 0  # the number of times that its vectors were judged since the start
    doubts: int = 0  # how often they were not believed
    clipped: float = 0.0  # the share of its vectors that were too long in its last reply
    # the moments of its vectors, one for each table; empty if it has shown none
    moments: list[Moments] = field(default_factory=list)
    # what it has shown at the current step: sums over its vectors, a sum over its nodes, and products of its columns
    sums: Sums | None = None
    sum: Sum | None = None
    products: Products | None = None
    frame: Frame = NO_FRAME  # its frame, as it said last
    apart: Apart | None = None  # its last vectors, if its frame is another one

    def renew(self) -> Peer:
        """Return what remains true of the peer after a change of this host's edges."""
        return Peer(
            self.name,
            self.size,
            self.greeting,
            taught=self.taught,
            alarms=self.alarms,
            distrust=self.distrust,
            started=self.started,
            judged=self.judged,
            doubts=self.doubts,
            frame=self.frame,
        )


class Peers(dict[str, Peer]):
    """The peers of a host by name. A record is made when it is first asked for; to forget a peer, delete it.

    Examples
    --------
    >>> peers = Peers()
    >>> peers["beta"].distrust += 1
    >>> del peers["beta"]
    >>> peers["beta"].distrust
    0
    """

    def find_spoiler(self) -> Peer | None:
        """Return the peer whose rows the start used, and that was believed least since; None if all were believed.

        All hosts that find one start again without it.
        """
        doubted = [peer for peer in self.values() if peer.started and peer.doubts >= max(_SPOILT, _SHARE * peer.judged)]
        return max(doubted, key=lambda peer: peer.doubts, default=None)

    def __missing__(self, name: str) -> Peer:
        self[name] = Peer(name)
        return self[name]

    def configure(self, sizes: Mapping[str, int]) -> None:
        """Set the size of every peer as the operator wrote it down."""
        for name in {*self, *sizes}:
            self[name].size = sizes.get(name)

    def renew(self) -> Peers:
        """Return the records for the same host with other edges."""
        return Peers({name: peer.renew() for name, peer in self.items()})

    # another thread may add a peer meanwhile, so these read a copy

    @property
    def greetings(self) -> dict[str, Hello]:
        """The last greeting of each peer that has greeted."""
        return {name: peer.greeting for name, peer in self.copy().items() if peer.greeting is not None}

    @property
    def links(self) -> dict[str, Link]:
        """The links to the peers that have accepted edges."""
        return {name: peer.link for name, peer in self.copy().items() if peer.link is not None}

    @property
    def distrusted(self) -> set[str]:
        """The peers whose vectors are not used."""
        return {name for name, peer in self.copy().items() if peer.distrust}

    @property
    def sums(self) -> dict[str, Sums]:
        """The sums that peers have shown at the current step."""
        return {name: peer.sums for name, peer in self.copy().items() if peer.sums is not None}

    @property
    def sums_of_nodes(self) -> dict[str, Sum]:
        """The sums over nodes that trusted peers have shown at the current step."""
        return {name: peer.sum for name, peer in self.copy().items() if peer.sum is not None and not peer.distrust}

    def clear_sums(self) -> None:
        """Drop the sums of an earlier step."""
        for peer in self.values():
            peer.sums = peer.sum = peer.products = None


_TERMS = ("exchange", "dimensions", "hops", "context", "views", "lock_step", "run")
_IN_WORDS = {"lock_step": "lock-step", "run": "the parameters of a lock-step run"}


class Sessions:
    """The handshakes of a host, whose results are kept in its records of peers.

    `key` is the seed of the numbers of sessions, and `opened` how many the host has opened with other edges.
    """

    def __init__(self, near: Neighbourhood, key: int, peers: Peers, opened: int = 0) -> None:
        self.near, self._key, self.peers, self.opened = near, key, peers, opened

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
        self.peers[peer].greeting, self.peers[peer].frame = hello, hello.frame

    def introduce(self, peer: str) -> Introduction:
        """Return the introduction of our edges with a peer's nodes."""
        near = self.near
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
        self.peers[peer].session = Session(number, admitted)
        return Acceptance(number, admitted.accepted), refusals

    def find(self, peer: str, number: int) -> Admitted:
        """Return the admitted edges of a peer; refuse a session number that is not its current one."""
        known = self.peers.get(peer)
        if known is None or known.session is None or known.session.number != number:
            raise SessionError(f"{peer} must introduce its edges first")
        return known.session.admitted

    def count_edges(self, peer: str) -> tuple[int, int]:
        """Return how many edges with a peer both hosts have, and how many only one of them has."""
        known, own = self.peers.get(peer), len(self.near.arcs_to(peer))
        agreed = missing = 0
        if known is not None and known.link is not None:
            agreed, missing = len(known.link.arcs), own - len(known.link.arcs)
        if known is not None and known.session is not None:
            missing += int(np.count_nonzero(~known.session.admitted.accepted))
        return agreed, missing

    def count_neighbours(self, peer: str) -> int:
        """Return how many nodes here are neighbours of a peer's nodes."""
        known = self.peers.get(peer)
        return 0 if known is None or known.session is None else len(known.session.admitted.neighbours)

    def record_acceptance(self, peer: str, acceptance: Acceptance) -> int:
        """Record a peer's answer to our introduction; return how many of our edges it does not have."""
        arcs = self.near.arcs_to(peer)
        if len(acceptance.accepted) != len(arcs):
            raise MalformedError(f"{len(arcs)} edges were introduced, got {len(acceptance.accepted)}")
        arcs = arcs[acceptance.accepted]
        self.peers[peer].link = Link(acceptance.session, arcs, find_distinct(self.near.indices[arcs]))
        return int(np.count_nonzero(~acceptance.accepted))

    def knows(self, peer: str) -> bool:
        """Return whether a peer has answered our introduction."""
        return peer in self.peers and self.peers[peer].link is not None

    def forget(self, peer: str) -> None:
        """Drop the link to a peer that has lost our session, so that our edges are introduced again."""
        if peer in self.peers:
            self.peers[peer].link = None
