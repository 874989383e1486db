"""Peer: everything that a host knows of a peer, in one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from manela.hosts.state.messages import Hello, Integers, Sums
from manela.hosts.state.neighbourhood import Admitted
from manela.kernels.moments import Moments


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
    """Everything that a host knows of a peer.

    Attributes
    ----------
    name : str
    size : int, or None
        The number of its nodes, as the operator wrote it down.
    greeting : Hello, or None
        Its last greeting.
    session : Session, or None
        The edges that it has introduced, while its vectors can be asked for here.
    link : Link, or None
        The edges that it has accepted, while we can ask for its vectors.
    heard : int, or None
        The round of this host in which it answered last; None if its vectors are not used.
    taught : int
        The number of edges with it that have been learned from.
    alarms : Counter
        How often its vectors were suspicious, by kind.
    distrust : int
        The number of times that its vectors were not believed since they last were; 0 while they are.
    clipped : float
        The share of its vectors that were too long in its last reply.
    moments : list of Moments
        The moments of its vectors, one for each table; empty if it has shown none.
    sums : Sums, or None
        The sums over its vectors that it has shown at the current step.
    """

    name: str
    size: int | None = None
    greeting: Hello | None = None
    session: Session | None = None
    link: Link | None = None
    heard: int | None = None
    taught: int = 0
    alarms: Counter[str] = field(default_factory=Counter)
    distrust: int = 0
    clipped: float = 0.0
    moments: list[Moments] = field(default_factory=list)
    sums: Sums | None = None

    def renew(self) -> Peer:
        """Return what remains true of the peer after a change of this host's edges."""
        return Peer(self.name, self.size, self.greeting, taught=self.taught, alarms=self.alarms, distrust=self.distrust)


class Peers(dict[str, Peer]):
    """The peers of a host by name. A record is made when something is first written to it; to forget a peer, delete it.

    Examples
    --------
    >>> peers = Peers()
    >>> peers["beta"].distrust += 1
    >>> del peers["beta"]
    >>> peers["beta"].distrust
    0
    """

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

    def clear_sums(self) -> None:
        """Drop the sums of an earlier step."""
        for peer in self.values():
            peer.sums = None
