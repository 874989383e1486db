"""Reading edges from the bytes of a text file, compiled by Numba: one pass, no Python object a line."""

# mypy: ignore-errors

import numpy as np
from numba import njit

TOO_FEW, TOO_MANY, UNEVEN, EMPTY, QUOTE, LONG = range(1, 7)
"""What can be wrong with a line: one column, too many, some lines with weights and some without, an empty field, a
quotation mark that is not closed, an id longer than `LONGEST`."""

LONGEST = 1024

_NEWLINE, _RETURN, _TAB, _SPACE, _QUOTE, _HASH, _PERCENT = 10, 13, 9, 32, 34, 35, 37
_NOTHING = np.int64(-1)


@njit(cache=True, nogil=True)
def scan_edges(data, separator, take_weights, lines):
    """Number the ids of an edge list in order of first appearance and read its weights.

    `separator` is a byte, or 0 for white space; there are at most `lines` lines.
    Returns error, line, sources, targets, weights, where unread weights lie, starts and lengths of the ids.
    A weight that is not a plain decimal is left as NaN, and its place is listed for the caller to read.
    """
    sources, targets = np.empty(lines, np.int32), np.empty(lines, np.int32)
    weights = np.empty(lines if take_weights else 0, np.float64)
    unread = [(np.int64(0), np.int64(0), np.int64(0))]
    unread.clear()
    table = np.full(1 << 12, _NOTHING)
    starts, lengths, hashes = np.empty(1 << 11, np.int64), np.empty(1 << 11, np.int32), np.empty(1 << 11, np.uint64)
    known = edges = line = at = 0
    columns_before = 0
    size = len(data)
    error = 0
    while at < size:
        line += 1
        at = _skip_blank(data, at, separator)
        if at < size and (data[at] == _HASH or data[at] == _PERCENT):
            while at < size and data[at] != _NEWLINE:
                at += 1
        columns = 0
        while at < size and data[at] != _NEWLINE:
            start, end, at, quote_open = _next_field(data, at, separator)
            if quote_open:
                error = QUOTE
            elif end == start:
                error = EMPTY
            elif columns < 2:
                if end - start > LONGEST:
                    error = LONG
                else:
                    if 2 * known >= len(table):
                        table = _grow(table, hashes, known)
                    if known == len(starts):
                        starts, lengths, hashes = _double(starts), _double(lengths), _double(hashes)
                    number, known = _look_up(data, start, end, table, starts, lengths, hashes, known)
                    if columns == 0:
                        sources[edges] = number
                    else:
                        targets[edges] = number
            elif take_weights:
                if columns == 2:
                    weights[edges], plain = _parse_number(data, start, end)
                    if not plain:
                        unread.append((np.int64(edges), np.int64(start), np.int64(end)))
                else:
                    error = TOO_MANY
            columns += 1
            if error:
                break
        if not error and columns == 1:
            error = TOO_FEW
        if not error and columns and take_weights:
            if columns_before and columns != columns_before:
                error = UNEVEN
            columns_before = columns
        if error:
            break
        edges += columns > 0
        at += 1
    has_weights = take_weights and columns_before == 3
    return (
        error, line, sources[:edges], targets[:edges], weights[: edges if has_weights else 0], unread,
        starts[:known], lengths[:known],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def scan_adjacency(data, separator, fields):
    """The same for an adjacency list, whose lines are a node and its neighbours; at most `fields` fields."""
    sources, targets = np.empty(fields, np.int32), np.empty(fields, np.int32)
    table = np.full(1 << 12, _NOTHING)
    starts, lengths, hashes = np.empty(1 << 11, np.int64), np.empty(1 << 11, np.int32), np.empty(1 << 11, np.uint64)
    known = edges = line = at = 0
    size = len(data)
    error = 0
    while at < size:
        line += 1
        at = _skip_blank(data, at, separator)
        if at < size and (data[at] == _HASH or data[at] == _PERCENT):
            while at < size and data[at] != _NEWLINE:
                at += 1
        node = -1
        while at < size and data[at] != _NEWLINE:
            start, end, at, quote_open = _next_field(data, at, separator)
            if quote_open:
                error = QUOTE
            elif end == start:
                error = EMPTY
            elif end - start > LONGEST:
                error = LONG
            if error:
                break
            if 2 * known >= len(table):
                table = _grow(table, hashes, known)
            if known == len(starts):
                starts, lengths, hashes = _double(starts), _double(lengths), _double(hashes)
            number, known = _look_up(data, start, end, table, starts, lengths, hashes, known)
            if node < 0:
                node = number
            else:
                sources[edges] = node
                targets[edges] = number
                edges += 1
        if error:
            break
        at += 1
    return error, line, sources[:edges], targets[:edges], starts[:known], lengths[:known]


@njit(cache=True, nogil=True)
def parse_integers(data, starts, lengths, out):
    """Write the ids as integers; False if one is not written as an integer is printed (007 is not)."""
    for i in range(len(starts)):
        at, end = starts[i], starts[i] + lengths[i]
        negative = data[at] == 45
        at += negative
        if at == end or end - at > 18 or (data[at] == 48 and (end - at > 1 or negative)):
            return False
        value = np.int64(0)
        while at < end:
            digit = np.int64(data[at]) - 48
            if digit < 0 or digit > 9:
                return False
            value = value * 10 + digit
            at += 1
        out[i] = -value if negative else value
    return True


@njit(nogil=True)
def _skip_blank(data, at, separator):
    """The next place that is not white space, within the line; a separator is not white space."""
    while at < len(data) and data[at] != separator and (data[at] in (_SPACE, _TAB, _RETURN)):
        at += 1
    return at


@njit(nogil=True)
def _next_field(data, at, separator):
    """Start and end of the field at this place, where the next one begins, and whether a quotation was left open."""
    size = len(data)
    if separator and data[at] == _QUOTE:
        start = at + 1
        end = start
        while end < size and data[end] != _NEWLINE:
            if data[end] == _QUOTE:
                if end + 1 < size and data[end + 1] == _QUOTE:
                    end += 1
                else:
                    break
            end += 1
        if end >= size or data[end] != _QUOTE:
            return start, start, end, True
        at = end + 1
        while at < size and data[at] != _NEWLINE and data[at] != separator:
            at += 1
    else:
        start = at
        while at < size and data[at] != _NEWLINE:
            if separator:
                if data[at] == separator:
                    break
            elif data[at] in (_SPACE, _TAB, _RETURN):
                break
            at += 1
        end = at
        while end > start and data[end - 1] in (_SPACE, _TAB, _RETURN):
            end -= 1
    if separator and at < size and data[at] == separator:
        at += 1
    return start, end, _skip_blank(data, at, separator), False


@njit(nogil=True)
def _look_up(data, start, end, table, starts, lengths, hashes, known):
    """The number of the id data[start:end], a new one if it was not seen before; and how many are known then."""
    code = np.uint64(0xCBF29CE484222325)
    for at in range(start, end):
        code = (code ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
    code ^= code >> np.uint64(29)
    mask = np.uint64(len(table) - 1)
    slot = code & mask
    while table[slot] != _NOTHING:
        number = table[slot]
        if hashes[number] == code and lengths[number] == end - start:
            same = True
            for i in range(end - start):
                if data[starts[number] + i] != data[start + i]:
                    same = False
                    break
            if same:
                return number, known
        slot = (slot + np.uint64(1)) & mask
    table[slot] = known
    starts[known], lengths[known], hashes[known] = start, end - start, code
    return known, known + 1


@njit(nogil=True)
def _grow(table, hashes, known):
    """A table of four times the size with the same numbers in it."""
    larger = np.full(4 * len(table), _NOTHING)
    mask = np.uint64(len(larger) - 1)
    for number in range(known):
        slot = hashes[number] & mask
        while larger[slot] != _NOTHING:
            slot = (slot + np.uint64(1)) & mask
        larger[slot] = number
    return larger


@njit(nogil=True)
def _double(array):
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@njit(nogil=True)
def _parse_number(data, start, end):
    """A decimal of up to 15 digits, exactly; otherwise NaN and False."""
    at = start
    negative = data[at] == 45
    if negative or data[at] == 43:
        at += 1
    digits = behind = 0
    value = np.int64(0)
    point = False
    while at < end:
        byte = data[at]
        if 48 <= byte <= 57:
            value = value * 10 + np.int64(byte - 48)
            digits += 1
            behind += point
        elif byte == 46 and not point:
            point = True
        else:
            return np.nan, False
        at += 1
    if digits == 0 or digits > 15:
        return np.nan, False
    number = np.float64(value) / 10.0**behind
    return -number if negative else number, True
