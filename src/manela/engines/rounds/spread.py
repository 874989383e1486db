"""The spread of vectors: how far they are from their mean, by exact sums in any order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manela.engines.rounds.neighbours import Neighbours
from manela.kernels.cpu import rows
from manela.kernels.layout import Table
from manela.kernels.moments import UNIT


def measure_spread(table: Table, neighbours: Neighbours) -> float:
    """Return the root mean square distance of vectors from their mean, over nodes that have neighbours."""
    return find_spread(*sum_rows(table, neighbours), int(np.count_nonzero(neighbours.joined)))


def find_spread(totals: npt.NDArray[np.int64], squares: int, count: int) -> float:
    """Return the spread of `count` vectors, given the sums of `sum_rows`."""
    mean = totals / count
    return float(np.sqrt(max(0.0, squares / count - float((mean * mean).sum()))) * UNIT)


def sum_rows(table: Table, neighbours: Neighbours) -> tuple[np.ndarray, int]:
    """Return exact sums over nodes that have neighbours: of vectors in units of UNIT, and of squares in UNIT²."""
    parts: list[tuple[np.ndarray, int]] = []

    def add_up(first: int, last: int) -> None:
        totals = np.zeros(table.shape[1], dtype=np.int64)
        parts.append((totals, int(rows.add_up(table, neighbours.scales[0], first, last, totals))))

    neighbours.threads.share(add_up, neighbours.borders)
    return np.sum([totals for totals, _ in parts], axis=0), sum(squares for _, squares in parts)
