"""Terms: how a host learns, and what it has to agree on with its peers."""

from __future__ import annotations

from dataclasses import dataclass, field

from manela.agents.options import PeerOptions
from manela.settings import Settings


@dataclass(frozen=True)
class Terms:
    """How a host learns; exchange, dimensions, hops, context vectors and the way to go must be those of its peers.

    Attributes
    ----------
    settings : Settings
        Dimensions, window, ratios and so on; `seed` is the run's in lock-step, and this host's own secret otherwise.
    lock_step : bool
        Whether all hosts go through the rounds together, with the bits of the CPU engine.
    weighted : bool
        Whether steps and frequencies go by edge weight.
    peers : PeerOptions
        How it deals with its peers.
    """

    settings: Settings
    lock_step: bool = False
    weighted: bool = False
    peers: PeerOptions = field(default_factory=PeerOptions)

    @property
    def hops(self) -> int:
        """s."""
        return len(self.settings.targets_by_hop)

    @property
    def tables(self) -> int:
        """Vectors of a node: 2 with context vectors."""
        return 1 + self.settings.context

    @property
    def run(self) -> str:
        """In lock-step, all that must be the same at every host."""
        return repr(sorted(self.settings.identity().items())) + str(self.weighted) if self.lock_step else ""
