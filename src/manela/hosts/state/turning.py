"""Turning: what a new start keeps of the old one, and how a host turns its vectors into the frame of others at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from manela.hosts.state.frames import find_line
from manela.hosts.state.messages import NO_FRAME, Frame, Integers
from manela.kernels.layout import normalise_rows

if TYPE_CHECKING:
    from manela.hosts.state.peers import Peer
    from manela.hosts.state.rounds import MessageHost

_LARGEST = 1e4
"""Largest coordinate of a vector in another frame; larger ones could overflow."""
_MOST_EDGES = 20_000
"""Edges from which a turn is found; more take longer, and find hardly a better one."""
_KEPT = np.float32(3.0)
"""Weight of an old direction beside the new one; larger lets exports jump less, and learn less from far changes."""
_LEAST_LIKENESS = 0.5
"""Least likeness over edges that a turn was not found from, over that of neighbours here; less takes worse turns."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class OldVectors:
    """What a host had learned when it started again."""

    names: list[str]
    rows: Floats  # shape (names, m): the rows of the view, or vectors where there was none
    frame: Frame  # the frame that they belong to
    signatures: npt.NDArray[np.uint64]  # shape (names,): the edges of each node then
    # shape (names, m), and shape (names,): the vectors to export, and which were learned from most of their neighbours
    smoothed: Floats | None
    settled: npt.NDArray[np.bool_]

    def turn(self, matrix: Floats, frame: Frame) -> OldVectors:
        """Return the same vectors, turned into another frame."""
        smoothed = None if self.smoothed is None else self.smoothed @ matrix
        return replace(self, rows=self.rows @ matrix, smoothed=smoothed, frame=frame)

    def find_rows(self, names: Mapping[str, int]) -> tuple[Integers, Integers]:
        """Return the rows of the old nodes that there still are, by their rows now, and their positions here."""
        pairs = [(names[name], position) for position, name in enumerate(self.names) if name in names]
        rows, positions = np.array(pairs, np.int64).reshape(-1, 2).T
        return rows, positions

    def keep_settled(self, earlier: OldVectors, names: Mapping[str, int]) -> OldVectors:
        """Return these vectors, with the earlier ones of nodes that were settled then, and are not now."""
        if self.smoothed is None or earlier.smoothed is None or find_line(self.frame) != find_line(earlier.frame):
            return self
        rows, positions = earlier.find_rows(names)
        lost = earlier.settled[positions] & ~self.settled[rows]
        lost &= self.signatures[rows] == earlier.signatures[positions]
        smoothed, settled = self.smoothed.copy(), self.settled.copy()
        smoothed[rows[lost]], settled[rows[lost]] = earlier.smoothed[positions[lost]], True
        return replace(self, smoothed=smoothed, settled=settled)

    def steady(self, new: Floats, names: Mapping[str, int], signatures: npt.NDArray[np.uint64]) -> None:
        """Let new vectors to export keep most of their old direction, if the node's edges are the same as then.

        The old and the new ones differ by noise, which a mean of both has less of.
        """
        if self.smoothed is None:
            return
        rows, positions = self.find_rows(names)
        same = self.settled[positions] & (signatures[rows] == self.signatures[positions])
        rows, positions = rows[same], positions[same]
        both = normalise_rows(new[rows]) + _KEPT * normalise_rows(self.smoothed[positions])
        new[rows] = normalise_rows(both) * np.linalg.norm(new[rows], axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Apart:
    """The last vectors of a peer's nodes in another frame."""

    frame: Frame
    rows: Integers  # the rows of these nodes here
    vectors: Floats  # shape (rows, m), of norm 1

    @classmethod
    def of(cls, frame: Frame, rows: Integers, vectors: Floats) -> Apart:
        """Return these vectors, of which only the directions matter; those with numbers too large have none."""
        bounded = np.where((np.abs(vectors) <= _LARGEST).all(axis=1, keepdims=True), vectors, np.float32(0.0))
        return cls(frame, rows, normalise_rows(bounded))


def is_new_apart(peer: Peer, frame: Frame) -> bool:
    """Return whether a peer has another frame than this host, whose vectors have not been seen."""
    return peer.frame not in (NO_FRAME, frame) and (peer.apart is None or peer.apart.frame != peer.frame)


def turn_to_larger(host: MessageHost) -> None:
    """Turn a host's old vectors into the frame of peers, if that has more nodes, so that exports compare at once."""
    trusted = [peer for peer in host.peers.values() if peer.link is not None and not peer.distrust]
    nodes: Counter[Frame] = Counter({host.frames.now: host.own})
    for peer in trusted:
        nodes[peer.frame] += host.believe_nodes(peer)
    frame = max(nodes, key=lambda frame: (nodes[frame], frame))
    apart = [peer.apart for peer in trusted if peer.apart is not None and peer.apart.frame == frame]
    if frame == host.frames.now or not apart or host.old is None:
        return
    near, m = host.neighbourhood, host.terms.settings.dimensions
    vectors = np.zeros((host.known, m), np.float32)
    for found in apart:
        vectors[found.rows] = found.vectors
    arcs = np.flatnonzero(vectors[near.indices].any(axis=1))
    likeness = host.judge.measure_own(lambda rows: host.tables[0][rows, :m], host.read_as_peers())
    matrix = find_turn(host.tables[0][near.sources[arcs], :m], vectors[near.indices[arcs]], likeness)
    if matrix is not None:
        host.old = host.old.turn(matrix, frame)
        if host.old.smoothed is not None:
            host.smoothed, host.smoothed_frame = host.old.smoothed, frame


def find_turn(here: Floats, there: Floats, likeness: float) -> Floats | None:
    """Return the orthogonal matrix that brings vectors here nearest to those there, or None if there is no good one.

    `here` and `there`, (edges, m), are the two ends of edges, and `likeness` is the mean cosine of neighbours here.
    A turn is good if edges that it was not found from have ends nearly as alike.
    """
    half = min(len(here), _MOST_EDGES) // 2
    if half == 0 or likeness <= 0.0:
        return None
    chosen = np.random.default_rng(0).permutation(len(here))[:_MOST_EDGES]
    here, there = (normalise_rows(ends[chosen] - ends[chosen].mean(axis=0)) for ends in (here, there))
    turned = here[half:] @ _find_nearest(here[:half], there[:half])
    if float((turned * there[half:]).sum(axis=1).mean()) < _LEAST_LIKENESS * likeness:
        return None
    return _find_nearest(here, there)


def _find_nearest(here: Floats, there: Floats) -> Floats:
    left, _, right = np.linalg.svd((here.T @ there).astype(np.float64))
    return np.asarray(left @ right, np.float32)
