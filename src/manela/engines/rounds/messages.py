"""Rounds by messages on processors, shared by the CPU engine, the workers of a cluster, and hosts."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.neighbours import Neighbours, allocate_shown
from manela.engines.state import State
from manela.kernels import moments
from manela.kernels.cpu import messages as kernels
from manela.kernels.cpu.draws import draw_normals, factor
from manela.kernels.cpu.half import from_half
from manela.kernels.layout import LANES, Shown, Table
from manela.kernels.randomness import NEGATIVES, ROUNDS, derive, derive_key, scale_to
from manela.kernels.reference import BLOCKS
from manela.settings.budget import Sizes, count_negatives
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings
from manela.system.threads import Integers

_NODES_AT_ONCE = 1 << 17
"""Nodes that are moved together; more take more memory besides the vectors."""
_PAIRS_OF_TRIAL = 400_000
"""Update pairs between two looks at the clock in a trial; more measure for longer than requested."""


class MessageRounds:
    """Moves some nodes of a state in place, given what all nodes showed at the start of the round.

    Shown vectors are kept in half precision besides the vectors. A round is `show`, `draw_negatives` and `move`.
    `shown_nodes` are the nodes whose means are computed here, all by default; `numbers` seed the draws of each node,
    its row by default. Row h·n + v of `shown`, (hops·n, padded m), is Φ(v) for h = 0 and M^h(v) for h > 0; there is one
    for each table. `updates` are the update pairs of each node.
    """

    def __init__(
        self,
        neighbours: Neighbours,
        settings: Settings,
        state: State,
        own: slice,
        shown_nodes: Integers | None = None,
        numbers: Integers | None = None,
    ) -> None:
        self.state, self.own, self._neighbours, self._settings = state, own, neighbours, settings
        self._hops, self._shown_nodes, self._numbers = len(settings.targets_by_hop), shown_nodes, numbers
        self.targets = np.repeat(np.arange(self._hops), settings.targets_by_hop).astype(np.int64)
        self.choose_amount(Sizes.of(neighbours.arcs.indptr))
        self.own_shares = neighbours.find_own_shares(own)
        size = len(state.tables[0])
        self.shown: list[Shown] = [allocate_shown(self._hops * size, state.dimensions) for _ in state.tables]
        self._keys = derive_key(settings.seed, ROUNDS), derive_key(settings.seed, NEGATIVES)
        self._abandoned = np.zeros(1, dtype=np.uint8)
        self.updates = np.zeros(size, dtype=np.int64)

    def choose_amount(self, sizes: Sizes) -> None:
        """Take as many negatives as suit a network of these sizes; by default it is that of the neighbours."""
        self.amount = count_negatives(self._settings, sizes) * len(self.targets)

    def change_neighbours(self, neighbours: Neighbours) -> None:
        """Use these neighbours from now on; rows of the tables stay the same."""
        self._neighbours, self.own_shares = neighbours, neighbours.find_own_shares(self.own)

    def abandon(self) -> None:
        """Stop a running `move` almost at once; some nodes have then moved and others not."""
        self._abandoned[0] = 1

    @property
    def is_abandoned(self) -> bool:
        """Whether `abandon` was called, so that the vectors belong to no round."""
        return bool(self._abandoned[0])

    def release(self) -> None:
        """Free the memory that only rounds need."""
        self.shown, self.own_shares = [], None

    def show(self) -> None:
        """Publish the current vectors of the own nodes to `shown`, and compute the means."""
        self.show_own()
        self.show_means()

    def show_own(self) -> None:
        """Publish the current vectors of the own nodes to `shown`."""
        for table, shown in zip(self.state.tables, self.shown, strict=True):
            self._neighbours.show(table, shown, self.own)

    def show_means(self) -> None:
        """Compute the means that nodes show, from the vectors in `shown`."""
        for shown in self.shown:
            self._neighbours.show_means(shown, self._hops, self._shown_nodes)

    @property
    def scales(self) -> npt.NDArray[np.float64]:
        """The factors that turn sums over neighbours into means."""
        return self._neighbours.scales

    def advance(self, round: int, schedule: Schedule, measured: list[moments.Moments] | None = None) -> int:
        """Move the own nodes through a round, after `show`, and return the update pairs made."""
        negatives, pairs = self.draw_negatives(round, schedule, measured), 0
        for first in range(self.own.start, self.own.stop, _NODES_AT_ONCE):
            nodes_now = slice(first, min(self.own.stop, first + _NODES_AT_ONCE))
            nodes, made = self.move(
                nodes_now, schedule.counts(round, nodes_now), round, schedule.rate(round), negatives
            )
            if self.is_abandoned:
                return 0
            self.updates[nodes] += made
            pairs += int(made.sum())
        return pairs

    def choose_negatives(self, round: int, schedule: Schedule) -> npt.NDArray[np.uint64]:
        """Return the keys of the common negatives of a round, (blocks, amount)."""
        blocks = min(BLOCKS, schedule.most_iterations)
        key = derive(self._keys[1], round)
        return derive(derive(key, np.arange(blocks))[:, None], np.arange(self.amount))

    def find_negative_nodes(self, round: int, schedule: Schedule) -> Integers:
        """Return the nodes that are the common negatives of a round, (blocks, amount)."""
        return scale_to(self.choose_negatives(round, schedule), len(self.updates)).astype(np.int64)

    def draw_negatives(
        self, round: int, schedule: Schedule, measured: list[moments.Moments] | None = None
    ) -> list[tuple[Table, Table]]:
        """Return for each table the common negatives of a round, (blocks, amount, m), and their padded transpose.

        `measured` are the moments of all shown vectors, for each table, if they are known.
        """
        size, drawn = len(self.updates), []
        for table, shown in reversed(list(enumerate(self.shown))):
            if self._settings.negative_source == "nodes":
                negatives = _widen(shown[self.find_negative_nodes(round, schedule)])
            else:
                keys = self.choose_negatives(round, schedule)
                table_moments = measured[table] if measured else measure_moments(shown[:size])
                negatives = draw_normal(table_moments, keys.reshape(-1))
                negatives = negatives.reshape(*keys.shape, negatives.shape[1])
            columns = max(LANES, -(-self.amount // LANES) * LANES)
            transposed = np.zeros((len(negatives), negatives.shape[2], columns), np.float32)
            transposed[:, :, : self.amount] = negatives.transpose(0, 2, 1)
            drawn.append((negatives, transposed))
        return drawn

    def move(
        self, among: slice, counts: Integers, round: int, rate: float, negatives: list[tuple[Table, Table]]
    ) -> tuple[Integers, Integers]:
        """Move the nodes of a slice that have iterations; return these nodes and their update pairs."""
        nodes = np.flatnonzero(counts)
        # most iterations first: nodes of a tile then have about as many, and long ones do not come last
        nodes = nodes[np.argsort(_narrow(-counts[nodes]), kind="stable")]
        counts, nodes = counts[nodes], nodes + among.start
        made = np.zeros(len(nodes), dtype=np.int64)
        key = np.uint64(derive(self._keys[0], round))
        neighbours = self._neighbours
        pieces = neighbours.threads.cut(counts)
        for own, table in enumerate(self.state.tables):

            def move(first: int, last: int, own: int = own, table: Table = table) -> None:
                kernels.advance(
                    nodes[first:last], self._numbers, counts[first:last], table, self.shown[len(self.shown) - 1 - own],
                    *negatives[own], neighbours.arcs, self.own_shares, neighbours.scales, self.targets, self.amount,
                    key, np.float32(rate), made[first:last], self._abandoned,
                )  # fmt: skip

            neighbours.threads.share(move, pieces)
        return nodes, made

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure update pairs per second, including dropped targets, for about `seconds`; changes no vector."""
        self.show()
        negatives = self.draw_negatives(0, schedule)
        begin, end = self.own.start, self.own.stop
        if begin == end:
            return 0.0
        self.move(slice(begin, begin + 1), np.ones(1, dtype=np.int64), 0, 0.0, negatives)  # compiles
        started = time.perf_counter()
        self.show()
        self.draw_negatives(0, schedule)
        preparing = time.perf_counter() - started
        pairs_per_round = max(1, int(schedule.counts(0, self.own).sum()) * len(self.targets))
        step = max(1, (end - begin) * _PAIRS_OF_TRIAL // pairs_per_round)
        pairs, first = 0, begin
        started, elapsed = time.perf_counter(), 0.0
        while elapsed < seconds and not self.is_abandoned:
            nodes_now = slice(first, min(end, first + step))
            counts = schedule.counts(0, nodes_now)
            self.move(nodes_now, counts, 0, 0.0, negatives)
            pairs += int(counts.sum()) * len(self.targets)
            first = first + step if first + step < end else begin
            elapsed = time.perf_counter() - started
        return max(1.0, pairs_per_round / (preparing + pairs_per_round * elapsed / max(1, pairs)))


def _narrow(counts: Integers) -> npt.NDArray[np.integer]:
    """Convert numbers to 16 bits if they fit, as these sort much faster."""
    return counts.astype(np.int16) if len(counts) and -counts.min() < 2**15 else counts


def draw_normal(measured: moments.Moments, keys: npt.NDArray[np.uint64]) -> Table:
    """Draw a vector for each key from the normal distribution with these moments, with the bits of `moments.draw`."""
    mean, covariance = moments.center(measured)
    lower = np.zeros_like(covariance)
    factor(covariance, moments.LEAST_VARIANCE / moments.UNIT**2, lower)
    vectors = np.empty((len(keys), len(mean)), dtype=np.float32)
    draw_normals(mean * moments.UNIT, np.ascontiguousarray(lower.T) * moments.UNIT, keys, vectors)
    return vectors


def measure_moments(shown: npt.NDArray[np.generic]) -> moments.Moments:
    """Return the moments of shown vectors."""
    parts = [moments.measure(np.zeros((0, shown.shape[1])))]
    for first in range(0, len(shown), moments.STEP):
        parts.append(moments.measure(_widen(shown[first : first + moments.STEP])))
    return moments.add(parts)


def _widen(rows: npt.NDArray[np.generic]) -> Table:
    widened: Table = from_half(rows.view(np.float16)) if rows.dtype == np.uint16 else rows.astype(np.float32)
    return widened
