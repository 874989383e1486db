"""Terms: how a host learns, and what it has to agree on with its peers."""

from __future__ import annotations

from dataclasses import dataclass

from manela.settings import Settings


@dataclass(frozen=True)
class Terms:
    """How a host learns; dimensions, hops, context vectors and the way to go must be those of its peers.

    Attributes
    ----------
    settings : Settings
        Dimensions, window, ratios and so on; `seed` is the run's in lock-step, and this host's own secret otherwise.
    lock_step : bool
        Whether all hosts go through the rounds together, with the bits of the CPU engine.
    weighted : bool
        Whether steps and frequencies go by edge weight.
    half : bool
        Whether vectors may travel as float16.
    pool : int
        Random vectors that the negatives of a free-running round are drawn from.
    patience : int
        Rounds for which the vectors of a peer that is away are still used.
    largest_norm : float
        Vectors beyond are refused.
    """

    settings: Settings
    lock_step: bool = False
    weighted: bool = False
    half: bool = True
    pool: int = 2048
    patience: int = 30
    largest_norm: float = 1000.0

    @property
    def hops(self) -> int:
        """s."""
        return len(self.settings.targets_by_hop)

    @property
    def run(self) -> str:
        """In lock-step, all that must be the same at every host."""
        return repr(sorted(self.settings.identity().items())) + str(self.weighted) if self.lock_step else ""
