"""The accessibility circumscription: what a host knows of the network, and the one place that decides who may see what.

The paper, section III: an agent possesses the edges of its own node and may know the network up to s hops around it,
not more by any means, chains of other agents included. By messages nothing is asked beyond direct neighbours: of *show
me your node w, for my node v is its neighbour* the host of w checks, by what it knows itself, that v is hosted by the
peer that asks, as its certificate says, and that v is a neighbour of w by this host's own list (`admit`). What w shows
is its own vector and means over its neighbours; each hop happens inside the host that owns it.

By walks, of *for my node v, through your node w, h more steps* it checks besides that h ≤ s − 1 (`check_steps`). Then
the node that is reached lies within 1 + h ≤ s hops of v, and the edges passed lie between v and it. A step from w to a
node x of a third host is asked there *for my node w, through your x, h − 1 more*, where the same is checked again: each
edge of a walk is checked by a host that owns it, and each asks for a node of its own. What comes back is a vector
without an id.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Integers
from manela.agents.names import Node, parse_node
from manela.errors import AgentError, ClaimError, MalformedError, NotAdjacentError, RefusedError, TooFarError

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of a node of this host; `other` is None for a node that stands alone."""

    own: str
    other: Node | None
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The nodes of a host with their edges, and nothing else of the network.

    Rows 0 … n − 1 are the host's own nodes, rows from n on their neighbours elsewhere.

    Attributes
    ----------
    host : str
    nodes : list of str
        Names of the host's own nodes.
    strangers : list of Node
        Neighbours of theirs at other hosts.
    indptr, indices : arrays
        Neighbours of each own node, as rows.
    weights : array of float64, shape (arcs,)
    """

    host: str
    nodes: list[str]
    strangers: list[Node]
    indptr: Integers
    indices: Integers
    weights: npt.NDArray[np.float64]

    @classmethod
    def build(cls, host: str, edges: Iterable[Edge], numbers: Mapping[Node, int] | None = None) -> Neighbourhood:
        """The neighbourhood of these edges, in the order of `numbers`, or of names where there are none.

        An edge between two own nodes need stand there once only; the later of two weights holds.
        """
        ids: dict[Node, int] = {}
        ends, weights = (array("q"), array("q")), array("d")
        for edge in edges:
            own = ids.setdefault((edge.own, host), len(ids))
            if edge.other is None or edge.other == (edge.own, host):
                continue
            other = ids.setdefault(edge.other, len(ids))
            for one, two in ((own, other), (other, own))[: 1 + (edge.other[1] == host)]:
                ends[0].append(one)
                ends[1].append(two)
                weights.append(edge.weight)
        order = _order(numbers)
        nodes = sorted((node for node in ids if node[1] == host), key=order)
        strangers = sorted((node for node in ids if node[1] != host), key=order)
        rows, ranks = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
        for row, node in enumerate([*nodes, *strangers]):
            rows[ids[node]] = row
            ranks[row] = row if numbers is None else numbers[node]
        sources, targets = (rows[np.frombuffer(end, np.int64)] if len(end) else _NONE for end in ends)
        # the last of several arcs between the same nodes holds, and each node's arcs go by rank
        _, last = np.unique((sources * len(ids) + targets)[::-1], return_index=True)
        kept = len(sources) - 1 - last
        kept = kept[np.lexsort((ranks[targets[kept]], sources[kept]))]
        return cls(
            host,
            [name for name, _ in nodes],
            strangers,
            np.concatenate(([0], np.cumsum(np.bincount(sources[kept], minlength=len(nodes))))).astype(np.int64),
            targets[kept],
            np.array(weights, dtype=np.float64)[kept],
        )

    @cached_property
    def sources(self) -> Integers:
        """The own node of each arc."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.indptr))

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each own node."""
        return {name: row for row, name in enumerate(self.nodes)}

    @cached_property
    def peers(self) -> list[str]:
        """The hosts of neighbours."""
        return sorted({host for _, host in self.strangers})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of it all."""
        sha = hashlib.sha256(repr((self.host, self.nodes, self.strangers)).encode())
        for part in (self.indptr, self.indices, self.weights):
            sha.update(part.tobytes())
        return sha.hexdigest()

    @cached_property
    def _stranger_rows(self) -> dict[Node, int]:
        return {node: len(self.nodes) + row for row, node in enumerate(self.strangers)}

    @cached_property
    def _keys(self) -> tuple[Integers, Integers]:
        """Every arc as one number, in order, and which arc it is."""
        keys = self.sources * (len(self.nodes) + len(self.strangers)) + self.indices
        order = np.argsort(keys)
        return keys[order], order

    def arcs_to(self, peer: str) -> Integers:
        """The arcs that lead to nodes of a peer."""
        return self._arcs_by_peer.get(peer, _NONE)

    @cached_property
    def _arcs_by_peer(self) -> dict[str, Integers]:
        places = {host: place for place, host in enumerate(self.peers)}
        peer_of = np.array([-1] * len(self.nodes) + [places[host] for _, host in self.strangers], np.int64)
        of_arcs = peer_of[self.indices] if len(self.indices) else _NONE
        order = np.argsort(of_arcs, kind="stable")
        begins = np.searchsorted(of_arcs[order], np.arange(len(places) + 1))
        return {host: order[begins[place] : begins[place + 1]] for host, place in places.items()}

    def count_bytes(self, peer: str) -> tuple[int, int]:
        """How many edges lead to nodes of a peer, and how long the names at their ends are in all."""
        arcs = self.arcs_to(peer)
        own, others = (np.bincount(ends, minlength=1) for ends in (self.sources[arcs], self.indices[arcs]))
        length = sum(len(self.nodes[row].encode()) * int(own[row]) for row in np.flatnonzero(own).tolist())
        first = len(self.nodes)
        length += sum(
            len(self.strangers[row - first][0].encode()) * int(others[row]) for row in np.flatnonzero(others).tolist()
        )
        return len(arcs), length

    def name_arc(self, arc: int) -> tuple[str, Node]:
        """The own node of an arc, and the node that it leads to."""
        target = int(self.indices[arc]) - len(self.nodes)
        other = self.strangers[target] if target >= 0 else (self.nodes[target + len(self.nodes)], self.host)
        return self.nodes[int(self.sources[arc])], other

    def admit(self, peer: str, asker: str, through: str) -> int:
        """The arc from `through` to the asker's node `name@host`, if this peer may ask by it.

        Whether a node exists here without being adjacent is not told.
        """
        arcs, refusals = self.admit_all(peer, [asker], [through])
        if refusals:
            raise refusals[0]
        return int(arcs[0])

    def admit_all(
        self, peer: str, askers: Sequence[str], throughs: Sequence[str]
    ) -> tuple[Integers, list[RefusedError]]:
        """The same for many: an arc each, −1 where it is refused, and the refusals, those of one type together."""
        refused: dict[type[RefusedError], list[str]] = {}
        pairs = np.full((2, len(askers)), -1, np.int64)
        for i, (asker, through) in enumerate(zip(askers, throughs, strict=True)):
            try:
                node = parse_node(asker)
            except MalformedError as refusal:
                refused.setdefault(MalformedError, []).append(str(refusal))
                continue
            if node[1] != peer:
                refused.setdefault(ClaimError, []).append(f"{asker} is not a node of {peer}")
                continue
            pairs[:, i] = self.rows.get(through, -2), self._stranger_rows.get(node, -2)
        keys, order = self._keys
        wanted = pairs[0] * (len(self.nodes) + len(self.strangers)) + pairs[1]
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        there = (pairs >= 0).all(axis=0)
        if len(keys):
            there &= keys[places] == wanted
        far = np.flatnonzero(~there & (pairs != -1).all(axis=0)).tolist()
        if far:
            first = f"{askers[far[0]]} and {throughs[far[0]]} are not adjacent by this host's list"
            refused[NotAdjacentError] = [first, *([""] * (len(far) - 1))]
        return np.where(there, order[places] if len(keys) else -1, -1), [
            kind(f"{len(words):,} edges, such as: {words[0]}" if len(words) > 1 else words[0], times=len(words))
            for kind, words in refused.items()
        ]

    def admit_edges(
        self, peer: str, askers: Sequence[str], throughs: Sequence[str]
    ) -> tuple[Admitted, list[RefusedError]]:
        """Those of a peer's edges that this host has too, and what is refused of the others."""
        arcs, refusals = self.admit_all(peer, askers, throughs)
        accepted = arcs >= 0
        distinct, first = np.unique(arcs[accepted], return_index=True)
        if len(distinct) < np.count_nonzero(accepted):
            raise MalformedError("an edge is introduced twice")
        arcs = distinct[np.argsort(first)]
        edge_of_arc = np.full(len(self.indices), -1, np.int64)
        edge_of_arc[arcs] = np.arange(len(arcs))
        rows = self.sources[arcs]
        return Admitted(accepted, arcs, rows, find_distinct(rows), edge_of_arc), refusals


@dataclass(frozen=True, eq=False)
class Admitted:
    """A peer's edges that were admitted, by number.

    Attributes
    ----------
    accepted : array of bool
        Which of the edges that the peer introduced.
    arcs, rows : arrays
        Of each admitted edge, the arc and its node here.
    neighbours : array
        Each of these nodes once, in the order of first appearance: the peer's neighbours here, by number.
    edge_of_arc : array
        The number of the edge that is an arc of this host, −1 for all others.
    """

    accepted: npt.NDArray[np.bool_]
    arcs: Integers
    rows: Integers
    neighbours: Integers
    edge_of_arc: Integers

    def find_rows(self, edges: Integers) -> Integers:
        """The nodes here that a peer asks through by the numbers of its edges; others are refused."""
        if len(edges) and not (edges.min() >= 0 and edges.max() < len(self.rows)):
            raise NotAdjacentError(f"edges must be numbered 0 to {len(self.rows) - 1}")
        return self.rows[edges]


def find_distinct(values: Integers) -> Integers:
    """Each value once, in the order of first appearance."""
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)]


def check_steps(steps: Integers, hops: int) -> None:
    """Refuse walks that would go further than `hops` from the node that they are for."""
    if len(steps) and not (steps.min() >= 1 and steps.max() <= hops - 1):
        raise TooFarError(f"a walk may go 1 to {hops - 1} more steps, asked for {steps.min()} to {steps.max()}")


def _order(numbers: Mapping[Node, int] | None) -> Callable[[Node], Any]:
    """What nodes are sorted by."""
    if numbers is None:
        return lambda node: node

    def number(node: Node) -> int:
        if node not in numbers:
            raise AgentError(f"lock-step needs a number for every node, and {node[0]}@{node[1]} has none")
        return numbers[node]

    return number
