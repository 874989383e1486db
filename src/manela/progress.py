"""The progress that a run reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """The state of a run after a round.

    Attributes
    ----------
    round, rounds : int
        Rounds done, and the total.
    pairs : int
        Update pairs since the run started or was resumed.
    seconds : float
        Running time since then.
    seconds_left : float
        Estimated time to the end at the average speed so far.
    learning_rate : float
        α of the last round.
    objective : float
        Equation 1 of the paper per update pair, estimated on a fixed sample; rises towards 0.
    """

    round: int
    rounds: int
    pairs: int
    seconds: float
    seconds_left: float
    learning_rate: float
    objective: float

    @property
    def pairs_per_second(self) -> float:
        """Average number of update pairs per second so far."""
        return self.pairs / self.seconds if self.seconds > 0 else 0.0


Reporter = Callable[[Progress], None]

DownloadReporter = Callable[[int, int], None]
"""Called with the bytes received so far and the total, which is 0 if unknown."""
