"""Finds the nearest nodes of every node by cosine, exactly for few nodes and with an index for many."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from manela.data.nearest import VectorIndex, find_nearest
from manela.errors import import_extra

Vectors = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int64]

_EXACT = 20_000
"""Most nodes for which the exact search is the default; its time grows with the square of their number."""
_MOST_EXACT = 200_000
"""Most nodes for which the exact search is allowed without an index; with more it would take hours."""


def find_all_neighbours(vectors: Vectors, count: int) -> tuple[RowNumbers, Vectors]:
    """Return the nearest other nodes of every node, and the cosines, nearest first.

    Parameters
    ----------
    vectors : array, shape (n, m)
    count : int
        Neighbours per node; at most n − 1 are returned.

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
    # a node usually finds itself, which is dropped; if it does not, its last neighbour is dropped instead
    is_itself = rows == itself
    is_itself[~is_itself.any(axis=1), -1] = True
    kept = ~is_itself
    # the neighbours of a node are distinct, so exactly one is dropped from each row
    return rows[kept].reshape(nodes, count), np.clip(cosines[kept].reshape(nodes, count), -1.0, 1.0)
