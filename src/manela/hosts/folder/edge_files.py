"""Edge files: reads and writes the CSV files of edges and of node numbers that operators provide."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TextIO

from manela.data.csr import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE
from manela.errors import AgentError, FormatError
from manela.hosts.state.names import Node, check_host_name, is_name
from manela.hosts.state.neighbourhood import Edge

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
    """Refuse a first line whose weight is no number, which is a header that is not known."""
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
