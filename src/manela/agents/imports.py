"""The part of a network that is a host's own, imported from where it lives into the host's store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from manela.agents.config import FILE, read_config
from manela.agents.names import HOST_NAME, Node, is_name
from manela.agents.neighbourhood import Edge
from manela.agents.store import Store
from manela.errors import AgentError
from manela.params import LEAST_WEIGHT, MOST_WEIGHT
from manela.private import make_private_folder
from manela.sources.source import Source
from manela.sources.state import ImportState

FOLDER = "imports"
"""In a host's folder: how far each source was read."""


@dataclass(frozen=True)
class Imported:
    """What came of an import: edges added or changed, removed, with hosts that are no peers, and with odd names."""

    edges: int
    removed: int
    with_strangers: int
    odd: int

    def __str__(self) -> str:
        words = [f"{self.edges:,} edges taken"]
        words += [f"{self.removed:,} removed"] * bool(self.removed)
        words += [f"{self.with_strangers:,} left out, with hosts that are no peers"] * bool(self.with_strangers)
        words += [f"{self.odd:,} left out, with names that no node can have"] * bool(self.odd)
        return ", ".join(words)


def import_to_host(home: Path, source: Source) -> Imported:
    """Read a source, and put the edges of own nodes into a host's store; edges that the source lost are removed.

    Edges are with own nodes and with those of peers. Others are kept beside the store, and taken by the next import
    after their host has become a peer.
    """
    host = read_config(home / FILE).name
    if source.own_hosts and host not in source.own_hosts:
        raise AgentError(
            f"the nodes of this source are of {', '.join(sorted(source.own_hosts))}, and this host is called {host}: "
            "a host must be called as others write it behind the @"
        )
    own_hosts = {host, *source.own_hosts}
    make_private_folder(home / FOLDER)
    name = re.sub(r"[^a-z0-9.]+", "-", source.key.lower())[:100].strip("-.")
    with Store(home) as store, ImportState(home / FOLDER / f"{name}.db", source.key) as state:
        for ties in source.read(state):
            state.add(ties, source.adds)
        gone = state.remove_old(source.adds, LEAST_WEIGHT)
        known, strangers, odd = own_hosts | set(store.peers()), 0, 0
        # an edge that the source has both ways is one, with both weights
        edges: dict[tuple[str, Node], Edge] = {}
        for ties in state.read_ties():
            weights = [1.0] * len(ties.own) if ties.weights is None else ties.weights.tolist()
            for own, other, weight in zip(ties.own, ties.other, weights, strict=True):
                edge = _as_edge(own, other, weight, host, own_hosts)
                if edge is None or edge.other is None:
                    odd += 1
                elif edge.other[1] in known:
                    ends = (edge.own, edge.other)
                    before = edges[ends].weight if ends in edges else 0.0
                    edges[ends] = Edge(*ends, min(before + weight, MOST_WEIGHT))
                else:
                    strangers += 1
        removed = 0
        for own, other in gone:
            edge = _as_edge(own, other, 1.0, host, own_hosts)
            if edge is not None and edge.other is not None and (edge.own, edge.other) not in edges:
                removed += store.remove_edge(edge)
        taken = store.add_edges(edges.values())
        state.commit()  # if it is not reached, the next import does the same again
    return Imported(taken, removed, strangers, odd)


def _as_edge(own: str, other: str, weight: float, host: str, own_hosts: set[str]) -> Edge | None:
    """An edge of the host's, None if an end can be no node."""
    one_end, other_end = _as_node(own, host, own_hosts), _as_node(other, host, own_hosts)
    if one_end is None or other_end is None or one_end == other_end:
        return None
    if one_end[1] != host or (other_end[1] == host and other_end < one_end):
        one_end, other_end = other_end, one_end
    return Edge(one_end[0], other_end, weight) if one_end[1] == host else None


def _as_node(text: str, host: str, own_hosts: set[str]) -> Node | None:
    """`name@host` as a node; without a host, or with another one of one's own, an own node."""
    name, at, where = text.strip().rpartition("@")
    if not at or where == host:
        node = (name if at else text.strip(), host)
    elif where in own_hosts:
        node = (text.strip(), host)
    else:
        node = (name, where)
    return node if is_name(node[0]) and HOST_NAME.fullmatch(node[1]) else None
