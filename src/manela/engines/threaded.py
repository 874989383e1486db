"""ThreadedEngine: what the CPU engines of both editions share."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.arcs import prepare_arcs
from manela.engines.message_rounds import MessageRounds
from manela.engines.neighbours import Neighbours
from manela.engines.smoothing import smooth
from manela.engines.state import State
from manela.engines.walk_rounds import WalkRounds
from manela.kernels.layout import Table
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings
from manela.system.threads import Closable, Threads


class ThreadedEngine(Closable):
    """An engine in the threads of this process; each edition adds its state, its rounds and how to stop them.

    Attributes
    ----------
    name : str
    state : State
    """

    state: State
    _rounds: MessageRounds | WalkRounds

    def __init__(self, graph: Graph, settings: Settings, hops: int) -> None:
        self.name, self._graph, self._hops = "cpu", graph, hops
        self._threads = Threads(settings.threads)
        self.arcs = prepare_arcs(graph)

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

    def settle(self) -> None:
        """Wait for rounds that are still running; threads of this process leave none."""

    def smooth(self) -> None:
        """Pass the vectors through the filter of the network; no rounds follow."""
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
