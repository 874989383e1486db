"""Source: the base class of all sources, which yield edges in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from manela.sources.edges import Edges
from manela.sources.state import ImportState


class Source(ABC):
    """A place from which a network can be read.

    Attributes
    ----------
    key : str
        Identifies the place and how it is read; a state can be used only with the key it was made for.
    adds : bool
        Whether each call of `read` yields only new edges, to be added to earlier ones. If not, it yields all edges.
    own_hosts : frozenset of str
        The hosts after the @ in names of own nodes; empty if the source does not know them.
    """

    adds = False
    own_hosts: frozenset[str] = frozenset()

    @property
    @abstractmethod
    def key(self) -> str:
        """Identifies the place and how it is read."""

    @abstractmethod
    def read(self, state: ImportState) -> Iterator[Edges]:
        """Yield edges in batches; a source that can resume keeps its position in `state`."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line about what the last reading found and left out."""
