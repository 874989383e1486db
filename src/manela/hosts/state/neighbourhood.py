"""The accessibility circumscription: decides which peer may see what of a host's part of the network.

The paper, section III: an agent has the edges of its own node, and may know the network up to s hops around it, but no
more, not even through chains of other agents.

By messages, hosts only ask for direct neighbours: *show me your node w, because my node v is its neighbour*. The host
of w checks that v belongs to the asking peer, as given by its certificate, and that v is a neighbour of w in its own
list of edges (`admit_all`). It then shows the vector of w and means over the neighbours of w; each further hop is
computed inside the host that owns the node.

By walks, hosts ask: *for my node v, through your node w, h more steps*. The host of w checks the same, and also that
h ≤ s − 1 (`check_steps`). So the walk ends within 1 + h ≤ s hops of v, and all its edges lie on the way. For a step
from w to a node x of a third host, the host of w asks there: *for my node w, through your node x, h − 1 more steps*.
The same checks apply again, so each edge of a walk is checked by a host that owns it, and each host asks only for its
own nodes. The reply is a vector without an id.

Private nodes learn inside their host only: their edges with nodes of other hosts are left out here, so that such an
edge is neither introduced to a peer nor admitted from one.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import AgentError, ClaimError, MalformedError, NodeName, NotAdjacentError, RefusedError, TooFarError
from manela.hosts.state.messages import Integers
from manela.hosts.state.names import Node, number_of, parse_node
from manela.kernels.randomness import derive

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of a node of this host; if `other` is None, a node without edges."""

    own: str
    other: Node | None
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The nodes of a host with their edges, and nothing else of the network.

    Rows 0 … n − 1 are the host's own nodes, rows from n on are their neighbours at other hosts.
    """

    host: str
    nodes: list[str]  # names of the host's own nodes
    remotes: list[Node]  # their neighbours at other hosts
    # rows of the neighbours of each own node, in CSR form; each entry is an arc
    indptr: Integers
    indices: Integers
    weights: npt.NDArray[np.float64]  # shape (arcs,)
    private: frozenset[str] = field(default_factory=frozenset)  # names of own nodes that are never shown to peers

    @classmethod
    def build(
        cls,
        host: str,
        edges: Iterable[Edge],
        numbers: Mapping[Node, int] | None = None,
        private: Collection[str] = (),
    ) -> Neighbourhood:
        """Build the neighbourhood of these edges, with nodes sorted by `numbers`, or by name if there are none.

        An edge between two own nodes may be given once or in both directions; the last weight counts. Edges of
        `private` nodes with nodes of other hosts are left out.
        """
        ids: dict[Node, int] = {}
        ends, weights = (array("q"), array("q")), array("d")
        for edge in edges:
            own = ids.setdefault((edge.own, host), len(ids))
            if edge.other is None or edge.other == (edge.own, host):
                continue
            if edge.other[1] != host and edge.own in private:
                continue
            other = ids.setdefault(edge.other, len(ids))
            for source, target in ((own, other), (other, own))[: 1 + (edge.other[1] == host)]:
                ends[0].append(source)
                ends[1].append(target)
                weights.append(edge.weight)
        order = _order(numbers)
        nodes = sorted((node for node in ids if node[1] == host), key=order)
        remotes = sorted((node for node in ids if node[1] != host), key=order)
        rows, ranks = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
        for row, node in enumerate([*nodes, *remotes]):
            rows[ids[node]] = row
            ranks[row] = row if numbers is None else numbers[node]
        sources, targets = (rows[np.frombuffer(end, np.int64)] if len(end) else _NONE for end in ends)
        # keep the last of several arcs between the same nodes, and sort each node's arcs by rank
        _, last = np.unique((sources * len(ids) + targets)[::-1], return_index=True)
        kept = len(sources) - 1 - last
        kept = kept[np.lexsort((ranks[targets[kept]], sources[kept]))]
        return cls(
            host,
            [name for name, _ in nodes],
            remotes,
            np.concatenate(([0], np.cumsum(np.bincount(sources[kept], minlength=len(nodes))))).astype(np.int64),
            targets[kept],
            np.array(weights, dtype=np.float64)[kept],
            frozenset(name for name, _ in nodes if name in private),
        )

    @cached_property
    def sources(self) -> Integers:
        """The row of the own node of each arc."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.indptr))

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each own node."""
        return {name: row for row, name in enumerate(self.nodes)}

    @cached_property
    def is_private(self) -> npt.NDArray[np.bool_]:
        """Which own nodes are never shown to peers, (n,)."""
        return np.array([name in self.private for name in self.nodes], dtype=np.bool_)

    @cached_property
    def peers(self) -> list[str]:
        """The other hosts that have neighbours of own nodes."""
        return sorted({host for _, host in self.remotes})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all nodes, edges and weights."""
        sha = hashlib.sha256(repr((self.host, self.nodes, self.remotes)).encode())
        for part in (self.indptr, self.indices, self.weights):
            sha.update(part.tobytes())
        if self.private:
            sha.update(repr(sorted(self.private)).encode())
        return sha.hexdigest()

    @cached_property
    def signatures(self) -> npt.NDArray[np.uint64]:
        """A number for each own node, (n,), that says with whom it has edges, and of which weights."""
        names = [*((name, self.host) for name in self.nodes), *self.remotes]
        numbers = np.array([number_of(f"{name}@{host}") for name, host in names], np.uint64)
        found = np.zeros(len(self.nodes), np.uint64)
        np.add.at(found, self.sources, derive(numbers[self.indices], self.weights.view(np.uint64)))
        return found

    @cached_property
    def _remote_rows(self) -> dict[Node, int]:
        return {node: len(self.nodes) + row for row, node in enumerate(self.remotes)}

    @cached_property
    def _keys(self) -> tuple[Integers, Integers]:
        """Every arc encoded as one integer, sorted, and the index of each arc."""
        keys = self.sources * (len(self.nodes) + len(self.remotes)) + self.indices
        order = np.argsort(keys)
        return keys[order], order

    def arcs_to(self, peer: str) -> Integers:
        """Return the arcs that lead to nodes of a peer."""
        return self._arcs_by_peer.get(peer, _NONE)

    @cached_property
    def _arcs_by_peer(self) -> dict[str, Integers]:
        positions = {host: position for position, host in enumerate(self.peers)}
        peer_of = np.array([-1] * len(self.nodes) + [positions[host] for _, host in self.remotes], np.int64)
        peer_of_arc = peer_of[self.indices] if len(self.indices) else _NONE
        order = np.argsort(peer_of_arc, kind="stable")
        begins = np.searchsorted(peer_of_arc[order], np.arange(len(positions) + 1))
        return {host: order[begins[row] : begins[row + 1]] for host, row in positions.items()}

    def count_bytes(self, peer: str) -> tuple[int, int]:
        """Return the number of edges to nodes of a peer, and the total length in bytes of the names at their ends."""
        arcs = self.arcs_to(peer)
        own, others = (np.bincount(ends, minlength=1) for ends in (self.sources[arcs], self.indices[arcs]))
        length = sum(len(self.nodes[row].encode()) * int(own[row]) for row in np.flatnonzero(own).tolist())
        first = len(self.nodes)
        length += sum(
            len(self.remotes[row - first][0].encode()) * int(others[row]) for row in np.flatnonzero(others).tolist()
        )
        return len(arcs), length

    def name_arc(self, arc: int) -> tuple[str, Node]:
        """Return the own node of an arc, and the node that it leads to."""
        target = int(self.indices[arc]) - len(self.nodes)
        other = self.remotes[target] if target >= 0 else (self.nodes[target + len(self.nodes)], self.host)
        return self.nodes[int(self.sources[arc])], other

    def admit_all(
        self, peer: str, askers: Sequence[str], throughs: Sequence[str]
    ) -> tuple[Integers, list[RefusedError]]:
        """Return the arc from each of `throughs` to the asker's node `name@host`, or −1 if this peer may not use it.

        There is one refusal for each type. It does not disclose whether a node that is not adjacent exists here.
        """
        refused: dict[type[RefusedError], list[tuple[str | NodeName, ...]]] = {}
        pairs = np.full((2, len(askers)), -1, np.int64)
        for i, (asker, through) in enumerate(zip(askers, throughs, strict=True)):
            try:
                node = parse_node(asker)
            except MalformedError as refusal:
                refused.setdefault(MalformedError, []).append((str(refusal),))
                continue
            if node[1] != peer:
                refused.setdefault(ClaimError, []).append((NodeName(asker, asker), f" is not a node of {peer}"))
                continue
            pairs[:, i] = self.rows.get(through, -2), self._remote_rows.get(node, -2)
        keys, order = self._keys
        wanted = pairs[0] * (len(self.nodes) + len(self.remotes)) + pairs[1]
        positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_edge = (pairs >= 0).all(axis=0)
        if len(keys):
            is_edge &= keys[positions] == wanted
        not_adjacent = np.flatnonzero(~is_edge & (pairs != -1).all(axis=0)).tolist()
        if not_adjacent:
            asker, through = askers[not_adjacent[0]], throughs[not_adjacent[0]]
            ends = NodeName(asker, asker), " and ", NodeName(through, f"{through}@{self.host}")
            refused[NotAdjacentError] = [(*ends, " are not adjacent by this host's list")] * len(not_adjacent)
        return np.where(is_edge, order[positions] if len(keys) else -1, -1), [
            kind(*[f"{len(messages):,} edges, such as: "] * (len(messages) > 1), *messages[0], times=len(messages))
            for kind, messages in refused.items()
        ]

    def admit_edges(
        self, peer: str, askers: Sequence[str], throughs: Sequence[str]
    ) -> tuple[Admitted, list[RefusedError]]:
        """Return those of a peer's edges that this host has too, and the refusals of the others."""
        arcs, refusals = self.admit_all(peer, askers, throughs)
        accepted = arcs >= 0
        distinct, first = np.unique(arcs[accepted], return_index=True)
        if len(distinct) < np.count_nonzero(accepted):
            raise MalformedError("an edge is introduced twice")
        arcs = distinct[np.argsort(first)]
        return Admitted.of(self, accepted, arcs), refusals

    def choose_visible(self, peer: str, most: int, key: int) -> npt.NDArray[np.bool_]:
        """Return which own nodes a peer may see: its neighbours by this host's list, and of these so many at most.

        Which these are depends on their names and the host's `key`, so that no peer can choose, or see others when it
        introduces its edges again.
        """
        rows = np.unique(self.sources[self.arcs_to(peer)])
        draws = derive(key, np.array([number_of(self.nodes[row]) for row in rows.tolist()], np.uint64))
        visible = np.zeros(len(self.nodes), bool)
        visible[rows[np.argsort(draws)[:most]]] = True
        return visible


@dataclass(frozen=True, eq=False)
class Admitted:
    """The admitted edges of a peer, numbered from 0."""

    accepted: npt.NDArray[np.bool_]  # which of the edges that the peer introduced are admitted
    # the arc of each admitted edge, and the row of its node here
    arcs: Integers
    rows: Integers
    neighbours: Integers  # the distinct rows in order of first appearance: the peer's neighbours here, by number
    edge_of_arc: Integers  # the edge number of each arc of this host, −1 for arcs that are not among these edges

    @classmethod
    def of(cls, near: Neighbourhood, accepted: npt.NDArray[np.bool_], arcs: Integers) -> Admitted:
        """Number these arcs; `accepted` says which of the edges that the peer introduced they are."""
        edge_of_arc = np.full(len(near.indices), -1, np.int64)
        edge_of_arc[arcs] = np.arange(len(arcs))
        rows = near.sources[arcs]
        return cls(accepted, arcs, rows, find_distinct(rows), edge_of_arc)

    def keep(self, near: Neighbourhood, visible: npt.NDArray[np.bool_]) -> Admitted:
        """Return those of the edges whose nodes here are visible."""
        accepted, kept = self.accepted.copy(), visible[self.rows]
        accepted[np.flatnonzero(accepted)[~kept]] = False
        return Admitted.of(near, accepted, self.arcs[kept])

    def find_rows(self, edges: Integers) -> Integers:
        """Return the rows of the nodes here that belong to these edge numbers; refuse unknown numbers."""
        if len(edges) and not (edges.min() >= 0 and edges.max() < len(self.rows)):
            raise NotAdjacentError(f"edges must be numbered 0 to {len(self.rows) - 1}")
        return self.rows[edges]


def find_distinct(values: Integers) -> Integers:
    """Return each value once, in order of first appearance."""
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)]


def check_steps(steps: Integers, hops: int) -> None:
    """Refuse walks that would end more than `hops` from the node that they are for."""
    if len(steps) and not (steps.min() >= 1 and steps.max() <= hops - 1):
        raise TooFarError(f"a walk may go 1 to {hops - 1} more steps, asked for {steps.min()} to {steps.max()}")


def _order(numbers: Mapping[Node, int] | None) -> Callable[[Node], Any]:
    if numbers is None:
        return lambda node: node

    def number(node: Node) -> int:
        if node not in numbers:
            raise AgentError(f"lock-step needs a number for every node, and {node[0]}@{node[1]} has none")
        return numbers[node]

    return number
