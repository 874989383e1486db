"""Terms: how a host learns, including what it must agree on with its peers."""

from __future__ import annotations

from dataclasses import dataclass, field

from manela.agents.options import PeerOptions
from manela.settings.settings import Settings


@dataclass(frozen=True)
class Terms:
    """How a host learns; exchange, dimensions, hops, context vectors and lock-step must be the same at its peers.

    Attributes
    ----------
    settings : Settings
        Dimensions, window, ratios and so on; `seed` is the run's in lock-step, and a secret of this host otherwise.
    lock_step : bool
        Whether all hosts do each round together, with a result bit for bit that of the CPU engine.
    weighted : bool
        Whether steps and frequencies are proportional to edge weights.
    peers : PeerOptions
        How the host deals with its peers.
    """

    settings: Settings
    lock_step: bool = False
    weighted: bool = False
    peers: PeerOptions = field(default_factory=PeerOptions)

    @property
    def hops(self) -> int:
        """s, the number of hops."""
        return len(self.settings.targets_by_hop)

    @property
    def tables(self) -> int:
        """The number of vectors of a node: 2 with context vectors, otherwise 1."""
        return 1 + self.settings.context

    @property
    def run(self) -> str:
        """In lock-step, a text of all parameters that must be the same at every host; otherwise empty."""
        return repr(sorted(self.settings.identity().items())) + str(self.weighted) if self.lock_step else ""
