"""Imports the edges of a host's nodes from a source into the host's store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from manela.data.csr import LEAST_WEIGHT, MOST_WEIGHT
from manela.errors import AgentError
from manela.hosts.folder.config import FILE, read_config
from manela.hosts.folder.store import Store
from manela.hosts.state.names import HOST_NAME, Node, is_name
from manela.hosts.state.neighbourhood import Edge
from manela.sources.edges import Edges
from manela.sources.source import Source
from manela.sources.state import ImportState
from manela.system.files import make_private_folder

FOLDER = "imports"
"""Folder in a host's folder that holds the import state of each source."""
_BY_HAND = "by hand"
"""Key in an import state: edges of the source that an operator had added before."""


@dataclass(frozen=True)
class Imported:
    """Counts of an import: edges added or changed, removed, with hosts that are no peers, and with invalid names."""

    edges: int
    removed: int
    with_unknown_hosts: int
    odd: int

    def __str__(self) -> str:
        message = [f"{self.edges:,} edges imported"]
        message += [f"{self.removed:,} removed"] * bool(self.removed)
        message += [f"{self.with_unknown_hosts:,} ignored, to hosts that are not peers"] * bool(self.with_unknown_hosts)
        message += [f"{self.odd:,} ignored, with invalid node names"] * bool(self.odd)
        return ", ".join(message)


def import_to_host(home: Path, source: Source) -> Imported:
    """Read a source, add the edges of own nodes to a host's store, and remove edges that the source no longer has.

    An edge of several sources has the sum of their weights, and stays while one of them has it. Edges that an operator
    added by hand do not change.

    The store gets edges to own nodes and to nodes of peers. Edges to other hosts stay in the import state; the next
    import adds them if their host has become a peer.
    """
    host = read_config(home / FILE).name
    if source.own_hosts and host not in source.own_hosts:
        raise AgentError(
            f"the nodes of this source belong to {', '.join(sorted(source.own_hosts))}, but this host is named {host}; "
            "its name must be what others write after the @"
        )
    own_hosts = {host, *source.own_hosts}
    make_private_folder(home / FOLDER)
    name = re.sub(r"[^a-z0-9.]+", "-", source.key.lower())[:60].strip("-.")
    file = home / FOLDER / f"{name}-{hashlib.sha256(source.key.encode()).hexdigest()[:12]}.db"
    others = _read_others(home / FOLDER, file, host, own_hosts)
    with Store(home) as store, ImportState(file, source.key) as state:
        before = _sum_up(state.read_edges(), host, own_hosts)[0]
        in_store = {(edge.own, edge.other) for edge in store.edges() if edge.other is not None}
        # edges that an operator added never change, whatever sources say
        by_hand = {_as_pair(row) for row in state.get(_BY_HAND, [])} & in_store
        by_hand |= in_store - before.keys() - others.keys()
        for batch in source.read(state):
            state.add(batch, source.adds)
        state.remove_old(source.adds, LEAST_WEIGHT)
        now, odd = _sum_up(state.read_edges(), host, own_hosts)
        state.put(_BY_HAND, [[own, *other] for own, other in by_hand & now.keys()])
        known = own_hosts | set(store.peers())
        edges = [
            Edge(*ends, min(weight + others.get(ends, 0.0), MOST_WEIGHT))
            for ends, weight in now.items()
            if ends[1][1] in known and ends not in by_hand
        ]
        gone = before.keys() - now.keys() - by_hand
        removed = sum(store.remove_edge(Edge(*ends)) for ends in gone - others.keys())
        edges += [Edge(*ends, others[ends]) for ends in gone & others.keys() if ends[1][1] in known]
        taken = store.add_edges(edges)
        state.commit()  # last, so that an import that fails before is repeated by the next
    unknown = sum(ends[1][1] not in known for ends in now)
    return Imported(taken, removed, unknown, odd)


Pair = tuple[str, Node]
"""An own node and the other end of an edge."""


def _as_pair(row: list[str]) -> Pair:
    """Return the ends of an edge that is stored as own node, other node and host."""
    return row[0], (row[1], row[2])


def _sum_up(batches: Iterable[Edges], host: str, own_hosts: set[str]) -> tuple[dict[Pair, float], int]:
    """Return the weight of each edge of the host, with both directions added up, and how many pairs are not edges."""
    weights: dict[Pair, float] = {}
    odd = 0
    for batch in batches:
        batch_weights = [1.0] * len(batch.own) if batch.weights is None else batch.weights.tolist()
        for own, other, weight in zip(batch.own, batch.other, batch_weights, strict=True):
            ends = _as_ends(own, other, host, own_hosts)
            if ends is None:
                odd += 1
            else:
                weights[ends] = weights.get(ends, 0.0) + weight
    return weights, odd


def _read_others(folder: Path, file: Path, host: str, own_hosts: set[str]) -> dict[Pair, float]:
    """Return the summed edge weights of all sources imported before, except the one with this file."""
    weights: dict[Pair, float] = {}
    for path in sorted(folder.glob("*.db")):
        if path != file:
            with ImportState(path, None) as state:
                for ends, weight in _sum_up(state.read_edges(), host, own_hosts)[0].items():
                    weights[ends] = weights.get(ends, 0.0) + weight
    return weights


def _as_ends(own: str, other: str, host: str, own_hosts: set[str]) -> Pair | None:
    """Return the ends of an edge of the host, an own node first, or None if it is no edge of the host."""
    first, second = _as_node(own, host, own_hosts), _as_node(other, host, own_hosts)
    if first is None or second is None or first == second:
        return None
    if first[1] != host or (second[1] == host and second < first):
        first, second = second, first
    return (first[0], second) if first[1] == host else None


def _as_node(text: str, host: str, own_hosts: set[str]) -> Node | None:
    """Parse `name@host`; without a host, or with another of the own hosts, it is an own node; None if invalid."""
    name, at, where = text.strip().rpartition("@")
    if not at or where == host:
        node = (name if at else text.strip(), host)
    elif where in own_hosts:
        node = (text.strip(), host)
    else:
        node = (name, where)
    return node if is_name(node[0]) and HOST_NAME.fullmatch(node[1]) else None
