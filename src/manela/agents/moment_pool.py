"""MomentPool: the moments of all hosts' vectors, from which negatives are drawn."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from manela.agents.trust import Trust
from manela.kernels.moments import Moments


class MomentPool:
    """The moments of own vectors and of those of peers, for each table.

    Attributes
    ----------
    own : list of Moments
        The moments of own vectors, as peers see them.
    """

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._of_peers: dict[str, list[Moments]] = {}
        self.own: list[Moments] = []

    def measure(self, tables: Iterable[npt.NDArray[np.float32]]) -> list[Moments]:
        """Measure and return the moments of own vectors, one array of rows for each table."""
        self.own = [self._trust.measure(rows) for rows in tables]
        return self.own

    def store(self, peer: str, moments: list[Moments]) -> None:
        """Keep what a peer shows; raises MalformedError if no honest vectors have such moments."""
        for of_table in moments:
            self._trust.check_moments(of_table)
        self._of_peers[peer] = moments

    def forget(self, peer: str) -> None:
        """Drop the moments of a peer."""
        self._of_peers.pop(peer, None)

    def pool(self, sizes: Mapping[str, int], distrusted: Container[str], width: int) -> list[Moments]:
        """Return the moments of own and trusted peers' vectors together, padded to the width of a table.

        `sizes` is for how many nodes each peer counts at most.
        """
        pooled = []
        for table, own in enumerate(self.own):
            others = {peer: theirs[table] for peer, theirs in self._of_peers.items() if peer not in distrusted}
            moments = self._trust.pool_moments(own, others, sizes)
            padding = width - len(moments.total)
            products = np.pad(moments.products, ((0, padding), (0, padding)))
            pooled.append(Moments(moments.size, np.pad(moments.total, (0, padding)), products))
        return pooled
