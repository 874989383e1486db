"""The CPU engine for rounds by messages: threads of this process, nodes moved in place."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import prepare_arcs
from manela.engines.neighbours import Neighbours, allocate_shown
from manela.engines.smoothing import smooth
from manela.engines.start import measure_spread, start
from manela.engines.state import State
from manela.engines.threads import Integers, Threads
from manela.graph import Graph
from manela.kernels import messages as kernels
from manela.kernels import moments
from manela.kernels.half import from_half
from manela.kernels.layout import LANES, Table
from manela.kernels.reference import BLOCKS
from manela.randomness import NEGATIVES, ROUNDS, derive, derive_key, scale_to
from manela.schedule import GROWN, Schedule
from manela.settings import Settings

_NODES_AT_ONCE = 1 << 17
"""Nodes whose iterations are counted and moved together; more take more room beside the vectors."""
_PAIRS_OF_TRIAL = 400_000
"""Update pairs between two looks at the clock while speed is measured; more measure longer than was asked for."""


class MessageEngine:
    """Moves a state through rounds by messages; `stop` may be called from any thread.

    Nodes move in place: others read what they showed when the round began, which is kept in half precision beside the
    vectors. So a round that has begun is finished before a stop counts, unless its result is to be thrown away.

    Attributes
    ----------
    name : str
    state : State
    updates : array of int, shape (n,)
        Update pairs that each node has made with this engine.
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self.name, self._graph, self._settings = "cpu", graph, settings
        self._hops = len(settings.targets_by_hop)
        self._threads = Threads(settings.threads)
        self.arcs = prepare_arcs(graph)
        self._neighbours = Neighbours.of(graph, self.arcs, self._hops, self._threads)
        self.state = state = state or start(graph, settings, lambda: self._neighbours)
        self._targets = np.repeat(np.arange(self._hops), settings.targets_by_hop).astype(np.int64)
        self._amount = settings.negatives * len(self._targets)
        self._own_shares = self._neighbours.find_own_shares()
        size = len(state.tables[0])
        self._shown = [allocate_shown(self._hops * size, state.dimensions) for _ in state.tables]
        self._keys = derive_key(settings.seed, ROUNDS), derive_key(settings.seed, NEGATIVES)
        self._stopped = False
        self._abandoned = np.zeros(1, dtype=np.uint8)
        self.updates = np.zeros(size, dtype=np.int64)

    def __enter__(self) -> MessageEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def stop(self, *, keep: bool = True) -> None:
        """End after the round that is being computed; or at once, if what it has moved is not kept."""
        self._stopped = True
        if not keep:
            self._abandoned[0] = 1

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped before, and then nothing has moved."""
        if self._stopped:
            return False
        number, pairs = self.state.round, 0
        self._show()
        negatives = self._draw_negatives(number, schedule)
        for first in range(0, len(self.updates), _NODES_AT_ONCE):
            some = slice(first, first + _NODES_AT_ONCE)
            nodes, made = self._move(some, schedule.counts(number, some), number, schedule.rate(number), negatives)
            if self._abandoned[0]:
                return False
            self.updates[nodes] += made
            pairs += int(made.sum())
        self.state.round += 1
        self.state.pairs += pairs
        return True

    def has_grown(self) -> bool:
        """Whether the vectors lie far enough apart for the learning rate to fall."""
        return measure_spread(self.state.tables[0], self._neighbours) >= GROWN

    @property
    def pairs(self) -> int:
        """Update pairs made, with those that the state began with."""
        return self.state.pairs

    def settle(self) -> None:
        """Make sure of the rounds that were done; here they always are."""

    def smooth(self) -> None:
        """Pass the vectors through the filter of the network; no rounds follow."""
        self._shown, self._own_shares = [], None  # smoothing needs the room
        smooth(self.state.tables[0], self._neighbours, self._graph.strengths)

    def collect(self) -> None:
        """Bring the state up to date; here it always is."""

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows of a table as they are now, shape (len(rows), m)."""
        return self.state.rows(table, rows)

    def is_finite(self) -> bool:
        """Whether all vectors are."""
        return self.state.is_finite()

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Update pairs a second, those with dropped targets too, tried for about this long; moves nothing."""
        self._show()
        negatives = self._draw_negatives(0, schedule)
        one = slice(0, 1)
        self._move(one, np.ones(1, dtype=np.int64), 0, 0.0, negatives)  # compiles
        begun = time.perf_counter()
        self._show()
        self._draw_negatives(0, schedule)
        preparing = time.perf_counter() - begun
        a_round = max(1, int(schedule.counts(0).sum()) * len(self._targets))
        size = len(self.updates)
        step = max(1, size * _PAIRS_OF_TRIAL // a_round)
        pairs = first = 0
        begun, elapsed = time.perf_counter(), 0.0
        while elapsed < seconds and not self._stopped:
            some = slice(first, first + step)
            counts = schedule.counts(0, some)
            self._move(some, counts, 0, 0.0, negatives)
            pairs += int(counts.sum()) * len(self._targets)
            first = first + step if first + step < size else 0
            elapsed = time.perf_counter() - begun
        return max(1.0, a_round / (preparing + a_round * elapsed / max(1, pairs)))

    def _show(self) -> None:
        """Have all agents show themselves as they are now."""
        for table, shown in zip(self.state.tables, self._shown, strict=True):
            self._neighbours.show(table, shown, self._hops)

    def _move(
        self, some: slice, counts: Integers, number: int, rate: float, negatives: list[tuple[Table, Table]]
    ) -> tuple[Integers, Integers]:
        """Move those of some nodes that have iterations; returns them, and the update pairs they made."""
        nodes = np.flatnonzero(counts)
        # those with most iterations first: nodes of a tile then have as many, and long ones are not left to the end
        nodes = nodes[np.argsort(-counts[nodes], kind="stable")]
        counts, nodes = counts[nodes], nodes + some.start
        made = np.zeros(len(nodes), dtype=np.int64)
        key = np.uint64(derive(self._keys[0], number))
        pieces = self._threads.cut(counts)
        for own, table in enumerate(self.state.tables):

            def move(first: int, last: int, own: int = own, table: Table = table) -> None:
                kernels.advance(
                    nodes[first:last], counts[first:last], table, self._shown[len(self._shown) - 1 - own],
                    *negatives[own], self.arcs, self._own_shares, self._neighbours.scales, self._targets, self._amount,
                    key, np.float32(rate), made[first:last], self._abandoned,
                )  # fmt: skip

            self._threads.share(move, pieces)
        return nodes, made

    def _draw_negatives(self, number: int, schedule: Schedule) -> list[tuple[Table, Table]]:
        """For each table the common negatives of a round, (blocks, amount, m), and the same transposed and padded."""
        amount, size = self._amount, len(self.updates)
        blocks = min(BLOCKS, schedule.most_iterations)
        key = derive(self._keys[1], number)
        keys = derive(derive(key, np.arange(blocks))[:, None], np.arange(amount))
        drawn = []
        for shown in reversed(self._shown):
            if self._settings.negative_source == "nodes":
                negatives = _widen(shown[scale_to(keys, size).astype(np.int64)])
            else:
                negatives = moments.draw(self._measure_moments(shown[:size]), keys.reshape(-1))
                negatives = negatives.reshape(blocks, amount, negatives.shape[1])
            transposed = np.zeros((blocks, negatives.shape[2], max(LANES, -(-amount // LANES) * LANES)), np.float32)
            transposed[:, :, :amount] = negatives.transpose(0, 2, 1)
            drawn.append((negatives, transposed))
        return drawn

    def _measure_moments(self, shown: npt.NDArray[np.generic]) -> moments.Moments:
        parts = []
        for first in range(0, len(shown), moments.STEP):
            parts.append(moments.measure(_widen(shown[first : first + moments.STEP])))
        return moments.add(parts)


def _widen(rows: npt.NDArray[np.generic]) -> Table:
    """Rows that are shown, in single precision."""
    widened: Table = from_half(rows.view(np.float16)) if rows.dtype == np.uint16 else rows.astype(np.float32)
    return widened
