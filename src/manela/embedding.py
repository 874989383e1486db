"""Embedding: a vector for each node, with the ids and how it came about."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError, UnknownNodeError, import_extra

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Embedding:
    """Vectors of nodes.

    Attributes
    ----------
    nodes : array, shape (n,)
        Ids, integers or objects.
    vectors : array of float32, shape (n, m)
        Row i is the vector of nodes[i].
    context : array of float32, shape (n, m), or None
        The second vectors, where the run kept them.
    provenance : mapping
        Parameters, seed, network and version.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32)
    >>> embedding = Embedding(np.array(["a", "b", "c"], dtype=object), vectors)
    >>> [(node, round(cosine, 3)) for node, cosine in embedding.most_similar("a", k=1)]
    [('b', 0.995)]
    """

    nodes: npt.NDArray[Any]
    vectors: Vectors
    context: Vectors | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Embedding({self.vectors.shape[0]:,} nodes, {self.vectors.shape[1]} dimensions)"

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        """Whether a node of this id has a vector."""
        return isinstance(node, Hashable) and node in self._positions

    def __getitem__(self, node: Any) -> Vectors:
        """The vector of a node, by the id that the user gave; or the vectors of a list or array of ids, a row each."""
        if is_list_of_ids(node):
            return self.vectors[self.rows(node)]
        vector: Vectors = self.vectors[self.row(node)]
        return vector

    def rows(self, nodes: Iterable[Hashable]) -> npt.NDArray[np.int64]:
        """Where the vectors of these nodes stand."""
        ids = nodes.tolist() if hasattr(nodes, "tolist") else nodes
        return np.array([self.row(node) for node in ids], dtype=np.int64)

    def row(self, node: Hashable) -> int:
        """Where a node's vector stands."""
        try:
            return self._positions[node]
        except (KeyError, TypeError):
            raise UnknownNodeError(
                f"no node has the id {node!r}; there are {len(self):,}, the first is {self.nodes[:1].tolist()[0]!r}"
            ) from None

    def most_similar(self, node: Hashable, k: int = 10) -> list[tuple[Hashable, float]]:
        """The k nodes whose vectors have the largest cosine with this node's, most similar first."""
        if k < 1:
            raise ParameterError(f"k must be at least 1, got {k!r}.")
        row = self.row(node)
        cosines = self.vectors @ self.vectors[row]
        cosines /= np.maximum(self._norms * self._norms[row], np.finfo(np.float32).tiny)
        cosines[row] = -np.inf
        k = min(k, len(self) - 1)
        best = np.argpartition(-cosines, k - 1)[:k] if k else np.empty(0, dtype=np.int64)
        best = best[np.lexsort((best, -cosines[best]))]
        return list(zip(self.nodes[best].tolist(), cosines[best].tolist(), strict=True))

    def to_pandas(self) -> Any:
        """A pandas frame: a row for each node, by its id."""
        pandas = import_extra("pandas", "io", "to_pandas")
        return pandas.DataFrame(self.vectors, index=pandas.Index(self.nodes, name="node"), columns=self._columns)

    @property
    def _columns(self) -> list[str]:
        return [f"d{place}" for place in range(self.vectors.shape[1])]

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {node: row for row, node in enumerate(self.nodes.tolist())}

    @cached_property
    def _norms(self) -> Vectors:
        norms: Vectors = np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors))
        return norms


def is_list_of_ids(data: Any) -> bool:
    """Whether this is a list, an array or a series of ids; a tuple may be an id itself."""
    if isinstance(data, list):
        return True
    return getattr(data, "ndim", None) == 1 and hasattr(data, "tolist")
