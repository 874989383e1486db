"""Base of the GPU engines: holds the vectors on a card and copies them back."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.estimate import count_gpu_bytes
from manela.engines.gpu.card import Card
from manela.engines.gpu.neighbours import CardNeighbours, draw_first_vectors
from manela.engines.rounds.neighbours import prepare_arcs
from manela.engines.state import State
from manela.kernels.layout import Table, allocate
from manela.kernels.randomness import CONTEXTS, VECTORS
from manela.settings.settings import Settings


class GpuEngine:
    """Holds the vectors on a card; `stop` may be called from any thread and takes effect between two rounds.

    Attributes
    ----------
    name : str
        Includes the name of the card.
    state : State
        Its round is always up to date, its tables and pairs after `collect`.
    """

    def __init__(self, graph: Graph, settings: Settings, state: State | None = None) -> None:
        self._card = card = Card()
        card.check(settings.dimensions, count_gpu_bytes(graph, settings))
        self.name, self._graph, self._settings, self._stopped = card.name, graph, settings, False
        self.arcs = prepare_arcs(graph)
        self._size = graph.number_of_nodes
        with card.active():
            if state is None:
                tables = [allocate(self._size, settings.dimensions) for _ in range(1 + settings.context)]
                state = State(tables, settings.dimensions)
                self._tables = self._begin(state)
            else:
                self._tables = [card.send(table) for table in state.tables]
            self._updates = card.zeros(self._size, kind="int64")
        self.state, self._initial_pairs = state, state.pairs
        self._columns = self._tables[0].shape[1]
        self._padded = 1 << (self._columns - 1).bit_length()

    def _begin(self, state: State) -> list[Any]:
        """Return the tables before the first round, as the settings require."""
        tables = [self._card.empty(*table.shape) for table in state.tables]
        for table, purpose in zip(tables, (VECTORS, CONTEXTS), strict=False):
            draw_first_vectors(self._card, table, state.dimensions, self._settings.seed, purpose)
        if self._settings.starts_by_neighbours:
            self._neighbours.start(tables[0])
        return tables

    @cached_property
    def _neighbours(self) -> CardNeighbours:
        """The neighbours that vectors are started and smoothed with, on the card."""
        return CardNeighbours(self._card, self._graph, self.arcs, len(self._settings.targets_by_hop))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._card.wait()

    def stop(self, *, keep: bool = True) -> None:  # noqa: ARG002
        """Stop before the next round."""
        self._stopped = True

    def settle(self) -> None:
        """Do nothing: rounds on a card are not lost."""

    def smooth(self) -> None:
        """Smooth the vectors over the network, after the last round."""
        with self._card.active():
            self._neighbours.smooth(self._tables[0])

    def collect(self) -> None:
        """Bring the state's tables and pairs up to date."""
        for table, on_card in zip(self.state.tables, self._tables, strict=True):
            self._card.torch.from_numpy(table).copy_(on_card)
        self.state.pairs = self.pairs

    @property
    def pairs(self) -> int:
        """Number of update pairs made, including those of the initial state."""
        return self._initial_pairs + int(self._updates.sum())

    @property
    def updates(self) -> npt.NDArray[np.int64]:
        """Number of update pairs of each node with this engine."""
        updates: npt.NDArray[np.int64] = self._updates.cpu().numpy()
        return updates

    def rows(self, table: int, rows: npt.NDArray[np.int64]) -> Table:
        """Return the current vectors of some rows of a table, shape (len(rows), m)."""
        padded: Table = self._tables[table][self._card.send(rows)].cpu().numpy()
        return padded[:, : self.state.dimensions]

    def is_finite(self) -> bool:
        """Whether all vectors are finite."""
        torch = self._card.torch
        with self._card.active():
            return all(bool(torch.isfinite(torch.stack(torch.aminmax(table))).all()) for table in self._tables)
