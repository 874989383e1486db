"""Engine: the interface through which the training loop runs rounds."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from manela.engines.arcs import Arcs
from manela.engines.state import State
from manela.kernels.layout import Table
from manela.settings.schedule import Schedule


class Engine(Protocol):
    """Moves a state through the rounds; `stop` may be called from any thread.

    An engine without a given state creates one, as the settings require.

    Attributes
    ----------
    name : str
    state : State
        Its round is always up to date, its tables and pairs after `collect`.
    arcs : Arcs
        The arcs that walks follow.
    """

    name: str
    state: State
    arcs: Arcs

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Number of update pairs of each node with this engine."""
        ...

    @property
    def pairs(self) -> int:
        """Number of update pairs made, including those of the initial state."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object, /) -> None: ...

    def advance(self, schedule: Schedule) -> bool:
        """Do the next round; return False if it was stopped, in which case it does not count."""
        ...

    def stop(self, *, keep: bool = True) -> None:
        """Stop during or after the current round; `keep` says whether the state is used afterwards."""
        ...

    def has_grown(self) -> bool:
        """Whether vectors lie far enough apart for the learning rate to fall; always True with walks."""
        ...

    def settle(self) -> None:
        """Secure the rounds done so far; if machines were lost, this may set the state back to an earlier round."""
        ...

    def smooth(self) -> None:
        """Smooth the vectors over the network, after the last round."""
        ...

    def collect(self) -> None:
        """Bring the state up to date."""
        ...

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Return the current vectors of some rows of a table, shape (len(rows), m)."""
        ...

    def is_finite(self) -> bool:
        """Whether all vectors are finite."""
        ...

    def measure(self, schedule: Schedule, seconds: float) -> float:
        """Measure update pairs per second for about `seconds`; changes no vector."""
        ...
