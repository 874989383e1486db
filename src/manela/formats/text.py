"""Readers of edge lists and adjacency lists."""

from __future__ import annotations

import gzip
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import FormatError, ManelaWarning
from manela.graph import COLUMN_NAMES, Graph
from manela.params import LEAST_WEIGHT, MOST_WEIGHT, WEIGHT_RULE

Bytes = npt.NDArray[np.uint8]

_PIECE = 1 << 22
_FIRST_BYTES = 1 << 16
_WIDEST_NUMBER = 32
_LONGEST_NUMBER = 1024


def read_edge_list(path: Path, *, directed: bool = False, unweighted: bool = False, duplicates: str = "sum") -> Graph:
    """The network of a file with an edge a line: two ids, and a weight or not.

    Fields are separated by commas in a .csv, tabs in a .tsv, and otherwise by white space or, where the first line has
    none, commas. Lines that begin with # or % are comments. A first line such as `source,target,weight` is a heading.
    Ids are integers if all of them are written so, otherwise strings.
    """
    from manela.kernels import text as kernels

    data = read_bytes(path)
    separator, data, skipped = _find_separator(path, data)
    lines = int(np.count_nonzero(data == ord("\n"))) + 1
    error, line, ends, weights, places = kernels.scan_edges(data, separator, not unweighted, lines)
    if error:
        raise _explain(path, line + skipped, error, _line(data, line))
    if len(weights):
        _read_rest(path, data, weights, separator, skipped)
    nodes, codes = _read_ids(path, data, places, separator, skipped)
    ends = ends if codes is None else codes[ends]
    return Graph.from_arcs(
        ends[::2], ends[1::2], weights if len(weights) else None, nodes, directed=directed,
        duplicates="first" if unweighted and duplicates == "sum" else duplicates,
    )  # fmt: skip


def read_adjacency_list(path: Path, *, directed: bool = False) -> Graph:
    """The network of a file with a node and its neighbours a line, separated by white space; # and % are comments."""
    from manela.kernels import text as kernels

    data = read_bytes(path)
    lines = int(np.count_nonzero(data == ord("\n"))) + 1
    fields = int(np.count_nonzero(np.isin(data, np.frombuffer(b" \t\r", dtype=np.uint8)))) + lines
    error, line, numbers, counts, places = kernels.scan_adjacency(data, 0, lines, fields)
    if error:
        raise _explain(path, line, error, _line(data, line))
    nodes, codes = _read_ids(path, data, places, 0, 0)
    numbers = numbers if codes is None else codes[numbers]
    counts = counts[counts > 0]
    firsts = np.cumsum(counts) - counts
    sources = np.repeat(numbers[firsts], counts - 1)
    # an edge usually stands in the lines of both its nodes, and counts once
    return Graph.from_arcs(sources, np.delete(numbers, firsts), None, nodes, directed=directed, duplicates="first")


def read_bytes(path: Path) -> Bytes:
    """The bytes of a text file, unpacked if it ends in .gz, without a byte-order mark."""
    if path.suffix.lower() == ".gz":
        unpacked = bytearray()
        try:
            with gzip.open(path, "rb") as stream:
                while piece := stream.read(_PIECE):
                    unpacked += piece
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FormatError(f"{path}: must be a whole gzip file, but it is damaged or cut off: {error}") from error
        data: Bytes = np.frombuffer(unpacked, dtype=np.uint8)
    else:
        data = np.fromfile(path, dtype=np.uint8)
    if data[:3].tobytes() == b"\xef\xbb\xbf":
        data = data[3:]
    if len(data) == 0:
        raise FormatError(f"{path}: must hold a network, but it is empty")
    if np.any(data == 0):
        raise FormatError(f"{path}: must be text, but it holds bytes of zero")
    return data


def _find_separator(path: Path, data: Bytes) -> tuple[int, Bytes, int]:
    """The separator (0 for white space), and the data without a heading, and how many lines that left out."""
    lines = data[:_FIRST_BYTES].tobytes().split(b"\n")
    numbers = [i for i, line in enumerate(lines) if line.strip() and line.lstrip()[:1] not in b"#%"][:2]
    if not numbers:
        return 0, data, 0
    first = lines[numbers[0]]
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".csv"):
        separator = ord(";") if b";" in first.partition(b",")[0] else ord(",")
    elif name.endswith(".tsv"):
        separator = ord("\t")
    else:
        commas = b"," in first and all(len(field.split()) == 1 for field in first.split(b","))
        separator = ord(",") if commas else 0
    if not _is_heading(path, *(_fields_of(lines[number], separator) for number in numbers)):
        return separator, data, 0
    skipped = numbers[0] + 1
    return separator, data[sum(len(line) + 1 for line in lines[:skipped]) :], skipped


def _fields_of(line: bytes, separator: int) -> list[bytes]:
    fields = line.split(bytes([separator])) if separator else line.split()
    return [field.strip().strip(b'"').lower() for field in fields]


def _is_heading(path: Path, first: list[bytes], second: list[bytes] | None = None) -> bool:
    """Whether a first line names columns: by their usual names, or by words above a line of integers."""
    if tuple(first[:2]) in {(source.encode(), target.encode()) for source, target in COLUMN_NAMES}:
        return True
    words = len(first) >= 2 and all(field[:1].isalpha() for field in first)
    if not words or second is None or not all(field.isdigit() for field in second[:2]):
        return False
    shown = b" ".join(first).decode(errors="replace")
    warnings.warn(f"{path}: the first line, {shown!r}, is taken as a heading", ManelaWarning, stacklevel=5)
    return True


def _read_rest(path: Path, data: Bytes, weights: npt.NDArray[np.float64], separator: int, skipped: int) -> None:
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
            raise FormatError(f"{path}:{number}: a weight must be a number, got {shown!r}") from None
        if not LEAST_WEIGHT <= weights[edge] <= MOST_WEIGHT:
            number = _line_of_byte(data, start) + skipped
            raise FormatError(f"{path}:{number}: a weight must be {WEIGHT_RULE}, got {weights[edge]:g}")


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
    path: Path, data: Bytes, places: npt.NDArray[np.int64], separator: int, skipped: int
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
            raise FormatError(f"{path}:{line}: an id must be UTF-8 text, got {text[:40]!r}") from error
    return nodes, None


def _explain(path: Path, line: int, error: int, text: str) -> FormatError:
    from manela.kernels import text as kernels

    rules = {
        kernels.TOO_FEW: "a line must have two columns, or three with a weight, but this has one",
        kernels.TOO_MANY: "a line must have two columns, or three with a weight (--unweighted ignores the rest)",
        kernels.UNEVEN: "either every line or none must have a weight, unlike the lines before",
        kernels.EMPTY: "a field must not be empty",
        kernels.QUOTE: "a quotation mark must be closed on the same line",
        kernels.LONG: f"an id must not be longer than {kernels.LONGEST} bytes",
    }
    return FormatError(f"{path}:{line}: {rules[error]}, got {text!r}")


def _line(data: Bytes, number: int) -> str:
    """The text of a line, shortened."""
    ends = np.flatnonzero(data == ord("\n"))
    first = int(ends[number - 2]) + 1 if number >= 2 else 0
    return data[first:][:80].tobytes().split(b"\n")[0].decode(errors="replace").strip()


def _line_of_byte(data: Bytes, place: int) -> int:
    return int(np.count_nonzero(data[:place] == ord("\n"))) + 1
