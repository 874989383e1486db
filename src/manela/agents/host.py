"""Host: the agents of one organisation's nodes as pure state, whatever the way in which they learn.

There is no socket, clock or thread in here. `MessageHost` and `WalkHost` are the two ways to learn. Both answer what
peers ask by `answer`, and say by `script` what they do and need, one thing after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manela import __version__
from manela.agents.messages import Acceptance, Hello, Integers, Introduction, Totals, VectorRows
from manela.agents.names import Node, number_of
from manela.agents.neighbourhood import Admitted, Neighbourhood
from manela.agents.sessions import Sessions
from manela.agents.terms import Terms
from manela.engines.neighbours import sum_weights
from manela.errors import AgentError, RefusedError
from manela.kernels.layout import allocate
from manela.kernels.reference import POWER
from manela.randomness import CONTEXTS, VECTORS, derive_key, draw_vectors
from manela.schedule import Schedule, weigh

SESSIONS, ANSWERS, POOLS, NOISE, SAMPLES = range(101, 106)
"""What a host draws for besides what a run draws for."""


class NotReadyError(Exception):
    """What is asked for has not begun here; ask again when the host has moved on."""


# what a host does and needs, one thing after the other


@dataclass(frozen=True)
class Exchange:
    """Ask peers by the requests that `ask` gives, and hand what they answer to `receive`.

    `patient` is whether they are waited for, as all hosts should be at the same step.
    """

    ask: Callable[[], Mapping[str, Any]]
    patient: bool = False


@dataclass(frozen=True)
class Compute:
    """Call this, which may take a while, and may run in another thread."""

    work: Callable[[], None]


@dataclass(frozen=True)
class Committed:
    """A round is over: what was learned can be saved, and edges may change."""


Instruction = Exchange | Compute | Committed


@dataclass(frozen=True)
class Saved:
    """A host's state as it is kept.

    Attributes
    ----------
    names : list of str
    vectors : array of float32, shape (n, tables, m)
        As they were learned, to go on from.
    round, version, pairs : int
    exchange : str
        By what they were learned.
    falls_at : int, or None
        The round from which the learning rate falls, where that is known.
    more : int, or None
        Rounds that were added when there was more to learn from.
    taught : dict of int
        How many edges with each peer have been learned from.
    edges : str
        The digest of the nodes and edges that were there when it began to come to its end.
    smoothed : array of float32, shape (n, m), or None
        What is exported in place of the vectors, where they are smoothed at the end.
    whole : array of bool, shape (n,), or None
        Which nodes were smoothed with all their neighbours.
    """

    names: list[str]
    vectors: VectorRows
    round: int
    version: int
    pairs: int
    exchange: str = "messages"
    falls_at: int | None = None
    more: int | None = None
    taught: dict[str, int] = field(default_factory=dict)
    edges: str = ""
    smoothed: npt.NDArray[np.float32] | None = None
    whole: npt.NDArray[np.bool_] | None = None


class Host:
    """The agents of one host's nodes; a base of the two ways to learn.

    Attributes
    ----------
    name : str
    own : int
        Its nodes, which are the first rows; `known` are these and their neighbours elsewhere.
    round : int
        Rounds done.
    version : int
        How often vectors were changed.
    pairs : int
        Update pairs made.
    sizes : dict
        How many nodes each peer has, as the operator wrote it down.
    alarms : dict
        How often a peer's vectors were odd, by peer and kind.
    taught : dict of int
        How many edges with each peer have been learned from.
    has_new_edges : bool
        Whether nodes or edges have changed since it began to come to its end.
    can_be_saved : bool
        Whether its vectors are those after a whole round, or those to begin with.
    on_disclosure : callable, or None
        Called with every fact that a peer discloses to this host, for tracing.
    """

    def __init__(
        self,
        terms: Terms,
        neighbourhood: Neighbourhood,
        numbers: Mapping[Node, int] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.name, self.terms, self.neighbourhood = neighbourhood.host, terms, neighbourhood
        self.sizes: Mapping[str, int] = sizes or {}
        self.round = self.pairs = 0
        self.version = 0 if terms.lock_step else 1
        self.on_disclosure: Callable[..., None] | None = None
        self.own = len(neighbourhood.nodes)
        if self.own == 0:
            raise AgentError("this host has no nodes yet: import edges first (manela agent edges import FILE)")
        self.known = self.own + len(neighbourhood.strangers)
        settings = terms.settings
        self.numbers = _number(neighbourhood, numbers if terms.lock_step else None)
        self.tables = [allocate(self.known, settings.dimensions) for _ in range(terms.tables)]
        for table, purpose in zip(self.tables, (VECTORS, CONTEXTS), strict=False):
            draw_vectors(settings.seed, self.numbers, table[: self.own, : settings.dimensions], purpose)
        near = neighbourhood
        self.strengths = (
            sum_weights(near.indptr, near.weights) if terms.weighted else np.diff(near.indptr).astype(np.float64)
        )
        self.sessions = Sessions(near, derive_key(settings.seed, SESSIONS))
        hosts = {host: place for place, host in enumerate(near.peers)}
        self._peer_of = np.array([-1] * self.own + [hosts[host] for _, host in near.strangers], dtype=np.int64)
        self._place_of_peer = hosts
        self.heard: dict[str, int] = {}
        self.taught: dict[str, int] = {}
        self.has_new_edges, self._learned_edges = False, near.digest
        self._more: int | None = None
        self.can_be_saved = True
        self.alarms: dict[tuple[str, str], int] = {}
        self._schedule: Schedule | None = None
        self.prepare()

    # who is there

    def hello(self) -> Hello:
        """The greeting of this host."""
        terms = self.terms
        return Hello(
            host=self.name, exchange=terms.settings.exchange, dimensions=terms.settings.dimensions, hops=terms.hops,
            context=terms.settings.context, lock_step=terms.lock_step, half=terms.peers.half,
            nodes=self.own, run=terms.run,
            numbers=self.numbers if terms.lock_step else np.zeros(0, np.int64),
            totals=self._total() if terms.lock_step else Totals(), program=__version__,
        )  # fmt: skip

    def greet(self, peer: str, hello: Hello) -> Hello:
        """Take a peer's greeting, if its terms are ours; returns our own."""
        mine = self.hello()
        self.sessions.greet(peer, hello, mine)
        if self.terms.lock_step:
            self._schedule = None  # which goes by what all hosts have together
        return mine

    def admit_edges(
        self, peer: str, introduction: Introduction, found: tuple[Admitted, list[RefusedError]] | None = None
    ) -> tuple[Acceptance, list[RefusedError]]:
        """Take a peer's edges, those of them that this host has too; the others are refused.

        `found` is what `neighbourhood.admit_edges` gave of them, where that was done elsewhere.
        """
        found = found or self.neighbourhood.admit_edges(peer, introduction.askers, introduction.others)
        acceptance, refusals = self.sessions.open(peer, *found)
        if self.on_disclosure:
            for arc in self.sessions.find(peer, acceptance.session).arcs.tolist():
                own, other_node = self.neighbourhood.name_arc(arc)
                self.on_disclosure(kind="edge", peer=peer, own=own, other=other_node[0])
        return acceptance, refusals

    def record_acceptance(self, peer: str, acceptance: Acceptance) -> int:
        """Take a peer's answer to our introduction; returns how many edges it does not have."""
        missing = self.sessions.record_acceptance(peer, acceptance)
        self.heard[peer] = self.round
        self.change_peer(peer)
        return missing

    def forget(self, peer: str) -> None:
        """A peer is no peer any more: keep nothing of it."""
        self.sessions.forget_all(peer)
        self.heard.pop(peer, None)
        self.taught.pop(peer, None)
        self.alarms = {key: times for key, times in self.alarms.items() if key[0] != peer}
        self.drop_peer(peer)

    def rows_of(self, peer: str) -> npt.NDArray[np.bool_]:
        """Which rows are nodes of a peer."""
        mask: npt.NDArray[np.bool_] = self._peer_of == self._place_of_peer.get(peer, -2)
        return mask

    def check_numbers(self) -> None:
        """In lock-step, refuse to begin unless all hosts together have the numbers 0 … n − 1, each once."""
        greetings = self.sessions.greetings.values()
        numbers = np.sort(np.concatenate([self.numbers, *(hello.numbers for hello in greetings)]))
        if not np.array_equal(numbers, np.arange(self.own + sum(hello.nodes for hello in greetings))):
            raise AgentError("the numbers of all hosts' nodes must be 0, 1, 2, … without gaps, each once")

    def expire(self) -> None:
        """Do without peers that have been away for too many rounds."""
        for peer, heard in list(self.heard.items()):
            if self.round - heard > self.terms.peers.away and not self.terms.lock_step:
                del self.heard[peer]
                self.sessions.forget(peer)
                self.drop_peer(peer)

    # what the two ways to learn do

    def prepare(self) -> None:
        """Make ready what this way to learn needs."""
        raise NotImplementedError

    @property
    def rounds(self) -> int:
        """R; the most that there may be, while that is not known."""
        raise NotImplementedError

    @property
    def expected_rounds(self) -> int:
        """About how many rounds there will be."""
        return self.rounds

    @property
    def done(self) -> bool:
        """Whether all rounds are over."""
        return self.round >= self.rounds

    @property
    def should_go_on(self) -> bool:
        """Whether there is something to learn from that was not there when it came to its end."""
        links = self.sessions.links.items()
        return self.has_new_edges or any(len(link.arcs) > self.taught.get(peer, 0) for peer, link in links)

    def note_teachers(self) -> None:
        """A round is over: remember whom it has learned from."""
        for peer, link in self.sessions.links.items():
            self.taught[peer] = max(self.taught.get(peer, 0), len(link.arcs))

    def reopen(self, rounds: int | None = None) -> None:
        """Go on learning for so many rounds after the last, or for as many as suit its nodes."""
        raise NotImplementedError

    @property
    def stranded(self) -> bool:
        """Whether its nodes have neighbours, but only at peers that are away: a round would learn nothing."""
        raise NotImplementedError

    def script(self) -> Iterator[Instruction]:
        """What this host does and needs, one thing after the other, to the end of its rounds."""
        raise NotImplementedError

    def answer(self, peer: str, request: Any) -> Any:
        """Answer a peer's request."""
        raise NotImplementedError

    def receive(self, peer: str, request: Any, reply: Any) -> list[RefusedError]:
        """Take a peer's answer to a request; returns what is refused of it."""
        raise NotImplementedError

    def change_peer(self, peer: str) -> None:
        """A peer has accepted our edges anew."""
        raise NotImplementedError

    def drop_peer(self, peer: str) -> None:
        """Do without a peer's vectors."""
        raise NotImplementedError

    def refresh(self) -> dict[str, Any]:
        """What to ask peers now and then after the last round."""
        return {}

    def abandon(self) -> None:
        """End what is being computed, within moments; may be called from any thread."""
        raise NotImplementedError

    # what is kept

    @property
    def vectors(self) -> VectorRows:
        """The host's own vectors, shape (n, tables, m)."""
        return self.read_rows(self.tables, np.arange(self.own))

    def read_rows(self, tables: list[Any], rows: Integers) -> VectorRows:
        """Some rows, shape (rows, tables, m)."""
        return np.stack([table[rows, : self.terms.settings.dimensions] for table in tables], axis=1)

    def read_known(self) -> npt.NDArray[np.float32]:
        """A copy of the vectors of own nodes, and of neighbours elsewhere as they were shown last, zero if never.

        The shape is (known, m).
        """
        known = np.zeros((self.known, self.terms.settings.dimensions), np.float32)
        known[: self.own] = self.vectors[:, 0]
        return known

    def find_smoothed(self) -> npt.NDArray[np.float32] | None:
        """The smoothed vectors of own nodes, (n, m), None where there are none."""
        return None

    def save(self) -> Saved:
        """The state to go on from."""
        return Saved(
            self.neighbourhood.nodes, self.vectors, self.round, self.version, self.pairs, self.terms.settings.exchange,
            more=self._more, taught=dict(self.taught), edges=self._learned_edges,
        )  # fmt: skip

    def restore(self, saved: Saved) -> None:
        """Go on from what was kept; nodes that are new keep the vectors they began with."""
        shape = (len(self.tables), self.terms.settings.dimensions)
        if saved.vectors.shape[1:] != shape:
            raise AgentError(
                f"the vectors kept have the shape {saved.vectors.shape[1:]}, and the configuration says {shape}: begin "
                "in a new folder, or change it back"
            )
        here, there = self._match(saved.names)
        for k, table in enumerate(self.tables):
            table[here, : shape[1]] = saved.vectors[there, k]
        self.round, self.pairs = saved.round, saved.pairs
        self._more, self.taught = saved.more, dict(saved.taught)
        self._learned_edges = saved.edges or self.neighbourhood.digest
        self.has_new_edges = self._learned_edges != self.neighbourhood.digest
        # peers must not take vectors for old that they have not seen
        self.version = saved.round if self.terms.lock_step else saved.version + 1

    def renew(self, neighbourhood: Neighbourhood) -> Self:
        """The same host with other edges, at the same round and with its own vectors.

        Greetings stay. The peers' vectors do not: introductions are made anew, and what is needed is asked for again.
        """
        new = type(self)(self.terms, neighbourhood, sizes=self.sizes)
        new.restore(self.save())
        new.alarms = self.alarms
        new.sessions, new.on_disclosure = self.sessions.renew(neighbourhood), self.on_disclosure
        return new

    def _match(self, names: Iterable[str]) -> tuple[Integers, Integers]:
        """The rows of those nodes of a list that are nodes here, and their places in the list."""
        rows = self.neighbourhood.rows
        pairs = [(rows[name], place) for place, name in enumerate(names) if name in rows]
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
        """In lock-step, what all hosts have together, each sum in one number."""
        parts = [self._total(), *(hello.totals for hello in self.sessions.greetings.values())]

        def add(name: str) -> tuple[float, ...]:
            return (math.fsum(number for part in parts for number in getattr(part, name)),)

        return Totals(
            sum(part.joined for part in parts), sum(part.arcs for part in parts),
            add("strengths"), add("frequencies"), add("sizes"),
        )  # fmt: skip


def exact_sum(values: Iterable[float]) -> tuple[float, ...]:
    """A few numbers whose sum is exactly that of the values, so that sums of several hosts add up in any order.

    Examples
    --------
    >>> exact_sum([0.1, 0.2, 1e20])
    (1e+20, 0.30000000000000004, -2.7755575615628914e-17)
    """
    rest, parts = [float(value) for value in values], []
    while (part := math.fsum(rest)) != 0.0:
        parts.append(part)
        rest.append(-part)
    return tuple(parts)


def _number(near: Neighbourhood, numbers: Mapping[Node, int] | None) -> Integers:
    if numbers is None:
        return np.array([number_of(name) for name in near.nodes], dtype=np.int64)
    return np.array([numbers[name, near.host] for name in near.nodes], dtype=np.int64)
