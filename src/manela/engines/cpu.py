"""The CPU engine for rounds by walks: threads of this process."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import prepare_arcs
from manela.engines.neighbours import Neighbours
from manela.engines.smoothing import smooth
from manela.engines.start import start
from manela.engines.state import State
from manela.engines.walk_rounds import WalkRounds
from manela.graph import Graph
from manela.kernels.layout import Table
from manela.schedule import Schedule
from manela.settings import Settings
from manela.threads import Threads


class CpuEngine:
    """Moves a state through the rounds; `stop` may be called from any thread and ends a round unfinished.

    Attributes
    ----------
    name : str
    state : State
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self.name, self._graph = "cpu", graph
        self.arcs = prepare_arcs(graph)
        self._threads = Threads(settings.threads)
        self.state = state or start(graph, settings, lambda: self._neighbours)
        self._rounds = WalkRounds(self.arcs, settings, self.state, self._threads)

    @cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours.of(self._graph, self.arcs, 1, self._threads)

    def __enter__(self) -> CpuEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def stop(self, *, keep: bool = True) -> None:  # noqa: ARG002
        """End the round that is being computed, within moments; nothing of it counts."""
        self._rounds.stop()

    def has_grown(self) -> bool:
        """Whether the learning rate may fall; by walks it always does."""
        return True

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped, and then nothing has moved."""
        number, rounds = self.state.round, self._rounds
        counts = schedule.counts(number)
        nodes = np.flatnonzero(counts)
        counts = counts[nodes]
        room, made = rounds.reserve(len(nodes))
        rounds.move(nodes, counts, number, schedule.rate(number), room, made)
        if rounds.is_stopped:
            return False
        rounds.commit(nodes, made, room)
        self.state.round += 1
        self.state.pairs += int(made.sum())
        return True

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
        """Pass the vectors through the filter of the network."""
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
