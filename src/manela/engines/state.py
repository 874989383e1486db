"""State: the vectors of a run between two rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manela.kernels.layout import Table, allocate
from manela.randomness import CONTEXTS, VECTORS, draw_vectors


@dataclass
class State:
    """Vectors as they stand after `round` rounds.

    Attributes
    ----------
    tables : list of arrays of float32, shape (n, padded m)
        Φ, and Ψ where the run keeps context vectors. Columns from m on are zero.
    dimensions : int
        m.
    round : int
        Rounds done.
    pairs : int
        Update pairs made.
    """

    tables: list[Table]
    dimensions: int
    round: int = 0
    pairs: int = 0

    @property
    def vectors(self) -> Table:
        """Φ, shape (n, m)."""
        return self.tables[0][:, : self.dimensions]

    @property
    def context(self) -> Table | None:
        """Ψ, shape (n, m)."""
        return self.tables[1][:, : self.dimensions] if len(self.tables) > 1 else None


def begin(nodes: int, dimensions: int, context: bool, seed: int) -> State:
    """The state before the first round: every vector uniform in ±0.5/m."""
    state = State([allocate(nodes, dimensions) for _ in range(1 + context)], dimensions)
    for table, purpose in zip(state.tables, (VECTORS, CONTEXTS), strict=False):
        draw_vectors(seed, np.arange(nodes), table[:, :dimensions], purpose)
    return state
