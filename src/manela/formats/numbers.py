"""Fast parallel reader of edge lists with two integers per line; `formats.text` reads all others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manela.formats.input_file import Bytes
from manela.system.threads import Integers, Threads, count_cores

Positions = npt.NDArray[np.int32]

_PIECE = 1 << 22
"""Bytes that a thread parses at a time; larger pieces balance the threads less well."""
_WINDOW = 1 << 12
_SPARSE = 8
"""Range of the ids divided by their count above which a hash replaces a table; larger takes more memory."""
_FIRST_KEYS = 1 << 16


class Pairs(NamedTuple):
    """The ends of edges as positions in `nodes`, which are sorted."""

    sources: Positions
    targets: Positions
    nodes: Integers


def read_pairs(data: Bytes, separator: int, piece: int = _PIECE) -> Pairs | None:
    """Parse a file whose lines are all two integers, comments or empty; return None if any is not."""
    from manela.kernels.tables import text as kernels

    if not len(data):
        return None
    with Threads(count_cores()) as threads:
        borders = _cut_lines(data, piece)
        pieces = np.arange(len(borders))
        lines = np.zeros(len(borders), dtype=np.int64)

        def count(first: int, _: int) -> None:
            lines[first + 1] = kernels.count_lines(data, borders[first], borders[first + 1]) + 1

        threads.share(count, pieces)
        starts = np.cumsum(lines)
        ends = [np.empty(starts[-1], dtype=np.int64) for _ in range(2)]
        counts = np.zeros(len(borders) - 1, dtype=np.int64)

        def parse(piece: int, _: int) -> None:
            if counts.min() >= 0:  # one failed piece is enough to give up
                room = slice(starts[piece], starts[piece + 1])
                first, last = borders[piece], borders[piece + 1]
                counts[piece] = kernels.parse_pairs(data, first, last, separator, ends[0][room], ends[1][room])

        parse(0, 1)  # the first piece usually shows at once whether the format fits
        threads.share(lambda first, _: parse(first, 0), pieces[1:])
        if counts.min() < 0 or counts.sum() == 0 or counts.sum() >= 2**30:
            return None
        return _number([_compact(values, starts, counts) for values in ends], threads, piece)


def number_pairs(sources: Integers, targets: Integers) -> Pairs:
    """Number the nodes of edges in memory; the arrays may be overwritten."""
    ends = [sources, targets]
    least, largest = min(int(sources.min()), int(targets.min())), max(int(sources.max()), int(targets.max()))
    if least >= 0:
        with Threads(count_cores()) as threads:
            return _number(ends, threads)
    if largest - least >= 2**63:
        nodes, codes = np.unique(np.concatenate(ends), return_inverse=True)
        halves = codes.astype(np.int32).reshape(2, -1)
        return Pairs(halves[0], halves[1], nodes)
    for values in ends:
        values -= least  # the hash table holds only numbers from 0
    with Threads(count_cores()) as threads:
        pairs = _number(ends, threads)
    return pairs._replace(nodes=pairs.nodes + least)


def _cut_lines(data: Bytes, piece: int) -> Integers:
    borders, position = [0], 0
    while position + piece < len(data):
        position += piece
        end = -1
        while position < len(data) and end < 0:
            end = data[position : position + _WINDOW].tobytes().find(b"\n")
            position += end + 1 if end >= 0 else _WINDOW
        borders.append(min(position, len(data)))
    if borders[-1] < len(data):
        borders.append(len(data))
    return np.array(borders, dtype=np.int64)


def _compact(values: Integers, starts: Integers, counts: Integers) -> Integers:
    end = 0
    for first, count in zip(starts.tolist(), counts.tolist(), strict=False):
        if end != first:
            values[end : end + count] = values[first : first + count]
        end += count
    return values[:end]


def _number(ends: list[Integers], threads: Threads, piece: int = _PIECE) -> Pairs:
    """Map ids to positions: with a table if they are dense, and otherwise with a hash."""
    from manela.kernels.tables import text as kernels

    least, largest = (int(bound([bound(values) for values in ends])) for bound in (np.min, np.max))
    coded = [np.empty(len(values), dtype=np.int32) for values in ends]
    borders = np.linspace(0, len(ends[0]), len(ends[0]) // piece + threads.count + 1).astype(np.int64)
    if largest - least <= _SPARSE * 2 * len(ends[0]) + 1000:
        seen = np.zeros(largest - least + 1, dtype=np.uint8)

        def mark(first: int, last: int) -> None:
            for values in ends:
                kernels.mark(values[first:last], least, seen)

        threads.share(mark, borders)
        nodes = np.flatnonzero(seen) + least
        codes = np.cumsum(seen, dtype=np.int32) - np.int32(1)

        def translate(first: int, last: int) -> None:
            for values, out in zip(ends, coded, strict=True):
                kernels.translate(values[first:last], least, codes, out[first:last])

        threads.share(translate, borders)
        return Pairs(coded[0], coded[1], nodes)
    keys, known = np.full(_FIRST_KEYS, -1, dtype=np.int64), 0
    for values in ends:
        keys, known = kernels.collect(values, keys, known)
    used = np.flatnonzero(keys >= 0)
    order = np.argsort(keys[used])
    codes = np.zeros(len(keys), dtype=np.int32)
    codes[used[order]] = np.arange(len(used), dtype=np.int32)

    def look_up(first: int, last: int) -> None:
        for values, out in zip(ends, coded, strict=True):
            kernels.look_up(values[first:last], keys, codes, out[first:last])

    threads.share(look_up, borders)
    return Pairs(coded[0], coded[1], keys[used[order]])
