"""The spectral view of a host: its sweeps before the rounds, and its join with the vectors after smoothing."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.engines.rounds import spectral
from manela.engines.rounds.neighbours import Neighbours, allocate_shown
from manela.engines.rounds.smoothing import STEPS, resize
from manela.hosts.state.arcs import read_rows, write_rows
from manela.hosts.state.filtering import Filtering
from manela.hosts.state.frames import find_majority
from manela.hosts.state.host import exact_sum
from manela.hosts.state.instructions import Ask, Instruction
from manela.hosts.state.messages import AFFINITY, JOIN, PLACE, SWEEP, VIEW, Frame, Integers, Products, Shown, Step, Sum
from manela.hosts.state.noise import Kind, clip_lengths, find_longest, make_positive
from manela.hosts.state.publishing import Published
from manela.hosts.state.trust import round_products
from manela.kernels.cpu import spectral as kernels
from manela.kernels.layout import Shown as ShownRows
from manela.kernels.layout import Table, allocate, normalise_rows
from manela.kernels.moments import LARGEST, UNIT
from manela.kernels.randomness import VECTORS, draw_vectors
from manela.kernels.reference import (
    AFFINITY_POWER,
    FEWEST_SWEEPS,
    SWEEP_LARGEST,
    SWEEP_UNIT,
    VIEW_MIDDLE,
    VIEW_SIZE,
    count_directions,
    find_common,
    has_settled,
    split_affinities,
)

if TYPE_CHECKING:
    from manela.hosts.state.rounds import MessageHost

_PATIENCE = STEPS + 4
"""Times that peers are asked for their view while they have none; larger waits longer for those that never will."""
_PLACINGS = 8
"""Times that later nodes are placed beside each other; fewer reach less far from nodes that were there before."""
_LEAST_STRETCH = 0.1
"""Eigenvalues far below this share of the largest count as nothing in placing; smaller lets noise in."""
_OF_SHARES, _SQUARES = 1, 2
"""Levels of the affinities: what nodes tell of their neighbours' strengths, and the sum of squares."""
_NEW_ROWS = 0.1
"""Size of random rows in a start that continues an older one, over that of old rows; larger turns the old ones more."""
_FEWEST_AGAIN = 2
"""Sweeps of such a start that does not change much; more replace more of the old rows by new noise."""
_EARLY_SWEEPS, _EARLY_NOISE = 6, 1.6
"""Sweeps with more noise, and how much more; larger discloses less and learns worse.

Early sweeps begin with random rows, so that they disclose most of single edges, and later ones replace their noise.
"""
_MOST_SWEEPS = 8
"""Sweeps with noise; more disclose more, and find hardly anything that the noise does not hide."""
_LONGEST = 2.0
"""Length of own rows in a sweep, over the median one, at most; larger needs more noise to hide an edge."""


class SpectralPhase:
    """The sweeps of one start, and what peers have shown of theirs.

    `heeds_others` is whether it matters that peers are in a newer start, or past theirs. Without `sweeps`, the host
    waits to be placed.

    The definition is `kernels.reference.find_view`; `engines.rounds.spectral.Sweeps` is the same on one machine.
    """

    def __init__(self, host: MessageHost, heeds_others: bool, sweeps: bool = True) -> None:
        self._host, self._m, self._sweeps = host, host.terms.settings.dimensions, sweeps
        self._table = allocate(host.known, self._m)
        self._shown = allocate_shown(host.known, self._m)
        self._neighbours, self._used = host.arcs.neighbours, host.arcs.used
        self._affinities = np.zeros(0, np.float32)
        self._strengths, self._shares = np.zeros(host.known), np.zeros(host.known)
        self._squares, self._energy = np.zeros(host.own), 0.0  # of the affinities of each node, and their mean
        self._size, self._total = (
            1,
            float(max(1, host.own)),
        )  # how many nodes have neighbours, and the sum of what is likely of each
        self._given = np.zeros(host.known, bool)  # own nodes that have a row of the view already
        self._seen = np.zeros(host.known, bool)  # nodes whose rows have arrived at the current step
        self._at_view: dict[str, Frame] = {}  # peers that are past the sweeps, but not past the start
        self.joins: Frame | None = None  # the frame in whose view nodes are placed
        self._heeds_others = heeds_others
        self._filtering: Filtering | None = None
        # (edge rows, m): what peers are shown next; None if the budget for it is spent
        self._edge: npt.NDArray[np.float32] | None = None
        self._cost, self._reach = 0.0, 0.0  # of showing it; and the largest share of a row that an edge can move

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of the sweeps and of the view that they give, which the host then has."""
        host = self._host
        if host.view is not None:  # some nodes have come since
            yield from self._place()
            return
        if self._sweeps:
            yield from self._find_affinities()
        else:
            yield from self._await_view()
        if not self._is_over():
            yield from self._sweep()
        if self.joins is not None and not host.frames.is_outdated:
            yield from self._place()
            if not self._seen[host.own :].any():  # nobody has a view after all
                self.joins, self._heeds_others = None, False
                yield from self._find_affinities()
                yield from self._sweep()

    def _is_over(self) -> bool:
        """Return whether this start is of no use: peers are in a newer one, or most are past theirs."""
        frames = self._host.frames
        if not self._heeds_others:
            return False
        if self.joins is None:
            self.joins = find_majority(frames.past, self._host.peers.links)
            for frame in frames.past.values() if self.joins is None else ():
                # few neighbours are in a frame that is there already, so all had better start once more, together
                frames.hear(frame.generation + 1)
        return frames.is_outdated or self.joins is not None

    def _await_view(self) -> Iterator[Instruction]:
        """Wait until peers have a view to be placed in."""
        self._host.step = Step(VIEW, STEPS)
        for _ in range(_PATIENCE):
            yield Ask(self._host.step, patient=True)
            if self._is_over():
                return
        yield from self._find_affinities()

    @property
    def _is_continued(self) -> bool:
        return self._host.frames.is_continued and not self._host.terms.lock_step

    def _begin(self) -> None:
        """Begin with random rows, or with those that the start continues; a few random numbers fill the gaps."""
        host, table, own, m = self._host, self._table, self._host.own, self._m
        draw_vectors(host.terms.settings.seed, host.numbers, table[:own, :m], VECTORS)
        table *= np.float32(math.sqrt(12.0) * m)
        if self._is_continued:
            table *= np.float32(_NEW_ROWS)
            rows, old = host.find_old()
            table[rows, :m] += np.float32(math.sqrt(m)) * old
        # random rows hold nothing of the node's neighbours, and those of a view are shown as vectors are
        start = table[:own, :m]
        self._edge = host.publisher.coarsen(start) if self._is_continued else start[host.edge_rows]
        self._cost = 0.0

    def _sweep(self) -> Iterator[Instruction]:
        """Yield the instructions of the sweeps and of the view."""
        host, table, own = self._host, self._table, self._host.own
        energy, number, ended = self._energy, 0, False
        fewest = _FEWEST_AGAIN if self._is_continued else FEWEST_SWEEPS
        self._begin()
        while True:
            table[:own][~self._neighbours.joined[:own]] = 0.0
            yield from self._exchange(Step(VIEW, 0) if ended else Step(SWEEP, number))
            overtaken = find_majority(self._at_view, host.peers.links) if self._heeds_others and not ended else None
            if overtaken is not None and number >= fewest:
                ended = True
                yield from self._exchange(Step(VIEW, 0))
            elif overtaken is not None:
                self.joins = overtaken
            if self._is_over():
                return
            scale = host.trust.find_scale(energy)

            def add_up(scale: float = scale) -> None:
                indptr, indices, _, _ = self._neighbours.arcs
                kernels.sweep(self._shown, indptr, indices, self._affinities, scale, SWEEP_LARGEST, table, 0, own)

            yield host.will_compute(host.step, "add up", add_up)
            if ended:
                break
            self._blur(Step(SWEEP, number))
            second, _ = yield from self._pool(Step(SWEEP, number, 1))
            before, energy = energy, float(np.trace(second)) / self._m / scale**2
            matrix = host.trust.orthogonalise(second)
            spectral.multiply(table[:own], [], matrix, self._neighbours)
            if self._edge is not None:
                self._edge = self._edge @ matrix[: self._m, : self._m].astype(np.float32)
            number += 1
            ended = has_settled(number, before, energy, fewest) or (number >= _MOST_SWEEPS and not host.noise.is_off)
        second, may_be_shown = yield from self._pool(Step(VIEW, 0, 1), apart=True)
        if self._is_over():
            return
        host.stretch = second[: self._m, : self._m] if may_be_shown and second.any() else None
        if not host.peers.links and not host.terms.lock_step:
            host.stretch = self._blur_stretch(second[: self._m, : self._m])
        kept = count_directions(self._size, self._m)
        root = host.trust.find_root(second, kept, number)
        spectral.widen(self._shown, table, self._neighbours)
        spectral.multiply(table, [], root, self._neighbours)
        table[own:][~self._seen[own:]] = 0.0
        table[own:] = normalise_rows(table[own:])
        ones = self._neighbours.joined.astype(np.float64)
        resize(table, self._neighbours, ones)
        if host.terms.settings.smooth:
            known = None if host.terms.lock_step else table.copy()
            self._filtering = Filtering(host, table, VIEW_MIDDLE, VIEW, 1, self._used, known)
            yield from self._filtering.script()
            table[:own][~self._neighbours.joined[:own]] = 0.0
            resize(table, self._neighbours, ones)
        self._neighbours.show(table, self._shown, slice(0, own))
        self._keep()

    def _keep(self) -> None:
        """Have the host keep the view, and start its vectors from it; nodes without a row in it keep random ones."""
        host, table, own = self._host, self._table, self._host.own
        host.view = self._shown[:own].copy()
        if host.terms.settings.starts_by_sweeps:
            spectral.widen(host.view, table[:own], self._neighbours)
            given = table[:own].any(axis=1) & ~self._given[:own]
            resize(table, self._neighbours, np.where(self._neighbours.joined, VIEW_SIZE, 0.0))
            host.tables[0][:own][given] = table[:own][given]
        if not host.terms.settings.has_view:
            host.view = None

    def _place(self) -> Iterator[Instruction]:
        """Place nodes in the view that peers have, or that this host has of its other nodes.

        In the view, S(v) = Σ_w a_vw·S(w)·H⁻¹ but for the norm, with H as all hosts found it.
        """
        host, own, table = self._host, self._host.own, self._table
        if host.view is not None:
            self._shown[:own] = host.view
            self._given[:own] = read_rows(self._shown, np.arange(own), self._m).any(axis=1)
        host.peers.clear_sums()
        host.step = Step(PLACE, 0)
        for _ in range(_PATIENCE):  # peers may still be at one of the last steps of their start
            yield Ask(host.step, patient=True)
            if self._seen[own:].any() or self.joins is None:
                break
        self._use_neighbours()
        self._total = float(host.count_network())
        self._measure()
        stretch = host.stretch
        if stretch is None and (parts := _find_parts(host, self._m)):
            stretch = host.trust.pool_products(parts)
            host.stretch = stretch if stretch.any() else None
        stretch = np.eye(self._m) if host.stretch is None else host.stretch
        width = table.shape[1]
        inverse = np.zeros((width, width))
        inverse[: self._m, : self._m] = spectral.invert_softly(stretch, _LEAST_STRETCH)
        missing = np.flatnonzero(self._neighbours.joined[:own] & ~self._given[:own])
        indptr, indices, _, _ = self._neighbours.arcs

        def place() -> None:
            for _ in range(_PLACINGS):
                kernels.sweep(self._shown, indptr, indices, self._affinities, 1.0, SWEEP_LARGEST, table, 0, own)
                spectral.multiply(table[:own], [], inverse, self._neighbours)
                resize(table, self._neighbours, self._neighbours.joined.astype(np.float64))
                write_rows(self._shown, missing, table[missing, : self._m])

        yield host.will_compute(host.step, "place", place)
        if self._seen[own:].any() or self._given.any():
            host.frames.now = self.joins or host.frames.now
            self._keep()

    def _find_affinities(self) -> Iterator[Instruction]:
        """Tell peers how strong nodes are, and find the affinity of each arc, and the sum of their squares."""
        host, own = self._host, self._host.own
        self._publish(Step(AFFINITY, 0, 0))
        yield Ask(host.step, patient=True)
        if self._is_over():
            return
        self._use_neighbours()
        indptr, indices, _, _ = self._neighbours.arcs
        kernels.add_shares(indptr, indices, self._neighbours.weights, self._strengths, self._shares, 0, own)
        likely = self._shares[:own] ** AFFINITY_POWER
        own_sum = self._sum(likely)
        if host.terms.lock_step:
            self._publish(Step(AFFINITY, 0, _OF_SHARES), self._shares[host.edge_rows], own_sum)
        else:
            self._publish(Step(AFFINITY, 0, _OF_SHARES), of_nodes=own_sum)
            self._guess_shares()
        yield Ask(host.step, patient=True)
        self._size, self._total = self._pool_sum(own_sum)
        self._measure()
        own_sum = self._sum(self._squares)
        self._publish(Step(AFFINITY, 0, _SQUARES), of_nodes=own_sum)
        yield Ask(host.step, patient=True)
        size, squares = self._pool_sum(own_sum)
        self._energy = squares / size

    def _pool_sum(self, own: Sum) -> tuple[int, float]:
        """Return how many nodes all hosts have, and the sum of a number of each; with a budget, by own nodes alone."""
        host = self._host
        if host.noise.has_budget:
            size = max(1, host.count_network())
            return size, size * math.fsum(own.parts) / max(1, own.count)
        return host.trust.pool_sum(own, host.peers.sums_of_nodes)

    def _guess_shares(self) -> None:
        """Take remote nodes to have as much of their neighbours' strength, over their own, as own nodes have.

        What they really have would tell of their neighbours.
        """
        own = self._host.own
        usual = float(self._shares[:own].sum()) / max(float(self._strengths[:own].sum()), 1e-300)
        self._shares[own:] = usual * self._strengths[own:]

    def _sum(self, numbers: npt.NDArray[np.float64]) -> Sum:
        own = Sum(int(np.count_nonzero(self._neighbours.joined[: self._host.own])), exact_sum(numbers))
        return self._host.noise.blur_sum(own, _name_draw(self._host, self._host.step))

    def _publish(
        self, step: Step, strengths: npt.NDArray[np.float64] | None = None, of_nodes: Sum | None = None
    ) -> None:
        host = self._host
        host.peers.clear_sums()
        self._seen[host.own :] = False
        shown = host.find_strengths() if strengths is None else strengths
        has_rows = step.level == 0 or (step.level == _OF_SHARES and host.terms.lock_step)
        rows = np.zeros((len(host.edge_rows), 1, 1, 0), np.float32) if has_rows else None
        of_nodes = None if host.noise.has_budget else of_nodes  # what edges move, and no account covers
        host.publisher.publish(Published(step, host.version, shown, rows, sum=of_nodes))

    def _use_neighbours(self) -> None:
        """Use the arcs to nodes that have shown something at this step."""
        host = self._host
        self._seen[: host.own] = True
        used = host.arcs.find(host.peers.links, self._seen, host.peers.distrusted)
        if not np.array_equal(used, self._used) or len(self._affinities) == 0:
            self._used, self._neighbours = used, host.arcs.build(used)
            self._strengths = np.concatenate((self._neighbours.strengths[: host.own], host.arcs.strengths[host.own :]))
            self._measure()

    def _measure(self) -> None:
        """Compute the affinities of the arcs that are used, and their squares."""
        indptr, indices, _, _ = self._neighbours.arcs
        shares = np.where((self._strengths > 0) & (self._shares <= 0), 1.0, self._shares)
        halves = split_affinities(self._strengths, shares, self._total)
        self._affinities, self._squares = np.empty(len(indices), np.float32), np.zeros(self._host.own)
        kernels.find_affinities(
            indptr, indices, self._neighbours.weights, halves, self._affinities, self._squares, 0, self._host.own
        )

    def _exchange(self, step: Step) -> Iterator[Instruction]:
        """Show own rows at a step, and take those of peers."""
        host, own = self._host, slice(0, self._host.own)
        if not host.terms.lock_step:
            rows = self._table[own]
            rows[:] = clip_lengths(rows, find_longest(rows, _LONGEST))
        self._neighbours.show(self._table, self._shown, own)
        host.publisher.trace_own(step, read_rows(self._shown, np.arange(host.own), self._m))
        edge = read_rows(self._shown, host.edge_rows, self._m) if host.terms.lock_step else self._edge
        host.publisher.publish_step(step, edge, self._cost)
        self._seen[host.own :] = False
        yield Ask(step, patient=True)
        self._use_neighbours()

    def _blur(self, step: Step) -> None:
        """Prepare what peers are shown of the sums over neighbours of this sweep."""
        host, own, m = self._host, self._host.own, self._m
        if host.terms.lock_step:
            return
        indptr = self._neighbours.arcs.indptr[: own + 1]
        largest = np.zeros(own)
        joined = np.flatnonzero(np.diff(indptr))
        if len(joined):
            largest[joined] = np.maximum.reduceat(np.abs(self._affinities[: indptr[-1]]), indptr[joined])
        # an edge more also makes the node's other affinities smaller, together by less than one row
        shown = read_rows(self._shown, np.arange(own), m)
        reach = (largest + 1.0) * find_longest(shown, max(_LONGEST, host.terms.peers.clip))
        lengths = np.linalg.norm(self._table[:own, :m], axis=1)
        longest = find_longest(self._table[:own, :m], _LONGEST)
        moved = reach[lengths > 0] / max(longest, 1e-300)
        self._reach = min(1.0, float(moved.max())) if len(moved) else 1.0
        rows = self._table[host.edge_rows, :m]
        times = _EARLY_NOISE if step.number < _EARLY_SWEEPS else 1.0
        blurred = host.noise.blur(
            rows, times * reach[host.edge_rows], Kind.ROWS, step, host.version, host.find_degree()
        )
        self._edge, self._cost = (None, 0.0) if blurred is None else blurred

    def _blur_stretch(self, second: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
        """Return what a host that was alone may show to those that come later of its H; None if it has few nodes."""
        host, own = self._host, slice(0, self._host.own)
        joined = int(np.count_nonzero(self._neighbours.joined[own]))
        if not host.trust.show_products(joined) or not second.any():
            return None
        longest = find_longest(self._table[own], _LONGEST) * find_longest(
            read_rows(self._shown, np.arange(host.own), self._m), _LONGEST
        )
        blurred = host.noise.blur_products(second * joined, longest, self._reach, _name_draw(host, Step(VIEW, 0, 1)))
        return None if blurred is None else blurred[0] / joined

    def _pool(
        self, step: Step, apart: bool = False
    ) -> Generator[Instruction, None, tuple[npt.NDArray[np.float64], bool]]:
        """Pool the products of own rows, or of these and the rows that are shown."""
        own = slice(0, self._host.own)
        joined = int(np.count_nonzero(self._neighbours.joined[own]))
        views = [(self._shown[own], 1.0)] if apart else []
        products, square = self._host.trust.sum_products(
            self._table[own], views, joined, SWEEP_UNIT, SWEEP_LARGEST, self._neighbours, apart
        )
        return (yield from pool(self._host, step, products, square, self._reach))

    def store(self, peer: str, asked: Step, reply: Shown, rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
        """Store what a peer shows at the current step."""
        host = self._host
        if reply.step != asked:
            if asked.phase == SWEEP and reply.step.phase == VIEW:
                self._at_view[peer] = reply.frame
            return
        record = host.peers[peer]
        if asked.phase == PLACE:
            record.products = reply.products
            self._see(rows, reply.strengths)
            write_rows(self._shown, rows, normalise_rows(vectors[:, 0, 0]))
            self._seen[rows] = True
            return
        record.started |= len(rows) > 0 and not record.distrust
        if asked.phase == AFFINITY:
            record.sum = reply.sum
            if asked.level == 0:
                self._see(rows, reply.strengths)
            elif asked.level == _OF_SHARES and host.terms.lock_step:
                self._shares[rows] = reply.strengths
            self._seen[rows] = True
        elif asked.phase == VIEW and 0 < asked.number <= STEPS:
            if self._filtering is not None:
                self._filtering.store(peer, reply, rows, vectors)
        elif asked.level == 1:
            record.products = reply.products
        else:
            own = read_rows(self._shown, np.arange(host.own), self._m)
            if asked.number == 0 and asked.phase == SWEEP:  # some hosts have old rows, some have not
                own = np.ones((1, self._m), np.float32)
            bounded = host.trust.bound_rows(vectors[:, 0, 0], own)
            if host.influence is not None:
                bounded = host.influence.shorten(rows, bounded, np.median(np.linalg.norm(own, axis=1)))
            write_rows(self._shown, rows, bounded)
            self._seen[rows] = True

    def _see(self, rows: Integers, strengths: npt.NDArray[np.float64]) -> None:
        arcs = self._host.arcs
        bounded = self._host.trust.bound_strengths(strengths, arcs.known_strengths[rows], arcs.largest_weights[rows])
        arcs.see(rows, bounded)


def _trim(host: MessageHost, products: Products) -> Products:
    """Return products without the columns of padding."""
    m, width = host.terms.settings.dimensions, host.tables[0].shape[1]
    used = np.flatnonzero(np.arange(len(products.sums)) % width < m)
    return replace(products, sums=products.sums[np.ix_(used, used)])


def _find_parts(host: MessageHost, columns: int) -> dict[str, Products]:
    """Return the products of so many columns that trusted peers have shown at this step."""
    shown = {name: peer.products for name, peer in host.peers.items() if not peer.distrust}
    return {name: part for name, part in shown.items() if part is not None and len(part.sums) == columns}


def pool(
    host: MessageHost, step: Step, own: Products, square: float, reach: float = 0.0
) -> Generator[Instruction, None, tuple[npt.NDArray[np.float64], bool]]:
    """Show the products of own rows, whose columns are padded, and return the second moment of all rows.

    Return also whether it may be shown to peers: that of own rows alone may not, if these are few. `square` is the
    largest product of two rows, and one edge can move rows by a share of `reach`.
    """
    m, width = host.terms.settings.dimensions, host.tables[0].shape[1]
    used = np.flatnonzero(np.arange(len(own.sums)) % width < m)
    trimmed, cost = _trim(host, own), 0.0
    # a host that nobody sees needs no noise, and may show nothing of it later
    shows_own = host.trust.show_products(trimmed.size) and (bool(host.peers.links) or host.terms.lock_step)
    sums = host.publisher.sums
    if shows_own and step.phase == JOIN and sums.joined is not None and sums.is_closed(host.neighbourhood):
        trimmed = sums.joined  # no difference is to show the vector of a node that is gone
    elif shows_own and not host.terms.lock_step:
        blurred = _blur_products(host, step, trimmed, square, reach)
        shows_own, (trimmed, cost) = blurred is not None, blurred or (trimmed, 0.0)
        if step.phase == JOIN and shows_own:
            sums.joined, sums.joins = trimmed, sums.joins + 1
    host.peers.clear_sums()
    published = Published(step, host.version, host.find_strengths(), products=trimmed if shows_own else None, cost=cost)
    host.publisher.publish(published)
    yield Ask(step, patient=True)
    parts = _find_parts(host, len(used))
    chosen = host.trust.choose_products(parts, trimmed)
    for name in parts.keys() - chosen.keys():
        if host.trust.tells_of_sums(trimmed.size, parts[name].size):
            host.peers[name].alarms["sums"] += 1
    parts = chosen
    if not parts or shows_own:
        parts[host.name] = trimmed
    pooled, may_be_shown = host.trust.pool_products(parts), shows_own or host.name not in parts
    if step.phase == JOIN and may_be_shown and not shows_own:  # peers may have no others that show products
        size = sum(part.size for part in parts.values())
        relayed = host.trust.describe_stretch(size, pooled)
        host.publisher.publish(Published(step, host.version, host.find_strengths(), products=relayed))
    second = np.zeros(own.sums.shape)
    second[np.ix_(used, used)] = pooled
    return second, may_be_shown


def _blur_products(
    host: MessageHost, step: Step, own: Products, square: float, reach: float
) -> tuple[Products, float] | None:
    """Return own products with noise, and the cost; None if the budget is spent."""
    if host.noise.is_off:
        return own, 0.0
    blurred = host.noise.blur_products(own.sums.astype(np.float64) * own.unit, square, reach, _name_draw(host, step))
    if blurred is None:
        return None
    sums, cost = blurred
    if step.phase != VIEW:  # noise can leave negative directions, which no rows have
        sums = make_positive(sums)
    return round_products(own.size, (sums + sums.T) / 2.0), cost


def _name_draw(host: MessageHost, step: Step) -> int:
    """Return a number for the noise of a step, another for each version of the vectors."""
    return (host.version << 20) + (step.phase << 16) + (step.number << 2) + step.level


def join(host: MessageHost, table: Table, view: ShownRows, neighbours: Neighbours) -> Iterator[Instruction]:
    """Join own vectors, (own, padded m), with the spectral view, in place but for norms.

    The definition is `kernels.reference.join`.
    """
    settings, joined = host.terms.settings, neighbours.joined[: host.own]
    table[~joined] = 0.0
    ones = joined.astype(np.float64)
    resize(table, neighbours, ones)
    views = [(view, host.trust.view_weight)]
    counted, summed = joined, table
    cohort = None if host.terms.lock_step else host.publisher.sums.find_cohort(host.neighbourhood)
    if cohort is not None and len(cohort) < host.own:  # nodes that have come since are in no sum of this frame
        counted, summed = np.zeros_like(joined), np.zeros_like(table)
        counted[cohort], summed[cohort] = joined[cohort], table[cohort]
        aside = np.zeros_like(view)
        aside[cohort] = view[cohort]
        views = [(aside, host.trust.view_weight)]
    own, square = host.trust.sum_products(summed, views, int(np.count_nonzero(counted)), UNIT, LARGEST, neighbours)
    views = [(view, host.trust.view_weight)]
    second, _ = yield from pool(host, Step(JOIN, 0), own, square)
    matrix, common = spectral.find_joint(second, 1 + len(views), settings.dimensions)
    spectral.multiply(table, views, matrix, neighbours)
    resize(table, neighbours, ones)
    sizes = host.find_sizes()
    more = max(
        1.0, host.count_network() / max(1, sizes.nodes)
    )  # of the network, whose size a small host must not take for its own
    joined_nodes = round(sizes.joined * more)
    size = find_common(round(sizes.arcs * more), joined_nodes)
    table[:, : settings.dimensions] += (size * common).astype(np.float32)
