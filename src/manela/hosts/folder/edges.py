"""Edges from outside: files that operators write, and sources that are read again and again."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from manela.data.csr import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE
from manela.errors import AgentError, FormatError
from manela.hosts.folder.config import FILE, read_config
from manela.hosts.folder.store import Store
from manela.hosts.state.names import HOST_NAME, Node, check_host_name, is_name
from manela.hosts.state.neighbourhood import Edge
from manela.sources.edges import Edges
from manela.sources.source import Source
from manela.sources.state import PATIENCE, ImportState
from manela.system.files import make_private_folder

_HEADERS = (("source", "target"), ("own", "other"))
"""The first two words of a header; `manela import` writes the first, with `weight`."""


def read_edges(path: Path, host: str, peers: Collection[str] = ()) -> list[Edge]:
    """Read edges from a CSV file of `own node, other node@host, weight`; without `@host` the other node is own too.

    A line with one field is a node without edges. `#` begins a comment. The weight is 1 by default. A header
    `source,target,weight` or `own,other,weight` is skipped. `peers` are the names of the host's peers, by which swapped
    columns are recognised.
    """
    edges, is_first = [], True
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(csv.reader(file, skipinitialspace=True, strict=True), 1):
                fields = [text.strip() for text in line]
                if not fields or fields[0].startswith("#"):
                    continue
                if not (is_first and _is_header(fields)):
                    if is_first:
                        _check_first_weight(fields, f"{path}, line {number}")
                    edge = parse_edge(fields, host, f"{path}, line {number}")
                    check_own_name(edge.own, host, peers, f"{path}, line {number}")
                    edges.append(edge)
                is_first = False
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{path}: must be CSV in UTF-8: {error}") from error
    return edges


def _is_header(fields: list[str]) -> bool:
    """Return whether a line names columns rather than an edge."""
    names = tuple(text.lower() for text in fields)
    return names[:2] in _HEADERS and names[2:] in ((), ("weight",))


def _check_first_weight(fields: list[str], source: str) -> None:
    """Refuse a first line whose weight is not a number: an unknown header."""
    try:
        float(fields[2] if len(fields) == 3 and fields[2] else 1.0)
    except ValueError:
        raise FormatError(
            f"{source}: a weight must be a number, got {fields[2][:50]!r}; a header must be `source,target,weight`, or "
            "left out"
        ) from None


def check_own_name(own: str, host: str, peers: Collection[str], source: str) -> None:
    """Refuse the name of an own node that ends in @ and a host's name, as if the columns were swapped."""
    name, _, where = own.rpartition("@")
    if name and where == host:
        raise FormatError(f"{source}: own nodes are written without their host: expected {name!r}, got {own[:300]!r}")
    if name and where in peers:
        raise FormatError(
            f"{source}: the first node must be one of this host, but {own[:300]!r} is a node of {where}; swap the two "
            "columns"
        )


def is_loop(edge: Edge, host: str) -> bool:
    """Return whether an edge leads from a node to itself, which no host learns from."""
    return edge.other == (edge.own, host)


def parse_edge(fields: list[str], host: str, source: str) -> Edge:
    """Parse an edge from one to three fields."""
    if not 1 <= len(fields) <= 3:
        raise FormatError(f"{source}: must be `own node, other node@host, weight`, got {len(fields)} fields")
    own, other, weight = [*fields, "", ""][:3]
    name, at, where = other.rpartition("@")
    node: Node | None = (name, where) if at else (other, host)
    if other == "":
        node = None
    if own.startswith("#"):
        raise FormatError(f"{source}: a name must not begin with #, which starts a comment, got {own[:50]!r}")
    for label in (own, *((node[0],) if node else ())):
        if not is_name(label) or label != label.strip():
            raise FormatError(
                f"{source}: a name must be 1 to 256 bytes of printable text without surrounding spaces, "
                f"got {label[:50]!r}"
            )
    if node and at:
        check_host_name(where)
    try:
        number = float(weight) if weight else 1.0
    except ValueError:
        raise FormatError(f"{source}: a weight must be a number, got {weight[:50]!r}") from None
    if not LEAST_WEIGHT <= number <= MOST_WEIGHT:
        raise FormatError(f"{source}: a weight must be {WEIGHT_RULE}, got {weight[:50]!r}")
    return Edge(own, node, number)


def read_numbers(path: Path) -> dict[Node, int]:
    """Read the node numbers of a lock-step run from lines `name@host,number`."""
    numbers: dict[Node, int] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            node, _, number = line.rpartition(",")
            name, _, host = node.rpartition("@")
            numbers[name, host] = int(number)
    except (OSError, ValueError) as error:
        raise AgentError(f"{path}: lock-step needs lines `name@host,number` there: {error}") from error
    return numbers


def write_edges(edges: Iterable[Edge], host: str, file: TextIO) -> int:
    """Write edges in the format of `read_edges`; return the number of lines."""
    lines, writer = 0, csv.writer(file, lineterminator="\n")
    for edge in edges:
        fields = [edge.own]
        if edge.other is not None:
            name, where = edge.other
            # an own node with an @ in its name needs its host, or the part after the @ would be read as one
            fields.append(name if where == host and "@" not in name else f"{name}@{where}")
            if edge.weight != 1.0 or _is_header(fields):
                fields.append(repr(edge.weight))
        writer.writerow(fields)
        lines += 1
    return lines


FOLDER = "imports"
"""Folder in a host's home that holds the import state of each source."""
_BY_HAND = "by hand"
"""Key in an import state: edges of the source that an operator had added before."""
_TWO_SIDED = "two-sided"
"""Key in an import state: whether the last import took a tie with another host only if the own user acted."""
_WAITING = "waiting"
"""Key in an import state: ties that are left for later imports."""
_NEW = "new neighbours"
"""Key in the store: the last day on which sources made own nodes neighbours of peers, and of how many for each peer."""
FEWEST_NEW, _NEW_SHARE = 100, 0.1
"""How many own nodes sources make neighbours of one peer in a day: this many, or this share of all if that is more.

If larger, someone who makes users write back gets to see more of them before an operator notices. If smaller, the first
import with a large peer takes more days.
"""
DAY = 86400
"""Seconds of a day."""


@dataclass(frozen=True)
class Imported:
    """Counts of an import: edges added or changed, removed, left out for some reason, and left for later."""

    edges: int
    removed: int
    with_unknown_hosts: int  # with hosts that are not peers
    odd: int  # with invalid names
    erased: int = 0  # of nodes that were erased
    one_sided: int = 0  # with peers' users of whom only they wrote or followed
    waiting: int = 0  # of nodes that are to become neighbours of a peer on a later day
    most_new: int = 0  # how many nodes become neighbours of one peer in a day

    def __str__(self) -> str:
        message = [f"{self.edges:,} edges imported"]
        message += [f"{self.removed:,} removed"] * bool(self.removed)
        message += [f"{self.with_unknown_hosts:,} ignored, to hosts that are not peers"] * bool(self.with_unknown_hosts)
        message += [f"{self.odd:,} ignored, with invalid node names"] * bool(self.odd)
        message += [f"{self.erased:,} left out, of nodes that were erased"] * bool(self.erased)
        if self.one_sided:
            message.append(
                f"{self.one_sided:,} left out, as only the user elsewhere wrote or followed (--one-way takes them)"
            )
        if self.waiting:
            message.append(
                f"{self.waiting:,} left for later imports, as at most {self.most_new:,} nodes become neighbours of one "
                "peer in a day"
            )
        return ", ".join(message)


def import_to_host(home: Path, source: Source, one_way: bool = False, today: int | None = None) -> Imported:
    """Read a source, add the edges of own nodes to a host's store, and remove edges that the source no longer has.

    An edge of several sources has the sum of their weights, and stays while one of them has it. Edges that an operator
    added by hand do not change. Nodes that were erased are left out, also of the import state.

    The store gets edges to own nodes and to nodes of peers. Edges to other hosts stay in the import state; the next
    import adds them if their host has become a peer.

    If people elsewhere can add edges to the source, an edge with a node of a peer counts only if the own user wrote or
    followed, too, unless `one_way`; and the nodes that become neighbours of a peer in a day, of which `today` is the
    number since 1970, are bounded. Edges that have to wait come with later imports.
    """
    today = int(time.time()) // DAY if today is None else today
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
    source.keep_directions()
    with Store(home) as store, ImportState(file, source.key) as state:
        changes, erased = store.changes, store.tombstones()
        state.leaves_out = erased.cover_text if erased else None
        before = _read_taken(state, host, own_hosts)
        stored = [edge for edge in store.edges() if edge.other is not None]
        in_store = {(edge.own, edge.other) for edge in stored if edge.other is not None}
        # edges that an operator added never change, whatever sources say
        by_hand = {_as_pair(row) for row in state.get(_BY_HAND, [])} & in_store
        by_hand |= in_store - before.keys() - others.keys()
        for batch in source.read(state):
            if changes != store.changes:  # a node may have been erased meanwhile
                changes, erased = store.changes, store.tombstones()
                state.leaves_out = erased.cover_text if erased else None
            state.add(batch, source.adds)
        state.remove_old(source.adds, LEAST_WEIGHT)
        two_sided = source.directed and not one_way
        found = _sum_up(state.read_edges(), host, own_hosts)
        now = found.select(two_sided, host)
        known = own_hosts | set(store.peers())
        most_new, waiting = 0, set[Pair]()
        if source.directed:
            arrivals = _Arrivals(store, today)
            most_new, waiting = (
                arrivals.most,
                arrivals.hold_back(
                    [ends for ends in now if ends[1][1] in known - own_hosts and ends not in in_store], in_store
                ),
            )
            now = {ends: weight for ends, weight in now.items() if ends not in waiting}
        state.put(_TWO_SIDED, two_sided)
        state.put(_WAITING, [[own, "@".join(other)] for own, other in sorted(waiting)])
        state.put(_BY_HAND, [[own, "@".join(other)] for own, other in sorted(by_hand & now.keys())])
        edges = [
            Edge(*ends, min(weight + others.get(ends, 0.0), MOST_WEIGHT))
            for ends, weight in now.items()
            if ends[1][1] in known and ends not in by_hand
        ]
        gone = before.keys() - now.keys() - by_hand
        removed = sum(store.remove_edge(Edge(*ends)) for ends in gone - others.keys())
        edges += [Edge(*ends, others[ends]) for ends in gone & others.keys() if ends[1][1] in known]
        added = store.add_edges(edges)
        if changes != store.changes:
            state.purge(store.tombstones().cover_text)
        state.commit()  # last, so that an import that fails before is repeated by the next
    unknown = sum(ends[1][1] not in known for ends in now)
    one_sided = sum(ends[1][1] in known for ends in found.weights.keys() - now.keys() - waiting)
    return Imported(
        added.edges, removed, unknown, found.odd, added.erased + state.left_out, one_sided, len(waiting), most_new
    )


def purge_imports(home: Path, is_purged: Callable[[str], bool], always: bool = True, patience: float = PATIENCE) -> int:
    """Delete names from all import states; return how many entries that were.

    The files are written anew, as deleted rows of older versions may still be in them; unless `always`, only those
    with such a name are. An import that runs is waited for `patience` seconds.
    """
    entries = 0
    for path in sorted((home / FOLDER).glob("*.db")):
        with ImportState(path, None, patience) as state:
            purged = state.purge(is_purged)
            if purged or always:
                state.scrub()
            entries += purged
    return entries


class _Arrivals:
    """Bounds how many own nodes become neighbours of each peer in a day, by what sources say."""

    def __init__(self, store: Store, today: int) -> None:
        self._store, self._today = store, today
        self.most = max(FEWEST_NEW, int(_NEW_SHARE * len(store.nodes())))

    def hold_back(self, pairs: Iterable[Pair], in_store: Collection[Pair]) -> set[Pair]:
        """Return those of some new pairs that have to wait, and count the own nodes of the others.

        Which nodes wait is drawn by a key of this host, so that no peer chooses.
        """
        day, counts = json.loads(self._store.get(_NEW) or "[0, {}]")
        counts = counts if day >= self._today else {}  # a clock that went back allows no more
        key = self._store.get(_DRAW) or secrets.token_hex(16)
        neighbours = {(own, other[1]) for own, other in in_store}
        wanted: dict[tuple[str, str], list[Pair]] = {}
        for ends in pairs:
            if (ends[0], ends[1][1]) not in neighbours:
                wanted.setdefault((ends[0], ends[1][1]), []).append(ends)
        waiting: set[Pair] = set()
        for own, peer in sorted(wanted, key=lambda arrival: _draw(key, *arrival)):
            if counts.get(peer, 0) < self.most:
                counts[peer] = counts.get(peer, 0) + 1
            else:
                waiting.update(wanted[own, peer])
        self._store.put(_NEW, json.dumps([max(day, self._today), counts]))
        self._store.put(_DRAW, key)
        return waiting


_DRAW = "draw of new neighbours"
"""Key in the store: the secret that draws which nodes wait."""


def _draw(key: str, own: str, peer: str) -> bytes:
    return hashlib.blake2b(f"{own}@{peer}".encode(), key=key.encode(), digest_size=16).digest()


Pair = tuple[str, Node]
"""An own node and the other end of an edge."""


def _as_pair(row: list[str]) -> Pair:
    """Return the ends of an edge that is stored as own node and `name@host`, or as three fields by older versions."""
    name, _, host = row[1].rpartition("@") if len(row) == 2 else (row[1], "", row[2])
    return row[0], (name, host)


@dataclass(frozen=True)
class _Found:
    """The edges of a host in a source: the weight of each, with both directions added up."""

    weights: dict[Pair, float]
    acted: set[Pair]  # the edges of which some lead from the own node
    odd: int  # how many pairs are not edges

    def select(self, two_sided: bool, host: str) -> dict[Pair, float]:
        """Return all edges or, if `two_sided`, those between own nodes and those that lead from an own node."""
        if not two_sided:
            return self.weights
        return {ends: weight for ends, weight in self.weights.items() if ends[1][1] == host or ends in self.acted}


def _sum_up(batches: Iterable[Edges], host: str, own_hosts: set[str]) -> _Found:
    """Return the edges of the host."""
    weights: dict[Pair, float] = {}
    acted: set[Pair] = set()
    odd = 0
    for batch in batches:
        batch_weights = [1.0] * len(batch.own) if batch.weights is None else batch.weights.tolist()
        for own, other, weight in zip(batch.own, batch.other, batch_weights, strict=True):
            first, second = _as_node(own, host, own_hosts), _as_node(other, host, own_hosts)
            ends = _as_ends(first, second, host)
            if ends is None:
                odd += 1
                continue
            weights[ends] = weights.get(ends, 0.0) + weight
            if first is not None and first[1] == host:
                acted.add(ends)
    return _Found(weights, acted, odd)


def _read_taken(state: ImportState, host: str, own_hosts: set[str]) -> dict[Pair, float]:
    """Return the edges that the last import with this state took."""
    waiting = {_as_pair(row) for row in state.get(_WAITING, [])}
    found = _sum_up(state.read_edges(), host, own_hosts).select(state.get(_TWO_SIDED, False), host)
    return {ends: weight for ends, weight in found.items() if ends not in waiting}


def _read_others(home: Path, file: Path, host: str, own_hosts: set[str]) -> dict[Pair, float]:
    """Return the summed edge weights of all sources imported before, except the one with this file."""
    weights: dict[Pair, float] = {}
    for path in sorted(home.glob("*.db")):
        if path != file:
            with ImportState(path, None) as state:
                for ends, weight in _read_taken(state, host, own_hosts).items():
                    weights[ends] = weights.get(ends, 0.0) + weight
    return weights


def _as_ends(first: Node | None, second: Node | None, host: str) -> Pair | None:
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
