"""The accessibility circumscription: what a host knows of the network, and the one place that decides who may ask what.

The paper, section III: an agent possesses the edges of its own node and may know the network up to s hops around it,
not more by any means, chains of other agents included. So of a request *for my node v, through your node w, h more
steps* the host of w checks, by what it knows itself:

1. v is hosted by the peer that asks (`admit`; who asks is what its certificate says),
2. w is hosted here and v is a neighbour of w by this host's own list (`admit`),
3. h ≤ s − 1 (`check_steps`).

Then the node that is reached lies within 1 + h ≤ s hops of v, and the edges passed lie between v and it. A step from w
to a node x of a third host is asked there *for my node w, through your x, h − 1 more*, where the same three points are
checked again: each edge of a walk is checked by a host that owns it, and each asks for a node of its own. What comes
back is a vector without an id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Integers, Reason
from manela.errors import AgentError, RefusedError

LONGEST_NAME = 256
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")

Node = tuple[str, str]
"""A node's name and its host."""


@dataclass(frozen=True)
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
        weights: dict[tuple[str, Node], float] = {}
        own: set[str] = set()
        for edge in edges:
            own.add(edge.own)
            if edge.other is None or edge.other == (edge.own, host):
                continue
            weights[edge.own, edge.other] = edge.weight
            if edge.other[1] == host:
                own.add(edge.other[0])
                weights[edge.other[0], (edge.own, host)] = edge.weight
        order = _order(numbers)
        nodes = sorted(own, key=lambda name: order((name, host)))
        strangers = sorted({other for _, other in weights if other[1] != host}, key=order)
        rows = {(name, host): row for row, name in enumerate(nodes)}
        rows |= {stranger: len(nodes) + row for row, stranger in enumerate(strangers)}
        arcs = sorted(
            (rows[name, host], order(other), rows[other], weight) for (name, other), weight in weights.items()
        )
        sources = np.array([arc[0] for arc in arcs], dtype=np.int64)
        return cls(
            host,
            nodes,
            strangers,
            np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=len(nodes))))).astype(np.int64),
            np.array([arc[2] for arc in arcs], dtype=np.int64),
            np.array([arc[3] for arc in arcs], dtype=np.float64),
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
    def _arcs(self) -> dict[tuple[str, Node], int]:
        names = [(name, self.host) for name in self.nodes] + self.strangers
        sources, indices = self.sources.tolist(), self.indices.tolist()
        return {(self.nodes[sources[arc]], names[indices[arc]]): arc for arc in range(len(indices))}

    def arcs_to(self, peer: str) -> Integers:
        """The arcs that lead to nodes of a peer."""
        theirs = np.array([False] * len(self.nodes) + [host == peer for _, host in self.strangers])
        return np.flatnonzero(theirs[self.indices]) if len(self.indices) else np.zeros(0, np.int64)

    def name_arc(self, arc: int) -> tuple[str, Node]:
        """The own node of an arc, and the node that it leads to."""
        target = int(self.indices[arc]) - len(self.nodes)
        other = self.strangers[target] if target >= 0 else (self.nodes[target + len(self.nodes)], self.host)
        return self.nodes[int(self.sources[arc])], other

    def admit(self, peer: str, asker: str, through: str) -> int:
        """The arc from `through` to the asker's node `name@host`, if this peer may ask by it.

        Whether a node exists here without being adjacent is not told.
        """
        node = parse_node(asker)
        if node[1] != peer:
            raise RefusedError(Reason.CLAIM, f"{asker} is not a node of {peer}")
        arc = self._arcs.get((through, node))
        if arc is None:
            raise RefusedError(Reason.NOT_ADJACENT, f"{asker} and {through} are not adjacent by this host's list")
        return arc


def check_steps(steps: Integers, hops: int) -> None:
    """Refuse walks that would go further than `hops` from the node that they are for."""
    if len(steps) and not (steps.min() >= 1 and steps.max() <= hops - 1):
        raise RefusedError(
            Reason.TOO_FAR, f"a walk may go 1 to {hops - 1} more steps, asked for {steps.min()} to {steps.max()}"
        )


def parse_node(text: str) -> Node:
    """`name@host` as a node; anything else is refused."""
    name, _, host = text.rpartition("@")
    if not is_name(name) or not HOST_NAME.fullmatch(host):
        raise RefusedError(Reason.MALFORMED, "a node must be written name@host")
    return name, host


def is_name(name: str) -> bool:
    """Whether this can be a node's name: 1 to 256 bytes of UTF-8, all printable."""
    try:
        return 0 < len(name.encode()) <= LONGEST_NAME and name.isprintable()
    except UnicodeEncodeError:
        return False


def check_host_name(name: str) -> str:
    """The name, if it can be a host's."""
    if not HOST_NAME.fullmatch(name):
        raise AgentError(f"a host's name must be 1 to 63 of a-z, 0-9, dot and hyphen, got {name!r}")
    return name


def _order(numbers: Mapping[Node, int] | None):  # type: ignore[no-untyped-def]
    """What nodes are sorted by."""
    if numbers is None:
        return lambda node: node

    def number(node: Node) -> int:
        if node not in numbers:
            raise AgentError(f"lock-step needs a number for every node, and {node[0]}@{node[1]} has none")
        return numbers[node]

    return number
