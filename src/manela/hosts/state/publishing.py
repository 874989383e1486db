"""Publisher: what a host shows its peers, kept ready so that answering never waits for computing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.messages import MessageRounds
from manela.engines.rounds.neighbours import allocate_shown
from manela.errors import TermsError
from manela.hosts.state.arcs import read_rows, write_rows
from manela.hosts.state.instructions import NotReadyError
from manela.hosts.state.messages import (
    AFFINITY,
    JOIN,
    PLACE,
    ROUND,
    SMOOTH,
    START,
    SWEEP,
    VIEW,
    Integers,
    Products,
    Pull,
    Shown,
    Step,
    Sum,
    Sums,
)
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.noise import Kind, clip_lengths, find_longest
from manela.hosts.state.trust import FEWEST_NODES, Norms, measure_norms
from manela.kernels.cpu.half import to_half
from manela.kernels.moments import Moments

if TYPE_CHECKING:
    from manela.hosts.state.rounds import MessageHost

_MOST_RELEASES = 16
"""Times that moments are shown in one frame; more let their noise be averaged out."""
_KEPT_STEPS = 3
"""Steps of a lock-step run kept for slower peers; more take memory, fewer would make these peers wait forever."""
_LONGEST = 2.0
"""Length of a vector in means and sums, over the median one, at most; larger needs more noise."""
_LATE_ROUNDS = 3
"""Rounds for which the steps of the start are kept for slower peers; more take memory for longer."""


@dataclass(frozen=True, eq=False)
class Published:
    """What is shown at one step of the nodes that have remote neighbours; in float16 if it is sent as such."""

    step: Step
    version: int
    strengths: npt.NDArray[np.float64]
    rows: npt.NDArray[Any] | None = None  # shape (nodes, tables, 1, m): the rows at this step
    # shape (nodes, tables, hops − 1, m): means over neighbours with noise, as of version `means_version`
    means: npt.NDArray[Any] | None = None
    means_version: int = 0
    # totals over all own nodes
    moments: list[Moments] = field(default_factory=list)
    sums: Sums | None = None
    sum: Sum | None = None
    products: Products | None = None
    cost: float = 0.0  # of showing the rows or products
    means_cost: float = 0.0


class Publications:
    """What was published at each step that a peer may still ask for."""

    def __init__(self, lock_step: bool) -> None:
        self._lock_step = lock_step
        # publications by step. It is replaced and never changed, as another thread may be reading it
        self.steps: dict[Step, Published] = {}

    def publish(self, published: Published, round: int) -> None:
        """Show this to peers from now on; `round` is that of the host."""
        kept, now = self.steps, published.step
        if self._lock_step:
            kept = dict(list(kept.items())[1 - _KEPT_STEPS :])
        elif now.phase == ROUND:
            late = (START, VIEW) if round < _LATE_ROUNDS else ()
            kept = {step: earlier for step, earlier in kept.items() if step.phase in late}
        elif now.phase == SWEEP:  # a peer that is two sweeps behind has been given up
            kept = {at: earlier for at, earlier in kept.items() if at.phase != SWEEP or at.number >= now.number - 1}
        self.steps = {**kept, published.step: published}

    def find(self, step: Step, now: Step, goes_on: bool) -> Published | None:
        """Return what was published at a step, or its nearest substitute, or None if there is nothing to show.

        `now` is the step that the host is at, and `goes_on` whether it smooths or joins, now or later.
        """
        steps = self.steps
        if step in steps:
            return steps[step]
        if self._lock_step:
            if step >= now:
                raise NotReadyError
            raise TermsError(f"{step} is over, this host is at {now}")
        rounds = [published for known, published in steps.items() if known.phase == ROUND]
        if step.phase in (SMOOTH, JOIN) and goes_on:
            raise NotReadyError
        if step.phase == SWEEP and Step(VIEW, 0) in steps:
            return steps[Step(VIEW, 0)]
        if step.phase != ROUND and step >= now and not rounds:
            raise NotReadyError
        return rounds[-1] if rounds else None


@dataclass
class ShownSums:
    """The sums that peers see in one frame, and of which nodes they are."""

    cohort: frozenset[str] | None = None
    releases: int = 0
    moments: list[Moments] = field(default_factory=list)
    joined: Products | None = None  # of the last join
    joins: int = 0  # how often they were shown

    def is_closed(self, near: Neighbourhood) -> bool:
        """Return whether the products of the join stay as they are: a node is gone, or they were shown too often."""
        return self.joins >= _MOST_RELEASES or self.find_cohort(near) is None

    def find_cohort(self, near: Neighbourhood) -> Integers | None:
        """Return the rows of the nodes that sums are of; None if some of them are gone."""
        if self.cohort is None:
            self.cohort = frozenset(near.nodes) - near.private
        if not self.cohort <= near.rows.keys():
            return None
        return np.flatnonzero([name in self.cohort for name in near.nodes])


class Publisher:
    """Prepares what a host shows its peers, and answers them with it."""

    def __init__(self, host: MessageHost, rounds: MessageRounds) -> None:
        self._host, self._rounds = host, rounds
        self._published = Publications(host.terms.lock_step)
        self._edge_positions = np.full(host.own, -1, np.int64)
        self._edge_positions[host.edge_rows] = np.arange(len(host.edge_rows))
        # of what the host's own nodes show, by which received rows are clipped
        self.norms = Norms(np.zeros((host.terms.tables, host.terms.hops)), 0.0)
        self.moments: list[Moments] = []  # the moments of the host's own vectors, as peers see them, for each table
        self._shown_before: npt.NDArray[np.float32] | None = None
        self._means: npt.NDArray[Any] | None = None
        self._means_version = self._means_due = 0
        self._means_cost = 0.0
        self.sums = ShownSums()

    def answer(self, peer: str, request: Pull) -> Shown:
        """Answer a peer with the published rows of the nodes here that are neighbours of its nodes."""
        self._host.sessions.find(peer, request.session)
        self._host.hear_frame(peer, request)
        return replace(self._answer(peer, request), frame=self._host.frames.now)

    def _answer(self, peer: str, request: Pull) -> Shown:
        host = self._host
        positions = self._edge_positions[host.sessions.find(peer, request.session).neighbours]
        # nodes that no peer sees: peers may pool what they know
        shows_totals = host.trust.show_totals(host.own, host.own - len(host.edge_rows))
        if request.step.phase == PLACE:
            return self._place(positions)
        settings = host.terms.settings
        goes_on = not host.done or (settings.has_view if request.step.phase == JOIN else settings.smooths)
        published = self._published.find(request.step, host.step, goes_on)
        tables, _, dimensions = host.count_rows(request)
        rows: npt.NDArray[Any] = np.zeros((0, tables, 1, dimensions), np.float32)
        if published is None:
            return Shown(min(request.step, host.step), 0, positions[:0], rows, np.zeros(0))
        if 0 < published.version <= request.since:
            return Shown(published.step, published.version, positions[:0], rows, np.zeros(0))
        if request.step.phase == AFFINITY != published.step.phase:  # the peer only learns that it is late
            return Shown(published.step, 0, positions[:0], rows, np.zeros(0))
        if published.rows is None:
            positions = positions[:0]
        elif published.step.phase == request.step.phase:
            rows = published.rows[positions]
            if published.means is not None and published.means_version > request.since:
                rows = np.concatenate((rows, published.means[positions]), axis=2)
        else:
            rows = published.rows[positions, :1]  # a peer that is behind gets the current vectors
        if len(positions) or published.products is not None:
            kind = Kind.ROWS if published.products is None else Kind.SUMS
            host.noise.ledger.show(peer, kind, (published.version, published.step), published.cost)
            host.noise.ledger.show(peer, Kind.MEANS, published.means_version, published.means_cost)
        return Shown(
            published.step, published.version, np.arange(len(positions)), rows, published.strengths[positions],
            published.moments if shows_totals else [], published.sums if shows_totals else None,
            published.sum, published.products
        )  # fmt: skip

    def _place(self, positions: Integers) -> Shown:
        """Answer a host that places its nodes in the view, with that of their neighbours here."""
        if self._host.is_starting:
            raise NotReadyError
        host, step = self._host, Step(PLACE, 0)
        dimensions = host.terms.settings.dimensions
        if host.view is None or host.stretch is None:
            return Shown(step, 0, positions[:0], np.zeros((0, 1, 1, dimensions), np.float32), np.zeros(0))
        shown = self.coarsen(read_rows(host.view, np.arange(host.own), dimensions))
        rows = to_half(shown[positions][:, None, None])
        # it is kept only if it may be shown, so it says nothing of the nodes of a host with few
        products = host.trust.describe_stretch(max(host.own, FEWEST_NODES), host.stretch)
        strengths = host.find_strengths()[positions]
        return Shown(step, host.version, np.arange(len(positions)), rows, strengths, products=products)

    def forget(self) -> None:
        """Show peers nothing of what was shown before."""
        self._published.steps = {}
        self._means = self._shown_before = None
        self.sums = ShownSums()

    def publish(self, published: Published) -> None:
        """Show this to peers from now on, but for sums over too few nodes."""
        host = self._host
        if published.sum is not None and not host.trust.show_products(published.sum.count):
            published = replace(published, sum=None)
        if published.products is not None and not host.trust.show_products(published.products.size):
            published = replace(published, products=None)
        self._published.publish(published, host.round)
        host.step = published.step

    def publish_step(self, step: Step, rows: npt.NDArray[np.float32] | None, cost: float = 0.0) -> None:
        """Publish rows of nodes that have remote neighbours, (nodes, m), or nothing, at a step of start or smoothing.

        `cost` is that of showing them.
        """
        host = self._host
        # rows of sweeps have half precision anyway
        halve = (
            step.phase in (START, SWEEP) or step == (VIEW, 0, 0) or (host.terms.peers.half and not host.terms.lock_step)
        )
        shown = None if rows is None else to_half(rows[:, None, None]) if halve else rows[:, None, None]
        self.publish(Published(step, host.version, host.find_strengths(), shown, cost=cost))

    def coarsen(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return what peers see of own vectors, (n, m): of the nodes that have remote neighbours, (nodes, m)."""
        return self._host.noise.coarsen(vectors, self._host.edge_rows, self._host.find_degree())

    def publish_level(self, level: int) -> None:
        """In lock-step, publish the rows of one hop."""
        host = self._host
        moments: list[Moments] = []
        sums = None
        if level == 0:
            self._measure_moments()
            moments, sums = self.moments, host.sum_own_rows()
            host.peers.clear_sums()
        rows = to_half(self._read_shown(host.edge_rows, [level]))
        step = Step(ROUND, host.round, level)
        self.publish(Published(step, host.version, host.find_strengths(), rows, moments=moments, sums=sums))

    def show_locally(self) -> None:
        """Update what the host's own nodes show to each other."""
        self._rounds.show()
        self._measure_moments()

    def show(self) -> None:
        """Update what the host's own nodes show to each other, and publish it for peers."""
        host = self._host
        self.show_locally()
        own = self._read_shown(np.arange(host.own), [0])
        self.trace_own(Step(ROUND, host.round), own[:, 0, 0])
        norms = measure_norms(own, self._shown_before)
        self._shown_before, sizes = own, self.norms.sizes.copy()
        sizes[:, :1] = norms.sizes
        if self._means is None or host.round >= self._means_due:
            # the first means are computed before peers' vectors have arrived, so they are replaced after one round
            self._means_due = host.round + (1 if self._means is None else host.terms.peers.means)
            if host.terms.hops > 1:
                sizes[:, 1:] = self._release_means()
            self._release_moments(own)
        sizes = np.where(np.isfinite(sizes), sizes, sizes[:, :1])
        self.norms = Norms(np.nan_to_num(sizes), norms.moves)
        tables = [self.coarsen(np.ascontiguousarray(own[:, table, 0])) for table in range(own.shape[1])]
        self.publish(
            Published(
                Step(ROUND, host.round), host.version, host.find_strengths(),
                to_half(np.stack(tables, axis=1)[:, :, None]), self._means, self._means_version, self.sums.moments,
                means_cost=self._means_cost
            )
        )  # fmt: skip

    def _release_means(self) -> npt.NDArray[np.float64]:
        """Prepare the means that peers see from now on, unless the budget is spent; return the norms of own ones."""
        host = self._host
        means = self._read_shown(np.arange(host.own), range(1, host.terms.hops))
        norms = measure_norms(means, None).sizes
        released = np.ascontiguousarray(means[host.edge_rows])
        longest = []
        for table, shown in enumerate(self._rounds.shown):
            rows = read_rows(shown, np.arange(host.known), released.shape[3])
            longest.append(find_longest(rows[: host.own], _LONGEST))
            clipped = allocate_shown(host.known, released.shape[3])
            write_rows(clipped, np.arange(host.known), clip_lengths(rows, longest[-1]))
            target = allocate_shown(host.known, released.shape[3])
            neighbours = host.arcs.neighbours
            neighbours.average(clipped, target, neighbours.scales[0], nodes=host.edge_rows)
            released[:, table, 0] = read_rows(target, host.edge_rows, released.shape[3])
        reach = 2.0 * host.arcs.find_largest_shares()[host.edge_rows] * max(longest)
        blurred = host.noise.blur(released, reach, Kind.MEANS, Step(ROUND, 0), host.version, host.find_degree())
        if blurred is not None:
            own = self._read_shown(np.arange(host.own), [0])
            for table in range(own.shape[1]):
                vectors = np.ascontiguousarray(own[:, table, 0])
                for level in range(released.shape[2]):
                    blurred[0][:, table, level] = host.noise.flatten(
                        blurred[0][:, table, level], vectors, host.find_degree()
                    )
            self._means, self._means_cost, self._means_version = to_half(blurred[0]), blurred[1], host.version
        elif self._means is None:
            self._means = to_half(np.zeros_like(released))
        return norms

    def _release_moments(self, own: npt.NDArray[np.float32]) -> None:
        """Prepare the moments that peers see from now on.

        They are of the same nodes in a whole frame. When one of these is gone, they stay as they are, so that no
        difference shows its vector.
        """
        host, sums = self._host, self.sums
        rows = sums.find_cohort(host.neighbourhood)
        if rows is None or sums.releases >= _MOST_RELEASES:
            return
        sums.releases += 1
        moments = []
        for table in range(own.shape[1]):
            vectors = np.ascontiguousarray(own[rows, table, 0])
            longest = find_longest(vectors, _LONGEST)
            exact = host.trust.measure(clip_lengths(vectors, longest))
            moments.append(host.noise.blur_moments(exact, longest, (host.version << 1) + table))
        sums.moments = moments

    def trace_own(self, step: Step, rows: npt.NDArray[np.float32]) -> None:
        """Trace the host's own rows, which an attacker at this host would know as well."""
        host = self._host
        if host.on_disclosure:
            host.on_disclosure(
                kind="own", phase=step.phase, number=step.number, nodes=host.neighbourhood.nodes,
                rows=rows.reshape(host.own, 1, -1, host.terms.settings.dimensions)[:, :, :1]
            )  # fmt: skip

    def _measure_moments(self) -> None:
        """Measure the moments of the host's own vectors, as peers see them, for each table."""
        host = self._host
        own, dimensions = np.arange(host.own), host.terms.settings.dimensions
        self.moments = [host.trust.measure(read_rows(shown, own, dimensions)) for shown in self._rounds.shown]

    def _read_shown(self, rows: Integers, levels: Iterable[int]) -> npt.NDArray[np.float32]:
        """Return what the given own nodes show, shape (nodes, tables, levels, m)."""
        host = self._host
        dimensions = host.terms.settings.dimensions
        tables = [
            [read_rows(shown, level * host.known + rows, dimensions) for level in levels]
            for shown in self._rounds.shown
        ]
        return np.array(tables).transpose(2, 0, 1, 3).copy()
