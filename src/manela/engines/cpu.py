"""The CPU engine for rounds by walks: threads of this process."""

from __future__ import annotations

import numpy as np

from manela.engines.start import start
from manela.engines.state import State
from manela.engines.threaded import ThreadedEngine
from manela.engines.walk_rounds import WalkRounds
from manela.graph import Graph
from manela.schedule import Schedule
from manela.settings import Settings


class CpuEngine(ThreadedEngine):
    """Moves a state through the rounds; `stop` may be called from any thread and ends a round unfinished.

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
