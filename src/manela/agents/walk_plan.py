"""WalkPlan: the draws of one round by walks, with the arcs that walks can take."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Integers, VectorRows, WalkRequest, no_integers
from manela.agents.neighbourhood import Neighbourhood
from manela.kernels.cpu import walks as kernels
from manela.kernels.cpu.walks import build_aliases
from manela.kernels.layout import Arcs, Table


@dataclass
class WalkPlan:
    """One round: how many iterations each node does, and over which rows.

    Attributes
    ----------
    targets : array, shape (iterations, 2w)
        Rows of the host's tables; −1 if there is none, or none yet.
    lookup : array
        Maps a number drawn for a negative to a row.
    marks : array
        In lock-step, which node numbers are drawn.
    walkers : dict of arrays
        For each peer, the positions in the flattened `targets` whose walks it was asked to finish.
    pools : dict of int
        How many random vectors each host, including this one, contributes.
    guests : list of arrays
        Vectors that peers have sent for this round; they are stored after the rows of known nodes.
    random : dict of arrays
        The rows of the random vectors of each peer.
    """

    round: int
    rate: float
    key: np.uint64
    negatives: int
    nodes: Integers
    numbers: Integers
    counts: Integers
    targets: Integers
    lookup: Integers = field(default_factory=no_integers)
    marks: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    requests: dict[str, WalkRequest] = field(default_factory=dict)
    walkers: dict[str, Integers] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)
    guests: list[VectorRows] = field(default_factory=list)
    random: dict[str, Integers] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    moved: list[Table] = field(default_factory=list)
    made: int = 0
    stop: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1, np.uint8))

    def compute(self) -> None:
        """Compute the new vectors, `moved`, and the number of update pairs, `made`, without changing the host."""
        made = np.zeros(len(self.nodes), np.int64)
        self.moved = [np.zeros((len(self.nodes), table.shape[1]), np.float32) for table in self.tables]
        for own, room in enumerate(self.moved):
            kernels.absorb(
                self.nodes, self.numbers, self.counts, self.key, self.tables[own],
                self.tables[len(self.moved) - 1 - own], room, made, self.targets, self.lookup, self.negatives,
                np.float32(self.rate), self.stop,
            )  # fmt: skip
        self.made = int(made.sum())


@dataclass(frozen=True)
class ActiveArcs:
    """The arcs that walks can take, and the index of each among all arcs of the host."""

    arcs: Arcs
    places: Integers

    @classmethod
    def build(cls, near: Neighbourhood, active: npt.NDArray[np.bool_], weighted: bool) -> ActiveArcs:
        """Select the active arcs of a neighbourhood."""
        places = np.flatnonzero(active)
        counts = np.bincount(near.sources[places], minlength=len(near.nodes))
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        thresholds = aliases = None
        if weighted:
            thresholds, aliases = np.empty(len(places), np.uint32), np.empty(len(places), np.int32)
            build_aliases(indptr, near.weights[places], thresholds, aliases)
        return cls(Arcs(indptr, near.indices[places], thresholds, aliases), places)

    def names(self, arcs: Integers) -> Integers:
        """Return the indices of these arcs among all arcs of the host; −1 stays −1."""
        return np.where(arcs >= 0, self.places[np.maximum(arcs, 0)] if len(self.places) else -1, -1)
