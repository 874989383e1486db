"""The arcs of a network as kernels take them, means over direct neighbours, and the share of a node in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.kernels.cpu import messages as kernels
from manela.kernels.cpu.half import can_convert
from manela.kernels.cpu.walks import build_aliases
from manela.kernels.layout import Arcs, Shown, Table, find_strengths, pad
from manela.settings.budget import Sizes
from manela.system.threads import Integers, Threads

if TYPE_CHECKING:  # a host has no Graph, and should not pay for SciPy
    from manela.data.graph import Graph

_WORK_OF_A_ROW = 4
"""Cost of a node besides its arcs, in arcs; larger makes pieces with more equal numbers of nodes."""


@dataclass(frozen=True)
class Neighbours:
    """The arcs of a network with their weights, and threads to sum along them."""

    arcs: Arcs
    weights: npt.NDArray[np.float64] | None  # (arcs,)
    # (levels, n): the factor that turns a sum over neighbours into the mean M^h, h = 1, 2, …; 0 if no walk has h
    # steps. On an undirected network one level serves all h
    scales: npt.NDArray[np.float64]
    threads: Threads
    borders: Integers  # borders of pieces of nodes that take about the same time
    directed: bool  # whether an arc may lack its reverse

    @classmethod
    def of(cls, graph: Graph, arcs: Arcs, hops: int, threads: Threads) -> Neighbours:
        """Return the neighbours of a graph, for means over up to `hops` hops."""
        scales = find_scales(graph, hops - 1 if graph.directed else 1)
        borders = threads.cut(graph.degrees + _WORK_OF_A_ROW)
        return cls(arcs, graph.weights, scales, threads, borders, graph.directed)

    @property
    def joined(self) -> npt.NDArray[np.bool_]:
        """Whether each node has neighbours."""
        return np.diff(self.arcs.indptr) > 0

    @property
    def strengths(self) -> npt.NDArray[np.float64]:
        """The sum of the weights of each node's arcs."""
        return find_strengths(self.arcs.indptr, self.weights)

    @property
    def mean_degree(self) -> float:
        """Mean number of neighbours of nodes that have any."""
        return Sizes.of(self.arcs.indptr).degree

    def average(
        self,
        source: Shown,
        target: Shown,
        scale: npt.NDArray[np.float64],
        offset: int = 0,
        place: int = 0,
        nodes: Integers | None = None,
    ) -> None:
        """target[place + v] ← scale[v]·Σ weight·source[offset + u] over the neighbours u of v, for all `nodes` v."""

        def average(first: int, last: int) -> None:
            kernels.average(source, offset, self.arcs, self.weights, scale, nodes, target, place, first, last)

        self.threads.share(average, self.borders if nodes is None else self.cut(nodes))

    def cut(self, nodes: Integers) -> Integers:
        """Return the borders of pieces of some nodes that take about the same time."""
        return self.threads.cut(self.arcs.indptr[nodes + 1] - self.arcs.indptr[nodes] + _WORK_OF_A_ROW)

    def show(self, table: Table, shown: Shown, own: slice | None = None) -> None:
        """shown[v] ← Φ(v) for the nodes v in `own`, all by default."""
        n = len(table)
        own = own or slice(0, n)
        borders = self.borders if own == slice(0, n) else own.start + self.cut(np.arange(own.start, own.stop))
        self.threads.share(lambda first, last: kernels.show(table, shown, first, last), borders)
        _round_to_half(shown[own])

    def show_means(self, shown: Shown, hops: int, nodes: Integers | None = None) -> None:
        """shown[h·n + v] ← M^h(v), h = 1 … hops − 1, for `nodes` v (all by default), from Φ in the first n rows."""
        n = len(self.arcs.indptr) - 1
        for hop in range(1, hops):
            scale = self.scales[min(hop, len(self.scales)) - 1]
            self.average(shown, shown, scale, (hop - 1) * n, hop * n, nodes)
            _round_to_half(shown[hop * n : (hop + 1) * n])

    def find_own_shares(self, own: slice | None = None) -> npt.NDArray[np.float32] | None:
        """Return for each arc from v to w the share of v in M¹(w); 1 if w has no neighbours.

        Returns None on an undirected network without weights, where the share is scales[0] of w. With `own`, only the
        arcs of these nodes are computed.
        """
        if self.weights is None and not self.directed:
            return None
        indptr, indices = self.arcs.indptr, self.arcs.indices
        shares = np.empty(len(indices), dtype=np.float32)

        def find(first: int, last: int) -> None:
            kernels.find_own_shares(indptr, indices, self.weights, self.scales[0], self.directed, shares, first, last)

        self.threads.share(find, self.borders if own is None else own.start + self.cut(np.arange(own.start, own.stop)))
        return shares


def allocate_shown(rows: int, dimensions: int) -> Shown:
    """Allocate a table for vectors that nodes show."""
    return np.zeros((rows, pad(dimensions)), dtype=np.uint16 if can_convert() else np.float32)


def read_shown(shown: Shown, where: slice | Integers) -> npt.NDArray[np.float16]:
    """Return rows of what nodes show, in half precision."""
    rows = shown[where]
    return rows.view(np.float16) if rows.dtype == np.uint16 else rows.astype(np.float16)


def write_shown(shown: Shown, where: slice | Integers, rows: npt.NDArray[np.float16]) -> None:
    """Set rows of what nodes show."""
    shown[where] = rows.view(np.uint16) if shown.dtype == np.uint16 else rows.astype(np.float32)


def _round_to_half(rows: Shown) -> None:
    if rows.dtype != np.float32:
        return
    with np.errstate(over="ignore"):
        rows[:] = rows.astype(np.float16)


def find_scales(graph: Graph, levels: int) -> npt.NDArray[np.float64]:
    """Return 1/Σ weights over the neighbours from which a walk can continue, 0 if there are none."""
    n = graph.number_of_nodes
    scales = np.zeros((max(1, levels), n))
    totals = graph.strengths
    for level in range(len(scales)):
        if level > 0:
            totals = graph.to_scipy() @ (totals > 0).astype(np.float64)
        np.divide(1.0, totals, out=scales[level], where=totals > 0)
    return scales


def prepare_arcs(graph: Graph) -> Arcs:
    """Return the arcs of a graph: its own arrays, and alias tables if it has weights."""
    if graph.weights is None:
        return Arcs(graph.indptr, graph.indices)
    thresholds = np.empty(len(graph.indices), dtype=np.uint32)
    aliases = np.empty(len(graph.indices), dtype=np.int32)
    build_aliases(graph.indptr, graph.weights, thresholds, aliases)
    return Arcs(graph.indptr, graph.indices, thresholds, aliases)
