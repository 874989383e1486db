"""Publications: what a host shows its peers, kept ready so that answering never waits for computing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import TermsError
from manela.hosts.state.instructions import NotReadyError
from manela.hosts.state.messages import ROUND, SMOOTH, START, Step, Sums
from manela.kernels.moments import Moments

_KEPT_STEPS = 3
"""Steps of a lock-step run kept for slower peers; more take memory, fewer would make these peers wait forever."""
_LATE_ROUNDS = 3
"""Rounds for which the steps of the start are kept for slower peers; more take memory for longer."""


@dataclass(frozen=True, eq=False)
class Published:
    """What is shown at one step of the nodes that have remote neighbours; in float16 if it is sent as such.

    Attributes
    ----------
    rows : array, shape (nodes, tables, 1, m), or None
        The rows at this step.
    means : array, shape (nodes, tables, hops − 1, m), or None
        Means over neighbours with noise, as of version `means_version`.
    moments, sums :
        Totals over all own nodes.
    """

    step: Step
    version: int
    strengths: npt.NDArray[np.float64]
    rows: npt.NDArray[Any] | None = None
    means: npt.NDArray[Any] | None = None
    means_version: int = 0
    moments: list[Moments] = field(default_factory=list)
    sums: Sums | None = None


class Publications:
    """What was published at each step that a peer may still ask for.

    Attributes
    ----------
    steps : dict
        Publications by step. It is replaced and never changed, as another thread may be reading it.
    """

    def __init__(self, lock_step: bool) -> None:
        self._lock_step = lock_step
        self.steps: dict[Step, Published] = {}

    def publish(self, published: Published, round: int) -> None:
        """Show this to peers from now on; `round` is that of the host."""
        kept = self.steps
        if self._lock_step:
            kept = dict(list(kept.items())[1 - _KEPT_STEPS :])
        elif published.step.phase == ROUND:
            late = START if round < _LATE_ROUNDS else -1
            kept = {step: earlier for step, earlier in kept.items() if step.phase == late}
        self.steps = {**kept, published.step: published}

    def find(self, step: Step, now: Step, smooths: bool) -> Published | None:
        """Return what was published at a step, or its nearest substitute, or None if there is nothing to show.

        `now` is the step that the host is at, and `smooths` whether it smooths, now or later.
        """
        steps = self.steps
        if step in steps:
            return steps[step]
        if self._lock_step:
            if step >= now:
                raise NotReadyError
            raise TermsError(f"{step} is over, this host is at {now}")
        rounds = [published for known, published in steps.items() if known.phase == ROUND]
        if step.phase == SMOOTH and smooths:
            raise NotReadyError
        if step.phase != ROUND and step >= now and not rounds:
            raise NotReadyError
        return rounds[-1] if rounds else None
