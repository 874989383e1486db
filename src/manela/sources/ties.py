"""Ties: a batch of edges, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BATCH = 50_000
"""Edges of a batch; with more of them, more memory is needed at once."""


class Ties(NamedTuple):
    """A batch of edges.

    Attributes
    ----------
    own, other : sequence of str or int
        The ends of each edge. A name with a host is written `name@host`.
    weights : array of float64, or None
        None where every edge has the weight 1.
    """

    own: Sequence[Any]
    other: Sequence[Any]
    weights: npt.NDArray[np.float64] | None = None


def cut_into_batches(edges: Iterable[tuple[Any, Any, float]]) -> Iterator[Ties]:
    """Single edges as batches.

    Examples
    --------
    >>> [batch.own for batch in cut_into_batches([("a", "b", 1.0), ("c", "d", 2.0)])]
    [['a', 'c']]
    """
    own: list[Any] = []
    other: list[Any] = []
    weights: list[float] = []
    for one_end, other_end, weight in edges:
        own.append(one_end)
        other.append(other_end)
        weights.append(weight)
        if len(own) == BATCH:
            yield Ties(own, other, np.array(weights))
            own, other, weights = [], [], []
    if own:
        yield Ties(own, other, np.array(weights))
