"""Host: the agents of one organisation's nodes as pure state: requests of peers in, replies out, rounds in between.

There is no socket, clock or thread in here. Whoever drives a host does, again and again:

    plan = host.plan()                    what this round draws, and what to ask which peer
    host.receive(plan, replies)           the peers' vectors
    moved = plan.compute()                may run in another thread, while the host answers
    host.commit(plan, moved)

and answers peers by `host.answer`, whose result is a reply, or a relay: what other peers have to be asked first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from manela.agents.messages import (
    NOTHING,
    OWN,
    PROTOCOL,
    Acceptance,
    Hello,
    Integers,
    Introduction,
    Reason,
    Reply,
    Request,
    Rows,
    Words,
)  # fmt: skip
from manela.agents.neighbourhood import Edge, Neighbourhood, Node, check_steps
from manela.agents.plan import ActiveArcs, Plan
from manela.agents.terms import Terms
from manela.errors import AgentError, DivergenceError, PeerError, RefusedError
from manela.kernels import hosts as kernels
from manela.kernels.layout import Table, allocate
from manela.params import PAIRS_PER_NODE
from manela.randomness import CONTEXTS, ROUNDS, VECTORS, derive, derive_key, draw_vectors
from manela.schedule import Schedule, default_rounds, spread

_ANSWERS, _POOLS = 101, 102
"""What a free-running host draws for besides what a run draws for."""
_LARGEST_SUM = 1e112
_LARGEST_SHARE = 100
"""How many times its usual budget a host does at most, whatever its peers say of their sizes."""
_EMPTY = np.zeros(0, np.int64)


class NotReadyError(Exception):
    """In lock-step: the round asked for has not begun here; ask again when the host has moved on."""


@dataclass
class Relay:
    """What peers must be asked before a request can be answered, and how to answer then.

    A missing reply is None; of the others, what is refused is given back beside the answer.
    """

    requests: dict[str, Request]
    finish: Callable[[Mapping[str, Reply | None]], tuple[Reply, dict[str, RefusedError]]]


@dataclass
class _Session:
    """What a peer has introduced: its edges by number, and its neighbours here by number."""

    number: int
    arcs: Integers
    rows: Integers
    neighbours: Integers
    edge_of_arc: Integers


@dataclass
class _Link:
    """What a peer has accepted: our edges by number, and our neighbours there by number."""

    session: int
    arcs: Integers
    neighbours: Integers
    seen: int = 0


class Host:
    """The agents of one host's nodes.

    Attributes
    ----------
    name : str
    version : int
        How often vectors were changed; in lock-step the rounds done.
    round : int
        Rounds done.
    pairs : int
        Update pairs made.
    neighbourhood : Neighbourhood
    disclosed : callable
        Called with every fact that a peer discloses to this host, for tracing.
    """

    def __init__(self, terms: Terms, neighbourhood: Neighbourhood, numbers: Mapping[Node, int] | None = None) -> None:
        self.name, self.terms, self.neighbourhood = neighbourhood.host, terms, neighbourhood
        self.round = self.version = self.pairs = 0
        self.disclosed: Callable[..., None] | None = None
        self.own = len(neighbourhood.nodes)
        self._numbers = _number(neighbourhood, numbers if terms.lock_step else None)
        if self.own == 0:
            raise AgentError("this host has no nodes yet: import edges first (manela agent edges import FILE)")
        settings = terms.settings
        self._known = self.own + len(neighbourhood.strangers)
        self._tables = [allocate(self._known, settings.dimensions) for _ in range(1 + settings.context)]
        for table, purpose in zip(self._tables, (VECTORS, CONTEXTS), strict=False):
            draw_vectors(settings.seed, self._numbers, table[: self.own, : settings.dimensions], purpose)
        self._present = np.zeros(self._known, bool)
        self._present[: self.own] = True
        self._changed = np.ones(self.own, np.int64)
        if not terms.lock_step:
            self.version = 1
        self._strengths = _strengths(neighbourhood, terms.weighted)
        self._sum = exact_sum(self._strengths)
        self._plan: Schedule | None = None
        self._hosts = {host: i for i, host in enumerate(neighbourhood.peers)}
        self._host_of = np.array(
            [-1] * self.own + [self._hosts[host] for _, host in neighbourhood.strangers], dtype=np.int64
        )
        self.peers: dict[str, Hello] = {}
        self._sessions: dict[str, _Session] = {}
        self._links: dict[str, _Link] = {}
        self._heard: dict[str, int] = {}
        self._edge_of_arc = np.full(len(neighbourhood.indices), -1, np.int64)
        self._arcs: ActiveArcs | None = None
        self._answered = 0
        self._snapshots: dict[int, list[Table]] = {}
        self._targets = np.repeat(np.arange(1, terms.hops + 1), settings.targets_by_hop)

    # who is there

    def hello(self) -> Hello:
        """The greeting of this host."""
        terms, settings = self.terms, self.terms.settings
        return Hello(
            host=self.name, dimensions=settings.dimensions, hops=terms.hops, context=settings.context,
            lock_step=terms.lock_step, half=terms.half, nodes=self.own, strengths=self._sum,
            run=terms.run, numbers=self._numbers if terms.lock_step else _EMPTY,
        )  # fmt: skip

    def greet(self, peer: str, hello: Hello) -> Hello:
        """Take a peer's greeting, if its terms are ours; returns our own."""
        mine = self.hello()
        if hello.host != peer:
            raise RefusedError(Reason.CLAIM, f"{peer} greets as {hello.host}")
        if hello.protocol != PROTOCOL:
            raise RefusedError(Reason.TERMS, f"protocol must be {PROTOCOL}, got {hello.protocol}: update the older")
        for name in ("dimensions", "hops", "context", "lock_step", "run"):
            ours, theirs = getattr(mine, name), getattr(hello, name)
            if ours != theirs:
                what = {"lock_step": "lock-step", "run": "the parameters of a lock-step run"}.get(name, name)
                raise RefusedError(Reason.TERMS, f"{what} must be {ours} as at {self.name}, got {theirs}")
        if not all(abs(part) <= _LARGEST_SUM for part in hello.strengths) or math.fsum(hello.strengths) < 0:
            raise RefusedError(Reason.MALFORMED, f"the sum of weights must be from 0 to {_LARGEST_SUM:g}")
        self.peers[peer] = hello
        self._plan = None
        return mine

    def introduce(self, peer: str) -> Introduction:
        """Our edges with a peer's nodes."""
        near = self.neighbourhood
        arcs = near.arcs_to(peer)
        names = [f"{name}@{self.name}" for name in near.nodes]
        return Introduction(
            [names[row] for row in near.sources[arcs].tolist()],
            [near.strangers[row - self.own][0] for row in near.indices[arcs].tolist()],
        )

    def accept(self, peer: str, introduction: Introduction) -> tuple[Acceptance, list[RefusedError]]:
        """Take a peer's edges, those of them that this host has too; the others are refused one by one."""
        arcs, refusals = self.neighbourhood.admit_all(peer, introduction.askers, introduction.others)
        accepted = arcs >= 0
        found, first = np.unique(arcs[accepted], return_index=True)
        if len(found) < np.count_nonzero(accepted):
            raise RefusedError(Reason.MALFORMED, "an edge is introduced twice")
        found = found[np.argsort(first)]
        self._answered += 1
        number = int(derive(derive(derive_key(self.terms.settings.seed, _ANSWERS), 0), self._answered)) >> 1
        rows = self.neighbourhood.sources[found]
        edge_of_arc = np.full(len(self.neighbourhood.indices), -1, np.int64)
        edge_of_arc[found] = np.arange(len(found))
        self._sessions[peer] = _Session(number, found, rows, _distinct(rows), edge_of_arc)
        if self.disclosed:
            for arc in found.tolist():
                own, other_node = self.neighbourhood.name_arc(arc)
                self.disclosed(kind="edge", peer=peer, own=own, other=other_node[0])
        return Acceptance(number, accepted), refusals

    def accepted(self, peer: str, acceptance: Acceptance) -> int:
        """Take a peer's answer to our introduction; returns how many edges it does not have."""
        arcs = self.neighbourhood.arcs_to(peer)
        if len(acceptance.accepted) != len(arcs):
            raise RefusedError(Reason.MALFORMED, f"{len(arcs)} edges were introduced, got {len(acceptance.accepted)}")
        self._edge_of_arc[arcs] = -1
        arcs = arcs[acceptance.accepted]
        self._edge_of_arc[arcs] = np.arange(len(arcs))
        self._links[peer] = _Link(acceptance.session, arcs, _distinct(self.neighbourhood.indices[arcs]))
        self._heard[peer] = self.round
        self._arcs = None
        return int(np.count_nonzero(~acceptance.accepted))

    def forget(self, peer: str) -> None:
        """A peer does not know our session any more: it must be introduced to again."""
        self._links.pop(peer, None)

    def ask_neighbours_of(self, peer: str) -> Request | None:
        """What to ask a peer to know the vectors of neighbours there, None if it is not known."""
        link = self._links.get(peer)
        return None if link is None else Request(link.session, self.round, True, link.seen, _EMPTY, _EMPTY)

    def cost(self, peer: str, request: Request) -> int:
        """How many vectors a peer asks for at most."""
        session = self._sessions.get(peer)
        return request.size + (len(session.neighbours) if session is not None and request.neighbours else 0)

    def knows(self, peer: str) -> bool:
        """Whether a peer has accepted our edges."""
        return peer in self._links

    # answering

    def answer(self, peer: str, request: Request) -> Reply | Relay:
        """Answer a peer's request, or say what other peers must be asked first."""
        session = self._sessions.get(peer)
        if session is None or session.number != request.session:
            raise RefusedError(Reason.SESSION, f"{peer} must introduce its edges first")
        edges = request.edges
        if len(edges) and not (edges.min() >= 0 and edges.max() < len(session.rows)):
            raise RefusedError(Reason.NOT_ADJACENT, f"edges must be numbered 0 to {len(session.rows) - 1}")
        check_steps(request.steps, self.terms.hops)
        lock_step = self.terms.lock_step
        if lock_step != (request.keys is not None) or lock_step != (request.numbers is not None):
            raise RefusedError(Reason.TERMS, "keys and numbers are for lock-step, and needed there")
        tables = self._tables_of(request)

        changed = _EMPTY
        if request.neighbours:
            changed = np.flatnonzero(self._changed[session.neighbours] > request.since)
        neighbours = self._read(tables, session.neighbours[changed])
        random = self._draw_random(request)

        firsts, keys = self._keys_for(request)
        ends, arcs, left = self._wander(session.rows[edges], request.steps, firsts, keys)
        index = np.where(self._is_present(ends), ends, NOTHING)
        # the asker's own node, one step from the node that it asked through, needs no vector
        back = (request.steps == 1) & (left == 0) & (arcs >= 0)
        edge = np.where(back, session.edge_of_arc[arcs] if len(session.edge_of_arc) else -1, -1)
        index = np.where(edge >= 0, OWN - edge, index)
        index[left > 0] = NOTHING
        index = np.concatenate((index, random))
        away = np.flatnonzero(left > 0)

        def reply(index: Integers, guests: list[Rows]) -> Reply:
            rows, places = np.unique(index[(index >= 0) & (index < self._known)], return_inverse=True)
            vectors = [self._read(tables, rows), *guests]
            out = index.copy()
            out[(index >= 0) & (index < self._known)] = places
            late = index >= self._known
            out[late] = index[late] - self._known + len(rows)
            version = request.round if self.terms.lock_step else self.version
            return Reply(version, changed, neighbours, out, np.concatenate(vectors))

        if not len(away):
            return reply(index, [])
        gone = firsts[away] + request.steps[away] - left[away]
        requests, chosen = self._ask_on(arcs[away], left[away], request.round, gone, keys[away])
        walkers = {other: away[those] for other, those in chosen.items()}

        links = {other: self._links[other] for other in requests}

        def finish(replies: Mapping[str, Reply | None]) -> tuple[Reply, dict[str, RefusedError]]:
            guests, base, refused = [], self._known, {}
            for other, places in walkers.items():
                found = replies.get(other)
                if found is None:
                    if self.terms.lock_step:
                        raise PeerError(f"{other} did not answer in round {request.round}")
                    continue
                try:
                    index[places] = self._place(links[other], found.index, base)
                except RefusedError as refusal:
                    refused[other] = refusal
                    continue
                guests.append(found.vectors)
                base += len(found.vectors)
                if self.disclosed:
                    self._trace(other, links[other], requests[other], found)
            return reply(index, guests), refused

        return Relay(requests, finish)

    # rounds

    @property
    def rounds(self) -> int:
        """R."""
        return self._schedule().rounds

    @property
    def done(self) -> bool:
        """Whether all rounds are over."""
        return self.round >= self.rounds

    @property
    def stranded(self) -> bool:
        """Whether its nodes have neighbours, but only at peers that are away: a round would learn nothing."""
        return len(self.neighbourhood.indices) > 0 and len(self._active().places) == 0

    def check_numbers(self) -> None:
        """In lock-step, refuse to begin unless all hosts together have the numbers 0 … n − 1, each once."""
        numbers = np.sort(np.concatenate([self._numbers, *(hello.numbers for hello in self.peers.values())]))
        if not np.array_equal(numbers, np.arange(sum(self._sizes().values()))):
            raise AgentError("the numbers of all hosts' nodes must be 0, 1, 2, … without gaps, each once")

    def ask_neighbours(self) -> dict[str, Request]:
        """In lock-step, what to ask first in a round: vectors of neighbours."""
        return {
            peer: Request(
                link.session, self.round, True, link.seen, _EMPTY, _EMPTY,
                firsts=_EMPTY, keys=_EMPTY.astype(np.uint64), numbers=_EMPTY,
            )
            for peer, link in self._links.items()
        }  # fmt: skip

    def receive_neighbours(self, replies: Mapping[str, Reply | None]) -> None:
        """In lock-step, take them; from now on this host can answer walks of this round."""
        for peer, reply in replies.items():
            if reply is None:
                raise PeerError(f"{peer} did not answer in round {self.round}, and lock-step cannot go on without it")
            self._receive_neighbours(peer, reply)
        self._snapshots = {number: kept for number, kept in self._snapshots.items() if number >= self.round - 1}
        self._snapshots[self.round] = [table[: self._known].copy() for table in self._tables]

    def plan(self, ahead: int = 0) -> Plan:
        """Draw the next round, or one some rounds ahead."""
        settings, number = self.terms.settings, self.round + ahead
        schedule = self._schedule()
        counts = schedule.counts(number)
        nodes = np.flatnonzero(counts)
        plan = Plan(
            number, schedule.rate(number), np.uint64(derive(derive_key(settings.seed, ROUNDS), number)),
            settings.negatives, nodes, self._numbers[nodes], counts[nodes],
            np.empty((int(counts.sum()), len(self._targets)), np.int64),
        )  # fmt: skip
        room = np.empty((4, len(plan.targets) * int(np.count_nonzero(self._targets > 1))), np.int64)
        active = self._active()
        gone = kernels.begin_walks(
            plan.nodes, plan.numbers, plan.counts, plan.key, self._targets, settings.negatives, active.arcs,
            plan.targets, room,
        )  # fmt: skip
        places, last, left, keys = room[:, :gone]
        firsts = self._targets[places % len(self._targets)] - left
        asked, walkers = self._ask_on(active.names(last), left, number, firsts, keys.view(np.uint64))
        plan.walkers = {peer: places[chosen] for peer, chosen in walkers.items()}
        self._ask_random(plan)
        lock_step = self.terms.lock_step
        plan.marks = marks = np.zeros(sum(self._sizes().values()) if lock_step else 0, np.uint8)
        if lock_step:
            kernels.mark_negatives(
                plan.numbers, plan.counts, plan.key, len(self._targets), settings.negatives, marks
            )  # fmt: skip
        for peer, link in self._links.items():
            walks = asked.get(peer)
            plan.requests[peer] = Request(
                session=link.session,
                round=number,
                neighbours=not lock_step,
                since=link.seen,
                edges=walks.edges if walks else _EMPTY,
                steps=walks.steps if walks else _EMPTY,
                random=0 if lock_step else plan.pools.get(peer, 0),
                firsts=(walks.firsts if walks else _EMPTY) if lock_step else None,
                keys=(walks.keys if walks else _EMPTY.astype(np.uint64)) if lock_step else None,
                numbers=self._wanted(peer, marks) if lock_step else None,
            )
        return plan

    def receive(self, plan: Plan, replies: Mapping[str, Reply | None]) -> dict[str, RefusedError]:
        """Take the peers' vectors into the plan; a peer that did not answer is None or missing.

        Returns what is refused of them.
        """
        guests: list[Rows] = []
        refused: dict[str, RefusedError] = {}
        base = self._known
        pools: dict[str, Integers] = {}
        flat = plan.targets.reshape(-1)
        for peer, reply in replies.items():
            request, link = plan.requests[peer], self._links.get(peer)
            if reply is None or link is None or link.session != request.session:
                continue
            try:
                placed = self._place(link, reply.index, base)
                if not self.terms.lock_step:
                    self._receive_neighbours(peer, reply)
            except RefusedError as refusal:
                refused[peer] = refusal
                continue
            walkers = plan.walkers.get(peer, _EMPTY)
            flat[walkers] = placed[: len(walkers)]
            pools[peer] = placed[len(request.edges) :]
            guests.append(reply.vectors)
            base += len(reply.vectors)
            if self.disclosed:
                self._trace(peer, link, request, reply)
        self._grow(base)
        at = self._known
        for rows in guests:
            self._write(at, rows)
            at += len(rows)
        flat[(flat < self._known) & ~self._is_present(flat)] = NOTHING
        if self.terms.hops > 2:
            self._drop_own(plan, flat)
        self._settle_random(plan, pools)
        plan.tables = self._tables
        return refused

    def receive_late(self, peer: str, request: Request, reply: Reply) -> None:
        """Take what is still of use of a reply that came after its round: vectors of neighbours."""
        link = self._links.get(peer)
        if link is not None and link.session == request.session:
            self._receive_neighbours(peer, reply)
            if self.disclosed:
                self._trace(peer, link, request, reply)

    def commit(self, plan: Plan, result: tuple[list[Table], Integers]) -> None:
        """Take what a plan computed: the round is over."""
        moved, made = result
        if not all(np.isfinite(room).all() for room in moved):
            raise DivergenceError(
                f"vectors stopped being finite in round {plan.round}: learning_rate must be smaller, "
                f"got {self.terms.settings.learning_rate:g}"
            )
        for table, room in zip(self._tables, moved, strict=True):
            table[plan.nodes] = room
        self.version += 1
        self.round += 1
        self.pairs += int(made.sum())
        self._changed[plan.nodes] = self.version
        self._expire()

    # what is kept

    @property
    def vectors(self) -> Rows:
        """The host's own vectors, shape (n, tables, m)."""
        return self._read(self._tables, np.arange(self.own))

    def restore(self, names: Iterable[str], vectors: Rows, round_: int, version: int, pairs: int) -> None:
        """Go on from what was kept; nodes that are new keep the vectors they began with."""
        rows = self.neighbourhood.rows
        pairs_of = [(rows[name], i) for i, name in enumerate(names) if name in rows]
        if vectors.shape[1:] != (len(self._tables), self.terms.settings.dimensions):
            raise AgentError(
                f"the vectors kept have the shape {vectors.shape[1:]}, and the configuration says "
                f"{(len(self._tables), self.terms.settings.dimensions)}: begin in a new folder, or change it back"
            )
        if pairs_of:
            here, there = np.array(pairs_of).T
            for k, table in enumerate(self._tables):
                table[here, : self.terms.settings.dimensions] = vectors[there, k]
        self.round, self.pairs = round_, pairs
        # peers must not take vectors for old that they have not seen
        self.version = version + 1 if not self.terms.lock_step else round_
        self._changed[:] = self.version

    def renew(self, neighbourhood: Neighbourhood) -> Host:
        """The same host with other edges, at the same round and with its own vectors; new nodes begin at random.

        The peers' greetings stay. Their vectors do not: with all peers introductions are made anew, and what is needed
        of their vectors is asked for again.
        """
        new = Host(self.terms, neighbourhood)
        new.restore(self.neighbourhood.nodes, self.vectors, self.round, self.version, self.pairs)
        new.peers, new.disclosed, new._answered = dict(self.peers), self.disclosed, self._answered
        return new

    # below: how

    def _sizes(self) -> dict[str, int]:
        """How many nodes each host has that may be drawn as a negative."""
        sizes = {peer: hello.nodes for peer, hello in self.peers.items() if peer in self._links or self.terms.lock_step}
        return {self.name: self.own, **sizes}

    def _schedule(self) -> Schedule:
        if self._plan is None:
            hellos = self.peers.values()
            nodes = self.own + sum(hello.nodes for hello in hellos)
            total = math.fsum([*self._sum, *(part for hello in hellos for part in hello.strengths)])
            settings = self.terms.settings
            pairs = settings.pairs or PAIRS_PER_NODE * nodes
            own = math.fsum(self._sum)
            if settings.pairs is None and not self.terms.lock_step and own > 0:
                pairs = int(min(pairs, _LARGEST_SHARE * PAIRS_PER_NODE * self.own * (total / own)))
            # between hosts a round costs more: half as many of them, which hardly shows in what is learned
            rounds = settings.rounds or default_rounds(nodes) // (1 if self.terms.lock_step else 2)
            self._plan = spread(self._strengths, total or 1.0, self._numbers, settings, pairs, rounds)
        return self._plan

    def _active(self) -> ActiveArcs:
        """The arcs that walks can take: to own nodes, and to those of peers that are here."""
        if self._arcs is None:
            near = self.neighbourhood
            active = (near.indices < self.own) | (self._edge_of_arc >= 0)
            self._arcs = ActiveArcs.build(near, active, self.terms.weighted)
        return self._arcs

    def _expire(self) -> None:
        """Do without the vectors of peers that have been away for too long."""
        if self.terms.lock_step:
            return
        for peer, heard in list(self._heard.items()):
            if self.round - heard > self.terms.patience:
                self._edge_of_arc[self.neighbourhood.arcs_to(peer)] = -1
                self._present[self._host_of == self._hosts.get(peer, -2)] = False
                self._arcs = None
                del self._heard[peer]
                self.forget(peer)

    def _is_present(self, rows: Integers) -> npt.NDArray[np.bool_]:
        within = (rows >= 0) & (rows < self._known)
        return within & self._present[np.where(within, rows, 0)]

    def _tables_of(self, request: Request) -> list[Table]:
        """The vectors that a request is about: as they are, or in lock-step as they were when its round began."""
        if not self.terms.lock_step:
            return self._tables
        if request.round in self._snapshots:
            return self._snapshots[request.round]
        if request.round > self.round or len(request.edges):
            raise NotReadyError
        if request.round < self.round:
            raise RefusedError(Reason.TERMS, f"round {request.round} is over, {self.name} is in round {self.round}")
        return self._tables

    def _read(self, tables: list[Table], rows: Integers) -> Rows:
        return np.stack([table[rows, : self.terms.settings.dimensions] for table in tables], axis=1)

    def _write(self, first: int, rows: Rows) -> None:
        for k, table in enumerate(self._tables):
            table[first : first + len(rows), : self.terms.settings.dimensions] = rows[:, k]

    def _grow(self, rows: int) -> None:
        """Room for as many rows; a plan that is being computed keeps the tables it has."""
        if rows > len(self._tables[0]):
            for k, table in enumerate(self._tables):
                self._tables[k] = allocate(rows + rows // 8, self.terms.settings.dimensions)
                self._tables[k][: self._known] = table[: self._known]

    def _receive_neighbours(self, peer: str, reply: Reply) -> None:
        link = self._links[peer]
        if len(reply.changed) and not (reply.changed.min() >= 0 and reply.changed.max() < len(link.neighbours)):
            raise RefusedError(Reason.MALFORMED, f"neighbours must be numbered 0 to {len(link.neighbours) - 1}")
        rows = link.neighbours[reply.changed]
        for k, table in enumerate(self._tables):
            table[rows, : self.terms.settings.dimensions] = reply.neighbours[:, k]
        self._present[rows] = True
        link.seen, self._heard[peer] = reply.version, self.round
        if self.disclosed:
            for row, vector in zip(rows.tolist(), reply.neighbours, strict=True):
                name = self.neighbourhood.strangers[row - self.own][0]
                self.disclosed(kind="neighbour", peer=peer, node=name, vector=_fingerprint(vector))

    def _keys_for(self, request: Request) -> tuple[Integers, Words]:
        """The draws of a peer's walks: its own in lock-step, and this host's otherwise."""
        if request.firsts is not None and request.keys is not None:
            return request.firsts, request.keys
        walks = len(request.edges)
        secret = derive(derive_key(self.terms.settings.seed, _ANSWERS), 1)
        self._answered += walks
        return np.zeros(walks, np.int64), derive(secret, self._answered - walks + np.arange(walks))

    def _wander(
        self, starts: Integers, steps: Integers, firsts: Integers, keys: Words
    ) -> tuple[Integers, Integers, Integers]:
        active = self._active()
        ends, arcs, left = (np.empty(len(starts), np.int64) for _ in range(3))
        kernels.wander(starts, firsts, steps, keys, active.arcs, ends, arcs, left)
        return ends, active.names(arcs), left

    def _ask_on(
        self, arcs: Integers, left: Integers, number: int, firsts: Integers, keys: Words
    ) -> tuple[dict[str, Request], dict[str, Integers]]:
        """Requests for walks that have left this host by these arcs, and which of the walks each peer has."""
        hosts = self._host_of[self.neighbourhood.indices[arcs]]
        lock_step = self.terms.lock_step
        requests, walkers = {}, {}
        for peer, link in self._links.items():
            chosen = np.flatnonzero(hosts == self._hosts.get(peer, -2))
            if len(chosen):
                requests[peer] = Request(
                    link.session, number, False, 0, self._edge_of_arc[arcs[chosen]], left[chosen],
                    firsts=firsts[chosen] if lock_step else None, keys=keys[chosen] if lock_step else None,
                    numbers=_EMPTY if lock_step else None,
                )  # fmt: skip
                walkers[peer] = chosen
        return requests, walkers

    def _place(self, link: _Link, index: Integers, base: int) -> Integers:
        """Rows of a peer's index: its vectors will begin at `base`, and our own nodes are where they are."""
        edges = OWN - index
        if len(index) and edges.max() >= len(link.arcs):
            raise RefusedError(Reason.MALFORMED, f"edges must be numbered 0 to {len(link.arcs) - 1}")
        own = index <= OWN
        rows = np.where(index >= 0, index + base, NOTHING)
        rows[own] = self.neighbourhood.sources[link.arcs[edges[own]]]
        return rows

    def _drop_own(self, plan: Plan, flat: Integers) -> None:
        """Drop targets that are the node itself: a walk of three steps and more comes back without an id."""
        walkers = np.concatenate([*plan.walkers.values(), _EMPTY])
        walkers = walkers[flat[walkers] >= self._known]
        width = plan.targets.shape[1]
        owners = np.repeat(plan.nodes, plan.counts)[walkers // width]
        same = np.ones(len(walkers), bool)
        for table in self._tables:
            same &= (table[flat[walkers]] == table[owners]).all(axis=1)
        flat[walkers[same]] = NOTHING

    # negatives

    def _draw_random(self, request: Request) -> Integers:
        """Rows of random own nodes, or in lock-step of those with these numbers."""
        if request.numbers is not None:
            rows = np.searchsorted(self._numbers, request.numbers)
            if not (rows < self.own).all() or (self._numbers[rows] != request.numbers).any():
                raise RefusedError(Reason.CLAIM, f"{self.name} does not have nodes of all these numbers")
            return rows
        random = np.random.default_rng(
            int(derive(derive(derive_key(self.terms.settings.seed, _ANSWERS), 2), self._answered))
        )
        self._answered += 1
        return random.integers(0, self.own, request.random)

    def _ask_random(self, plan: Plan) -> None:
        """How many of the round's pool each host shall give: its share of all nodes, rounded either way by chance."""
        if self.terms.lock_step:
            return
        sizes = self._sizes()
        phase = int(derive(derive_key(self.terms.settings.seed, _POOLS), plan.round)) / 2**64
        shares = np.cumsum(list(sizes.values())) / sum(sizes.values()) * self.terms.pool
        borders = np.floor(np.concatenate(([0.0], shares)) + phase).astype(np.int64)
        plan.pools = dict(zip(sizes, np.diff(borders).tolist(), strict=True))

    def _settle_random(self, plan: Plan, pools: dict[str, Integers]) -> None:
        """Turn the negatives that were drawn into rows."""
        if self.terms.lock_step:
            plan.lookup = np.full(sum(self._sizes().values()), -1, np.int64)
            plan.lookup[self._numbers] = np.arange(self.own)
            for peer, rows in pools.items():
                plan.lookup[plan.requests[peer].numbers] = rows
            if (plan.lookup[plan.marks > 0] < 0).any():
                raise PeerError(f"a peer has not sent all the vectors it was asked for in round {plan.round}")
            return
        key = int(derive(derive(derive_key(self.terms.settings.seed, _POOLS), 2**32), plan.round))
        random = np.random.default_rng(key)
        own = random.integers(0, self.own, plan.pools.get(self.name, 0))
        rows = np.concatenate([own, *(pool[pool >= 0] for pool in pools.values())])
        plan.lookup = rows if len(rows) else random.integers(0, self.own, 1)

    def _wanted(self, peer: str, marks: npt.NDArray[np.uint8]) -> Integers:
        """In lock-step, which of a peer's nodes the round has drawn as negatives, by number."""
        numbers = self.peers[peer].numbers
        return numbers[marks[numbers] > 0]

    def _trace(self, peer: str, link: _Link, request: Request, reply: Reply) -> None:
        for i, place in enumerate(reply.index.tolist()):
            vector = _fingerprint(reply.vectors[place]) if place >= 0 else None
            if i < len(request.edges):
                own, other = self.neighbourhood.name_arc(int(link.arcs[request.edges[i]]))
                self.disclosed(  # type: ignore[misc]
                    kind="walk", peer=peer, own=own, through=other[0], steps=int(request.steps[i]), vector=vector
                )
            else:
                self.disclosed(kind="random", peer=peer, vector=vector)  # type: ignore[misc]


def warm_up(terms: Terms) -> None:
    """Load the kernels, or compile them, before anyone waits for them."""
    small = replace(terms, lock_step=False, settings=replace(terms.settings, pairs=100, rounds=2))
    host = Host(small, Neighbourhood.build("a", [Edge("x", ("y", "a")), Edge("x", ("z", "b"))]))
    host.greet("b", replace(host.hello(), host="b"))
    host.accepted("b", host.accept("b", Introduction(["z@b"], ["x"]))[0])
    walks = 1 if terms.hops > 1 else 0
    host.answer("b", Request(host._links["b"].session, 0, True, 0, np.zeros(walks, np.int64), np.ones(walks, np.int64)))
    plan = host.plan()
    host.receive(plan, {})
    host.commit(plan, plan.compute())


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


def number_of(name: str) -> int:
    """A number for a node by its name alone, for draws of a free-running host."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def _number(near: Neighbourhood, numbers: Mapping[Node, int] | None) -> Integers:
    if numbers is None:
        return np.array([number_of(name) for name in near.nodes], dtype=np.int64)
    return np.array([numbers[name, near.host] for name in near.nodes], dtype=np.int64)


def _strengths(near: Neighbourhood, weighted: bool) -> npt.NDArray[np.float64]:
    degrees = np.diff(near.indptr)
    if not weighted:
        return degrees.astype(np.float64)
    strengths = np.zeros(len(near.nodes))
    joined = degrees > 0
    strengths[joined] = np.add.reduceat(near.weights, near.indptr[:-1][joined])
    return strengths


def _distinct(values: Integers) -> Integers:
    """Each value once, in the order of first appearance."""
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)]


def _fingerprint(vector: Rows) -> str:
    return hashlib.sha256(vector.tobytes()).hexdigest()[:16]
