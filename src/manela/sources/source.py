"""What every source does: it reads a place where a network lives, and yields edges in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from manela.sources.state import ImportState
from manela.sources.ties import Ties


class Source(Protocol):
    """A place where a network lives.

    Attributes
    ----------
    key : str
        What it is and how it is read; the state of one key cannot be used for another.
    adds : bool
        Whether each reading yields only what is new, to be added to what came before. If not, each yields all there is.
    own_hosts : frozenset of str
        The hosts behind the @ of one's own nodes; empty where the source does not know.
    """

    @property
    def key(self) -> str:
        """What it is and how it is read."""

    @property
    def adds(self) -> bool:
        """Whether each reading yields only what is new."""

    @property
    def own_hosts(self) -> frozenset[str]:
        """The hosts behind the @ of one's own nodes."""

    def read(self, state: ImportState) -> Iterator[Ties]:
        """The edges, in batches; where the source can be read on from where it ended, `state` says and keeps where."""

    def describe(self) -> str:
        """What the last reading found and what it left out, in a line."""
