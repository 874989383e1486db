"""Readers of edge lists and adjacency lists."""

from __future__ import annotations

import ast
import csv
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import FormatError, ManelaWarning
from manela.formats.columns import Columns, choose_columns, find_header, names_columns
from manela.formats.numbers import read_pairs
from manela.formats.sources import Bytes, Source
from manela.graph import Graph
from manela.params import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE

_ATTRIBUTES = re.compile(rb"([^\s,]+)[\s,]+([^\s,]+)[\s,]+(\{.*\})")
_FIRST_BYTES = 1 << 16
_LINES = 1000
"""Lines by which it is judged what columns hold."""
_WIDEST_NUMBER = 32
_LONGEST_NUMBER = 1024


def read_edge_list(
    source: Source,
    *,
    directed: bool = False,
    unweighted: bool = False,
    duplicates: str = "sum",
    columns: Sequence[str] | None = None,
) -> Graph:
    """The network of a file with an edge a line: two ids, and a weight or not.

    Fields are separated by commas in a .csv, tabs in a .tsv, and otherwise by white space or, where the first line has
    none, commas. Lines that begin with # or % are comments. A first line that names columns is a header, by which
    columns are chosen; `columns` chooses them by name, or by number from 1.
    Ids are integers if all of them are written so, otherwise strings.
    """
    from manela.kernels import text as kernels

    data = _unfold_attributes(source, source.read())
    separator, data, skipped, chosen = _find_layout(source, data, columns, unweighted)
    is_plain = (chosen.source, chosen.target) == (0, 1) and (chosen.is_exact or chosen.weight < 0)
    if is_plain and (pairs := read_pairs(data, separator)) is not None:
        return Graph.from_arcs(
            pairs.sources, pairs.targets, None, pairs.nodes, directed=directed,
            duplicates=_without_weights(duplicates, unweighted),
        )  # fmt: skip
    lines = int(np.count_nonzero(data == ord("\n"))) + 1
    first, second = sorted((chosen.source, chosen.target))
    error, line, ends, weights, places = kernels.scan_edges(
        data, separator, first, second, chosen.weight, chosen.is_exact, lines
    )
    if error:
        raise _explain(source, line + skipped, error, _line(data, line), chosen)
    if len(weights):
        _read_rest(source, data, weights, separator, skipped)
    nodes, codes = _read_ids(source, data, places, separator, skipped)
    ends = ends if codes is None else codes[ends]
    sources, targets = (ends[::2], ends[1::2]) if chosen.source == first else (ends[1::2], ends[::2])
    return Graph.from_arcs(
        sources, targets, weights if len(weights) else None, nodes, directed=directed,
        duplicates=_without_weights(duplicates, unweighted),
    )  # fmt: skip


def _without_weights(duplicates: str, unweighted: bool) -> str:
    """What repeated edges do where they must not add up to a weight."""
    return "first" if unweighted and duplicates == "sum" else duplicates


def _unfold_attributes(source: Source, data: Bytes) -> Bytes:
    """An edge list as NetworkX writes it, `0 1 {'weight': 4}`, as one with weights; any other as it is."""
    lines, _ = _first_lines(data)
    if not lines or not _ATTRIBUTES.fullmatch(lines[0].strip()):
        return data
    found, has_weights = [], False
    for number, line in enumerate(data.tobytes().split(b"\n"), 1):
        match = _ATTRIBUTES.fullmatch(line.strip())
        if match is None:
            if line.strip() and line.lstrip()[:1] not in (b"#", b"%"):
                shown = line[:80].decode(errors="replace")
                raise FormatError(f"{source}:{number}: a line must be `source target {{…}}`, got {shown!r}")
            found.append(b"")
            continue
        try:
            attributes = ast.literal_eval(match[3].decode())
        except (ValueError, SyntaxError, UnicodeDecodeError, MemoryError, RecursionError) as error:
            raise FormatError(f"{source}:{number}: attributes must be a dict as Python writes it: {error}") from None
        weight = attributes.get("weight", 1) if isinstance(attributes, dict) else 1
        has_weights |= isinstance(attributes, dict) and "weight" in attributes
        found.append(match[1] + b" " + match[2] + f" {weight}".encode())
    if not has_weights:
        found = [line.rpartition(b" ")[0] for line in found]
    return np.frombuffer(b"\n".join(found), dtype=np.uint8)


def read_adjacency_list(source: Source, *, directed: bool = False) -> Graph:
    """The network of a file with a node and its neighbours a line, separated by white space; # and % are comments."""
    from manela.kernels import text as kernels

    data = source.read()
    lines = int(np.count_nonzero(data == ord("\n"))) + 1
    fields = int(np.count_nonzero(np.isin(data, np.frombuffer(b" \t\r", dtype=np.uint8)))) + lines
    error, line, numbers, counts, places = kernels.scan_adjacency(data, 0, lines, fields)
    if error:
        raise _explain(source, line, error, _line(data, line))
    nodes, codes = _read_ids(source, data, places, 0, 0)
    numbers = numbers if codes is None else codes[numbers]
    counts = counts[counts > 0]
    firsts = np.cumsum(counts) - counts
    sources = np.repeat(numbers[firsts], counts - 1)
    # an edge usually stands in the lines of both its nodes, and counts once
    return Graph.from_arcs(sources, np.delete(numbers, firsts), None, nodes, directed=directed, duplicates="first")


def read_metis(source: Source, *, directed: bool = False) -> Graph:
    """The network of a file as METIS has it: a line of sizes, and for each node, from 1 on, its neighbours."""
    lines = [
        line.split() for line in source.read().tobytes().decode("ascii", "replace").splitlines()
        if not line.lstrip().startswith("%")
    ]  # fmt: skip
    head = lines[0] if lines else []
    if not 2 <= len(head) <= 4 or not all(field.isdecimal() for field in head):
        raise FormatError(
            f"{source}:1: must be `nodes edges` and a format, as METIS has it, got {' '.join(head)[:80]!r}"
        )
    nodes, form = int(head[0]), (head[2] if len(head) > 2 else "0").zfill(3)
    if len(form) != 3 or not set(form) <= {"0", "1"}:
        raise FormatError(f"{source}:1: the format must be three digits of 0 and 1, as METIS has it, got {head[2]!r}")
    skipped = (form[0] == "1") + (int(head[3]) if len(head) > 3 else 1) * (form[1] == "1")
    has_weights = form[2] == "1"
    body = lines[1 : nodes + 1]
    if len(body) < nodes:
        raise FormatError(f"{source}: must have a line for each of {nodes:,} nodes, got {len(body):,}")
    sources, targets, weights = [], [], []
    for row, fields in enumerate(body):
        rest = fields[skipped:]
        try:
            numbers = [int(field) for field in (rest[::2] if has_weights else rest)]
            weights += [float(field) for field in rest[1::2]] if has_weights else []
        except ValueError:
            raise FormatError(
                f"{source}: the line of node {row + 1} must hold numbers, got {' '.join(rest)[:80]!r}"
            ) from None
        if any(not 1 <= number <= nodes for number in numbers) or (has_weights and len(rest) % 2):
            raise FormatError(f"{source}: the line of node {row + 1} must name nodes 1 to {nodes:,}")
        sources += [row] * len(numbers)
        targets += [number - 1 for number in numbers]
    if len(targets) != 2 * int(head[1]) or any(lines[nodes + 1 :]):
        raise FormatError(
            f"{source}: must have {int(head[1]):,} edges, each in the lines of both its nodes, got {len(targets):,} "
            "neighbours in all"
        )
    return Graph.from_arcs(
        np.array(sources, np.int64), np.array(targets, np.int64), weights or None, np.arange(1, nodes + 1),
        directed=directed, duplicates="first",
    )  # fmt: skip


def _find_layout(
    source: Source, data: Bytes, wanted: Sequence[str] | None, unweighted: bool
) -> tuple[int, Bytes, int, Columns]:
    """The separator (0 for white space), the data without a header, how many lines that left out, and the columns."""
    lines, places = _first_lines(data)
    if not lines:
        return 0, data, 0, choose_columns(None, [], None, unweighted)
    separator = _find_separator(source.kind, lines[0])
    fields = [_fields_of(line, separator) for line in lines]
    has_header = names_columns(fields[0], wanted) or find_header(fields[0], fields[1:])
    try:
        chosen = choose_columns(fields[0] if has_header else None, fields[1:], wanted, unweighted)
    except FormatError as error:
        raise FormatError(f"{source}: {error}") from error
    if chosen.note:
        warnings.warn(f"{source}: {chosen.note}", ManelaWarning, stacklevel=5)
    if not has_header:
        return separator, data, 0, chosen
    end = places[0] + len(lines[0]) + 1
    return separator, data[end:], int(np.count_nonzero(data[:end] == ord("\n"))), chosen


def _first_lines(data: Bytes) -> tuple[list[bytes], list[int]]:
    """Some lines from the first on that is no comment, and where each begins."""
    lines: list[bytes] = []
    places: list[int] = []
    at = 0
    while at < len(data) and len(lines) <= _LINES:
        piece = data[at : at + _FIRST_BYTES].tobytes()
        end = piece.rfind(b"\n") + 1 if at + len(piece) < len(data) else len(piece)
        if end == 0:  # a line longer than this
            end = len(piece)
        for line in piece[:end].splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            if text.strip() and text.lstrip()[:1] not in (b"#", b"%"):
                lines.append(text)
                places.append(at)
            at += len(line)
    return lines[: _LINES + 1], places[: _LINES + 1]


def _find_separator(kind: str, first: bytes) -> int:
    if kind == ".csv":
        if b"," not in first and b";" not in first:
            return next((ord(mark) for mark in (b"\t", b"|") if mark in first), ord(","))
        return ord(";") if b";" in first.partition(b",")[0] else ord(",")
    if kind == ".tsv":
        return ord("\t")
    if b"\t" in first and any(b" " in field.strip() for field in first.split(b"\t")):
        return ord("\t")  # white space within fields
    commas = b"," in first and all(len(field.split()) == 1 for field in first.split(b","))
    return ord(",") if commas else 0


def _fields_of(line: bytes, separator: int) -> list[str]:
    """The fields of a line, without the quotation marks around them."""
    text = line.decode(errors="replace")
    fields = (
        next(csv.reader([text], delimiter=chr(separator), skipinitialspace=True), []) if separator else text.split()
    )
    return [field.strip() for field in fields]


def _read_rest(source: Source, data: Bytes, weights: npt.NDArray[np.float64], separator: int, skipped: int) -> None:
    """Read the weights that are not plain positive decimals, and check them.

    First many at a time; then one by one those that did not work out, to find which is wrong.
    """
    _read_many(data, weights, separator)
    for edge in np.flatnonzero(weights < 0).tolist():
        start = int(-1 - weights[edge])
        line = data[start : start + _LONGEST_NUMBER].tobytes().split(b"\n")[0]
        text = (line.split(bytes([separator])) if separator else line.split())[0].strip().rstrip(b'"')
        try:
            weights[edge] = float(text.replace(b"_", b"?"))
        except ValueError:
            shown = text[:80].decode(errors="replace")
            number = _line_of_byte(data, start) + skipped
            raise FormatError(f"{source}:{number}: a weight must be a number, got {shown!r}") from None
        if not LEAST_WEIGHT <= weights[edge] <= MOST_WEIGHT:
            number = _line_of_byte(data, start) + skipped
            raise FormatError(f"{source}:{number}: a weight must be {WEIGHT_RULE}, got {weights[edge]:g}")


def _read_many(data: Bytes, weights: npt.NDArray[np.float64], separator: int) -> None:
    """Read short fields that hold positive numbers; others stay as they are."""
    unread = np.flatnonzero(weights < 0)
    ends = np.frombuffer(bytes([separator]) + b'"' if separator else b" \t\r", dtype=np.uint8)
    for first in range(0, len(unread), _FIRST_BYTES):
        edges = unread[first : first + _FIRST_BYTES]
        places = (-1 - weights[edges]).astype(np.int64)[:, None] + np.arange(_WIDEST_NUMBER)
        fields = np.where(places < len(data), data[np.minimum(places, len(data) - 1)], ord("\n"))
        beyond = np.logical_or.accumulate(np.isin(fields, ends) | (fields == ord("\n")), axis=1)
        plain = beyond[:, -1] & ~np.any((fields == ord("_")) & ~beyond, axis=1)  # 1_000 is a number to NumPy only
        edges, fields, beyond = (array[plain] for array in (edges, fields, beyond))
        texts = np.where(beyond, 0, fields).astype(np.uint8).view(f"S{_WIDEST_NUMBER}").ravel()
        try:
            numbers = texts.astype(np.float64)
        except ValueError:
            continue
        good = (numbers >= LEAST_WEIGHT) & (numbers <= MOST_WEIGHT)
        weights[edges[good]] = numbers[good]


def _read_ids(
    source: Source, data: Bytes, places: npt.NDArray[np.int64], separator: int, skipped: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32] | None]:
    """The ids; integers are put in order, and then the new number of each old one comes with them."""
    from manela.kernels import text as kernels

    values = np.empty(len(places), dtype=np.int64)
    if kernels.parse_integers(data, places, values):
        order = np.argsort(values)
        codes = np.empty(len(order), dtype=np.int32)
        codes[order] = np.arange(len(order))
        return values[order], codes
    nodes = np.empty(len(places), dtype=object)
    for number, (start, length) in enumerate(places.tolist()):
        text = data[start : start + length].tobytes()
        try:
            nodes[number] = text.decode().replace('""', '"') if separator else text.decode()
        except UnicodeDecodeError as error:
            line = _line_of_byte(data, start) + skipped
            raise FormatError(f"{source}:{line}: an id must be UTF-8 text, got {text[:40]!r}") from error
    return nodes, None


def _explain(source: Source, line: int, error: int, text: str, chosen: Columns | None = None) -> FormatError:
    from manela.kernels import text as kernels

    if chosen is not None and not chosen.is_exact and error in (kernels.TOO_FEW, kernels.UNEVEN):
        most = max(chosen.source, chosen.target, chosen.weight) + 1
        return FormatError(f"{source}:{line}: a line must have {most} columns or more, got {text!r}")
    rules = {
        kernels.TOO_FEW: "a line must have two columns, or three with a weight, but this has one",
        kernels.TOO_MANY: "a line must have two columns, or three with a weight (unweighted=True ignores the "
        "rest, columns= chooses)",
        kernels.UNEVEN: "either every line or none must have a weight, unlike the lines before",
        kernels.EMPTY: "a field must not be empty",
        kernels.QUOTE: "a quotation mark must be closed on the same line",
        kernels.LONG: f"an id must not be longer than {kernels.LONGEST} bytes",
    }
    return FormatError(f"{source}:{line}: {rules[error]}, got {text!r}")


def _line(data: Bytes, number: int) -> str:
    """The text of a line, shortened."""
    ends = np.flatnonzero(data == ord("\n"))
    first = int(ends[number - 2]) + 1 if number >= 2 else 0
    return data[first:][:80].tobytes().split(b"\n")[0].decode(errors="replace").strip()


def _line_of_byte(data: Bytes, place: int) -> int:
    return int(np.count_nonzero(data[:place] == ord("\n"))) + 1
