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

import hashlib
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.agents.messages import Integers, Reason
from manela.errors import AgentError, RefusedError

LONGEST_NAME = 256
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")

_NONE = np.zeros(0, np.int64)

Node = tuple[str, str]
"""A node's name and its host."""


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
        arcs, refusals = self.admit_all(peer, [asker], [through])
        if refusals:
            raise refusals[0]
        return int(arcs[0])

    def admit_all(
        self, peer: str, askers: Sequence[str], throughs: Sequence[str]
    ) -> tuple[Integers, list[RefusedError]]:
        """The same for many: an arc each, −1 where it is refused, and the refusals, those of one reason together."""
        refused: dict[str, list[str]] = {}
        pairs = np.full((2, len(askers)), -1, np.int64)
        for i, (asker, through) in enumerate(zip(askers, throughs, strict=True)):
            try:
                node = parse_node(asker)
            except RefusedError as refusal:
                refused.setdefault(refusal.reason, []).append(str(refusal))
                continue
            if node[1] != peer:
                refused.setdefault(Reason.CLAIM, []).append(f"{asker} is not a node of {peer}")
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
            refused[Reason.NOT_ADJACENT] = [first, *([""] * (len(far) - 1))]
        return np.where(there, order[places] if len(keys) else -1, -1), [
            RefusedError(reason, f"{len(words):,} edges, such as: {words[0]}" if len(words) > 1 else words[0],
                         times=len(words))
            for reason, words in refused.items()
        ]  # fmt: skip


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


def _order(numbers: Mapping[Node, int] | None) -> Callable[[Node], Any]:
    """What nodes are sorted by."""
    if numbers is None:
        return lambda node: node

    def number(node: Node) -> int:
        if node not in numbers:
            raise AgentError(f"lock-step needs a number for every node, and {node[0]}@{node[1]} has none")
        return numbers[node]

    return number
