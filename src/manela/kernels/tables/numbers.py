"""Parses pairs of integers from the bytes of a text file, compiled by Numba."""

# mypy: ignore-errors

import numpy as np
from numba import njit

_NEWLINE, _RETURN, _TAB, _SPACE, _HASH, _PERCENT, _ZERO, _NINE = 10, 13, 9, 32, 35, 37, 48, 57
_MOST_DIGITS = 18


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
    """Return a hash of an integer."""
    code = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return code ^ (code >> np.uint64(32))
