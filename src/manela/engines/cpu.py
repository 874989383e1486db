"""The CPU engine: rounds by messages, or with walks as in the paper, on threads of this process."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.rounds.messages import MessageRounds
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.smoothing import smooth
from manela.engines.rounds.start import measure_spread, start
from manela.engines.rounds.walks import WalkRounds
from manela.engines.state import State
from manela.kernels.layout import Table
from manela.settings.schedule import GROWN, Schedule
from manela.settings.settings import Settings
from manela.system.threads import Closable, Threads


class CpuEngine(Closable):
    """Runs rounds on a state, in the threads of this process; `stop` may be called from any thread.

    By messages, vectors are updated in place, so a round that has begun is finished before the engine stops, unless
    the result is discarded. With walks, the unfinished round is always discarded, and changes no vector.

    Attributes
    ----------
    name : str
    state : State
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self.name, self._graph, self._stopped = "cpu", graph, False
        self._by_walks = settings.exchange == "walks"
        self._hops = 1 if self._by_walks else len(settings.targets_by_hop)
        self._threads = Threads(settings.threads)
        self.arcs = prepare_arcs(graph)
        self.state = state or start(graph, settings, lambda: self._neighbours)
        self._rounds: MessageRounds | WalkRounds
        if self._by_walks:
            self._rounds = WalkRounds(self.arcs, settings, self.state, self._threads)
        else:
            every_row = slice(0, graph.number_of_nodes)
            self._rounds = MessageRounds(self._neighbours, settings, self.state, every_row)

    @cached_property
    def _neighbours(self) -> Neighbours:
        """The neighbours that vectors are started and smoothed with."""
        return Neighbours.of(self._graph, self.arcs, self._hops, self._threads)

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Update pairs that each node has made with this engine."""
        return self._rounds.updates

    @property
    def pairs(self) -> int:
        """Update pairs made, including those that the state began with."""
        return self.state.pairs

    def advance(self, schedule: Schedule) -> bool:
        """Run the next round; return False if the engine was stopped before it or abandoned it."""
        if self._stopped:
            return False
        self._rounds.show()
        pairs = self._rounds.advance(self.state.round, schedule)
        if self._rounds.is_abandoned:
            return False
        self.state.round += 1
        self.state.pairs += pairs
        return True

    def stop(self, *, keep: bool = True) -> None:
        """Stop after the current round by messages; at once with walks, or if the result is not kept."""
        self._stopped = True
        if self._by_walks or not keep:
            self._rounds.abandon()

    def has_grown(self) -> bool:
        """Return whether the vectors are far enough apart for the learning rate to fall; with walks, always."""
        return self._by_walks or measure_spread(self.state.tables[0], self._neighbours) >= GROWN

    def settle(self) -> None:
        """Wait for rounds that are still running; threads of this process leave none."""

    def smooth(self) -> None:
        """Pass the vectors through the filter of the network; no rounds may follow."""
        self._rounds.release()  # smoothing needs the memory
        smooth(self.state.tables[0], self._neighbours)

    def collect(self) -> None:
        """Bring the state up to date; in this process it always is."""

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Return some rows of a table as they are now, shape (len(rows), m)."""
        return self.state.rows(table, rows)

    def is_finite(self) -> bool:
        """Return whether every vector is finite."""
        return self.state.is_finite()

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Return update pairs a second, including dropped targets, tried for about this long; moves nothing."""
        return self._rounds.measure(schedule, seconds)
