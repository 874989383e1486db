"""Parses edges from the bytes of a text file, compiled by Numba: one pass, without Python objects for lines."""

# mypy: ignore-errors

import numpy as np
from numba import njit

TOO_FEW, TOO_MANY, UNEVEN, EMPTY, QUOTE, LONG = range(1, 7)
"""Error codes of a line: too few columns, too many, a weight in some lines only, an empty field, an unclosed quotation
mark, an id longer than `LONGEST`."""

LONGEST = 1024
"""Bytes of the longest id that is accepted; a larger limit accepts longer ones."""

_NEWLINE, _RETURN, _TAB, _SPACE, _QUOTE, _HASH, _PERCENT, _ZERO, _NINE = 10, 13, 9, 32, 34, 35, 37, 48, 57
_MOST_DIGITS = 18
_BATCH = 512
"""Ids that are looked up together, so that their memory accesses overlap; more need a larger buffer."""


@njit(cache=True, nogil=True)
def scan_edges(data, separator, first, second, weight, exact, lines):
    """Number the ids of an edge list in order of first appearance and read its weights.

    `separator` is a byte, or 0 for white space; there are at most `lines` lines. The ends of an edge are in columns
    `first` < `second`, and its weight is in column `weight`, −1 for none. If `exact`, other columns are an error, and
    the weight may be missing in all lines.
    Returns error code, line, the two ends of each edge one after the other, weights, start and length of each id.
    The caller parses a weight that is not a plain positive decimal: it is returned as −1 − its offset in the data.
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
                error = _check_id(start, end)
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
    """Number the ids of an adjacency list, each line a node and its neighbours, with at most `fields` fields in all.

    Returns error code, line, the id's number in each field, the field count of each line, start and length of each id.
    """
    numbers, counts = np.empty(fields + 1, np.int32), np.zeros(lines + 1, np.int64)
    known = _begin()
    batch = np.empty((_BATCH, 2), np.int64)
    waiting = done = line = at = error = 0
    size = len(data)
    while at < size:
        line += 1
        at = _skip_to_fields(data, at, separator)
        while at < size and data[at] != _NEWLINE:
            start, end, at, quote_open = _next_field(data, at, separator)
            error = QUOTE if quote_open else _check_id(start, end)
            if error:
                break
            batch[waiting, 0], batch[waiting, 1] = start, end
            waiting += 1
            counts[line] += 1
            if waiting == _BATCH:
                known = _look_up(data, batch, known, numbers[done:])
                done += waiting
                waiting = 0
        if error:
            break
        at += 1
    if waiting and not error:
        known = _look_up(data, batch[:waiting], known, numbers[done:])
        done += waiting
    return error, line, numbers[:done], counts, known[1][: known[2]]


@njit(cache=True, nogil=True)
def parse_integers(data, ids, out):
    """Write the ids as integers; return False if one is not in canonical form (007 is not)."""
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
    """Return the offset of the first field of a line, or the line's end if it is empty or a comment."""
    at = _skip_blank(data, at, separator)
    if at < len(data) and (data[at] == _HASH or data[at] == _PERCENT):
        while at < len(data) and data[at] != _NEWLINE:
            at += 1
    return at


@njit(nogil=True)
def _skip_blank(data, at, separator):
    """Return the next offset in the line that is not white space; the separator does not count as white space."""
    while at < len(data) and data[at] != separator and (data[at] in (_SPACE, _TAB, _RETURN)):
        at += 1
    return at


@njit(nogil=True)
def _next_field(data, at, separator):
    """Return start and end of the field at this offset, where the next begins, and whether a quotation is unclosed."""
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
def _check_id(start, end):
    if end == start:
        return EMPTY
    return LONG if end - start > LONGEST else 0


@njit(nogil=True)
def _begin():
    """Return an empty table of ids: slots (hash, number + 1), ids (start, length), and the number of ids."""
    return np.zeros((1 << 12, 2), np.uint64), np.empty((1 << 10, 2), np.int64), 0


@njit(nogil=True)
def _look_up(data, batch, known, out):
    """Write the number of each id data[start:end] of a batch, a new one if it is new; return the updated table.

    Each pass over the batch makes one memory access for each id, so that the accesses overlap.
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
def _make_room(known, added):
    slots, ids, count = known
    if count + added > len(ids):
        larger = np.empty((2 * (count + added), 2), np.int64)
        for i in range(count):
            larger[i, 0], larger[i, 1] = ids[i, 0], ids[i, 1]
        ids = larger
    if 2 * (count + added) > len(slots):
        size = len(slots)
        while 2 * (count + added) > size:
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
    """Return the FNV-1a hash, its high bits folded into the low ones."""
    code = np.uint64(0xCBF29CE484222325)
    for at in range(start, end):
        code = (code ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
    return code ^ (code >> np.uint64(29))


@njit(nogil=True)
def _equal(data, first, second, length):
    for i in range(length):  # noqa: SIM110, Numba has no generators
        if data[first + i] != data[second + i]:
            return False
    return True


@njit(nogil=True)
def _parse_number(data, start, end):
    """Return a positive decimal of up to 15 digits, exactly; for anything else, −1 − start."""
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


@njit(cache=True, nogil=True)
def count_lines(data, first, last):
    """Return the number of line ends in data[first:last]."""
    lines = 0
    for at in range(first, last):
        lines += data[at] == _NEWLINE
    return lines


@njit(cache=True, nogil=True)
def parse_pairs(data, first, last, separator, sources, targets):
    """Parse the lines of data[first:last], each of which is two integers, a comment, or empty.

    `separator` is a byte, or 0 for white space. Returns the number of pairs; −1 if a line is anything else, or if a
    number is not in its canonical form (such as 007).
    """
    at, pairs = first, 0
    while at < last:
        byte = data[at]
        if byte in (_NEWLINE, _RETURN):
            at += 1
            continue
        if byte in (_HASH, _PERCENT):
            while at < last and data[at] != _NEWLINE:
                at += 1
            at += 1
            continue
        value, begin = np.int64(0), at
        while at < last and _ZERO <= data[at] <= _NINE:
            value = value * 10 + (np.int64(data[at]) - _ZERO)
            at += 1
        digits = at - begin
        if digits == 0 or digits > _MOST_DIGITS or (data[begin] == _ZERO and digits > 1) or at >= last:
            return -1
        sources[pairs] = value
        if separator:
            if data[at] != separator:
                return -1
            at += 1
        else:
            begin = at
            while at < last and data[at] in (_SPACE, _TAB):
                at += 1
            if at == begin:
                return -1
        value, begin = np.int64(0), at
        while at < last and _ZERO <= data[at] <= _NINE:
            value = value * 10 + (np.int64(data[at]) - _ZERO)
            at += 1
        digits = at - begin
        if digits == 0 or digits > _MOST_DIGITS or (data[begin] == _ZERO and digits > 1):
            return -1
        targets[pairs] = value
        pairs += 1
        if at < last and data[at] == _RETURN:
            at += 1
        if at < last and data[at] != _NEWLINE:
            return -1
        at += 1
    return pairs


@njit(cache=True, nogil=True)
def mark(values, least, seen):
    """seen[value − least] ← 1 for all values."""
    for value in values:
        seen[value - least] = 1


@njit(cache=True, nogil=True)
def translate(values, least, codes, out):
    """out[i] ← codes[values[i] − least]."""
    for place in range(len(values)):
        out[place] = codes[values[place] - least]


@njit(cache=True, nogil=True)
def collect(values, keys, count):
    """Insert all values into a hash table of keys, of which at most half are used; empty slots are −1.

    Returns the table, which may be a larger one, and the new number of keys; `count` is the number before.
    """
    mask = np.uint64(len(keys) - 1)
    for value in values:
        slot = _mix(value) & mask
        while keys[slot] >= 0 and keys[slot] != value:
            slot = (slot + np.uint64(1)) & mask
        if keys[slot] < 0:
            keys[slot] = value
            count += 1
            if 2 * count > len(keys):
                larger = np.full(4 * len(keys), -1, np.int64)
                mask = np.uint64(len(larger) - 1)
                for key in keys:
                    if key >= 0:
                        slot = _mix(key) & mask
                        while larger[slot] >= 0:
                            slot = (slot + np.uint64(1)) & mask
                        larger[slot] = key
                keys = larger
    return keys, count


@njit(cache=True, nogil=True)
def look_up(values, keys, codes, out):
    """out[i] ← codes[slot of values[i] in the hash table of keys]."""
    mask = np.uint64(len(keys) - 1)
    for place in range(len(values)):
        value = values[place]
        slot = _mix(value) & mask
        while keys[slot] != value:
            slot = (slot + np.uint64(1)) & mask
        out[place] = codes[slot]


@njit(nogil=True)
def _mix(value):
    code = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return code ^ (code >> np.uint64(32))
