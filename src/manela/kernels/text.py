"""Reading edges from the bytes of a text file, compiled by Numba: one pass, no Python object a line."""

# mypy: ignore-errors

import numpy as np
from numba import njit

TOO_FEW, TOO_MANY, UNEVEN, EMPTY, QUOTE, LONG = range(1, 7)
"""What can be wrong with a line: one column, too many, some lines with weights and some without, an empty field, a
quotation mark that is not closed, an id longer than `LONGEST`."""

LONGEST = 1024

_NEWLINE, _RETURN, _TAB, _SPACE, _QUOTE, _HASH, _PERCENT = 10, 13, 9, 32, 34, 35, 37


_BATCH = 512
"""Ids that are looked up together, so that their waits for memory overlap."""


@njit(cache=True, nogil=True)
def scan_edges(data, separator, first, second, weight, exact, lines):
    """Number the ids of an edge list in order of first appearance and read its weights.

    `separator` is a byte, or 0 for white space; there are at most `lines` lines. The ends of an edge are in the columns
    `first` < `second`, and its weight in `weight`, −1 for none. Where `exact`, there must be no other columns, and the
    weight may be missing in all lines.
    Returns error, line, the two ends of each edge one after the other, weights, start and length of each id.
    A weight that is not a plain positive decimal is left to the caller: −1 − its place in the data stands for it.
    """
    ends = np.empty(2 * lines + 2, np.int32)
    weights = np.empty(lines if weight >= 0 else 0, np.float64)
    known = _begin()
    batch = np.empty((_BATCH + 2, 2), np.int64)
    waiting = done = edges = line = at = columns_before = error = 0
    size = len(data)
    while at < size:
        line += 1
        at = _skip_to_fields(data, at, separator)
        columns = 0
        while at < size and data[at] != _NEWLINE:
            start, end, at, quote_open = _next_field(data, at, separator)
            if quote_open:
                error = QUOTE
            elif columns in (first, second):
                if end == start:
                    error = EMPTY
                elif end - start > LONGEST:
                    error = LONG
                batch[waiting, 0], batch[waiting, 1] = start, end
                waiting += 1
            elif columns == weight:
                if end == start:
                    error = EMPTY
                weights[edges] = _parse_number(data, start, end)
            elif exact and weight >= 0:
                error = TOO_MANY
            columns += 1
            if error:
                break
        if not error and columns and columns <= second:
            error = TOO_FEW
        if not error and columns and weight >= 0:
            if exact and columns_before and columns != columns_before:
                error = UNEVEN
            if not exact and columns <= weight:
                error = UNEVEN
            columns_before = columns
        if error:
            break
        edges += columns > 0
        if waiting >= _BATCH or at + 1 >= size:
            known = _look_up(data, batch[:waiting], known, ends[done:])
            done += waiting
            waiting = 0
        at += 1
    has_weights = weight >= 0 and columns_before > weight
    return error, line, ends[: 2 * edges], weights[: edges if has_weights else 0], known[1][: known[2]]


@njit(cache=True, nogil=True)
def scan_adjacency(data, separator, lines, fields):
    """The same for an adjacency list, whose lines are a node and its neighbours; at most `fields` fields.

    Returns error, line, the number of the id in each field, the fields of each line, start and length of each id.
    """
    numbers, counts = np.empty(fields + 1, np.int32), np.zeros(lines + 1, np.int64)
    known = _begin()
    batch = np.empty((_BATCH, 2), np.int64)
    waiting = done = line = at = error = 0
    size = len(data)
    while at < size:
        line += 1
        at = _skip_to_fields(data, at, separator)
        columns = 0
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
            batch[waiting, 0], batch[waiting, 1] = start, end
            waiting += 1
            columns += 1
            if waiting == _BATCH:
                known = _look_up(data, batch, known, numbers[done:])
                done += waiting
                waiting = 0
        if error:
            break
        counts[line] = columns
        at += 1
    if waiting and not error:
        known = _look_up(data, batch[:waiting], known, numbers[done:])
        done += waiting
    return error, line, numbers[:done], counts, known[1][: known[2]]


@njit(cache=True, nogil=True)
def parse_integers(data, ids, out):
    """Write the ids as integers; False if one is not written as an integer is printed (007 is not)."""
    for i in range(len(ids)):
        at, end = ids[i, 0], ids[i, 0] + ids[i, 1]
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
def _skip_to_fields(data, at, separator):
    """The first field of the line at this place, or its end where it is empty or a comment."""
    at = _skip_blank(data, at, separator)
    if at < len(data) and (data[at] == _HASH or data[at] == _PERCENT):
        while at < len(data) and data[at] != _NEWLINE:
            at += 1
    return at


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
def _begin():
    """Nothing known yet: slots of a hash and a number plus one, ids of a start and a length, how many there are."""
    return np.zeros((1 << 12, 2), np.uint64), np.empty((1 << 10, 2), np.int64), 0


@njit(nogil=True)
def _look_up(data, batch, known, out):
    """Write the number of each id data[start:end] of a batch, a new one if it was not seen; returns what is known then.

    Each pass over the batch reads one place in memory for each id, so that none waits for another.
    """
    slots, ids, count = _make_room(known, len(batch))
    codes = np.empty(len(batch), np.uint64)
    likely = np.empty(len(batch), np.int64)
    starts = np.empty(len(batch), np.int64)
    mask = np.uint64(len(slots) - 1)
    for i in range(len(batch)):
        codes[i] = _hash(data, batch[i, 0], batch[i, 1])
    for i in range(len(batch)):
        slot = codes[i] & mask
        likely[i] = np.int64(slots[slot, 1]) - 1 if slots[slot, 0] == codes[i] else -1
    for i in range(len(batch)):
        length = batch[i, 1] - batch[i, 0]
        starts[i] = ids[likely[i], 0] if likely[i] >= 0 and ids[likely[i], 1] == length else -1
    for i in range(len(batch)):
        start, length = batch[i, 0], batch[i, 1] - batch[i, 0]
        if starts[i] >= 0 and _equal(data, starts[i], start, length):
            out[i] = likely[i]
            continue
        slot = codes[i] & mask
        while True:
            number = np.int64(slots[slot, 1]) - 1
            if number < 0:
                number = count
                ids[number, 0], ids[number, 1] = start, length
                slots[slot, 0], slots[slot, 1] = codes[i], np.uint64(number + 1)
                count += 1
                break
            if slots[slot, 0] == codes[i] and ids[number, 1] == length and _equal(data, ids[number, 0], start, length):
                break
            slot = (slot + np.uint64(1)) & mask
        out[i] = number
    return slots, ids, count


@njit(nogil=True)
def _make_room(known, more):
    """The same with room for this many more ids, slots at most half full."""
    slots, ids, count = known
    if count + more > len(ids):
        larger = np.empty((2 * (count + more), 2), np.int64)
        for i in range(count):
            larger[i, 0], larger[i, 1] = ids[i, 0], ids[i, 1]
        ids = larger
    if 2 * (count + more) > len(slots):
        size = len(slots)
        while 2 * (count + more) > size:
            size *= 4
        old, slots = slots, np.zeros((size, 2), np.uint64)
        mask = np.uint64(size - 1)
        for i in range(len(old)):
            if old[i, 1] != 0:
                slot = old[i, 0] & mask
                while slots[slot, 1] != 0:
                    slot = (slot + np.uint64(1)) & mask
                slots[slot, 0], slots[slot, 1] = old[i, 0], old[i, 1]
    return slots, ids, count


@njit(nogil=True)
def _hash(data, start, end):
    """FNV-1a, its high bits folded into the low ones."""
    code = np.uint64(0xCBF29CE484222325)
    for at in range(start, end):
        code = (code ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
    return code ^ (code >> np.uint64(29))


@njit(nogil=True)
def _equal(data, one, other, length):
    for i in range(length):  # noqa: SIM110, Numba has no generators
        if data[one + i] != data[other + i]:
            return False
    return True


@njit(nogil=True)
def _parse_number(data, start, end):
    """A positive decimal of up to 15 digits, exactly; otherwise −1 − start."""
    digits = behind = 0
    value = np.int64(0)
    point = False
    for at in range(start, end):
        byte = data[at]
        if 48 <= byte <= 57:
            value = value * 10 + np.int64(byte - 48)
            digits += 1
            behind += point
        elif byte == 46 and not point:
            point = True
        else:
            digits = 0
            break
    if digits == 0 or digits > 15 or value == 0:
        return -1.0 - start
    return np.float64(value) / 10.0**behind
