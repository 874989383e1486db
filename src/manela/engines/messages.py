"""The CPU engine for message rounds, on threads of this process."""

from __future__ import annotations

from manela.data.graph import Graph
from manela.engines.message_rounds import MessageRounds
from manela.engines.start import measure_spread, start
from manela.engines.state import State
from manela.engines.threaded import ThreadedEngine
from manela.settings.schedule import GROWN, Schedule
from manela.settings.settings import Settings


class MessageEngine(ThreadedEngine):
    """Runs message rounds on a state; `stop` may be called from any thread.

    Vectors are updated in place, so a round that has begun is finished before the engine stops, unless the result is
    discarded.

    Attributes
    ----------
    name : str
    state : State
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        super().__init__(graph, settings, hops=len(settings.targets_by_hop))
        self.state = state or start(graph, settings, lambda: self._neighbours)
        every_row = slice(0, graph.number_of_nodes)
        self._rounds: MessageRounds = MessageRounds(self._neighbours, settings, self.state, every_row)
        self._stopped = False

    def stop(self, *, keep: bool = True) -> None:
        """Stop after the current round, or at once if the result is not kept."""
        self._stopped = True
        if not keep:
            self._rounds.abandon()

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

    def has_grown(self) -> bool:
        """Return whether the vectors are far enough apart for the learning rate to fall."""
        return measure_spread(self.state.tables[0], self._neighbours) >= GROWN

    def smooth(self) -> None:
        """Pass the vectors through the network filter; no rounds may follow."""
        self._rounds.release()  # smoothing needs the memory
        super().smooth()
