"""WalkHost: a host that learns by walks and random vectors, as in the paper."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import BadVectorError, DivergenceError, MalformedError, PeerError, RefusedError
from manela.hosts.state.host import Host, Saved
from manela.hosts.state.instructions import Ask, Commit, Instruction
from manela.hosts.state.messages import (
    NOTHING,
    ROUND,
    Integers,
    Step,
    VectorRows,
    WalkReply,
    WalkRequest,
    Words,
    no_integers,
)
from manela.hosts.state.names import Node
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.peers import Link
from manela.hosts.state.rounds import MessageHost
from manela.hosts.state.terms import Terms
from manela.hosts.walks import answering as walk_answering
from manela.hosts.walks.answering import Pending
from manela.hosts.walks.drawing import ActiveArcs, OwnRandomness, SharedKeys, WalkPlan
from manela.kernels.cpu import walks as kernels
from manela.kernels.layout import allocate
from manela.kernels.randomness import ROUNDS, derive, derive_key
from manela.settings.budget import Sizes, resolve
from manela.settings.schedule import Schedule, plan, weigh


class WalkHost(Host):
    """The agents of one host's nodes, learning by walks."""

    def prepare(self) -> None:
        """Set up the state of a host that has received nothing from peers."""
        terms, neighbourhood = self.terms, self.neighbourhood
        # how random numbers are drawn
        self.drawing: SharedKeys | OwnRandomness = SharedKeys(self) if terms.lock_step else OwnRandomness(self)
        self.changed = np.ones(self.own, np.int64)  # (own,): the version in which each node last moved
        self._present = np.zeros(self.known, bool)
        self._present[: self.own] = True
        self._edge_of_arc = np.full(len(neighbourhood.indices), -1, np.int64)
        self._arcs: ActiveArcs | None = None
        self._plan: WalkPlan | None = None
        self._asks_for_walks = False
        self._targets = np.repeat(np.arange(1, terms.hops + 1), terms.settings.targets_by_hop)

    # the script

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of all rounds.

        In lock-step neighbours' vectors are fetched first, so that peers' walks can be answered.
        """
        while not self.done:
            if self.terms.lock_step:
                self._asks_for_walks = False
                yield Ask(Step(ROUND, self.round), patient=True)
                self._check_heard()
            self.drawing.keep()
            self._asks_for_walks = True
            yield Ask(Step(ROUND, self.round, 1), patient=self.terms.lock_step)
            plan = self._find_plan()
            self._settle(plan)
            yield self.will_compute(Step(ROUND, self.round), "learn", plan.compute)
            self._plan = None
            if plan.stop[0]:
                return
            self._commit(plan)
            yield Commit(self.round)

    def requests(self) -> Mapping[str, WalkRequest]:
        """Return the request for each peer that can be asked; the first call for walks in a round draws them."""
        return self._find_plan().requests if self._asks_for_walks else self.ask_neighbours()

    def ask_neighbours(self) -> dict[str, WalkRequest]:
        """Return requests for the vectors of neighbours at each peer."""
        nothing = no_integers()
        return {
            peer: WalkRequest(
                link.session, self.round, True, link.seen, nothing, nothing,
                **self.drawing.describe_walks(nothing, nothing.astype(np.uint64))
            )
            for peer, link in self.peers.links.items()
        }  # fmt: skip

    def refresh(self) -> dict[str, WalkRequest]:
        """After the last round, ask for neighbours' vectors, so that walks through this host still work."""
        return self.ask_neighbours()

    def _check_heard(self) -> None:
        """In lock-step, raise if a peer has not answered in this round."""
        for peer in self.peers.values():
            if peer.link is not None and peer.heard != self.round:
                raise PeerError(
                    f"{peer.name} did not answer in round {self.round}, and lock-step cannot continue without it"
                )

    def _find_plan(self) -> WalkPlan:
        """Return the plan of the round, which is drawn when it is first needed."""
        if self._plan is None:
            self._plan = self._draw_plan()
        return self._plan

    def _draw_plan(self) -> WalkPlan:
        settings, round, schedule = self.terms.settings, self.round, self._find_schedule()
        counts = schedule.counts(round)
        nodes = np.flatnonzero(counts)
        plan = WalkPlan(
            round, schedule.rate(round), np.uint64(derive(derive_key(settings.seed, ROUNDS), round)),
            settings.negatives, nodes, self.numbers[nodes], counts[nodes],
            np.empty((int(counts.sum()), len(self._targets)), np.int64)
        )  # fmt: skip
        room = np.empty((4, len(plan.targets) * int(np.count_nonzero(self._targets > 1))), np.int64)
        active = self.find_arcs()
        leaving = kernels.begin_walks(
            plan.nodes, plan.numbers, plan.counts, plan.key, self._targets, settings.negatives, active.arcs,
            plan.targets, room
        )  # fmt: skip
        positions, last_arcs, steps_left, keys = room[:, :leaving]
        firsts = self._targets[positions % len(self._targets)] - steps_left
        asked, walkers = self.ask_on(active.names(last_arcs), steps_left, round, firsts, keys.view(np.uint64))
        plan.walkers = {peer: positions[chosen] for peer, chosen in walkers.items()}
        self.drawing.prepare(plan)
        nothing = no_integers()
        for peer, link in self.peers.links.items():
            walks = asked.get(peer)
            fields = self.drawing.describe_walks(nothing, nothing.astype(np.uint64))
            if walks is not None:
                fields = {"firsts": walks.firsts, "keys": walks.keys}
            plan.requests[peer] = WalkRequest(
                session=link.session, round=round, neighbours=not self.terms.lock_step, since=link.seen,
                edges=nothing if walks is None else walks.edges, steps=nothing if walks is None else walks.steps,
                **{**fields, **self.drawing.ask_for_random(plan, peer)}
            )  # fmt: skip
        return plan

    def ask_on(
        self, arcs: Integers, left: Integers, round: int, firsts: Integers, keys: Words
    ) -> tuple[dict[str, WalkRequest], dict[str, Integers]]:
        """Return requests that continue walks which left this host by these arcs, and which walks each peer got."""
        hosts = self._peer_of[self.neighbourhood.indices[arcs]]
        requests, walkers = {}, {}
        for peer, link in self.peers.links.items():
            chosen = np.flatnonzero(hosts == self._peer_numbers.get(peer, -2))
            if len(chosen):
                requests[peer] = WalkRequest(
                    link.session, round, False, 0, self._edge_of_arc[arcs[chosen]], left[chosen],
                    **self.drawing.describe_walks(firsts[chosen], keys[chosen])
                )  # fmt: skip
                walkers[peer] = chosen
        return requests, walkers

    def answer(self, peer: str, request: WalkRequest) -> WalkReply | Pending:
        """Return the reply to a peer's request, or a Pending if other peers must be asked first."""
        return walk_answering.answer(self, peer, request)

    def resume(
        self, relay: Pending, replies: Mapping[str, WalkReply | None]
    ) -> tuple[WalkReply, dict[str, RefusedError]]:
        """Return the reply to a pending request, and refusals by peer, from what other peers have replied."""
        return walk_answering.resume(self, relay, replies)

    # replies of peers

    def receive(self, peer: str, request: WalkRequest, reply: WalkReply) -> list[RefusedError]:
        """Store a peer's vectors, and return the refusals of what cannot be used.

        A reply to the request of an earlier round only updates neighbours' vectors.
        """
        link = self.peers[peer].link if peer in self.peers else None
        if link is None or link.session != request.session:
            return []
        plan, refusals = self._plan, list[RefusedError]()
        asked_now = plan is not None and plan.requests.get(peer) is request
        base = self.known + (sum(len(rows) for rows in plan.remote_vectors) if plan is not None else 0)
        placed = walk_answering.locate(self, link, reply.index, base)
        self._receive_neighbours(peer, link, reply, refusals)
        if plan is not None and asked_now:
            good, vectors = self._judge(reply.vectors, refusals)
            late = placed >= base
            placed[late] = np.where(good[placed[late] - base], placed[late], NOTHING)
            walkers = plan.walkers.get(peer, no_integers())
            plan.targets.reshape(-1)[walkers] = placed[: len(walkers)]
            plan.random[peer] = placed[len(request.edges) :]
            plan.remote_vectors.append(vectors)
        if self.on_disclosure:
            self.trace(peer, link, request, reply)
        return refusals

    def _receive_neighbours(self, peer: str, link: Link, reply: WalkReply, refusals: list[RefusedError]) -> None:
        changed = reply.changed
        if len(changed) and not (
            changed[0] >= 0 and changed[-1] < len(link.neighbours) and (np.diff(changed) > 0).all()
        ):
            raise MalformedError(f"neighbours must be numbered 0 to {len(link.neighbours) - 1}, in order, each once")
        good, vectors = self._judge(reply.neighbours, refusals)
        rows = link.neighbours[changed[good]]
        for k, table in enumerate(self.tables):
            table[rows, : self.terms.settings.dimensions] = vectors[good, k]
        self._present[rows] = True
        link.seen, self.peers[peer].heard = reply.version, self.round
        if self.on_disclosure:
            for row, vector in zip(rows.tolist(), reply.neighbours[good], strict=True):
                name = self.neighbourhood.remotes[row - self.own][0]
                self.on_disclosure(kind="neighbour", peer=peer, node=name, vector=fingerprint(vector))

    def _judge(self, vectors: VectorRows, refusals: list[RefusedError]) -> tuple[npt.NDArray[np.bool_], VectorRows]:
        good = np.asarray(np.isfinite(vectors).all(axis=(1, 2)))
        if not good.all():
            bad = int(np.count_nonzero(~good))
            refusals.append(BadVectorError(f"{bad:,} of {len(good):,} vectors are not finite", times=bad))
        if self.terms.lock_step or not len(vectors):
            return good, vectors
        vectors = np.where(good[:, None, None], vectors, np.float32(0.0))
        lengths = np.sqrt(np.einsum("ijk,ijk->ij", vectors, vectors, dtype=np.float64))
        own = self.vectors
        norms = np.median(np.sqrt(np.einsum("ijk,ijk->ij", own, own, dtype=np.float64)), axis=0)
        limits = np.broadcast_to(self.terms.peers.clip * norms, lengths.shape)
        factors = np.divide(limits, lengths, out=np.ones_like(lengths), where=lengths > limits)
        return good, (vectors * factors[..., None]).astype(np.float32)

    def _settle(self, plan: WalkPlan) -> None:
        """Complete a plan with the vectors that peers have sent, so that it can be computed."""
        start = self.known
        self._grow(start + sum(len(vectors) for vectors in plan.remote_vectors))
        for vectors in plan.remote_vectors:
            for k, table in enumerate(self.tables):
                table[start : start + len(vectors), : self.terms.settings.dimensions] = vectors[:, k]
            start += len(vectors)
        flat = plan.targets.reshape(-1)
        flat[(flat < self.known) & ~self.is_present(flat)] = NOTHING
        if self.terms.hops > 2:
            self._drop_own(plan, flat)
        self.drawing.settle(plan)
        plan.tables = self.tables

    def _drop_own(self, plan: WalkPlan, flat: Integers) -> None:
        """Drop targets that are the node itself, found by equal vectors: a walk's end comes back without an id."""
        walkers = np.concatenate([*plan.walkers.values(), no_integers()])
        walkers = walkers[flat[walkers] >= self.known]
        owners = np.repeat(plan.nodes, plan.counts)[walkers // plan.targets.shape[1]]
        same = np.ones(len(walkers), bool)
        for table in self.tables:
            same &= (table[flat[walkers]] == table[owners]).all(axis=1)
        flat[walkers[same]] = NOTHING

    def _grow(self, rows: int) -> None:
        """Enlarge the tables to at least this many rows; a running plan keeps the old tables."""
        if rows > len(self.tables[0]):
            for k, table in enumerate(self.tables):
                self.tables[k] = allocate(rows + rows // 8, self.terms.settings.dimensions)
                self.tables[k][: self.known] = table[: self.known]

    def _commit(self, plan: WalkPlan) -> None:
        """Finish a round: copy the moved vectors to the tables, and count it."""
        if not all(np.isfinite(room).all() for room in plan.moved):
            raise DivergenceError(
                f"vectors stopped being finite in round {plan.round}: learning_rate must be smaller, "
                f"got {self.terms.settings.learning_rate:g}"
            )
        for table, room in zip(self.tables, plan.moved, strict=True):
            table[plan.nodes] = room
        self.version += 1
        self.round += 1
        self.pairs += plan.made
        self.changed[plan.nodes] = self.version
        self.note_teachers()
        self.expire()

    # rounds and peers

    @property
    def rounds(self) -> int:
        """R, the number of rounds."""
        return self._find_schedule().rounds

    @property
    def stranded(self) -> bool:
        """Whether all neighbours of the host's nodes are at peers that are away, so a round would learn nothing."""
        return len(self.neighbourhood.indices) > 0 and len(self.find_arcs().positions) == 0

    def reopen(self, rounds: int | None = None) -> None:
        """Continue learning for this many rounds after the last; by default a third of those first scheduled."""
        first = self._find_schedule().spread_over or 1
        self._extra_rounds = max(0, self.round - first) + (rounds or -(-first // 3))
        self._schedule = None
        self.has_new_edges, self._learned_edges = False, self.neighbourhood.digest

    def abandon(self) -> None:
        """Stop the running computation as soon as possible."""
        if self._plan is not None:
            self._plan.stop[0] = 1

    def find_sizes(self) -> dict[str, int]:
        """Return how many nodes of each peer may be drawn: those it states, up to its configured or known size."""
        return {
            name: min(peer.greeting.nodes, len(peer.link.neighbours) if peer.size is None else peer.size)
            for name, peer in self.peers.items()
            if peer.link is not None and peer.greeting is not None
        }

    def find_arcs(self) -> ActiveArcs:
        """Return the arcs that walks can take: to own nodes, and to nodes of peers that are available."""
        if self._arcs is None:
            near = self.neighbourhood
            active = (near.indices < self.own) | (self._edge_of_arc >= 0)
            self._arcs = ActiveArcs.build(near, active, self.terms.weighted)
        return self._arcs

    def is_present(self, rows: Integers) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that have a vector."""
        within = (rows >= 0) & (rows < self.known)
        mask: npt.NDArray[np.bool_] = within & self._present[np.where(within, rows, 0)]
        return mask

    def change_peer(self, peer: str) -> None:
        """Use the edges that a peer has just accepted."""
        link = self.peers[peer].link
        arcs = no_integers() if link is None else link.arcs
        self._edge_of_arc[self.neighbourhood.arcs_to(peer)] = -1
        self._edge_of_arc[arcs] = np.arange(len(arcs))
        self._arcs = None

    def drop_peer(self, peer: str) -> None:
        """Stop using a peer's vectors."""
        self._edge_of_arc[self.neighbourhood.arcs_to(peer)] = -1
        self._present[self.rows_of(peer)] = False
        self._arcs = None

    def _find_schedule(self) -> Schedule:
        """Return the schedule, planned anew if something that it depends on has changed."""
        if self._schedule is None:
            settings = self.terms.settings
            weights = weigh(self.strengths, settings)
            nodes, total, share = self.own, float(np.sum(weights)), 2
            if self.terms.lock_step:
                nodes += sum(hello.nodes for hello in self.peers.greetings.values())
                total, share = self.total_of_all().frequencies[0], 1
            budget = resolve(settings, Sizes(nodes, arcs=0, joined=0))
            # a round costs more between hosts, so do half as many; that hardly changes the result
            rounds = settings.rounds or budget.rounds // share
            schedule = plan(replace(budget, rounds=rounds), settings, weights, total=total, numbers=self.numbers)
            self._schedule = replace(schedule, rounds=rounds + (self._extra_rounds or 0), spread_over=rounds)
        return self._schedule

    def restore(self, saved: Saved) -> None:
        """Resume from a saved state; new nodes keep their initial vectors."""
        super().restore(saved)
        self._schedule = None
        self.changed[:] = self.version

    def trace(self, peer: str, link: Link, request: WalkRequest, reply: WalkReply) -> None:
        """Report to `on_disclosure` what a peer has disclosed by walks and random vectors."""
        report: Any = self.on_disclosure
        for i, position in enumerate(reply.index.tolist()):
            vector = fingerprint(reply.vectors[position]) if position >= 0 else None
            if i < len(request.edges):
                own, other = self.neighbourhood.name_arc(int(link.arcs[request.edges[i]]))
                report(kind="walk", peer=peer, own=own, through=other[0], steps=int(request.steps[i]), vector=vector)
            else:
                report(kind="random", peer=peer, vector=vector)


def make_host(
    terms: Terms,
    neighbourhood: Neighbourhood,
    numbers: Mapping[Node, int] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Host:
    """Return a host that learns as its terms say: by messages, or by walks."""
    kind = MessageHost if terms.settings.exchange == "messages" else WalkHost
    return kind(terms, neighbourhood, numbers, sizes)


def fingerprint(vector: VectorRows) -> str:
    """Return a short hash that tells vectors apart."""
    return hashlib.sha256(vector.tobytes()).hexdigest()[:16]
