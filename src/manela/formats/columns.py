"""Recognises the header of a text file, and the columns that hold the ends and the weight of an edge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from manela.data.edge_table import choose_by_names, describe_choice, find_pair
from manela.errors import FormatError, Option

_SAMPLE = 1000
"""Lines from which the content of columns is recognised; more are more reliable and slower."""

_KINDS = (
    ("a whole number", re.compile(r"[+-]?\d+")),
    ("a number", re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")),
    ("a date", re.compile(r"\d{4}-\d\d-\d\d.*")),
    ("an address", re.compile(r"[^@\s]+@[^@\s]+")),
    (
        "a hexadecimal number",
        re.compile(r"(0x)?(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-\w{12}"),
    ),
    ("a word with digits", re.compile(r"(?=.*\d).+")),
)
_WORD = "a word"
_NUMBERS = ("a whole number", "a number")
_NO_VALUES = ("", "nan", "na", "n/a", "#n/a", "null", "none", "inf", "infinity")
"""What programs write for a number that is missing or not finite, which is not the name of a column."""


@dataclass(frozen=True)
class Columns:
    """The positions of the columns to read.

    Attributes
    ----------
    source, target : int
    weight : int
        −1 for none.
    is_exact : bool
        Whether lines must have no other columns, as without a header nobody knows what they are.
    note : str
        Which columns were chosen, if the user should be told.
    """

    source: int
    target: int
    weight: int
    is_exact: bool
    note: str = ""


def find_header(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first line is a header, judged by its names and by the lines below it.

    Examples
    --------
    >>> find_header(["payer", "payee"], [["ann", "bob"]]), find_header(["cem", "dora"], [["ann", "bob"]])
    (True, False)
    >>> find_header(["x", "y"], [["1", "2"]]), find_header(["who", "whom", "euros"], [["ann", "cem", "3.5"]])
    (True, True)
    >>> find_header(["ann", "bob", "nan"], [["bob", "cem", "3.5"]])
    False
    """
    if any(_kind_of(cell) in _NUMBERS for cell in first):
        return False
    sample = below[:_SAMPLE]
    later_cells = {cell for line in sample for cell in line}
    pair = find_pair(first)
    if pair is not None and not {first[place] for place in pair} & later_cells:
        return True
    if not below or len(first) < 2:
        return False
    if set(first[:2]) & {cell for line in sample for cell in line[:2] if cell}:  # nodes of other edges
        return False
    words = [place for place, cell in enumerate(first) if _is_name(cell, place) and cell not in later_cells]
    if any(_has_kind(sample, place, _NUMBERS) for place in words if place >= 2 or len(sample) >= 2):
        return True
    for place in range(2):
        kinds = {_kind_of(line[place]) for line in sample if len(line) > place}
        if not _is_name(first[place], place) or first[place] in later_cells or _WORD in kinds or not kinds:
            return False
        if len(kinds) > 1 and not kinds <= {"a whole number", "a number", "a hexadecimal number", "a word with digits"}:
            return False
    return True


def stands_alone(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first line consists of words that occur nowhere below, while every other line shares a node with one.

    Examples
    --------
    >>> stands_alone(["employee", "manager"], [["ann", "bob"], ["bob", "cem"]])
    True
    >>> stands_alone(["ann", "bob"], [["cem", "dora"], ["emil", "dora"], ["fay", "gus"]])
    False
    """
    sample = [line[:2] for line in below[:_SAMPLE] if len(line) >= 2]
    if len(first) < 2 or len(sample) < 2 or not all(_is_name(cell, 1) for cell in first):
        return False
    counts = Counter(cell for line in sample for cell in set(line))
    is_joined = all(any(counts[cell] > 1 for cell in line) for line in sample)
    return is_joined and not any(counts[cell] for cell in first[:2])


def choose_columns(
    header: Sequence[str] | None, below: Sequence[Sequence[str]], wanted: Sequence[str] | None, unweighted: bool
) -> Columns:
    """Choose the columns to read: by `wanted` (names, or numbers from 1), by the header, or else the first ones."""
    if wanted is not None:
        return _choose_wanted(header, wanted, unweighted)
    if header is None:
        return Columns(0, 1, -1 if unweighted else 2, is_exact=True)
    choice = choose_by_names(
        header, lambda: _counts_up(below), lambda place: _has_kind(below[:_SAMPLE], place, _NUMBERS)
    )
    note = describe_choice(header, choice, unweighted)
    weight = -1 if unweighted else choice.weight
    return Columns(choice.source, choice.target, weight, is_exact=False, note=note)


def names_columns(first: Sequence[str], wanted: Sequence[str] | None) -> bool:
    """Whether a first line is a header because it has all the wanted names, in any case."""
    names = {name.lower() for name in first}
    wanted_names = [name.lower() for name in wanted or () if not name.isdecimal()]
    return bool(wanted_names) and all(name in names for name in wanted_names)


def _choose_wanted(header: Sequence[str] | None, wanted: Sequence[str], unweighted: bool) -> Columns:
    """Return the columns that the caller names, by name or by number from 1."""
    if not 2 <= len(wanted) <= 3:
        raise FormatError(Option("columns"), f" must be two, or three with a weight, got {', '.join(wanted)}")
    places = []
    known_names = [] if header is None else [name.lower() for name in header]
    for name in wanted:
        if header is not None and name in header:
            places.append(list(header).index(name))
        elif name.lower() in known_names:
            places.append(known_names.index(name.lower()))
        elif name.isdecimal() and int(name) >= 1:
            places.append(int(name) - 1)
        else:
            known = ", ".join(header) if header is not None else "no header, so use numbers from 1"
            raise FormatError(f"no column is named {name!r}; the file has {known}")
    if len(set(places)) < len(places):
        raise FormatError(Option("columns"), f" must be different, got {', '.join(wanted)}")
    weight = places[2] if len(places) == 3 and not unweighted else -1
    return Columns(places[0], places[1], weight, is_exact=False)


def _kind_of(cell: str) -> str:
    """Return what a cell looks like: a number, a date, an address, or a word."""
    for kind, pattern in _KINDS:
        if pattern.fullmatch(cell):
            return kind
    return _WORD


def _is_name(cell: str, place: int) -> bool:
    """Whether a cell of a first line can be the name of a column; that of row numbers may be empty."""
    is_value = cell.lower().lstrip("+-") in _NO_VALUES
    return _kind_of(cell) == _WORD and (not is_value or (place == 0 and not cell))


def _has_kind(lines: Sequence[Sequence[str]], place: int, kinds: Sequence[str]) -> bool:
    """Whether all lines have a value of one of these kinds in a column."""
    return bool(lines) and all(len(line) > place and _kind_of(line[place]) in kinds for line in lines)


def _counts_up(lines: Sequence[Sequence[str]]) -> bool:
    """Whether the first column numbers the rows."""
    cells = [line[0] for line in lines[:_SAMPLE] if line]
    if not all(cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return bool(numbers) and all(later == before + 1 for before, later in pairwise(numbers))
