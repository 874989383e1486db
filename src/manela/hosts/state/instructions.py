"""What a host wants next, as values that can be compared, printed and replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manela.hosts.state.messages import Step


class NotReadyError(Exception):
    """The host has not reached the requested step yet; ask again later."""


@dataclass(frozen=True)
class Ask:
    """Send peers the requests of `host.requests()`, and pass their replies to `host.receive`.

    If `patient`, wait for slower peers, as all hosts should be at the same step.

    Examples
    --------
    >>> str(Ask(Step(0, 3), patient=True))
    'ask for start 3, and wait'
    """

    step: Step
    patient: bool = False

    def __str__(self) -> str:
        return f"ask for {self.step}{', and wait' if self.patient else ''}"


@dataclass(frozen=True)
class Compute:
    """Call `host.compute()`, which may take a while and may run in another thread; `work` says what it does."""

    step: Step
    work: str

    def __str__(self) -> str:
        return f"{self.work} in {self.step}"


@dataclass(frozen=True)
class Commit:
    """Note that this many rounds are done: the state can be saved, and edges may change."""

    rounds: int

    def __str__(self) -> str:
        return f"commit, with {self.rounds} round{'s' * (self.rounds != 1)} done"


Instruction = Ask | Compute | Commit


@dataclass(frozen=True, eq=False)
class Relay:
    """An answer for which other peers must be asked first; pass their replies to `host.resume`."""

    requests: Mapping[str, Any]  # the request for each of these peers
