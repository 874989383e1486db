"""Host: the agents of one organisation's nodes as pure state, without socket, clock or thread.

`MessageHost` and `WalkHost` implement the two ways to learn. Both answer peers' requests with `answer`, and yield from
`script` the instructions that a driver must follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manela import __version__
from manela.errors import AgentError, NotAdjacentError, RefusedError
from manela.hosts.state.instructions import Compute, Instruction
from manela.hosts.state.messages import (
    NO_FRAME,
    Acceptance,
    Frame,
    Hello,
    Integers,
    Introduction,
    Step,
    Totals,
    VectorRows,
)
from manela.hosts.state.names import Node, number_of
from manela.hosts.state.neighbourhood import Admitted, Neighbourhood
from manela.hosts.state.peers import Peers, Sessions
from manela.hosts.state.terms import Terms
from manela.kernels.layout import allocate, find_strengths
from manela.kernels.randomness import CONTEXTS, VECTORS, derive_key, draw_vectors
from manela.kernels.reference import POWER
from manela.settings.schedule import Schedule, weigh

SESSIONS, ANSWERS, POOLS, NOISE, SAMPLES, FRAMES, VISIBLE, INFLUENCES = range(101, 109)
"""Purposes of random draws that only hosts make; numbered apart from those in `manela.kernels.randomness`."""
_FEWEST_VISIBLE = 32
"""How many own nodes a peer may see whatever their share; if larger, more of a small host can be seen.

If smaller, small hosts, most of whose nodes have edges with one peer, learn less.
"""


@dataclass(frozen=True)
class Saved:
    """The saved state of a host, its checkpoint."""

    names: list[str]
    vectors: VectorRows  # shape (n, tables, m): the learned vectors, before smoothing
    round: int
    version: int
    pairs: int
    exchange: str = "messages"  # how they were learned: "messages" or "walks"
    falls_at: int | None = None  # the round from which the learning rate falls, if that is known
    more: int | None = None  # rounds that were added when learning was reopened
    # the number of edges with each peer that have been learned from
    taught: dict[str, int] = field(default_factory=dict)
    edges: str = ""  # digest of the nodes and edges that the host had when its last phase of learning began
    # shape (n, m): the vectors to export instead, if they were smoothed at the end
    smoothed: npt.NDArray[np.float32] | None = None
    whole: npt.NDArray[np.bool_] | None = None  # shape (n,): which nodes were smoothed with all their neighbours
    # shape (n, m), and shape (m, m): the spectral view, if there is one, and H as all hosts found it
    view: npt.NDArray[np.float16] | None = None
    stretch: npt.NDArray[np.float64] | None = None
    # shape (n,): the edges of each node when the last phase of learning began, as `Neighbourhood.signatures` has them
    signatures: npt.NDArray[np.uint64] | None = None
    frame: Frame = NO_FRAME  # the start that the vectors come from
    smoothed_frame: Frame = NO_FRAME  # that of the vectors to export

    def keep(self, names: Collection[str]) -> Saved:
        """Return the same state of these nodes only."""
        rows = [row for row, name in enumerate(self.names) if name in names]
        return replace(
            self,
            names=[self.names[row] for row in rows],
            vectors=self.vectors[rows],
            smoothed=None if self.smoothed is None else self.smoothed[rows],
            whole=None if self.whole is None else self.whole[rows],
            view=None if self.view is None else self.view[rows],
            signatures=None if self.signatures is None else self.signatures[rows],
        )


class Host:
    """The agents of one host's nodes; the base class of the two ways to learn."""

    def __init__(
        self,
        terms: Terms,
        neighbourhood: Neighbourhood,
        numbers: Mapping[Node, int] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.name, self.terms, self.neighbourhood = neighbourhood.host, terms, neighbourhood
        self.peers = Peers()  # everything that the host knows of each peer
        self.peers.configure(sizes or {})
        self.round = self.pairs = 0  # rounds done, and update pairs made
        self.version = 0 if terms.lock_step else 1  # increases whenever vectors change
        # called with everything that a peer discloses to this host, for tracing
        self.on_disclosure: Callable[..., None] | None = None
        # number of own nodes, which have the first rows; `known` also counts their remote neighbours
        self.own = len(neighbourhood.nodes)
        if self.own == 0:
            raise AgentError("this host has no nodes yet: import edges first (manela agent edges import FILE)")
        self.known = self.own + len(neighbourhood.remotes)
        settings = terms.settings
        self.numbers = _number(neighbourhood, numbers if terms.lock_step else None)
        self.tables = [allocate(self.known, settings.dimensions) for _ in range(terms.tables)]
        for table, purpose in zip(self.tables, (VECTORS, CONTEXTS), strict=False):
            draw_vectors(settings.seed, self.numbers, table[: self.own, : settings.dimensions], purpose)
        near = neighbourhood
        self.strengths = find_strengths(near.indptr, near.weights if terms.weighted else None)
        self.sessions = Sessions(near, derive_key(settings.seed, SESSIONS), self.peers)
        hosts = {host: position for position, host in enumerate(near.peers)}
        self._peer_of = np.array([-1] * self.own + [hosts[host] for _, host in near.remotes], dtype=np.int64)
        self._peer_numbers = hosts
        # has_new_edges: whether nodes or edges have changed since the last phase of learning began
        self.has_new_edges, self._learned_edges = False, near.digest
        self._extra_rounds: int | None = None
        # whether the vectors are initial ones or those after a whole round, and not in the middle of one
        self.can_be_saved = True
        self._schedule: Schedule | None = None
        self._work: Callable[[], None] = lambda: None
        self.prepare()

    # peers

    def hello(self) -> Hello:
        """Return the greeting of this host."""
        terms = self.terms
        return Hello(
            host=self.name, exchange=terms.settings.exchange, dimensions=terms.settings.dimensions, hops=terms.hops,
            context=terms.settings.context, lock_step=terms.lock_step, half=terms.peers.half,
            nodes=self.own, run=terms.run,
            numbers=self.numbers if terms.lock_step else np.zeros(0, np.int64),
            totals=self._total() if terms.lock_step else Totals(), program=__version__, views=terms.settings.views,
            frame=self.frame
        )  # fmt: skip

    def greet(self, peer: str, hello: Hello) -> Hello:
        """Record a peer's greeting and return our own; refuse a peer with other terms."""
        mine = self.hello()
        self.sessions.greet(peer, hello, mine)
        if self.terms.lock_step:
            self._schedule = None  # in lock-step it depends on the totals of all hosts
        return mine

    def admit_edges(
        self, peer: str, introduction: Introduction, admitted: tuple[Admitted, list[RefusedError]] | None = None
    ) -> tuple[Acceptance, list[RefusedError]]:
        """Open a session for those of a peer's edges that this host has too, and refuse the others.

        `admitted` is the result of `neighbourhood.admit_edges`, if the caller has it already.
        """
        admitted = admitted or self.neighbourhood.admit_edges(peer, introduction.askers, introduction.others)
        acceptance, refusals = self.sessions.open(peer, *self._bound_share(peer, *admitted))
        if self.on_disclosure:
            for arc in self.sessions.find(peer, acceptance.session).arcs.tolist():
                own, other_node = self.neighbourhood.name_arc(arc)
                self.on_disclosure(kind="edge", peer=peer, own=own, other=other_node[0])
        return acceptance, refusals

    def _bound_share(
        self, peer: str, admitted: Admitted, refusals: list[RefusedError]
    ) -> tuple[Admitted, list[RefusedError]]:
        """Refuse a peer's edges beyond the share of own nodes that it may see, and raise an alarm.

        The peer cannot tell them from edges that are not in this host's list.
        """
        near = self.neighbourhood
        most = max(_FEWEST_VISIBLE, math.ceil(self.terms.peers.share * self.own))
        if self.terms.lock_step or most >= self.own:
            return admitted, refusals
        visible = near.choose_visible(peer, most, derive_key(self.terms.settings.seed, VISIBLE))
        kept = admitted.keep(near, visible)
        left_out = len(admitted.arcs) - len(kept.arcs)
        if not left_out:
            return admitted, refusals
        self.peers[peer].alarms["share"] += 1
        message = f"{left_out:,} edges, as {peer} may see {most:,} of {self.own:,} nodes (share in agent.toml)"
        return kept, [*refusals, NotAdjacentError(message, times=left_out)]

    def record_acceptance(self, peer: str, acceptance: Acceptance) -> int:
        """Record a peer's answer to our introduction; return how many of our edges it does not have."""
        missing = self.sessions.record_acceptance(peer, acceptance)
        self.peers[peer].heard = self.round
        self.change_peer(peer)
        return missing

    def forget(self, peer: str) -> None:
        """Delete everything about a host that is no longer a peer."""
        self.drop_peer(peer)
        self.peers.pop(peer, None)

    def rows_of(self, peer: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that are nodes of a peer."""
        mask: npt.NDArray[np.bool_] = self._peer_of == self._peer_numbers.get(peer, -2)
        return mask

    def check_numbers(self) -> None:
        """In lock-step, raise unless all hosts together have the node numbers 0 … n − 1, each once."""
        greetings = self.peers.greetings.values()
        numbers = np.sort(np.concatenate([self.numbers, *(hello.numbers for hello in greetings)]))
        if not np.array_equal(numbers, np.arange(self.own + sum(hello.nodes for hello in greetings))):
            raise AgentError("the numbers of all hosts' nodes must be 0, 1, 2, … without gaps, each once")

    @property
    def frame(self) -> Frame:
        """The start that the vectors come from, if the host has frames."""
        return NO_FRAME

    @property
    def is_provisional(self) -> bool:
        """Whether vectors will be others soon: no peer has accepted an edge of this host yet."""
        links = self.peers.links.values()
        return len(self.neighbourhood.remotes) > 0 and not any(len(link.arcs) for link in links)

    def find_likeness(self, peer: str) -> tuple[bool, float] | None:  # noqa: ARG002
        """Return whether vectors here and at a peer can be compared, and how alike neighbours there and here are.

        The latter is over how alike neighbours here are to each other. None if the peer was not judged.
        """
        return None

    def waits_for(self, peer: str, was_late: bool) -> bool:  # noqa: ARG002
        """Return whether a step is to wait for a peer, which may have been late at an earlier one."""
        return True

    def expire(self) -> None:
        """Stop using the vectors of peers that have been away for too many rounds."""
        for peer in self.peers.values():
            is_away = peer.heard is not None and self.round - peer.heard > self.terms.peers.away
            if is_away and not self.terms.lock_step:
                peer.heard = peer.link = None
                self.drop_peer(peer.name)

    # what subclasses implement

    def prepare(self) -> None:
        """Set up the state that this way to learn needs."""
        raise NotImplementedError

    @property
    def rounds(self) -> int:
        """R, the number of rounds; an upper bound while it is not known."""
        raise NotImplementedError

    @property
    def expected_rounds(self) -> int:
        """The expected number of rounds."""
        return self.rounds

    @property
    def done(self) -> bool:
        """Whether all rounds are done."""
        return self.round >= self.rounds

    @property
    def should_go_on(self) -> bool:
        """Whether edges or peers have come that the finished rounds did not learn from."""
        return self.has_new_edges or any(
            peer.link is not None and len(peer.link.arcs) > peer.taught for peer in self.peers.values()
        )

    @property
    def is_outdated(self) -> bool:
        """Whether peers are in a newer start, so that this host must start again."""
        return False

    def note_teachers(self) -> None:
        """Record, after a round, with which peers' edges it has learned."""
        for peer in self.peers.values():
            if peer.link is not None:
                peer.taught = max(peer.taught, len(peer.link.arcs))

    def reopen(self, rounds: int | None = None) -> None:
        """Continue learning for this many rounds after the last; the default is up to the subclass."""
        raise NotImplementedError

    def start_anew(self) -> None:
        """Forget what was learned, and start again with all peers."""
        raise AgentError("a new start needs a start by spectral or neighbours, and no context vectors")

    @property
    def stranded(self) -> bool:
        """Whether all neighbours of the host's nodes are at peers that are away, so a round would learn nothing."""
        raise NotImplementedError

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions to follow, in order, until the last round is done."""
        raise NotImplementedError

    def requests(self) -> Mapping[str, Any]:
        """Return the request for each peer that can be asked, as the last `Ask` of the script wants."""
        raise NotImplementedError

    def compute(self) -> None:
        """Do what the last `Compute` of the script wants."""
        self._work()

    def will_compute(self, step: Step, name: str, work: Callable[[], None]) -> Compute:
        """Return the instruction to do some work, which `compute` will do."""
        self._work = work
        return Compute(step, name)

    def answer(self, peer: str, request: Any) -> Any:
        """Return the reply to a peer's request, or a Relay if other peers must be asked first."""
        raise NotImplementedError

    def resume(self, relay: Any, replies: Mapping[str, Any]) -> tuple[Any, dict[str, RefusedError]]:
        """Return the reply that a Relay was for, and refusals by peer; in `replies`, None is a missing reply."""
        raise NotImplementedError

    def receive(self, peer: str, request: Any, reply: Any) -> list[RefusedError]:
        """Store a peer's reply to a request, and return the refusals of what cannot be used."""
        raise NotImplementedError

    def change_peer(self, peer: str) -> None:
        """Use the edges that a peer has just accepted."""
        raise NotImplementedError

    def drop_peer(self, peer: str) -> None:
        """Stop using a peer's vectors."""
        raise NotImplementedError

    def refresh(self) -> dict[str, Any]:
        """Return the requests to send peers periodically after the last round."""
        return {}

    def abandon(self) -> None:
        """Stop the running computation as soon as possible; may be called from any thread."""
        raise NotImplementedError

    # vectors, saving and restoring

    @property
    def vectors(self) -> VectorRows:
        """The host's own vectors, shape (n, tables, m)."""
        return self.read_rows(self.tables, np.arange(self.own))

    def read_rows(self, tables: list[Any], rows: Integers) -> VectorRows:
        """Return the vectors of the given rows, shape (rows, tables, m)."""
        return np.stack([table[rows, : self.terms.settings.dimensions] for table in tables], axis=1)

    def read_known(self) -> npt.NDArray[np.float32]:
        """Return a copy of own vectors and of the last vectors that peers have shown, zero for those never shown.

        The shape is (known, m).
        """
        known = np.zeros((self.known, self.terms.settings.dimensions), np.float32)
        known[: self.own] = self.vectors[:, 0]
        return known

    def find_smoothed(self) -> npt.NDArray[np.float32] | None:
        """Return the smoothed vectors of own nodes, (n, m), or None if there are none."""
        return None

    def save(self) -> Saved:
        """Return the state to resume from."""
        return Saved(
            self.neighbourhood.nodes, self.vectors, self.round, self.version, self.pairs, self.terms.settings.exchange,
            more=self._extra_rounds, taught={name: peer.taught for name, peer in self.peers.items() if peer.taught},
            edges=self._learned_edges
        )  # fmt: skip

    def restore(self, saved: Saved) -> None:
        """Resume from a saved state; new nodes keep their initial vectors."""
        shape = (len(self.tables), self.terms.settings.dimensions)
        if saved.vectors.shape[1:] != shape:
            raise AgentError(
                f"the saved vectors have the shape {saved.vectors.shape[1:]}, but the configuration says {shape}: "
                "start in a new home, or change it back"
            )
        rows, positions = self._match(saved.names)
        for k, table in enumerate(self.tables):
            table[rows, : shape[1]] = saved.vectors[positions, k]
        self.round, self.pairs = saved.round, saved.pairs
        self._extra_rounds = saved.more
        for peer, edges in saved.taught.items():
            self.peers[peer].taught = edges
        self._learned_edges = saved.edges or self.neighbourhood.digest
        self.has_new_edges = self._learned_edges != self.neighbourhood.digest
        # the version must be higher than any that peers have seen, or they would take new vectors for old ones
        self.version = saved.round if self.terms.lock_step else saved.version + 1

    def renew(self, neighbourhood: Neighbourhood) -> Self:
        """Return the same host with other edges, at the same round and with its own vectors.

        What is known of peers is kept, but for sessions and vectors: peers must be introduced and asked again.
        """
        new = type(self)(self.terms, neighbourhood)
        new.restore(self.save())
        new.peers.update(self.peers.renew())
        new.sessions.opened, new.on_disclosure = self.sessions.opened, self.on_disclosure
        return new

    def _match(self, names: Iterable[str]) -> tuple[Integers, Integers]:
        """Return the rows of the listed names that are nodes here, and their positions in the list."""
        rows = self.neighbourhood.rows
        pairs = [(rows[name], position) for position, name in enumerate(names) if name in rows]
        return tuple(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)  # type: ignore[return-value]

    def _total(self) -> Totals:
        degrees = np.diff(self.neighbourhood.indptr)
        return Totals(
            joined=int(np.count_nonzero(degrees)),
            arcs=int(degrees.sum()),
            strengths=exact_sum(self.strengths),
            frequencies=exact_sum(weigh(self.strengths, self.terms.settings)),
            sizes=exact_sum(np.where(degrees > 0, degrees**POWER, 0.0)),
        )

    def total_of_all(self) -> Totals:
        """In lock-step, return the totals over all hosts, each sum as a single number."""
        parts = [self._total(), *(hello.totals for hello in self.peers.greetings.values())]

        def add(name: str) -> tuple[float, ...]:
            return (math.fsum(number for part in parts for number in getattr(part, name)),)

        return Totals(
            sum(part.joined for part in parts), sum(part.arcs for part in parts),
            add("strengths"), add("frequencies"), add("sizes")
        )  # fmt: skip


def exact_sum(values: Iterable[float]) -> tuple[float, ...]:
    """Return a few floats whose exact sum is that of the values, so that hosts' sums can be added in any order.

    Examples
    --------
    >>> exact_sum([0.1, 0.2, 1e20])
    (1e+20, 0.30000000000000004, -2.7755575615628914e-17)
    """
    remainder, parts = [float(value) for value in values], []
    if not all(map(math.isfinite, remainder)):
        raise ValueError("only finite numbers have an exact sum")
    while (part := math.fsum(remainder)) != 0.0:
        parts.append(part)
        remainder.append(-part)
    return tuple(parts)


def _number(near: Neighbourhood, numbers: Mapping[Node, int] | None) -> Integers:
    """Return a number for each own node: the given one, or a hash of its name."""
    if numbers is None:
        return np.array([number_of(name) for name in near.nodes], dtype=np.int64)
    return np.array([numbers[name, near.host] for name in near.nodes], dtype=np.int64)
