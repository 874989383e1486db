"""What a host has published: all that its peers can be shown, so that answering never waits for computing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.agents.host import NotReadyError
from manela.agents.messages import ROUND, SMOOTH, START, Step, Sums
from manela.errors import TermsError
from manela.kernels.moments import Moments

_KEPT_STEPS = 3
"""Steps of a lock-step run that are still shown to slower peers; with fewer they would wait for ever."""
_LATE_ROUNDS = 3
"""Rounds for which the steps of the start are still shown to slower peers."""


@dataclass(frozen=True, eq=False)
class Published:
    """What peers can be shown of the nodes that have neighbours elsewhere; as halves, where they travel as such.

    Attributes
    ----------
    rows : array, shape (nodes, tables, 1, m), or None
        As they are at this step.
    means : array, shape (nodes, tables, hops − 1, m), or None
        With noise, and those of the version `means_version`.
    moments, sums :
        Of all nodes.
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
    """What was published at each step, as long as somebody may ask for it.

    Attributes
    ----------
    steps : dict
        By step. Others may be reading: it is replaced as a whole.
    """

    def __init__(self, lock_step: bool) -> None:
        self._lock_step = lock_step
        self.steps: dict[Step, Published] = {}

    def publish(self, published: Published, number: int) -> None:
        """Let peers be shown this from now on; `number` is the host's round."""
        kept = self.steps
        if self._lock_step:
            kept = dict(list(kept.items())[1 - _KEPT_STEPS :])
        elif published.step.phase == ROUND:
            late = START if number < _LATE_ROUNDS else -1
            kept = {earlier: shown for earlier, shown in kept.items() if earlier.phase == late}
        self.steps = {**kept, published.step: published}

    def find(self, step: Step, now: Step, smooths: bool) -> Published | None:
        """What was published at a step, or stands in for it; None where there is nothing that could be shown.

        `now` is where the host is, and `smooths` whether it smooths, now or later.
        """
        steps = self.steps
        if step in steps:
            return steps[step]
        if self._lock_step:
            if step >= now:
                raise NotReadyError
            raise TermsError(f"step {tuple(step)} is over, this host is at {tuple(now)}")
        rounds = [published for known, published in steps.items() if known.phase == ROUND]
        if step.phase == SMOOTH and smooths:
            raise NotReadyError
        if step.phase != ROUND and step >= now and not rounds:
            raise NotReadyError
        return rounds[-1] if rounds else None
