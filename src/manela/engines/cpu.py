"""The CPU engine for walk rounds, on threads of this process."""

from __future__ import annotations

import numpy as np

from manela.data.graph import Graph
from manela.engines.start import start
from manela.engines.state import State
from manela.engines.threaded import ThreadedEngine
from manela.engines.walk_rounds import WalkRounds
from manela.settings.schedule import Schedule
from manela.settings.settings import Settings


class CpuEngine(ThreadedEngine):
    """Runs walk rounds on a state; `stop` may be called from any thread and discards the unfinished round.

    Attributes
    ----------
    name : str
    state : State
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        super().__init__(graph, settings, hops=1)
        self.state = state or start(graph, settings, lambda: self._neighbours)
        self._rounds: WalkRounds = WalkRounds(self.arcs, settings, self.state, self._threads)

    def stop(self, *, keep: bool = True) -> None:  # noqa: ARG002
        """Stop the current round at once and discard it."""
        self._rounds.stop()

    def has_grown(self) -> bool:
        """Return whether the learning rate may fall; with walks, always."""
        return True

    def advance(self, schedule: Schedule) -> bool:
        """Run the next round; return False if it was stopped, in which case no vector has changed."""
        number, rounds = self.state.round, self._rounds
        counts = schedule.counts(number)
        nodes = np.flatnonzero(counts)
        counts = counts[nodes]
        moved, pairs = rounds.reserve(len(nodes))
        rounds.move(nodes, counts, number, schedule.rate(number), moved, pairs)
        if rounds.is_stopped:
            return False
        rounds.commit(nodes, pairs, moved)
        self.state.round += 1
        self.state.pairs += int(pairs.sum())
        return True
