"""What a run tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where a run stands.

    Attributes
    ----------
    round, rounds : int
        Rounds done, and how many there are.
    pairs : int
        Update pairs made since the run began or was resumed.
    seconds : float
        Time since then.
    seconds_left : float
        How long the rest takes at the speed so far.
    learning_rate : float
        α of the last round.
    objective : float
        Equation 1 of the paper for each update pair, estimated on a fixed sample; grows towards 0.
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
        """Update pairs a second so far."""
        return self.pairs / self.seconds if self.seconds > 0 else 0.0


Reporter = Callable[[Progress], None]

DownloadReporter = Callable[[int, int], None]
"""Called with the bytes that have come, and with how many there are, 0 if that is not known."""
