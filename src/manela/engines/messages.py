"""The CPU engine for rounds by messages: threads of this process, nodes moved in place."""

from __future__ import annotations

from manela.engines.message_rounds import MessageRounds
from manela.engines.start import measure_spread, start
from manela.engines.state import State
from manela.engines.threaded import ThreadedEngine
from manela.graph import Graph
from manela.schedule import GROWN, Schedule
from manela.settings import Settings


class MessageEngine(ThreadedEngine):
    """Moves a state through rounds by messages; `stop` may be called from any thread.

    Nodes move in place, so a round that has begun is finished before a stop counts, unless its result is to be thrown
    away.

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

    def smooth(self) -> None:
        """Pass the vectors through the filter of the network; no rounds follow."""
        self._rounds.release()  # smoothing needs the room
        super().smooth()
