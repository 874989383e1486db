"""Edges: a batch of edges, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BATCH = 50_000
"""Most edges of a batch; more take more memory."""


class Edges(NamedTuple):
    """A batch of edges."""

    # the ends of each edge; a name with a host is written `name@host`
    own: Sequence[Any]
    other: Sequence[Any]
    weights: npt.NDArray[np.float64] | None = None  # None if every edge has the weight 1


def cut_into_batches(edges: Iterable[tuple[Any, Any, float]], size: int = BATCH) -> Iterator[Edges]:
    """Yield single edges in batches of this size.

    Examples
    --------
    >>> [batch.own for batch in cut_into_batches([("a", "b", 1.0), ("c", "d", 2.0)])]
    [['a', 'c']]
    """
    own: list[Any] = []
    other: list[Any] = []
    weights: list[float] = []
    for source, target, weight in edges:
        own.append(source)
        other.append(target)
        weights.append(weight)
        if len(own) == size:
            yield Edges(own, other, np.array(weights))
            own, other, weights = [], [], []
    if own:
        yield Edges(own, other, np.array(weights))
