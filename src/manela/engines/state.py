"""State: the vectors of a run between two rounds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manela.kernels.layout import Shown, Table, allocate
from manela.kernels.randomness import CONTEXTS, VECTORS, draw_vectors
from manela.settings.settings import Settings

_MANY = 1 << 22
"""Fewest numbers for which several threads draw; larger keeps more networks on one thread."""
_CHECKED = 65536
"""Rows that are checked at a time; more take more memory."""


class Sweeping(NamedTuple):
    """How far the sweeps of the spectral view have come."""

    number: int = 0  # sweeps done
    energy: float = 0.0  # the mean square of rows after the last one, per coordinate
    ended: bool = False  # whether it was the last


@dataclass
class State:
    """The vectors after `round` rounds, or during the sweeps before them."""

    tables: list[Table]  # (n, padded m): Φ, and Ψ if the run keeps context vectors. Columns from m on are zero
    dimensions: int  # m
    round: int = 0  # rounds done
    pairs: int = 0  # update pairs made
    falls_at: int | None = None  # the round from which the learning rate falls; None while it is unknown
    sweeping: Sweeping | None = None  # while the first table holds the rows of sweeps rather than vectors
    swept: bool = False  # whether the sweeps are done
    # (n, padded m): the spectral view, and what was learned with context vectors, which are joined with the vectors
    view: Shown | None = None
    aside: Shown | None = None

    @property
    def vectors(self) -> Table:
        """Φ, shape (n, m)."""
        return self.tables[0][:, : self.dimensions]

    @property
    def context(self) -> Table | None:
        """Ψ, shape (n, m)."""
        return self.tables[1][:, : self.dimensions] if len(self.tables) > 1 else None

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Return the vectors of some rows of a table, shape (len(rows), m)."""
        selected: Table = self.tables[table][rows, : self.dimensions]
        return selected

    def is_finite(self, rows: int = _CHECKED) -> bool:
        """Whether all vectors are finite; `rows` of them are looked at together."""
        return all(
            bool(np.isfinite(table[first : first + rows]).all())
            for table in self.tables
            for first in range(0, len(table), rows)
        )


def begin(nodes: int, dimensions: int, context: bool, seed: int, threads: int = 1, shared_from: int = _MANY) -> State:
    """Return a state before the first round: every vector uniform in ±0.5/m."""
    state = State([allocate(nodes, dimensions) for _ in range(1 + context)], dimensions)
    borders = np.linspace(0, nodes, 1 + (threads if nodes * dimensions >= shared_from else 1)).astype(np.int64)

    def draw(first: int, last: int) -> None:
        for table, purpose in zip(state.tables, (VECTORS, CONTEXTS), strict=False):
            draw_vectors(seed, np.arange(first, last), table[first:last, :dimensions], purpose)

    with ThreadPoolExecutor(len(borders) - 1) as pool:
        list(pool.map(draw, borders[:-1], borders[1:]))
    return state


def start(nodes: int, settings: Settings) -> State:
    """Return the state before the first sweep or round, as the settings require."""
    state = begin(nodes, settings.dimensions, settings.context, settings.seed, settings.threads)
    state.sweeping = Sweeping() if settings.starts_by_sweeps else None
    return state
