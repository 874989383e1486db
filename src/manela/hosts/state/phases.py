"""The phases before and after the rounds of a host: a start by means, and smoothing, with the join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.neighbours import Neighbours, allocate_shown
from manela.engines.rounds.smoothing import find_sizes, resize, scale_sizes
from manela.hosts.state.arcs import read_rows, write_rows
from manela.hosts.state.filtering import Filtering
from manela.hosts.state.frames import find_majority
from manela.hosts.state.instructions import Ask, Instruction
from manela.hosts.state.messages import BY_SWEEPS, JOIN, SMOOTH, START, Integers, Shown, Step
from manela.hosts.state.noise import Kind
from manela.hosts.state.publishing import Published
from manela.hosts.state.spectral import join
from manela.kernels.cpu import messages, rows
from manela.kernels.layout import Table, normalise_rows
from manela.kernels.moments import UNIT
from manela.kernels.randomness import VECTORS, draw_vectors
from manela.kernels.reference import MIDDLE

if TYPE_CHECKING:
    from manela.hosts.state.rounds import MessageHost


_SWEEPS = 4
"""Sweeps of a start, of which the last two are added; more reach further and blur what is near."""
_FULL_DEGREE = 64.0
"""Mean degree from which vectors start with norm 1, as a mean over so many is reliable; larger starts smaller."""
_REACH = 0.8
"""How far a row of norm 1 more moves a mean, over its share; opposite rows, which are rare, move it by up to 2."""
_LEAST_SIZE = 0.03
"""Norm of the first vectors on the sparsest networks; larger keeps the noise in them."""


def choose_size(mean_degree: float) -> float:
    """Return the norm of the first vectors (ρ), given the mean degree of the network.

    Examples
    --------
    >>> choose_size(4), choose_size(32), choose_size(500)
    (0.03, 0.25, 1.0)
    """
    return min(1.0, max(_LEAST_SIZE, (mean_degree / _FULL_DEGREE) ** 2))


class Sweeps:
    """Turns random vectors into first vectors by sweeps in which each node takes the mean of its neighbours.

    A sweep is `show`, `average` and `center`; `finish` comes after the last one. `neighbours` may be changed between
    two steps; `shown`, (n, padded m), is what nodes show to each other in a sweep, and `lengths`, (n,), are those of
    the last means.
    """

    def __init__(self, table: Table, neighbours: Neighbours, dimensions: int) -> None:
        self.neighbours, self._table = neighbours, table
        self.shown = allocate_shown(len(table), dimensions)
        self.lengths = np.zeros(len(table), np.float32)

    def show(self, own: slice | None = None) -> None:
        """Copy the vectors of `own` nodes, all by default, to `shown`."""
        self.neighbours.show(self._table, self.shown, own)

    def average(self) -> None:
        """Set each vector to the mean of what its neighbours show, with norm 1."""
        neighbours, ones = self.neighbours, self.neighbours.joined.astype(np.float64)
        neighbours.average(self.shown, self._table, neighbours.scales[0])
        self.lengths = np.linalg.norm(self._table, axis=1)
        self._share(lambda first, last: rows.resize(self._table, ones, first, last))

    def center(self, total: npt.NDArray[np.int64], count: int) -> None:
        """Subtract the mean of all vectors, total/count with the total of `sum_rows`, and scale to norm 1."""
        scale, ones = self.neighbours.scales[0], self.neighbours.joined.astype(np.float64)
        mean = find_mean(total, count)

        def center(first: int, last: int) -> None:
            rows.center(self._table, scale, mean, first, last)
            rows.resize(self._table, ones, first, last)

        self._share(center)

    def finish(self, size: float) -> None:
        """Add the vectors of the last two sweeps, and scale them to this norm."""
        sizes = self.neighbours.joined.astype(np.float64) * size

        def finish(first: int, last: int) -> None:
            messages.add_shown(self.shown, self._table, first, last)
            rows.resize(self._table, sizes, first, last)

        self._share(finish)

    def _share(self, work: Callable[[int, int], None]) -> None:
        self.neighbours.threads.share(work, self.neighbours.borders)


def find_mean(total: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.float32]:
    """Return the mean of so many vectors with this total."""
    return (total / count * UNIT).astype(np.float32)


class StartPhase:
    """The sweeps of one start by means, and what peers have shown of theirs.

    `heeds_others` is whether it matters that peers are in a newer start.
    """

    def __init__(self, host: MessageHost, heeds_others: bool = True) -> None:
        self._host, self._heeds_others = host, heeds_others
        self.sweeps = Sweeps(host.tables[0], host.arcs.neighbours, host.terms.settings.dimensions)

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of the start."""
        host, sweeps, settings = self._host, self.sweeps, self._host.terms.settings
        self._begin()
        own = host.tables[0][: host.own, : settings.dimensions]
        edge: npt.NDArray[np.float32] | None = host.publisher.coarsen(own)
        cost = 0.0
        for number in range(_SWEEPS):
            sweeps.show(slice(0, host.own))
            host.publisher.trace_own(
                Step(START, number), read_rows(sweeps.shown, np.arange(host.own), settings.dimensions)
            )
            host.publisher.publish_step(Step(START, number), edge, cost)
            yield Ask(host.step, patient=True)
            host.update_neighbours()
            sweeps.neighbours = host.arcs.neighbours
            yield host.will_compute(host.step, "average", sweeps.average)
            edge, cost = self._blur(Step(START, number))
            sums = host.noise.blur_sums(host.sum_own_rows(), (host.version << 8) + number)
            host.peers.clear_sums()
            host.publisher.publish(Published(Step(START, number, 1), host.version, host.find_strengths(), sums=sums))
            yield Ask(host.step, patient=True)
            pooled = host.trust.pool_sums(sums, host.peers.sums, host.find_sizes_of_peers())
            total = np.zeros(host.tables[0].shape[1], np.int64)
            total[: settings.dimensions] = pooled.total
            sweeps.center(total, max(1, pooled.count))
            if edge is not None:
                mean = find_mean(total, max(1, pooled.count))
                edge = normalise_rows(edge - mean[: settings.dimensions])
        sweeps.finish(choose_size(host.find_degree()))
        host.arcs.forget(slice(host.own, None))  # peers have sent sweeps so far, but no vectors
        empty = ~host.arcs.neighbours.joined[: host.own] | ~host.tables[0][: host.own].any(axis=1)
        random = np.empty((np.count_nonzero(empty), settings.dimensions), dtype=np.float32)
        draw_vectors(settings.seed, host.numbers[empty], random, VECTORS)
        host.tables[0][: host.own][empty, : settings.dimensions] = random
        if self._heeds_others:
            self._heed_others()

    def _blur(self, step: Step) -> tuple[npt.NDArray[np.float32] | None, float]:
        """Return what peers are shown of the means of this sweep, with norm 1, and its cost."""
        host, edge = self._host, self._host.edge_rows
        means = host.tables[0][edge, : host.terms.settings.dimensions] * self.sweeps.lengths[edge, None]
        reach = _REACH * host.arcs.find_largest_shares()[edge]
        blurred = host.noise.blur(means, reach, Kind.ROWS, step, host.version, host.find_degree())
        return (None, 0.0) if blurred is None else (normalise_rows(blurred[0]), blurred[1])

    def _begin(self) -> None:
        """Begin with the vectors that the start continues, if it does, in place of random ones."""
        host, m = self._host, self._host.terms.settings.dimensions
        if host.frames.is_continued:
            rows, old = host.find_old()
            host.tables[0][: host.own] = 0.0
            host.tables[0][rows, :m] = old * np.float32(1.0 / np.sqrt(12 * m))

    def _heed_others(self) -> None:
        """Take on the frame of those whose vectors this start has begun from, or want a newer start with them."""
        frames = self._host.frames
        majority = find_majority(frames.past, self._host.peers.links)
        if majority is not None and majority.generation < BY_SWEEPS:
            frames.now = majority
            return
        for frame in frames.past.values():
            # a federation with a view is joined in its generation; others had better start once more, together
            frames.hear(frame.generation + (frame.generation < BY_SWEEPS))

    def store(self, peer: str, asked: Step, reply: Shown, rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
        """Store what a peer shows of a sweep: rows at level 0, and the sums over its rows at level 1."""
        host = self._host
        if asked.level == 1:
            if reply.sums is not None and reply.step == asked:
                host.peers[peer].sums = reply.sums
            return
        sweep = vectors[:, 0, 0]
        # enforce the norm that honest rows have: that of random vectors in sweep 0, and 1 afterwards
        lengths = np.sqrt((sweep.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
        sweep = np.divide(sweep, lengths, out=np.zeros_like(sweep), where=lengths > 0, casting="same_kind")
        sweep *= np.float32(1.0 if asked.number > 0 else 1.0 / np.sqrt(12 * sweep.shape[1]))
        write_rows(self.sweeps.shown, rows, sweep)
        host.arcs.see(rows)


class SmoothingPhase:
    """What follows the rounds: the steps of the filter, and the join with the spectral view."""

    vectors: npt.NDArray[np.float32]  # (n, m): the final vectors of own nodes, once the script has ended

    def __init__(self, host: MessageHost) -> None:
        self._host = host
        self.whole = np.ones(host.own, bool)  # (n,): which of them were smoothed with all their neighbours
        self._filtering: Filtering | None = None

    def script(self) -> Iterator[Instruction]:
        """Yield the instructions of smoothing, and of the join."""
        host, settings = self._host, self._host.terms.settings
        table, neighbours = host.tables[0].copy(), host.arcs.neighbours
        if settings.smooths:
            known = None if host.terms.lock_step else self._read_remote(table.shape[1])
            self._filtering = filtering = Filtering(host, table, MIDDLE, SMOOTH, 0, host.arcs.used, known)
            yield from filtering.script()
            self.whole, neighbours = filtering.whole, filtering.neighbours
        alone = np.flatnonzero(~neighbours.joined[: host.own])
        table[alone] = host.tables[0][alone]
        if settings.has_view and host.view is not None:
            yield from join(host, table[: host.own], host.view, neighbours)
            table[alone] = host.tables[0][alone]
        self._resize(table)
        self.vectors = table[: host.own, : settings.dimensions].copy()

    def _read_remote(self, columns: int) -> Table:
        """Return the last vectors that remote nodes have shown, in their rows; zeros where there are none."""
        host, remote = self._host, np.flatnonzero(self._host.arcs.seen[self._host.own :]) + self._host.own
        known = np.zeros((host.known, columns), np.float32)
        known[remote] = host.read_vectors(remote, columns)
        return known

    def store(self, peer: str, asked: Step, reply: Shown, rows: Integers, vectors: npt.NDArray[np.float32]) -> None:
        """Store what a peer shows at the current step."""
        if asked.phase == JOIN:
            self._host.peers[peer].products = reply.products if reply.step == asked else None
        elif self._filtering is not None:
            self._filtering.store(peer, reply, rows, vectors)

    def _resize(self, table: Table) -> None:
        """Give rows norms in proportion to degree^0.2, with a mean over this host's nodes, or all in lock-step."""
        host = self._host
        sizes = find_sizes(host.arcs.neighbours)
        mean = float(sizes.sum()) / max(1, int(np.count_nonzero(host.arcs.neighbours.joined)))
        if host.terms.lock_step:
            totals = host.total_of_all()
            mean = totals.sizes[0] / totals.joined
        resize(table, host.arcs.neighbours, scale_sizes(sizes, mean))
