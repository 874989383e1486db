"""MessageHost: a host that learns from the vectors that direct neighbours show in messages.

A driver follows the host's `script`: it asks peers for their vectors, passes the replies to `receive`, and runs the
computations. `answer` only reads what was published before, so answering never waits for computing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.messages import MessageRounds
from manela.engines.rounds.neighbours import allocate_shown, read_shown, write_shown
from manela.engines.rounds.spread import find_spread, sum_rows
from manela.engines.state import State
from manela.errors import BadVectorError, DivergenceError, MalformedError, RefusedError
from manela.hosts.state.arcs import UsedArcs, read_rows, write_rows
from manela.hosts.state.frames import Frames, find_line
from manela.hosts.state.host import FRAMES, INFLUENCES, NOISE, SAMPLES, Host, Saved
from manela.hosts.state.influence import Influence
from manela.hosts.state.instructions import Ask, Commit, Instruction, NotReadyError
from manela.hosts.state.messages import (
    AFFINITY,
    BY_SWEEPS,
    JOIN,
    NO_FRAME,
    PLACE,
    ROUND,
    START,
    SWEEP,
    Frame,
    Integers,
    Pull,
    Shown,
    Step,
    Sums,
)
from manela.hosts.state.names import number_of
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.noise import Noise, round_strengths
from manela.hosts.state.peers import Peer
from manela.hosts.state.phases import SmoothingPhase, StartPhase
from manela.hosts.state.publishing import Publisher
from manela.hosts.state.spectral import SpectralPhase
from manela.hosts.state.trust import Bounded, Judge, Read, Trust, pool_moments
from manela.hosts.state.turning import Apart, OldVectors, is_new_apart, turn_to_larger
from manela.kernels.layout import Shown as ShownRows
from manela.kernels.layout import normalise_rows
from manela.kernels.moments import Moments
from manela.kernels.randomness import VECTORS, derive, derive_key, draw_vectors
from manela.settings.budget import Sizes, resolve
from manela.settings.schedule import GROWN, Schedule, plan, weigh

_MOST_LARGER = 100
"""How many times as many nodes as this host a peer may say to have; if larger, a liar changes more."""
_MOST_ATTEMPTS = 4
"""Starts after each other; if larger, a peer that lies keeps others from learning for longer."""
_MOST_RETRIES = 2
"""Starts that are done again without a peer that spoilt them; if larger, hosts that suspect each other go on longer."""
_MANY_CONTRADICTIONS = 0.5
"""Share of nodes of which a peer shows other vectors in smoothing than in rounds, above which it is not believed.

If larger, fewer liars are reported; a few nodes of honest peers may still move.
"""
_MOST_TOUCHED = 0.5
"""Share of nodes near a change from which all nodes learn on; larger saves more, and moves the others less."""
_NEVER = 2**62
"""A version that vectors never reach: nothing has changed since it."""


class MessageHost(Host):
    """The agents of one host's nodes, learning by messages."""

    def prepare(self) -> None:
        """Set up the state of a host that has neither received nor published anything."""
        terms, near, settings = self.terms, self.neighbourhood, self.terms.settings
        self.trust: Trust = Trust()  # how far peers are believed
        if not terms.lock_step:
            self.trust = Bounded(terms.peers.clip, terms.peers.noise > 0.0 or terms.peers.epsilon > 0.0)
        options = replace(terms.peers, noise=0.0, epsilon=0.0) if terms.lock_step else terms.peers
        self.noise = Noise(options, derive_key(settings.seed, NOISE))  # on what is shown beyond vectors
        self._learned = near.signatures  # of the edges that the last phase of learning began with
        self._active: npt.NDArray[np.bool_] | None = None  # (n,): the nodes that learn in this phase; None for all
        self.smoothed: npt.NDArray[np.float32] | None = None  # (n, m): the vectors after smoothing
        self.whole: npt.NDArray[np.bool_] | None = None  # (n,): which nodes were smoothed with all their neighbours
        self._smoothed_at, self.smoothed_frame = -1, NO_FRAME
        self._falls_at: int | None = None
        self.judge = Judge(near, self.trust, derive_key(settings.seed, SAMPLES))
        self.influence: Influence | None = None  # what bounds that of peers; in lock-step all edges are used
        if not terms.lock_step:
            weights = near.weights if terms.weighted else np.ones(len(near.weights))
            self.influence = Influence(near, self.peers, weights, derive_key(settings.seed, INFLUENCES))
        self.arcs = UsedArcs(near, self.own, self.known, terms.weighted, self.influence)  # the edges that are used now
        self._state = State(self.tables, settings.dimensions)
        self._rounds = MessageRounds(
            self.arcs.neighbours, settings, self._state, slice(0, self.own), np.arange(self.own), self.numbers
        )
        # the rows of own nodes that have remote neighbours, which are shown to peers
        self.edge_rows = np.unique(near.sources[near.indices >= self.own])
        self._shown_strengths: npt.NDArray[np.float64] | None = None
        self.publisher = Publisher(self, self._rounds)
        self.frames = Frames(int(derive(derive_key(settings.seed, FRAMES), number_of(self.name))))
        # what a new start begins with, and what vectors to export stay near to until the next
        self.old: OldVectors | None = None
        self._retries = 0  # starts that were done again without a peer
        self._phase: StartPhase | SpectralPhase | SmoothingPhase | None = None
        self.view: ShownRows | None = None  # (own, padded m): the spectral view of own nodes
        self.stretch: npt.NDArray[np.float64] | None = None  # (m, m): H, as all hosts found it with the view
        self._sweeps = settings.starts_by_sweeps or settings.has_view
        self._starting = self._sweeps or (terms.begins_with_means and not settings.context)
        # whether hosts say which start their vectors come from: where they are free to be late for it
        self._has_frames = self._starting and not terms.lock_step
        self.can_be_saved = not self._starting
        self.step = Step(START if self._starting and not self._sweeps else AFFINITY if self._sweeps else ROUND, 0)

    # the script

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of the start, of all rounds, and of smoothing."""
        yield from self._start()
        while not self.done:
            yield from self._round()
            yield Commit(self.round)
            spoiler = self.peers.find_spoiler() if self.done and self._retries < _MOST_RETRIES else None
            if spoiler is not None:
                self._retries += 1
                for peer in self.peers.values():  # what others showed may have been spoilt, too
                    if peer is spoiler:
                        peer.distrust = max(1, peer.distrust)
                    elif peer.started:
                        peer.distrust = 0
                self.frames.hear(self.frames.now.generation + 1)
                self._begin_again(keeps=False)
                yield from self._start()
        if not self.terms.lock_step:
            yield self.will_compute(Step(ROUND, self.round), "show", self.publisher.show)
        if self.terms.settings.smooths or self.view is not None:
            self._phase = phase = SmoothingPhase(self)
            yield from phase.script()
            self._phase = None
            self._keep_smoothed(phase)
            yield Commit(self.round)

    def _start(self) -> Iterator[Instruction]:
        """Yield the instructions of the start, unless it is over; begin again, a few times, if peers are in a newer."""
        attempts = 0
        while self._starting:
            attempts += 1
            self._phase = self._choose_start(heeds_others=attempts < _MOST_ATTEMPTS)
            yield from self._phase.script()
            self.arcs.forget(slice(self.own, None))  # peers have sent sweeps so far, but no vectors
            self._phase = None
            if self.frames.is_outdated and attempts < _MOST_ATTEMPTS:
                self._begin_again()
            else:
                self._starting, self.can_be_saved = False, True

    def _choose_start(self, heeds_others: bool) -> StartPhase | SpectralPhase:
        """Begin a start: by sweeps, if this host or a peer has nodes enough to show products; otherwise by means.

        Where only peers' peers have, a host finds itself in a federation with a view, and is placed in it.
        """
        sees_products = self.terms.lock_step or self._sees_products()
        by_sweeps = self._sweeps and (sees_products or self.view is not None or self.frames.wanted > BY_SWEEPS)
        if self._has_frames and self.view is None:
            nodes = self.own + sum(
                self.believe_nodes(peer)
                for peer in self.peers.values()
                if peer.link is not None and self.old is not None and find_line(peer.frame) == find_line(self.old.frame)
            )
            self.frames.begin(by_sweeps, None if self.old is None else find_line(self.old.frame), nodes)
        self.step = Step(AFFINITY if by_sweeps else START, 0)
        if by_sweeps:
            return SpectralPhase(self, heeds_others, sweeps=sees_products)
        return StartPhase(self, heeds_others)

    def _sees_products(self) -> bool:
        """Return whether this host or a peer shows products."""
        peers = [peer for peer in self.peers.values() if peer.link is not None and peer.greeting is not None]
        return self.trust.show_products(max([self.own, *(peer.greeting.nodes for peer in peers if peer.greeting)]))

    def believe_nodes(self, peer: Peer) -> int:
        """Return how many nodes a peer has, as far as it is believed."""
        most = _MOST_LARGER * self.own if peer.size is None else peer.size
        return 0 if peer.greeting is None else min(peer.greeting.nodes, most)

    def _begin_again(self, keeps: bool = True) -> None:
        """Start again with all peers: forget what was learned, but for the vectors to export.

        If it `keeps` the old vectors, it begins with them, so that the new ones point where these do.
        """
        settings = self.terms.settings
        if not keeps:
            self.old = None
        elif not self._starting and self.frames.now != NO_FRAME:
            self.old = self._remember()
            turn_to_larger(self)
        draw_vectors(settings.seed, self.numbers, self.tables[0][: self.own, : settings.dimensions], VECTORS)
        self.view = self.stretch = None
        self.round, self._falls_at, self._extra_rounds, self._schedule = 0, None, None, None
        self._active = None
        self.version += 1
        for peer in self.peers.values():
            peer.moments, peer.taught, peer.heard, peer.apart = [], 0, None if peer.heard is None else 0, None
            peer.started, peer.judged, peer.doubts = False, 0, 0
            if peer.link is not None:
                peer.link.seen = 0
        self.arcs.forget(slice(self.own, None))
        self.publisher.forget()
        self._starting, self.can_be_saved = True, False
        self.step = Step(AFFINITY if self._sweeps else START, 0)
        self._smoothed_at = -1

    def _remember(self) -> OldVectors:
        """Return what the host has learned, for a new start or other edges."""
        own = np.arange(self.own)
        rows = self.vectors[:, 0] if self.view is None else read_rows(self.view, own, self.terms.settings.dimensions)
        settled = self.arcs.have_most(self.arcs.used)
        if self.whole is not None:
            settled |= self.whole
        is_same = find_line(self.smoothed_frame) == find_line(self.frames.now)
        smoothed = self.smoothed if is_same else None  # exports of another line are of no use for this one
        now = OldVectors(self.neighbourhood.nodes, rows, self.frames.now, self._learned, smoothed, settled)
        return now if self.old is None else now.keep_settled(self.old, self.neighbourhood.rows)

    def find_old(self) -> tuple[Integers, npt.NDArray[np.float32]]:
        """Return the own nodes that have rows of the line that the start continues, and these, of norm 1."""
        if self.old is None or find_line(self.old.frame) != self.frames.line:
            return np.zeros(0, np.int64), np.zeros((0, self.terms.settings.dimensions), np.float32)
        rows, positions = self.old.find_rows(self.neighbourhood.rows)
        return rows, normalise_rows(self.old.rows[positions])

    def _round(self) -> Iterator[Instruction]:
        """Yield the instructions of one round; in lock-step each hop is exchanged separately, otherwise all at once."""
        if not self.terms.lock_step:
            self.update_neighbours()
        if self.terms.lock_step:
            yield self.will_compute(Step(ROUND, self.round), "show", self._rounds.show_own)
            for level in range(self.terms.hops):
                if level > 0:
                    self._rounds.show_means()
                self.publisher.publish_level(level)
                yield Ask(self.step, patient=True)
                self.update_neighbours()
        else:
            exchanges = self.round % self.terms.peers.every == 0
            self._shown_strengths = self.find_strengths()
            show = self.publisher.show if exchanges else self.publisher.show_locally
            yield self.will_compute(Step(ROUND, self.round), "show", show)
            if exchanges:
                yield Ask(self.step)
                self._judge_peers()
                self.update_neighbours()
        self._begin_fall_if_due()
        # a node has nothing to learn from while all its neighbours are away
        joined, round = self.arcs.neighbours.joined[: self.own], self.round
        if self._active is not None:
            joined = joined & self._active
        schedule = self._find_schedule()
        schedule = replace(schedule, iterations=np.where(joined, schedule.iterations, 0.0))
        width = self.tables[0].shape[1]
        pooled = pool_moments(self.trust, self.publisher.moments, self.peers, self.find_sizes_of_peers(), width)
        self._rounds.choose_amount(self.find_sizes())
        vectors_before, pairs = [table[: self.own].copy() for table in self.tables], [0]

        def advance() -> None:
            pairs[0] = self._rounds.advance(round, schedule, pooled)

        self.can_be_saved = False
        yield self.will_compute(Step(ROUND, round), "learn", advance)
        if self._rounds.is_abandoned:
            # vectors are updated in place, so undo the part of the round that was done
            for table, vectors in zip(self.tables, vectors_before, strict=True):
                table[: self.own] = vectors
            self.can_be_saved = True
            return
        self._commit(pairs[0])
        self.can_be_saved = True

    def _keep_smoothed(self, phase: SmoothingPhase) -> None:
        """Keep the result of smoothing, unless an earlier one after the same round used more of the neighbours."""
        is_same = self._smoothed_at == self.round and self.smoothed_frame == self.frames.now
        if self.whole is not None and is_same and self.whole.sum() > phase.whole.sum():
            return
        self.smoothed, self.whole, self._smoothed_at = phase.vectors, phase.whole, self.round
        self.smoothed_frame = self.frames.now
        if self.old is not None and find_line(self.old.frame) == self.frames.line:
            near = self.neighbourhood
            self.old.steady(self.smoothed, near.rows, near.signatures)

    # asking and answering

    def answer(self, peer: str, request: Pull) -> Shown:
        """Answer a peer with the published rows of the nodes here that are neighbours of its nodes."""
        return self.publisher.answer(peer, request)

    def requests(self) -> dict[str, Pull]:
        """Return a request for each peer: for what it shows at the step that this host is at."""
        since = self.step.phase == ROUND and not self.terms.lock_step
        return {
            name: Pull(link.session, self.step, link.seen if since else 0, self.frames.now)
            for name, link in self.peers.links.items()
        }

    def refresh(self) -> dict[str, Pull]:
        """Return requests that check, after the last round, whether peers still answer; they ask for no vectors."""
        if self.terms.lock_step:
            return {}
        step, frame = Step(ROUND, self.round), self.frames.now
        others = {name for name, peer in self.peers.items() if self._has_frames and is_new_apart(peer, frame)}
        return {
            name: Pull(link.session, step, 0 if name in others else _NEVER, frame)
            for name, link in self.peers.links.items()
        }

    def count_rows(self, request: Pull) -> tuple[int, int, int]:
        """Return the number of tables, of levels, and of dimensions in what is shown at the step of a request."""
        if request.step.phase == AFFINITY:
            return 1, 1, 0
        tables = self.terms.tables if request.step.phase == ROUND else 1
        levels = self.terms.hops if request.step.phase == ROUND and not self.terms.lock_step else 1
        return tables, levels, self.terms.settings.dimensions

    def receive(self, peer: str, request: Pull, reply: Shown) -> list[RefusedError]:
        """Store what a peer shows, and return the refusals of what cannot be used."""
        link = self.peers[peer].link if peer in self.peers else None
        if link is None or link.session != request.session:
            return []
        if len(reply.changed) and not (
            reply.changed[0] >= 0 and reply.changed[-1] < len(link.neighbours) and (np.diff(reply.changed) > 0).all()
        ):
            raise MalformedError(f"neighbours must be numbered 0 to {len(link.neighbours) - 1}, in order, each once")
        if not self._note_frame(self.peers[peer], request.step, reply):
            self.peers[peer].heard = self.round
            self._note_apart(self.peers[peer], link.neighbours[reply.changed], request.step, reply)
            return []
        refusals: list[RefusedError] = []
        finite = np.isfinite(reply.rows).all(axis=(1, 2, 3))
        if not finite.all():
            bad = int(np.count_nonzero(~finite))
            refusals.append(BadVectorError(f"{bad:,} of {len(finite):,} vectors are not finite", times=bad))
        if reply.moments and request.step.phase == ROUND:
            try:
                for moments in reply.moments:
                    self.trust.check_moments(moments)
                self._trace_sums(self.peers[peer], reply.moments)
                self.peers[peer].moments = reply.moments
                if any(map(self.trust.doubts_moments, self.publisher.moments, reply.moments)):
                    self.peers[peer].alarms["sums"] += 1
            except MalformedError as refusal:
                refusals.append(refusal)
        if reply.products is not None:
            try:
                self.trust.check_products(reply.products, request.step.phase in (SWEEP, JOIN))
            except MalformedError as refusal:
                refusals.append(refusal)
                reply = replace(reply, products=None)
        reply = replace(reply, strengths=reply.strengths[finite])
        rows = link.neighbours[reply.changed[finite]]
        self._store_reply(peer, request.step, reply, rows, reply.rows[finite], reply.strengths)
        self.peers[peer].heard = self.round
        in_rounds = reply.step.phase == ROUND == request.step.phase and not self.terms.lock_step
        if in_rounds and reply.version > request.since:  # otherwise the reply holds no rows
            link.seen = reply.version
        return refusals

    def _note_frame(self, peer: Peer, asked: Step, reply: Shown) -> bool:
        """Note the frame of a peer; return whether what it shows can be used."""
        frames = self.frames
        if not self._has_frames:
            return True
        if asked.phase == PLACE:
            joins = self._phase.joins if isinstance(self._phase, SpectralPhase) else None
            return reply.frame == (joins or frames.now)
        is_past = reply.step.phase >= ROUND
        if self._starting:
            is_same = frames.note_in_start(peer, reply.frame, is_past, agrees=asked.phase <= SWEEP)
            # a start by means takes the vectors of those that are past it
            return is_same or (is_past and asked.phase == START and reply.frame.generation >= frames.now.generation)
        return frames.note_in_rounds(peer, reply.frame, is_past)

    def _note_apart(self, peer: Peer, rows: Integers, asked: Step, reply: Shown) -> None:
        """Keep the vectors of a peer in another frame, by which this host may turn its own."""
        in_rounds = not self._starting and asked.phase == ROUND and reply.step.phase >= ROUND
        if in_rounds and len(rows) and reply.frame not in (NO_FRAME, self.frames.now):
            shown = reply.rows.astype(np.float32)
            self._trace_shown(peer.name, asked, reply, rows, shown)
            peer.apart = Apart.of(reply.frame, rows, shown[:, 0, 0])

    def hear_frame(self, peer: str, request: Pull) -> None:
        """Note the frame of a peer that asks; one that is in a newer start must wait until this host is there, too."""
        ahead = request.frame.generation > self.frames.now.generation
        if self._has_frames and ahead and request.step.phase < PLACE:
            self.peers[peer].frame = request.frame
            if not self.peers[peer].distrust:
                self.frames.hear(request.frame.generation)
            raise NotReadyError

    def waits_for(self, peer: str, was_late: bool) -> bool:
        """Return whether a step is to wait for a peer: if it is believed, in this start, and not late for smoothing."""
        if self.peers[peer].distrust:
            return False
        ahead = self.peers[peer].frame.generation - self.frames.now.generation if self._has_frames else 0
        return ahead <= 0 if not was_late else ahead == 0 and self.step.phase < ROUND

    @property
    def is_outdated(self) -> bool:
        """Whether this host must start again: peers are in a newer start, or what began by means can have a view."""
        began_by_means = self._sweeps and not self._starting and 0 < self.frames.now.generation < BY_SWEEPS
        return self.frames.is_outdated or (began_by_means and self._sees_products())

    @property
    def should_go_on(self) -> bool:
        """Whether there are edges or peers that were not learned from, or a newer start."""
        return self.is_outdated or super().should_go_on

    def _store_reply(
        self,
        peer: str,
        asked: Step,
        reply: Shown,
        rows: Integers,
        vectors: npt.NDArray[np.float32],
        strengths: npt.NDArray[np.float64],
    ) -> None:
        if asked != self.step and (asked.phase != ROUND or self.step.phase != ROUND or self.terms.lock_step):
            return  # too late: this host is at another step now
        self._trace_shown(peer, asked, reply, rows, vectors)
        if asked.phase == ROUND:
            if reply.sums is not None:
                self.peers[peer].sums = reply.sums
            levels = [asked.level] if self.terms.lock_step else list(range(vectors.shape[2]))
            judged = self.trust.judge(vectors, self.read_vectors(rows, vectors.shape[3]), self.publisher.norms)
            if self.influence is not None:
                judged = judged._replace(
                    rows=self.influence.shorten(rows, judged.rows, self.publisher.norms.sizes[:, levels])
                )
            self.peers[peer].clipped = judged.clipped
            self.peers[peer].alarms.update(judged.alarms)
            for table, shown in enumerate(self._rounds.shown):
                for position, level in enumerate(levels):
                    write_rows(shown, level * self.known + rows, judged.rows[:, table, position])
            arcs = self.arcs
            bounded = self.trust.bound_strengths(strengths, arcs.known_strengths[rows], arcs.largest_weights[rows])
            arcs.see(rows, bounded)
        elif self._phase is not None:
            self._phase.store(peer, asked, reply, rows, vectors)

    def _trace_shown(self, peer: str, asked: Step, reply: Shown, rows: Integers, vectors: npt.NDArray[Any]) -> None:
        if self.on_disclosure and len(rows):
            names = [self.neighbourhood.remotes[row - self.own][0] for row in rows.tolist()]
            self.on_disclosure(
                kind="shown", peer=peer, phase=reply.step.phase, number=reply.step.number, level=asked.level,
                nodes=names, rows=vectors
            )  # fmt: skip

    def _trace_sums(self, peer: Peer, moments: list[Moments]) -> None:
        """Trace in which direction a peer's sums have changed, in which a vector that came or went would lie."""
        if self.on_disclosure and peer.moments:
            before, now = peer.moments[0], moments[0]
            change = (now.total - before.total).astype(np.float64)
            products = (now.products - before.products).astype(np.float64)
            if change.any() or products.any():
                values, directions = np.linalg.eigh(products)
                rows = np.stack((change, directions[:, np.argmax(np.abs(values))]))
                self.on_disclosure(kind="sums", peer=peer.name, rows=normalise_rows(rows).astype(np.float32))

    def read_vectors(self, rows: Integers, columns: int) -> npt.NDArray[np.float32]:
        """Return the first columns of the vectors that the given nodes show, also nodes of peers."""
        return read_rows(self._rounds.shown[0], rows, columns)

    # rounds

    @property
    def rounds(self) -> int:
        """R, the number of rounds; an upper bound while it is not known."""
        return self._find_schedule().rounds

    @property
    def expected_rounds(self) -> int:
        """The expected number of rounds."""
        schedule = self._find_schedule()
        return schedule.rounds if self._falls_at is not None else schedule.expect_rounds(self.round)

    @property
    def stranded(self) -> bool:
        """Whether all neighbours of the host's nodes are at peers that are away, so a round would learn nothing."""
        near = self.neighbourhood
        return len(near.indices) > 0 and not self.arcs.find(self.peers.links).any()

    def reopen(self, rounds: int | None = None) -> None:
        """Continue learning: the learning rate starts at its full value and falls over the added rounds.

        By default as many rounds are added as the learning rate takes to fall in a first run, whatever was requested
        in between.
        """
        if self.is_outdated:
            self._begin_again()
            return
        first = self._plan()
        self._active = None if rounds else self._find_changed()
        self._extra_rounds = rounds or first.falling or max(1, first.rounds - first.falls_at)
        self._falls_at, self._schedule = self.round, None
        self._note_edges()

    def _note_edges(self) -> None:
        """Note that a phase of learning begins with the edges that there are now."""
        self.has_new_edges, self._learned_edges = False, self.neighbourhood.digest
        self._learned = self.neighbourhood.signatures

    def _find_changed(self) -> npt.NDArray[np.bool_] | None:
        """Return the own nodes whose edges have changed since they were learned from, with their neighbours here.

        None stands for all nodes, which many changes concern.
        """
        near = self.neighbourhood
        changed = self._learned != near.signatures
        for peer in self.peers.values():
            if peer.link is not None and len(peer.link.arcs) > peer.taught:
                changed[near.sources[peer.link.arcs]] = True
        touched = changed.copy()
        inside = near.indices < self.own
        touched[near.sources[inside][changed[near.indices[inside]]]] = True
        return touched if touched.mean() <= _MOST_TOUCHED else None

    def start_anew(self) -> None:
        """Forget what was learned, and start again with all peers, in a newer frame."""
        if not self._has_frames:
            super().start_anew()
        self.frames.wanted = self.frames.now.generation + 1
        self._begin_again(keeps=False)

    def abandon(self) -> None:
        """Stop the running computation as soon as possible."""
        self._rounds.abandon()

    def _find_schedule(self) -> Schedule:
        """Return the schedule, planned again if something that it depends on has changed."""
        if self._schedule is None:
            schedule = self._plan()
            if self._extra_rounds is not None:
                rounds = schedule.spread_over or schedule.rounds
                schedule = replace(schedule, falling=self._extra_rounds, spread_over=rounds)
            self._schedule = schedule if self._falls_at is None else schedule.fall(self._falls_at)
        return self._schedule

    def _plan(self) -> Schedule:
        """Return the schedule of a first run with the nodes and edges that there are now."""
        settings = self.terms.settings
        weights = weigh(self.strengths, settings)
        total = self.total_of_all().frequencies[0] if self.terms.lock_step else float(np.sum(weights))
        return plan(resolve(settings, self.find_sizes()), settings, weights, total=total, numbers=self.numbers)

    def count_network(self) -> int:
        """Return about how many nodes all hosts have that this one knows of, as far as they are believed."""
        if self.terms.lock_step:
            return self.find_sizes().nodes
        return self.own + sum(self.believe_nodes(peer) for peer in self.peers.values() if peer.link is not None)

    @property
    def is_starting(self) -> bool:
        """Whether the host has no view to place others in yet."""
        return self._starting

    def find_degree(self) -> float:
        """Return the mean degree of nodes with neighbours: of all hosts in lock-step, otherwise of this host."""
        return self.find_sizes().degree

    def find_sizes(self) -> Sizes:
        """Return the sizes of the network: of all hosts in lock-step, otherwise of this host."""
        if self.terms.lock_step:
            totals = self.total_of_all()
            nodes = self.own + sum(hello.nodes for hello in self.peers.greetings.values())
            return Sizes(nodes, totals.arcs, totals.joined)
        return Sizes.of(self.neighbourhood.indptr)

    def _begin_fall_if_due(self) -> None:
        """Let the learning rate fall from now on, if vectors have grown enough or the scheduled round is reached."""
        if self._falls_at is not None:
            return
        schedule = self._find_schedule()
        if self.round >= schedule.falls_at or self._have_grown():
            self._falls_at = self.round
            self._note_edges()
            self._schedule = schedule.fall(self.round)

    def _have_grown(self) -> bool:
        """Return whether the vectors have spread enough for the learning rate to fall."""
        sums = self.sum_own_rows()
        if self.terms.lock_step:
            pooled = self.trust.pool_sums(sums, self.peers.sums, {})
            return find_spread(pooled.total, pooled.squares, pooled.count) >= GROWN
        # only own nodes decide, so that no peer can
        return sums.count > 0 and find_spread(sums.total, sums.squares, sums.count) >= GROWN

    def sum_own_rows(self) -> Sums:
        """Return the sum, and the sum of squares, over the vectors of own nodes that have neighbours."""
        total, squares = sum_rows(self.tables[0], self.arcs.neighbours)
        dimensions = self.terms.settings.dimensions
        return Sums(int(np.count_nonzero(self.arcs.neighbours.joined)), total[:dimensions], squares)

    def _commit(self, pairs: int) -> None:
        """Finish a round in which this many update pairs were made."""
        if not all(np.isfinite(table[: self.own]).all() for table in self.tables):
            raise DivergenceError(
                f"vectors stopped being finite in round {self.round}: learning_rate must be smaller, "
                f"got {self.terms.settings.learning_rate:g}"
            )
        self.version += 1
        self.round += 1
        self.pairs += pairs
        self.note_teachers()
        self.expire()

    # available neighbours

    def change_peer(self, peer: str) -> None:
        """Use the edges that a peer has just accepted."""
        self._shown_strengths, self.arcs.is_stale = None, True

    def drop_peer(self, peer: str) -> None:
        """Stop using a peer's vectors and moments."""
        self.arcs.forget(self.rows_of(peer))
        self.peers[peer].moments = []
        self._shown_strengths = None  # the neighbours themselves are updated between two rounds

    def find_strengths(self) -> npt.NDArray[np.float64]:
        """Return the strengths of nodes with remote neighbours, counting only edges that peers have accepted."""
        strengths = self._shown_strengths
        if strengths is None:
            accepted = self.arcs.find(self.peers.links, distrusted=self.peers.distrusted)
            strengths = self.arcs.build(accepted).strengths[self.edge_rows]
            strengths = strengths if self.terms.lock_step else round_strengths(strengths)
        return strengths

    def find_sizes_of_peers(self) -> dict[str, int]:
        """Return for how many nodes each peer counts at most: its configured size, or the number of its known nodes."""
        return {
            name: len(peer.link.neighbours) if peer.size is None else peer.size
            for name, peer in self.peers.items()
            if peer.link is not None
        }

    @property
    def frame(self) -> Frame:
        """The start that the vectors come from, if the host has frames."""
        return self.frames.now

    @property
    def is_provisional(self) -> bool:
        """Whether vectors will be others soon: no edge is accepted yet, or hosts start again together."""
        return super().is_provisional or self.is_outdated or (self._starting and self.smoothed is not None)

    def find_likeness(self, peer: str) -> tuple[bool, float] | None:
        """Return whether vectors here and at a peer can be compared, and how alike neighbours there and here are."""
        found, own = self.judge.found.get(peer), self.judge.own
        if found is None or peer not in self.peers.links:
            return None
        return found.is_certain, found.mean / own if own > 0 else 0.0

    def _judge_peers(self) -> None:
        """Distrust peers whose nodes are too unlike their neighbours here to be honest."""
        dimensions = self.terms.settings.dimensions
        changed, alarms = self.judge.judge(
            self.peers,
            self.arcs.seen,
            lambda rows: self.read_vectors(rows, dimensions),
            self.round,
            self.read_as_peers(),
        )
        if changed:
            self._shown_strengths, self.arcs.is_stale = None, True
        for peer in alarms:
            self.peers[peer].alarms["disagreeing"] += 1

    def doubt(self, peer: Peer, share: float) -> None:
        """Raise an alarm if a peer contradicts itself about this share of its nodes, and do not believe it for now."""
        if share > _MANY_CONTRADICTIONS:
            peer.alarms["contradicting"] += 1
            peer.distrust = max(1, peer.distrust)

    def read_as_peers(self) -> Read:
        """Return what reads own vectors as peers would see them."""
        own = np.arange(self.own)
        coarse = self.noise.coarsen(self.vectors[:, 0], own, self.find_degree())
        return lambda rows: coarse[rows]

    def update_neighbours(self) -> None:
        """Let nodes use the neighbours that are available now."""
        if self.arcs.update(self.peers.links, self.peers.distrusted):
            self._rounds.change_neighbours(self.arcs.neighbours)

    # saving and restoring

    def read_known(self) -> npt.NDArray[np.float32]:
        """Return a copy of own vectors and of the last vectors that peers have shown, zero for those never shown."""
        known = super().read_known()
        shown = np.flatnonzero(self.arcs.seen[self.own :]) + self.own
        known[shown] = self.read_vectors(shown, self.terms.settings.dimensions)
        return known

    def find_smoothed(self) -> npt.NDArray[np.float32] | None:
        """Return a copy of the smoothed vectors of own nodes, (n, m), or None if there are none."""
        return None if self.smoothed is None else self.smoothed.copy()

    def save(self) -> Saved:
        """Return the state to resume from, with the smoothed vectors."""
        view = None if self.view is None else read_shown(self.view, slice(None))[:, : self.terms.settings.dimensions]
        return replace(
            super().save(),
            falls_at=self._falls_at,
            smoothed=self.smoothed,
            whole=self.whole,
            view=view,
            stretch=self.stretch,
            signatures=self._learned,
            frame=self.frames.now,
            smoothed_frame=self.smoothed_frame,
        )

    def restore(self, saved: Saved) -> None:
        """Resume from a saved state; new nodes keep their initial vectors, and are placed in the view.

        A state without the view that the settings want is of no use.
        """
        if self.terms.settings.has_view and saved.view is None and not 0 < saved.frame.generation < BY_SWEEPS:
            self.frames.now = saved.frame
            self.version = saved.version + 1
            self._take_smoothed(saved)
            return
        super().restore(saved)
        if saved.signatures is not None:
            rows, positions = self._match(saved.names)
            self._learned = np.zeros(self.own, np.uint64)
            self._learned[rows] = saved.signatures[positions]
        self._falls_at, self._schedule, self._starting = saved.falls_at, None, False
        self.can_be_saved, self.frames.now = True, saved.frame
        self.step = Step(ROUND, self.round)
        if saved.view is not None and self.terms.settings.has_view:
            self.stretch, rows, positions = saved.stretch, *self._match(saved.names)
            self.view = allocate_shown(self.own, self.terms.settings.dimensions)
            write_shown(self.view[:, : saved.view.shape[1]], rows, saved.view[positions])
            joined = np.diff(self.neighbourhood.indptr) > 0
            if (joined & ~read_shown(self.view, slice(None)).any(axis=1)).any():  # nodes have come that have no row yet
                self._starting, self.can_be_saved = True, False
        self._take_smoothed(saved)

    def _take_smoothed(self, saved: Saved) -> None:
        """Take on the saved vectors to export."""
        if saved.smoothed is not None and saved.whole is not None:
            rows, positions = self._match(saved.names)
            self.smoothed, self.whole = self.vectors[:, 0].copy(), np.zeros(self.own, bool)
            self.smoothed[rows], self.whole[rows] = saved.smoothed[positions], saved.whole[positions]
            self._smoothed_at, self.smoothed_frame = saved.round, saved.smoothed_frame

    def renew(self, neighbourhood: Neighbourhood) -> Self:
        """Return the same host with other edges, which goes on with the start that it is in or has heard of."""
        new = super().renew(neighbourhood)
        new.frames.wanted, new.old = self.frames.wanted, self.old
        if not self._starting and self.smoothed is not None:
            new.old = self._remember()  # exports stay near it where edges are the same, also while peers are away
        new.noise.ledger, new.publisher.sums = self.noise.ledger, self.publisher.sums
        if self._starting:  # what was saved is of a start that is not over
            new.frames.now = self.frames.now
        return new
