"""Readers of edge lists, adjacency lists and METIS files."""

from __future__ import annotations

import ast
import csv
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.csr import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE
from manela.data.edge_table import Columns, choose_columns, find_header, names_columns, stands_alone
from manela.data.graph import Graph
from manela.errors import FormatError, ManelaWarning, Option
from manela.formats.input_file import Bytes, InputFile
from manela.formats.numbers import read_pairs

_ATTRIBUTES = re.compile(rb"([^\s,]+)[\s,]+([^\s,]+)[\s,]+(\{.*\})")
_QUOTED = re.compile(rb'(?:[^"]|"")*')
"""The content of a quoted field, in which "" stands for a quotation mark."""
_FIRST_BYTES = 1 << 16
_LINES = 1000
"""Lines from which the header and the columns are recognised; more are more reliable and slower."""
_ENOUGH = 20
"""Lines from which on a first line that has no node of another is a header; with fewer, chance may be the reason."""
_WIDEST_NUMBER = 32
"""Most bytes of a weight that is parsed with many others at once; longer ones are parsed one by one."""
_LONGEST_NUMBER = 1024
"""Most bytes of a weight."""


def read_edge_list(
    source: InputFile,
    *,
    directed: bool = False,
    unweighted: bool = False,
    duplicates: str = "sum",
    columns: Sequence[str] | None = None,
) -> Graph:
    """Read a network from a file with one edge per line: two ids, and optionally a weight.

    Fields are separated by commas in a .csv, tabs in a .tsv, and otherwise by white space or, if the first line has
    none, commas. Lines that begin with # or % are comments. Columns are chosen by the header, if there is one;
    `columns` chooses them by name, or by number from 1.
    Ids are integers if all of them look like integers, and otherwise strings.
    """
    from manela.kernels.tables import text as kernels

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
    error, line, ends, weights, positions = kernels.scan_edges(
        data, separator, first, second, chosen.weight, chosen.is_exact, lines
    )
    if error:
        raise _explain(source, line + skipped, error, _line(data, line), chosen)
    if len(weights):
        _parse_remaining_weights(source, data, weights, separator, skipped)
    nodes, codes = _read_ids(source, data, positions, separator, skipped)
    ends = ends if codes is None else codes[ends]
    sources, targets = (ends[::2], ends[1::2]) if chosen.source == first else (ends[1::2], ends[::2])
    return Graph.from_arcs(
        sources, targets, weights if len(weights) else None, nodes, directed=directed,
        duplicates=_without_weights(duplicates, unweighted),
    )  # fmt: skip


def _without_weights(duplicates: str, unweighted: bool) -> str:
    """Return the rule for repeated edges, which must not add up to weights in an unweighted network."""
    return "first" if unweighted and duplicates == "sum" else duplicates


def _unfold_attributes(source: InputFile, data: Bytes) -> Bytes:
    """Convert lines of NetworkX such as `0 1 {'weight': 4}` to `0 1 4`; return other edge lists unchanged."""
    lines, _ = _first_lines(data)
    if not lines or not _ATTRIBUTES.fullmatch(lines[0].strip()):
        return data
    unfolded, has_weights = [], False
    for number, line in enumerate(data.tobytes().split(b"\n"), 1):
        match = _ATTRIBUTES.fullmatch(line.strip())
        if match is None:
            if line.strip() and line.lstrip()[:1] not in (b"#", b"%"):
                shown = line[:80].decode(errors="replace")
                raise FormatError(f"{source}:{number}: a line must be `source target {{…}}`, got {shown!r}")
            unfolded.append(b"")
            continue
        try:
            attributes = ast.literal_eval(match[3].decode())
        except (ValueError, SyntaxError, UnicodeDecodeError, MemoryError, RecursionError) as error:
            raise FormatError(f"{source}:{number}: attributes must be a dict as Python writes it: {error}") from None
        weight = attributes.get("weight", 1) if isinstance(attributes, dict) else 1
        has_weights |= isinstance(attributes, dict) and "weight" in attributes
        unfolded.append(match[1] + b" " + match[2] + f" {weight}".encode())
    if not has_weights:
        unfolded = [line.rpartition(b" ")[0] for line in unfolded]
    return np.frombuffer(b"\n".join(unfolded), dtype=np.uint8)


def read_adjacency_list(source: InputFile, *, directed: bool = False) -> Graph:
    """Read a network from lines of a node and its neighbours, separated by white space; # and % begin comments."""
    from manela.kernels.tables import text as kernels

    data = source.read()
    lines = int(np.count_nonzero(data == ord("\n"))) + 1
    fields = int(np.count_nonzero(np.isin(data, np.frombuffer(b" \t\r", dtype=np.uint8)))) + lines
    error, line, numbers, counts, positions = kernels.scan_adjacency(data, 0, lines, fields)
    if error:
        raise _explain(source, line, error, _line(data, line))
    nodes, codes = _read_ids(source, data, positions, 0, 0)
    numbers = numbers if codes is None else codes[numbers]
    counts = counts[counts > 0]
    firsts = np.cumsum(counts) - counts
    sources = np.repeat(numbers[firsts], counts - 1)
    # an edge is usually listed in the lines of both its nodes, and counts once
    return Graph.from_arcs(sources, np.delete(numbers, firsts), None, nodes, directed=directed, duplicates="first")


def read_metis(source: InputFile, *, directed: bool = False) -> Graph:
    """Read a network from a METIS file: a header with sizes, and a line of neighbours for each node, from 1."""
    lines = [
        line.split() for line in source.read().tobytes().decode("ascii", "replace").splitlines()
        if not line.lstrip().startswith("%")
    ]  # fmt: skip
    header = lines[0] if lines else []
    if not 2 <= len(header) <= 4 or not all(field.isdecimal() for field in header):
        raise FormatError(
            f"{source}:1: must be `nodes edges` and a format, as METIS has it, got {' '.join(header)[:80]!r}"
        )
    nodes, form = int(header[0]), (header[2] if len(header) > 2 else "0").zfill(3)
    if len(form) != 3 or not set(form) <= {"0", "1"}:
        raise FormatError(f"{source}:1: the format must be three digits of 0 and 1, as METIS has it, got {header[2]!r}")
    skipped = (form[0] == "1") + (int(header[3]) if len(header) > 3 else 1) * (form[1] == "1")
    has_weights = form[2] == "1"
    body = lines[1 : nodes + 1]
    if len(body) < nodes:
        raise FormatError(f"{source}: must have a line for each of {nodes:,} nodes, got {len(body):,}")
    sources, targets, weights = [], [], []
    for row, fields in enumerate(body):
        entries = fields[skipped:]
        try:
            numbers = [int(field) for field in (entries[::2] if has_weights else entries)]
            weights += [float(field) for field in entries[1::2]] if has_weights else []
        except ValueError:
            raise FormatError(
                f"{source}: the line of node {row + 1} must hold numbers, got {' '.join(entries)[:80]!r}"
            ) from None
        if any(not 1 <= number <= nodes for number in numbers) or (has_weights and len(entries) % 2):
            raise FormatError(f"{source}: the line of node {row + 1} must name nodes 1 to {nodes:,}")
        sources += [row] * len(numbers)
        targets += [number - 1 for number in numbers]
    if len(targets) != 2 * int(header[1]) or any(lines[nodes + 1 :]):
        raise FormatError(
            f"{source}: must have {int(header[1]):,} edges, each in the lines of both its nodes, got {len(targets):,} "
            "neighbours in all"
        )
    return Graph.from_arcs(
        np.array(sources, np.int64), np.array(targets, np.int64), weights or None, np.arange(1, nodes + 1),
        directed=directed, duplicates="first",
    )  # fmt: skip


def _find_layout(
    source: InputFile, data: Bytes, wanted: Sequence[str] | None, unweighted: bool
) -> tuple[int, Bytes, int, Columns]:
    """Return the separator (0 for white space), the data without header, the number of skipped lines, and columns."""
    lines, positions = _first_lines(data)
    if not lines:
        return 0, data, 0, choose_columns(None, [], None, unweighted)
    separator = _find_separator(source.kind, lines[0])
    fields = [_fields_of(line, separator) for line in lines]
    has_header = names_columns(fields[0], wanted) or find_header(fields[0], fields[1:])
    if (
        not has_header
        and stands_alone(fields[0], fields[1:])
        and not _occur_below(data, positions[0], lines[0], fields[0])
    ):
        has_header = len(fields) > _ENOUGH
        _note_lone_line(source, lines[0], fields[0], has_header)
    try:
        chosen = choose_columns(fields[0] if has_header else None, fields[1:], wanted, unweighted)
    except FormatError as error:
        raise FormatError(f"{source}: ", *error.args) from error
    if chosen.note:
        advice = ("; pass ", Option("columns"), " to choose others")
        warnings.warn(ManelaWarning(f"{source}: {chosen.note}", *advice), stacklevel=5)
    if not has_header:
        return separator, data, 0, chosen
    end = positions[0] + len(lines[0]) + 1
    return separator, data[end:], int(np.count_nonzero(data[:end] == ord("\n"))), chosen


def _occur_below(data: Bytes, position: int, line: bytes, words: Sequence[str]) -> bool:
    """Whether one of the first two words of the first line is anywhere in the data below it."""
    below = data[position + len(line) :].data
    return any(re.search(rb"(?<!\w)" + re.escape(word.encode()) + rb"(?!\w)", below) for word in words[:2])


def _note_lone_line(source: InputFile, line: bytes, words: Sequence[str], is_header: bool) -> None:
    """Warn how a first line was read that may be a header or an edge."""
    text = line[:80].decode(errors="replace").strip()
    start = f"{source}: the first line, {text!r}, was read as "
    if is_header:
        end: tuple[object, ...] = (
            "a header, because its names occur in no other line; if it is an edge, add one above",
        )
    else:
        end = (
            "an edge; if it is a header, pass ",
            Option("columns"),
            f" with its names, such as {words[0]},{words[1]}",
        )
    warnings.warn(ManelaWarning(start, *end), stacklevel=6)


def _first_lines(data: Bytes) -> tuple[list[bytes], list[int]]:
    lines: list[bytes] = []
    positions: list[int] = []
    position = 0
    while position < len(data) and len(lines) <= _LINES:
        piece = data[position : position + _FIRST_BYTES].tobytes()
        end = piece.rfind(b"\n") + 1 if position + len(piece) < len(data) else len(piece)
        if end == 0:  # a line longer than the piece
            end = len(piece)
        for line in piece[:end].splitlines(keepends=True):
            text = line.rstrip(b"\r\n")
            if text.strip() and text.lstrip()[:1] not in (b"#", b"%"):
                lines.append(text)
                positions.append(position)
            position += len(line)
    return lines[: _LINES + 1], positions[: _LINES + 1]


def _find_separator(kind: str, first: bytes) -> int:
    """Return the byte that separates fields, 0 for white space, as the first line shows."""
    if kind == ".csv":
        if b"," not in first and b";" not in first:
            return next((ord(mark) for mark in (b"\t", b"|") if mark in first), ord(","))
        return ord(";") if b";" in first.partition(b",")[0] else ord(",")
    if kind == ".tsv":
        return ord("\t")
    if b"\t" in first and any(b" " in field.strip() for field in first.split(b"\t")):
        return ord("\t")  # fields contain spaces
    has_commas = b"," in first and all(len(field.split()) == 1 for field in first.split(b","))
    return ord(",") if has_commas else 0


def _fields_of(line: bytes, separator: int) -> list[str]:
    text = line.decode(errors="replace")
    fields = (
        next(csv.reader([text], delimiter=chr(separator), skipinitialspace=True), []) if separator else text.split()
    )
    return [field.strip() for field in fields]


def _parse_remaining_weights(
    source: InputFile, data: Bytes, weights: npt.NDArray[np.float64], separator: int, skipped: int
) -> None:
    """Parse and check the weights that are not plain positive decimals.

    Most are parsed many at a time; those that fail are parsed one by one, to find the wrong one.
    """
    _parse_batches(data, weights, separator)
    for edge in np.flatnonzero(weights < 0).tolist():
        start = int(-1 - weights[edge])
        line = data[start : start + _LONGEST_NUMBER].tobytes().split(b"\n")[0]
        text = _first_field(line, separator, bool(_are_quoted(data, np.array([start]), separator)[0]))
        try:
            weights[edge] = float(_with_point(text, separator).replace(b"_", b"?"))
        except ValueError:
            shown = text[:80].decode(errors="replace")
            number = _line_of_byte(data, start) + skipped
            raise FormatError(f"{source}:{number}: a weight must be a number, got {shown!r}") from None
        if not LEAST_WEIGHT <= weights[edge] <= MOST_WEIGHT:
            number = _line_of_byte(data, start) + skipped
            raise FormatError(f"{source}:{number}: a weight must be {WEIGHT_RULE}, got {weights[edge]:g}")


def _with_point(number: bytes, separator: int) -> bytes:
    """Return a number with a decimal point; where semicolons separate fields, it may have a comma."""
    return number.replace(b",", b".") if separator == ord(";") else number


def _first_field(line: bytes, separator: int, is_quoted: bool) -> bytes:
    """Return the field that a line begins with, after its opening quotation mark if it is quoted."""
    if is_quoted:
        content = _QUOTED.match(line)
        return content[0].strip() if content else b""
    return (line.split(bytes([separator])) if separator else line.split())[0].strip()


def _are_quoted(data: Bytes, starts: npt.NDArray[np.int64], separator: int) -> npt.NDArray[np.bool_]:
    """Whether the fields that start at these places are in quotation marks, which mean nothing in white space."""
    if not separator:
        return np.zeros(len(starts), dtype=np.bool_)
    are_quoted: npt.NDArray[np.bool_] = (data[np.maximum(starts - 1, 0)] == ord('"')) & (starts > 0)
    return are_quoted


def _parse_batches(data: Bytes, weights: npt.NDArray[np.float64], separator: int) -> None:
    """Parse short fields with positive numbers, in batches; leave the others unchanged."""
    unread = np.flatnonzero(weights < 0)
    ends = np.frombuffer(bytes([separator]) if separator else b" \t\r", dtype=np.uint8)
    for first in range(0, len(unread), _FIRST_BYTES):
        edges = unread[first : first + _FIRST_BYTES]
        starts = (-1 - weights[edges]).astype(np.int64)
        positions = starts[:, None] + np.arange(_WIDEST_NUMBER)
        fields = np.where(positions < len(data), data[np.minimum(positions, len(data) - 1)], ord("\n"))
        is_mark = fields == ord('"')
        is_quoted = _are_quoted(data, starts, separator)
        is_end = np.where(is_quoted[:, None], is_mark, np.isin(fields, ends)) | (fields == ord("\n"))
        is_past_end = np.logical_or.accumulate(is_end, axis=1)
        is_plain = is_past_end[:, -1] & ~np.any((fields == ord("_")) & ~is_past_end, axis=1)  # NumPy would accept 1_000
        is_plain &= ~(is_quoted & np.any(is_mark[:, :-1] & is_mark[:, 1:], axis=1))  # "" does not end a field
        edges, fields, is_past_end = (array[is_plain] for array in (edges, fields, is_past_end))
        if separator == ord(";"):  # a decimal comma
            fields = np.where(fields == ord(","), ord("."), fields)
        texts = np.where(is_past_end, 0, fields).astype(np.uint8).view(f"S{_WIDEST_NUMBER}").ravel()
        try:
            numbers = texts.astype(np.float64)
        except ValueError:
            continue
        is_valid = (numbers >= LEAST_WEIGHT) & (numbers <= MOST_WEIGHT)
        weights[edges[is_valid]] = numbers[is_valid]


def _read_ids(
    source: InputFile, data: Bytes, positions: npt.NDArray[np.int64], separator: int, skipped: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32] | None]:
    """Return the ids; for integers, sorted and with the new number for each old one."""
    from manela.kernels.tables import text as kernels

    values = np.empty(len(positions), dtype=np.int64)
    if kernels.parse_integers(data, positions, values):
        order = np.argsort(values)
        codes = np.empty(len(order), dtype=np.int32)
        codes[order] = np.arange(len(order))
        return values[order], codes
    nodes = np.empty(len(positions), dtype=object)
    for number, (start, length) in enumerate(positions.tolist()):
        text = data[start : start + length].tobytes()
        try:
            nodes[number] = text.decode().replace('""', '"') if separator else text.decode()
        except UnicodeDecodeError as error:
            line = _line_of_byte(data, start) + skipped
            raise FormatError(
                f"{source}:{line}: an id must be UTF-8 text, got {text[:40]!r}; save the file as UTF-8"
            ) from error
    return nodes, None


def _explain(source: InputFile, line: int, error: int, text: str, chosen: Columns | None = None) -> FormatError:
    from manela.kernels.tables import text as kernels

    if chosen is not None and not chosen.is_exact and error in (kernels.TOO_FEW, kernels.UNEVEN):
        most = max(chosen.source, chosen.target, chosen.weight) + 1
        return FormatError(f"{source}:{line}: a line must have {most} columns or more, got {text!r}")
    rules = {
        kernels.TOO_FEW: "a line must have two columns, or three with a weight, but this has one",
        kernels.TOO_MANY: "a line must have two columns, or three with a weight",
        kernels.UNEVEN: "either every line or none must have a weight, unlike the lines before",
        kernels.EMPTY: "a field must not be empty",
        kernels.QUOTE: "a quotation mark must be closed on the same line",
        kernels.LONG: f"an id must not be longer than {kernels.LONGEST} bytes",
    }
    advice = ("; pass ", Option("unweighted", True), " to ignore further columns, or ", Option("columns"), " to choose")
    return FormatError(f"{source}:{line}: {rules[error]}, got {text!r}", *(advice if error == kernels.TOO_MANY else ()))


def _line(data: Bytes, number: int) -> str:
    ends = np.flatnonzero(data == ord("\n"))
    first = int(ends[number - 2]) + 1 if number >= 2 else 0
    return data[first:][:80].tobytes().split(b"\n")[0].decode(errors="replace").strip()


def _line_of_byte(data: Bytes, position: int) -> int:
    return int(np.count_nonzero(data[:position] == ord("\n"))) + 1
