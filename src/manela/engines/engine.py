"""Engine: what the loop over rounds asks of whoever runs them."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import Arcs
from manela.engines.state import State
from manela.kernels.layout import Table
from manela.schedule import Schedule


class Engine(Protocol):
    """Moves a state through the rounds; `stop` may be called from any thread.

    An engine that is given no state begins one, as the settings say.

    Attributes
    ----------
    name : str
    state : State
        Its round is right at all times, its tables and pairs after `collect`.
    arcs : Arcs
        Whom walks can step to.
    """

    name: str
    state: State
    arcs: Arcs

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Update pairs that each node has made with this engine."""
        ...

    @property
    def pairs(self) -> int:
        """Update pairs made, with those that the state began with."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object, /) -> None: ...

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; False if it was stopped, and then it does not count."""
        ...

    def stop(self, *, keep: bool = True) -> None:
        """End the round that is being computed, or after it; `keep` is whether the state is used after that."""
        ...

    def has_grown(self) -> bool:
        """Whether the vectors lie far enough apart for the learning rate to fall; by walks it always does."""
        ...

    def settle(self) -> None:
        """Make sure of the rounds that were done; where machines were lost, the state may be of an earlier one then."""
        ...

    def smooth(self) -> None:
        """Pass the vectors through the filter of the network; no rounds follow."""
        ...

    def collect(self) -> None:
        """Bring the state up to date."""
        ...

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Some rows of a table as they are now, shape (len(rows), m)."""
        ...

    def is_finite(self) -> bool:
        """Whether all vectors are."""
        ...

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Update pairs a second, tried for about this long; moves nothing."""
        ...
