"""The part of a network that is a host's own, imported from where it lives into the host's store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
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
from manela.sources.ties import Ties

FOLDER = "imports"
"""In a host's folder: how far each source was read."""
_BY_HAND = "by hand"
"""Name of a mark: edges of the source that an operator had written down before."""


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

    An edge of several sources has the sum of their weights, and stays while one of them has it. Edges that an operator
    added by hand stay as they are.

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
    name = re.sub(r"[^a-z0-9.]+", "-", source.key.lower())[:60].strip("-.")
    file = home / FOLDER / f"{name}-{hashlib.sha256(source.key.encode()).hexdigest()[:12]}.db"
    others = _read_others(home / FOLDER, file, host, own_hosts)
    with Store(home) as store, ImportState(file, source.key) as state:
        before = _sum_up(state.read_ties(), host, own_hosts)[0]
        in_store = {(edge.own, edge.other) for edge in store.edges() if edge.other is not None}
        # what an operator wrote down stays as it is, whatever sources say
        by_hand = {_as_pair(row) for row in state.get(_BY_HAND, [])} & in_store
        by_hand |= in_store - before.keys() - others.keys()
        for ties in source.read(state):
            state.add(ties, source.adds)
        state.remove_old(source.adds, LEAST_WEIGHT)
        now, odd = _sum_up(state.read_ties(), host, own_hosts)
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
        state.commit()  # if it is not reached, the next import does the same again
    strangers = sum(ends[1][1] not in known for ends in now)
    return Imported(taken, removed, strangers, odd)


Pair = tuple[str, Node]
"""An own node and the other end of an edge."""


def _as_pair(row: list[str]) -> Pair:
    return row[0], (row[1], row[2])


def _sum_up(batches: Iterable[Ties], host: str, own_hosts: set[str]) -> tuple[dict[Pair, float], int]:
    """The weight of each edge of the host's; one that is there both ways is one. And how many can be no edges."""
    weights: dict[Pair, float] = {}
    odd = 0
    for ties in batches:
        each = [1.0] * len(ties.own) if ties.weights is None else ties.weights.tolist()
        for own, other, weight in zip(ties.own, ties.other, each, strict=True):
            ends = _as_ends(own, other, host, own_hosts)
            if ends is None:
                odd += 1
            else:
                weights[ends] = weights.get(ends, 0.0) + weight
    return weights, odd


def _read_others(folder: Path, file: Path, host: str, own_hosts: set[str]) -> dict[Pair, float]:
    """The weights of edges by all sources that were imported before, but one."""
    weights: dict[Pair, float] = {}
    for path in sorted(folder.glob("*.db")):
        if path != file:
            with ImportState(path, None) as state:
                for ends, weight in _sum_up(state.read_ties(), host, own_hosts)[0].items():
                    weights[ends] = weights.get(ends, 0.0) + weight
    return weights


def _as_ends(own: str, other: str, host: str, own_hosts: set[str]) -> Pair | None:
    """The ends of an edge of the host's, an own node first; None if an end can be no node."""
    one_end, other_end = _as_node(own, host, own_hosts), _as_node(other, host, own_hosts)
    if one_end is None or other_end is None or one_end == other_end:
        return None
    if one_end[1] != host or (other_end[1] == host and other_end < one_end):
        one_end, other_end = other_end, one_end
    return (one_end[0], other_end) if one_end[1] == host else None


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
