"""The CPU engine for rounds by messages: threads of this process, nodes moved in place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import prepare_arcs
from manela.engines.message_rounds import MessageRounds
from manela.engines.neighbours import Neighbours
from manela.engines.smoothing import smooth
from manela.engines.start import measure_spread, start
from manela.engines.state import State
from manela.graph import Graph
from manela.kernels.layout import Table
from manela.schedule import GROWN, Schedule
from manela.settings import Settings
from manela.threads import Threads


class MessageEngine:
    """Moves a state through rounds by messages; `stop` may be called from any thread.

    Nodes move in place, so a round that has begun is finished before a stop counts, unless its result is to be thrown
    away.

    Attributes
    ----------
    name : str
    state : State
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self.name, self._graph = "cpu", graph
        self._threads = Threads(settings.threads)
        self.arcs = prepare_arcs(graph)
        self._neighbours = Neighbours.of(graph, self.arcs, len(settings.targets_by_hop), self._threads)
        self.state = state or start(graph, settings, lambda: self._neighbours)
        self._rounds = MessageRounds(self._neighbours, settings, self.state, slice(0, graph.number_of_nodes))
        self._stopped = False

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
            self._rounds.abandon()

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped before, or ended at once and does not count."""
        if self._stopped:
            return False
        self._rounds.show()
        pairs = self._rounds.advance(self.state.round, schedule)
        if self._rounds.is_abandoned:
            return False
        self.state.round += 1
        self.state.pairs += pairs
        return True

    def has_grown(self) -> bool:
        """Whether the vectors lie far enough apart for the learning rate to fall."""
        return measure_spread(self.state.tables[0], self._neighbours) >= GROWN

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Update pairs that each node has made with this engine."""
        return self._rounds.updates

    @property
    def pairs(self) -> int:
        """Update pairs made, with those that the state began with."""
        return self.state.pairs

    def settle(self) -> None:
        """Make sure of the rounds that were done; here they always are."""

    def smooth(self) -> None:
        """Pass the vectors through the filter of the network; no rounds follow."""
        self._rounds.release()  # smoothing needs the room
        smooth(self.state.tables[0], self._neighbours)

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
        return self._rounds.measure(schedule, seconds)
