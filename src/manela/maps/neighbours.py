"""The nearest nodes of every node by cosine: by an index where there are many, and exactly where there are few."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from manela.errors import import_extra
from manela.index import VectorIndex
from manela.nearest import find_nearest

Vectors = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int64]

_EXACT = 20_000
"""Nodes up to which the exact search is used; it takes four times as long for twice as many."""
_MOST_EXACT = 200_000
"""Nodes beyond which the exact search would take hours, so that an index is needed."""


def find_all_neighbours(vectors: Vectors, count: int) -> tuple[RowNumbers, Vectors]:
    """The nearest other nodes of every node, and the cosines, nearest first.

    Parameters
    ----------
    vectors : array, shape (n, m)
    count : int
        How many for each; one less than there are nodes at most.

    Returns
    -------
    rows, cosines : arrays, shape (n, count)

    Examples
    --------
    >>> rows, _ = find_all_neighbours(np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32), 1)
    >>> rows[:, 0].tolist()
    [1, 0, 1]
    """
    nodes = len(vectors)
    count = min(count, nodes - 1)
    itself = np.arange(nodes)[:, None]
    if nodes > _MOST_EXACT:
        import_extra("usearch.index", "index", f"a map of more than {_MOST_EXACT:,} nodes")
    if nodes <= _EXACT or find_spec("usearch") is None:
        return find_nearest(vectors, vectors, count, exclude=itself)
    rows, cosines = VectorIndex(vectors).find_nearest(vectors, count + 1)
    # a node is found for itself, mostly first; where it is not, the last one found is left out in its place
    is_itself = rows == itself
    is_itself[~is_itself.any(axis=1), -1] = True
    kept = ~is_itself
    # a node is found once only, so that each row loses exactly one
    return rows[kept].reshape(nodes, count), np.clip(cosines[kept].reshape(nodes, count), -1.0, 1.0)
