"""MessageHost: a host that learns by messages, from what direct neighbours show.

Whoever drives it follows its `script`: it asks peers for what they show, hands that to `receive`, and lets it compute.
All that peers can ask for was published before by `_publish`, so answering never waits for computing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.agents.host import NOISE, SAMPLES, Committed, Compute, Exchange, Host, Instruction, Saved
from manela.agents.judging import Judge
from manela.agents.messages import ROUND, SMOOTH, START, Integers, Pull, Shown, Step, Sums
from manela.agents.publishing import Publications, Published
from manela.agents.trust import Bounded, Exact, Norms, Trust, measure_norms
from manela.agents.used_arcs import UsedArcs
from manela.engines.message_rounds import MessageRounds
from manela.engines.smoothing import Filter, find_sizes, resize
from manela.engines.start import Sweeps, choose_size, find_spread, sum_rows
from manela.engines.state import State
from manela.errors import BadVectorError, DivergenceError, MalformedError, RefusedError
from manela.kernels.half import from_half, to_half
from manela.kernels.layout import Table
from manela.kernels.moments import Moments
from manela.kernels.reference import SWEEPS
from manela.randomness import VECTORS, derive_key, draw_vectors
from manela.schedule import GROWN, Basis, Schedule, choose_pairs, plan_nodes, weigh

_NEVER = 2**62
"""A version that no vectors ever have."""
_NOISE_OF_START, _MOST_NOISE_OF_START, _NOISE_OF_SMOOTHING = 1.0, 4.0, 0.1
"""How much of the noise is added; steps of smoothing are few and alike and tell less, and noise harms them more."""


class MessageHost(Host):
    """The agents of one host's nodes, learning by messages.

    Attributes
    ----------
    step : Step
        What it does now.
    smoothed : array of float32, shape (n, m), or None
        The vectors after smoothing.
    whole : array of bool, shape (n,), or None
        Which nodes were smoothed with all their neighbours.
    """

    def prepare(self) -> None:
        """Begin with nothing seen of others, and nothing shown."""
        terms, near, settings = self.terms, self.neighbourhood, self.terms.settings
        self._trust: Trust = Exact()
        if not terms.lock_step:
            self._trust = Bounded(terms.peers.noise, terms.peers.clip, derive_key(settings.seed, NOISE))
        self.smoothed: npt.NDArray[np.float32] | None = None
        self.whole: npt.NDArray[np.bool_] | None = None
        self._smoothed_at = -1
        self._falls_at: int | None = None
        self._judge = Judge(near, self._trust, derive_key(settings.seed, SAMPLES))
        self._arcs = UsedArcs(near, self.own, self.known, terms.weighted)
        self._state = State(self.tables, settings.dimensions)
        self._rounds = MessageRounds(
            self._arcs.neighbours, settings, self._state, slice(0, self.own), np.arange(self.own), self.numbers
        )
        self._own_rows = slice(0, self.own)
        self._edge_rows = np.unique(near.sources[near.indices >= self.own])
        self._place = np.full(self.own, -1, np.int64)
        self._place[self._edge_rows] = np.arange(len(self._edge_rows))
        self._told: npt.NDArray[np.float64] | None = None
        self._published = Publications(terms.lock_step)
        self._norms = Norms(np.zeros((terms.tables, terms.hops)), 0.0)
        self._shown_before: npt.NDArray[np.float32] | None = None
        self._means: npt.NDArray[Any] | None = None
        self._means_version = self._means_due = 0
        self._moments: dict[str, list[Moments]] = {}
        self._sums: dict[str, Sums] = {}
        self._measured: list[Moments] = []
        self._sweeps: Sweeps | None = None
        self._source: Table | None = None
        self._source_norms = Norms(np.zeros((1, 1)), 0.0)
        self._source_seen = np.zeros(0, bool)
        self._starting = settings.starts_by_neighbours
        self.can_be_saved = not self._starting
        self.step = Step(START if self._starting else ROUND, 0)

    @property
    def distrusted(self) -> dict[str, int]:
        """Peers that are not believed, and for how many exchanges now."""
        return self._judge.distrusted

    # what it does, one thing after the other

    def script(self) -> Iterator[Instruction]:
        """The start, all rounds, and smoothing."""
        if self._starting:
            yield from self._start()
            self._starting, self.can_be_saved = False, True
        while not self.done:
            yield from self._round()
            yield Committed()
        if not self.terms.lock_step:
            yield Compute(self._show)
        if self.terms.settings.smooths:
            yield from self._smooth()
            yield Committed()

    def _start(self) -> Iterator[Instruction]:
        settings = self.terms.settings
        sweeps = self._sweeps = Sweeps(self.tables[0], self._arcs.neighbours, settings.dimensions)
        for number in range(SWEEPS):
            sweeps.show(self._own_rows)
            self._trace_own(Step(START, number), self._widen(sweeps.shown, np.arange(self.own)))
            self._publish_step(Step(START, number), self._widen(sweeps.shown, self._edge_rows))
            yield Exchange(self.ask, patient=True)
            self._update_neighbours()
            sweeps.neighbours = self._arcs.neighbours
            yield Compute(sweeps.average)
            sums = self._sum_rows()
            self._sums = {}
            self._publish(Published(Step(START, number, 1), self.version, self._find_strengths(), sums=sums))
            yield Exchange(self.ask, patient=True)
            pooled = self._trust.pool_sums(sums, self._sums, self._find_sizes_of_peers())
            total = np.zeros(self.tables[0].shape[1], np.int64)
            total[: settings.dimensions] = pooled.total
            sweeps.center(total, max(1, pooled.count))
        sweeps.finish(choose_size(self._find_degree()))
        self._sweeps = None
        if not self.terms.lock_step:
            self._arcs.forget(slice(self.own, None))  # their vectors have not been seen yet
        alone = np.flatnonzero(~self._arcs.neighbours.joined[: self.own])
        random = np.empty((len(alone), settings.dimensions), dtype=np.float32)
        draw_vectors(settings.seed, self.numbers[alone], random, VECTORS)
        self.tables[0][alone, : settings.dimensions] = random

    def _round(self) -> Iterator[Instruction]:
        """A round; in lock-step what is shown of each hop is exchanged by itself, otherwise all of it at once."""
        if not self.terms.lock_step:
            self._update_neighbours()
        if self.terms.lock_step:
            yield Compute(self._rounds.show_own)
            for level in range(self.terms.hops):
                if level > 0:
                    self._rounds.show_means()
                self._publish_level(level)
                yield Exchange(self.ask, patient=True)
                self._update_neighbours()
        else:
            exchanges = self.round % self.terms.peers.every == 0
            self._told = self._find_strengths()
            yield Compute(self._show if exchanges else self._show_to_own)
            if exchanges:
                yield Exchange(self.ask)
                self._judge_peers()
                self._update_neighbours()
        self._let_fall()
        # nodes whose neighbours are all away have nobody to learn from
        joined, number = self._arcs.neighbours.joined[: self.own], self.round
        schedule = self._find_schedule()
        schedule = replace(schedule, iterations=np.where(joined, schedule.iterations, 0.0))
        pooled = self._pool_moments()
        before, made = [table[: self.own].copy() for table in self.tables], [0]

        def advance() -> None:
            made[0] = self._rounds.advance(number, schedule, pooled)

        self.can_be_saved = False
        yield Compute(advance)
        if self._rounds.is_abandoned:
            # nodes move in place, and some have: the round has not been
            for table, kept in zip(self.tables, before, strict=True):
                table[: self.own] = kept
            self.can_be_saved = True
            return
        self._commit(made[0])
        self.can_be_saved = True

    def _smooth(self) -> Iterator[Instruction]:
        dimensions = self.terms.settings.dimensions
        table = self.tables[0].copy()
        filtered, neighbours = self._arcs.used, self._arcs.neighbours
        network_filter = Filter(neighbours)
        steps = network_filter.pass_through(table)
        whole = np.ones(self.own, bool)
        number = 0

        def advance() -> None:
            self._source = next(steps, None)

        yield Compute(advance)
        while (source := self._source) is not None:
            self._source_seen = np.zeros(self.known, bool)
            self._source_seen[: self.own] = True
            if number == 0 and not self.terms.lock_step:
                # of whoever does not come, what was seen last
                last = np.flatnonzero(self._arcs.seen[self.own :]) + self.own
                source[last] = self._widen(self._rounds.shown[0], last, padded=True)
                self._source_seen[last] = True
            self._trace_own(Step(SMOOTH, number), source[: self.own, :dimensions])
            self._publish_step(Step(SMOOTH, number), source[self._edge_rows, :dimensions])
            norms = measure_norms(source[: self.own, None, None, :dimensions], None)
            self._source_norms = Norms(np.nan_to_num(norms.sizes), 0.0)
            yield Exchange(self.ask, patient=True)
            used = self._arcs.find(self.sessions.links, self._source_seen, self.distrusted)
            whole &= self._arcs.have_all(used)
            if not np.array_equal(used, filtered):
                filtered, neighbours = used, self._arcs.build(used)
                network_filter.change(neighbours)
            yield Compute(advance)
            number += 1
        alone = np.flatnonzero(~neighbours.joined[: self.own])
        table[alone] = self.tables[0][alone]
        sizes = find_sizes(self._arcs.neighbours)
        joined = max(1, int(np.count_nonzero(self._arcs.neighbours.joined)))
        mean = float(sizes.sum()) / joined
        if self.terms.lock_step:
            totals = self.total_of_all()
            mean = totals.sizes[0] / totals.joined
        resize(table, self._arcs.neighbours, sizes, mean or 1.0)
        if self.whole is not None and self._smoothed_at == self.round and self.whole.sum() > whole.sum():
            return  # those from before, with more of the neighbours
        self.smoothed, self.whole, self._smoothed_at = table[: self.own, :dimensions].copy(), whole, self.round

    # asking and answering

    def ask(self) -> dict[str, Pull]:
        """What to ask peers: for what they show at this host's own step."""
        since = self.step.phase == ROUND and not self.terms.lock_step
        return {
            peer: Pull(link.session, self.step, link.seen if since else 0) for peer, link in self.sessions.links.items()
        }

    def refresh(self) -> dict[str, Pull]:
        """After the last round, see whether peers are there: ask for what is newer than anything, which is nothing."""
        if self.terms.lock_step:
            return {}
        step = Step(ROUND, self.round)
        return {peer: Pull(link.session, step, _NEVER) for peer, link in self.sessions.links.items()}

    def count_rows(self, request: Pull) -> tuple[int, int, int]:
        """Tables and levels of what is shown at a step, and numbers of a row."""
        tables = self.terms.tables if request.step.phase == ROUND else 1
        levels = self.terms.hops if request.step.phase == ROUND and not self.terms.lock_step else 1
        return tables, levels, self.terms.settings.dimensions

    def answer(self, peer: str, request: Pull) -> Shown:
        """Show a peer those of the nodes here that are neighbours of its own."""
        places = self._place[self.sessions.find(peer, request.session).neighbours]
        smooths = self.terms.settings.smooths or not self.done
        published = self._published.find(request.step, self.step, smooths)
        tables, _, dimensions = self.count_rows(request)
        rows: npt.NDArray[Any] = np.zeros((0, tables, 1, dimensions), np.float32)
        if published is None:
            return Shown(request.step, 0, places[:0], rows, np.zeros(0))
        if 0 < published.version <= request.since:
            return Shown(published.step, published.version, places[:0], rows, np.zeros(0))
        if published.rows is None:
            places = places[:0]
        elif published.step.phase == request.step.phase:
            rows = published.rows[places]
            if published.means is not None and published.means_version > request.since:
                rows = np.concatenate((rows, published.means[places]), axis=2)
        else:
            rows = published.rows[places, :1]  # whoever is behind is shown the vectors as they are now
        tells = self._trust.show_totals(self.own, self.own - self.sessions.count_neighbours(peer))
        return Shown(
            published.step, published.version, np.arange(len(places)), rows, published.strengths[places],
            published.moments if tells else [], published.sums if tells else None,
        )  # fmt: skip

    def receive(self, peer: str, request: Pull, reply: Shown) -> list[RefusedError]:
        """Take what a peer shows; returns what is refused of it."""
        link = self.sessions.links.get(peer)
        if link is None or link.session != request.session:
            return []
        if len(reply.changed) and not (
            reply.changed[0] >= 0 and reply.changed[-1] < len(link.neighbours) and (np.diff(reply.changed) > 0).all()
        ):
            raise MalformedError(f"neighbours must be numbered 0 to {len(link.neighbours) - 1}, in order, each once")
        refusals: list[RefusedError] = []
        finite = np.isfinite(reply.rows).all(axis=(1, 2, 3))
        if not finite.all():
            bad = int(np.count_nonzero(~finite))
            refusals.append(BadVectorError(f"{bad:,} of {len(finite):,} vectors are not finite", times=bad))
        if reply.moments and request.step.phase == ROUND:
            try:
                for moments in reply.moments:
                    self._trust.check_moments(moments)
                self._moments[peer] = reply.moments
            except MalformedError as refusal:
                refusals.append(refusal)
        rows = link.neighbours[reply.changed[finite]]
        self._take(peer, request.step, reply, rows, reply.rows[finite], reply.strengths[finite])
        self.heard[peer] = self.round
        in_rounds = reply.step.phase == ROUND == request.step.phase and not self.terms.lock_step
        if in_rounds and reply.version > request.since:  # otherwise nothing was shown
            link.seen = reply.version
        return refusals

    def _take(
        self,
        peer: str,
        asked: Step,
        reply: Shown,
        rows: Integers,
        vectors: npt.NDArray[np.float32],
        strengths: npt.NDArray[np.float64],
    ) -> None:
        """Put a peer's rows where this step needs them."""
        if asked != self.step and (asked.phase != ROUND or self.step.phase != ROUND or self.terms.lock_step):
            return  # late, and of no use any more
        if self.on_disclosure and len(rows):
            names = [self.neighbourhood.strangers[row - self.own][0] for row in rows.tolist()]
            self.on_disclosure(
                kind="shown", peer=peer, phase=reply.step.phase, number=reply.step.number, level=asked.level,
                nodes=names, rows=vectors,
            )  # fmt: skip
        if asked.phase == START:
            self._take_sweep(peer, asked, reply, rows, vectors)
        elif asked.phase == ROUND:
            if reply.sums is not None:
                self._sums[peer] = reply.sums
            levels = [asked.level] if self.terms.lock_step else list(range(vectors.shape[2]))
            judged = self._trust.judge(vectors, self._widen(self._rounds.shown[0], rows), self._norms)
            self._judge.clipped[peer] = judged.clipped
            self._count_alarms(peer, judged.alarms)
            for table, shown in enumerate(self._rounds.shown):
                for place, level in enumerate(levels):
                    self._write(shown, level * self.known + rows, judged.rows[:, table, place])
            arcs = self._arcs
            bounded = self._trust.bound_strengths(strengths, arcs.known_strengths[rows], arcs.largest_weights[rows])
            arcs.see(rows, bounded)
        elif self._source is not None and reply.step.phase == SMOOTH:
            dimensions = vectors.shape[3]
            before = self._source[rows, :dimensions]
            self._source[rows, :dimensions] = self._trust.judge(vectors, before, self._source_norms).rows[:, 0, 0]
            self._source_seen[rows] = True

    def _take_sweep(
        self, peer: str, asked: Step, reply: Shown, rows: Integers, vectors: npt.NDArray[np.float32]
    ) -> None:
        if self._sweeps is None:
            return
        if asked.level == 1:
            if reply.sums is not None and reply.step == asked:
                self._sums[peer] = reply.sums
            return
        taken = vectors[:, 0, 0]
        if not self.terms.lock_step:
            # rows of a sweep have norm 1, whoever sends them, and those that it begins with the norm of random ones
            lengths = np.sqrt((taken.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
            taken = np.divide(taken, lengths, out=np.zeros_like(taken), where=lengths > 0, casting="same_kind")
            taken *= np.float32(1.0 if asked.number > 0 else 1.0 / np.sqrt(12 * taken.shape[1]))
        self._write(self._sweeps.shown, rows, taken)
        self._arcs.see(rows)

    def _trace_own(self, step: Step, rows: npt.NDArray[np.float32]) -> None:
        """Tell the host's own rows, which whoever attacks with its trace knows too."""
        if self.on_disclosure:
            self.on_disclosure(
                kind="own", phase=step.phase, number=step.number, nodes=self.neighbourhood.nodes,
                rows=rows.reshape(self.own, 1, -1, self.terms.settings.dimensions)[:, :, :1],
            )  # fmt: skip

    def _publish(self, published: Published) -> None:
        """Let peers be shown this from now on."""
        self._published.publish(published, self.round)
        self.step = published.step

    def _publish_step(self, step: Step, rows: npt.NDArray[np.float32]) -> None:
        """Show rows of nodes that have neighbours elsewhere, (nodes, m), at a step of the start or of smoothing."""
        shown = rows[:, None, None]
        if step.number > 0:  # before, they are nobody's but the node's own
            shown = self._trust.blur(shown, step, self.version, self._find_share_of_noise(step.phase))
        # in the start, rows are of half precision anyway
        halve = step.phase == START or (self.terms.peers.half and not self.terms.lock_step)
        self._publish(Published(step, self.version, self._find_strengths(), to_half(shown) if halve else shown))

    def _find_share_of_noise(self, phase: int) -> float:
        """How much of the noise is added to a step of the start or of smoothing.

        Sweeps begin with random rows, so they tell most of single neighbours, above all on sparse networks; there they
        also matter least, as a start is small.
        """
        if phase == SMOOTH:
            return _NOISE_OF_SMOOTHING
        return min(_MOST_NOISE_OF_START, _NOISE_OF_START / choose_size(self._find_degree()))

    def _publish_level(self, level: int) -> None:
        """In lock-step, show what there is of one hop."""
        moments, sums = [], None
        if level == 0:
            moments = self._measured = self._measure_moments()
            sums, self._sums = self._sum_rows(), {}
        rows = to_half(self._read_shown(self._edge_rows, [level]))
        step = Step(ROUND, self.round, level)
        self._publish(Published(step, self.version, self._find_strengths(), rows, moments=moments, sums=sums))

    def _show_to_own(self) -> None:
        """Have own nodes show themselves to each other."""
        self._rounds.show()
        self._measured = self._measure_moments()

    def _show(self) -> None:
        """Have own nodes show themselves to each other, and to peers."""
        self._show_to_own()
        own = self._read_shown(np.arange(self.own), [0])
        self._trace_own(Step(ROUND, self.round), own[:, 0, 0])
        norms = measure_norms(own, self._shown_before)
        self._shown_before, sizes = own, self._norms.sizes.copy()
        sizes[:, :1] = norms.sizes
        if self.terms.hops > 1 and (self._means is None or self.round >= self._means_due):
            # the first ones are made before the vectors of others are there
            self._means_due = self.round + (1 if self._means is None else self.terms.peers.means)
            means = self._read_shown(np.arange(self.own), range(1, self.terms.hops))
            sizes[:, 1:] = measure_norms(means, None).sizes
            self._means = to_half(self._trust.blur(means[self._edge_rows], Step(ROUND, 0), self.version, 1.0))
            self._means_version = self.version
        sizes = np.where(np.isfinite(sizes), sizes, sizes[:, :1])
        self._norms = Norms(np.nan_to_num(sizes), norms.moves)
        self._publish(
            Published(
                Step(ROUND, self.round), self.version, self._find_strengths(), to_half(own[self._edge_rows]),
                self._means, self._means_version, self._measured,
            )
        )  # fmt: skip

    def _measure_moments(self) -> list[Moments]:
        """Those of all own vectors, as they are shown."""
        own = np.arange(self.own)
        return [self._trust.measure(self._widen(shown, own)) for shown in self._rounds.shown]

    def _pool_moments(self) -> list[Moments]:
        """Those of all vectors of the network, as far as they are known, with zeros for the columns of tables."""
        sizes, width = self._find_sizes_of_peers(), self.tables[0].shape[1]
        pooled = []
        for table, own in enumerate(self._measured):
            others = {peer: of[table] for peer, of in self._moments.items() if peer not in self.distrusted}
            moments = self._trust.pool_moments(own, others, sizes)
            padding = width - len(moments.total)
            products = np.pad(moments.products, ((0, padding), (0, padding)))
            pooled.append(Moments(moments.size, np.pad(moments.total, (0, padding)), products))
        return pooled

    def _read_shown(self, rows: Integers, levels: Iterable[int]) -> npt.NDArray[np.float32]:
        """What some own nodes show, (nodes, tables, levels, m)."""
        tables = [[self._widen(shown, level * self.known + rows) for level in levels] for shown in self._rounds.shown]
        return np.array(tables).transpose(2, 0, 1, 3).copy()

    def _widen(self, shown: npt.NDArray[Any], rows: Integers, padded: bool = False) -> npt.NDArray[np.float32]:
        """Rows that are shown, in single precision."""
        taken = shown[rows] if padded else shown[rows, : self.terms.settings.dimensions]
        if taken.dtype == np.uint16:
            widened: npt.NDArray[np.float32] = from_half(np.ascontiguousarray(taken).view(np.float16))
            return widened
        return taken.astype(np.float32)

    def _write(self, shown: npt.NDArray[Any], rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
        """Put rows where what is shown is kept."""
        halves = to_half(vectors)
        shown[rows, : vectors.shape[1]] = halves.view(np.uint16) if shown.dtype == np.uint16 else halves

    # rounds

    @property
    def rounds(self) -> int:
        """R; the most that there may be, while that is not known."""
        return self._find_schedule().rounds

    @property
    def expected_rounds(self) -> int:
        """About how many rounds there will be."""
        schedule = self._find_schedule()
        return schedule.rounds if self._falls_at is not None else schedule.expect_rounds(self.round)

    @property
    def stranded(self) -> bool:
        """Whether its nodes have neighbours, but only at peers that are away: a round would learn nothing."""
        near = self.neighbourhood
        return len(near.indices) > 0 and not self._arcs.find(self.sessions.links).any()

    def reopen(self, rounds: int | None = None) -> None:
        """Go on learning, at the full learning rate that falls again, for so many rounds or as many as at the end."""
        schedule = self._find_schedule()
        self._more = rounds or schedule.falling or max(1, schedule.rounds - schedule.falls_at)
        self._falls_at, self._schedule = self.round, None
        self.has_new_edges, self._learned_edges = False, self.neighbourhood.digest

    def abandon(self) -> None:
        """End what is being computed, within moments."""
        self._rounds.abandon()

    def _find_schedule(self) -> Schedule:
        if self._schedule is None:
            settings = self.terms.settings
            weights = weigh(self.strengths, settings)
            nodes, total = self.own, float(np.sum(weights))
            if self.terms.lock_step:
                totals = self.total_of_all()
                nodes += sum(hello.nodes for hello in self.sessions.greetings.values())
                total = totals.frequencies[0]
            basis = Basis(weights, self.numbers, total, nodes, self._find_degree())
            schedule = plan_nodes(basis, settings, choose_pairs(settings, nodes))
            if self._more is not None:
                rounds = schedule.spread_over or schedule.rounds
                schedule = replace(schedule, falling=self._more, spread_over=rounds)
            self._schedule = schedule if self._falls_at is None else schedule.fall(self._falls_at)
        return self._schedule

    def _find_degree(self) -> float:
        """The mean degree of nodes that have neighbours: of all in lock-step, otherwise of own ones."""
        if self.terms.lock_step:
            totals = self.total_of_all()
            return totals.arcs / max(1, totals.joined)
        near = self.neighbourhood
        return len(near.indices) / max(1, int(np.count_nonzero(np.diff(near.indptr))))

    def _let_fall(self) -> None:
        """Let the learning rate fall from now on, if vectors have grown or if it is time."""
        if self._falls_at is not None:
            return
        schedule = self._find_schedule()
        if self.round >= schedule.falls_at or self._have_grown():
            self._falls_at = self.round
            self.has_new_edges, self._learned_edges = False, self.neighbourhood.digest
            self._schedule = schedule.fall(self.round)

    def _have_grown(self) -> bool:
        sums = self._sum_rows()
        if self.terms.lock_step:
            pooled = self._trust.pool_sums(sums, self._sums, {})
            return find_spread(pooled.total, pooled.squares, pooled.count) >= GROWN
        # own nodes alone decide, whatever peers say
        return sums.count > 0 and find_spread(sums.total, sums.squares, sums.count) >= GROWN

    def _sum_rows(self) -> Sums:
        total, squares = sum_rows(self.tables[0], self._arcs.neighbours)
        dimensions = self.terms.settings.dimensions
        return Sums(int(np.count_nonzero(self._arcs.neighbours.joined)), total[:dimensions], squares)

    def _commit(self, made: int) -> None:
        """The round is over."""
        if not all(np.isfinite(table[: self.own]).all() for table in self.tables):
            raise DivergenceError(
                f"vectors stopped being finite in round {self.round}: learning_rate must be smaller, "
                f"got {self.terms.settings.learning_rate:g}"
            )
        self.version += 1
        self.round += 1
        self.pairs += made
        self.note_teachers()
        self.expire()

    # neighbours that are there

    def change_peer(self, peer: str) -> None:
        """A peer has accepted our edges anew."""
        self._told, self._arcs.is_stale = None, True

    def drop_peer(self, peer: str) -> None:
        """Do without a peer's vectors and moments."""
        self._arcs.forget(self.rows_of(peer))
        self._moments.pop(peer, None)
        self._told = None  # neighbours are changed between two rounds

    def _find_strengths(self) -> npt.NDArray[np.float64]:
        """The strengths of the nodes that have neighbours elsewhere, by the edges that peers have accepted."""
        told = self._told
        if told is None:
            accepted = self._arcs.find(self.sessions.links, distrusted=self.distrusted)
            told = self._arcs.build(accepted).strengths[self._edge_rows]
        return told

    def _find_sizes_of_peers(self) -> dict[str, int]:
        """For how many nodes a peer counts at most: as the operator wrote down, or as many as are known of it."""
        return {peer: self.sizes.get(peer, len(link.neighbours)) for peer, link in self.sessions.links.items()}

    def _judge_peers(self) -> None:
        """Do without peers whose nodes are unlike our nodes that they are neighbours of, as no honest ones are."""
        shown = self._rounds.shown[0]
        changed, alarms = self._judge.judge(
            self.sessions.links, self._arcs.seen, lambda rows: self._widen(shown, rows), self.round
        )
        if changed:
            self._told, self._arcs.is_stale = None, True
        for peer in alarms:
            self._count_alarms(peer, ["disagreeing"])

    def _update_neighbours(self) -> None:
        """Have nodes take the neighbours that are there now."""
        if self._arcs.update(self.sessions.links, self.distrusted):
            self._rounds.change_neighbours(self._arcs.neighbours)

    def _count_alarms(self, peer: str, alarms: list[str]) -> None:
        for kind in alarms:
            self.alarms[peer, kind] = self.alarms.get((peer, kind), 0) + 1

    # what is kept

    def read_known(self) -> npt.NDArray[np.float32]:
        """A copy of the vectors of own nodes, and of neighbours elsewhere as they were shown last, zero if never."""
        known = super().read_known()
        shown = np.flatnonzero(self._arcs.seen[self.own :]) + self.own
        known[shown] = self._widen(self._rounds.shown[0], shown)
        return known

    def find_smoothed(self) -> npt.NDArray[np.float32] | None:
        """The smoothed vectors of own nodes, (n, m), None where there are none."""
        return None if self.smoothed is None else self.smoothed.copy()

    def save(self) -> Saved:
        """The state to go on from, and the smoothed vectors."""
        return replace(super().save(), falls_at=self._falls_at, smoothed=self.smoothed, whole=self.whole)

    def restore(self, saved: Saved) -> None:
        """Go on from what was kept; nodes that are new keep the vectors they began with."""
        super().restore(saved)
        self._falls_at, self._schedule, self._starting = saved.falls_at, None, False
        self.can_be_saved = True
        self.step = Step(ROUND, self.round)
        if saved.smoothed is not None and saved.whole is not None:
            here, there = self._match(saved.names)
            self.smoothed, self.whole = self.vectors[:, 0].copy(), np.zeros(self.own, bool)
            self.smoothed[here], self.whole[here] = saved.smoothed[there], saved.whole[there]
            self._smoothed_at = saved.round
