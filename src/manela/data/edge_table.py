"""Recognises the header of an edge table, and the columns that hold the ends and the weight, by name and by content."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from manela.errors import FormatError, Option

COLUMN_NAMES = (
    ("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"), ("node_1", "node_2"),
    ("id1", "id2"), ("id_1", "id_2"), ("head", "tail"), ("start", "end"), ("sender", "receiver"),
    ("sender", "recipient"), ("payer", "payee"), ("buyer", "seller"), ("caller", "callee"), ("follower", "followee"),
    ("follower", "followed"), ("citing", "cited"), ("fromnodeid", "tonodeid"), ("from_id", "to_id"),
    ("source_id", "target_id"), ("src_id", "dst_id"), ("from_node", "to_node"), ("source_node", "target_node"),
    ("node_a", "node_b"), ("user1", "user2"), ("user", "item"), ("user_id", "item_id"), ("user", "friend"),
)  # fmt: skip
"""Common names of the two ends of an edge, from pandas, Gephi, NetworkX, KONECT, SNAP and others."""
WEIGHT_NAMES = ("weight", "weights", "w", "value", "count", "counts", "strength", "amount", "quantity", "qty",
                "edge_weight", "n")  # fmt: skip
TIMES = ("time", "timestamp", "date", "datetime", "year", "month", "day", "t", "ts", "when", "unixts", "created_at",
         "updated_at", "created", "updated")  # fmt: skip
INDICES = ("", "index", "unnamed: 0", "unnamed:0", "level_0", "row", "rownum", "id")
"""Names of a first column that numbers the rows."""
EVENTS = ("transaction", "order", "trade", "payment", "transfer", "purchase", "sale", "invoice", "message", "mail",
          "email", "call", "event", "edge", "link", "row", "record", "tweet", "post", "review", "rating")  # fmt: skip
"""What a row may be; the number of a row, as in `transaction_id`, is not an end of an edge."""
_NUMBERS_OF_ROWS = ("id", "no", "nr", "number", "key", "uuid", "index", "hash")
_NOUNS = ("id", "name", "node", "address", "account", "number", "key", "user", "email", "phone", "code", "label")
"""What the names of both ends may have in common; more of them may take an edge for a header."""
_PLAIN = COLUMN_NAMES[:5]
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
"""A word of a name such as `sender_name`, `From Address` or `toNodeID`."""


class Choice(NamedTuple):
    """The positions of the columns of a table; `weight` is −1 if there is none."""

    source: int
    target: int
    weight: int


def find_pair(header: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of the columns for the ends of an edge, if their names are common ones.

    Examples
    --------
    >>> find_pair(["day", "to", "From"]), find_pair(["sender name", "receiver name"]), find_pair(["ann", "bob"])
    ((2, 1), (0, 1), None)
    """
    return _find_common(header) or _find_variant(header, _NOUNS)


def _find_common(header: Sequence[str]) -> tuple[int, int] | None:
    names = [name.strip().lower() for name in header]
    for source, target in COLUMN_NAMES:
        if source in names and target in names:
            return names.index(source), names.index(target)
    return None


def _find_variant(header: Sequence[str], nouns: Container[str] | None) -> tuple[int, int] | None:
    """Return the positions of two names that differ only in a pair of common names, such as `from_ip` and `to_ip`.

    What they have in common must be among the nouns, if there are any: `user_1` and `item_1` may as well be nodes.
    """
    words = [_split(name) for name in header]
    for source, target in COLUMN_NAMES:
        for column, of_source in enumerate(words):
            shared = [word for word in of_source if word != source]
            is_named = all(word in nouns if nouns is not None else not word.isdecimal() for word in shared)
            of_target = [target if word == source else word for word in of_source]
            if source in of_source and is_named and words.count(of_source) == words.count(of_target) == 1:
                return column, words.index(of_target)
    return None


def choose_by_names(header: Sequence[str], counts_up: Callable[[], bool], is_number: Callable[[int], bool]) -> Choice:
    """Choose the columns for the ends and the weight of an edge by name, and by content if names do not decide.

    `counts_up` returns whether the first column numbers the rows, and `is_number` whether a column holds numbers.

    Examples
    --------
    >>> choose_by_names(["payer", "payee", "euros"], lambda: False, lambda column: column == 2)
    Choice(source=0, target=1, weight=2)
    >>> choose_by_names(["order_id", "customer", "product", "date", "qty"], lambda: False, lambda column: column == 4)
    Choice(source=1, target=2, weight=4)
    """
    names = [name.strip().lower() for name in header]
    pair = find_pair(header) or _find_variant(header, None) or _find_ends(header, counts_up)
    others = [column for column in range(len(names)) if column not in pair and (column > 0 or names[0] not in INDICES)]
    weight = next((column for name in WEIGHT_NAMES for column in others if names[column] == name), -1)
    numbers = [column for column in others if weight < 0 and not _is_no_end(header[column]) and is_number(column)]
    if len(others) == 1 and numbers and names[numbers[0]] != "id":
        weight = numbers[0]
    elif weight < 0:
        named = [column for column in numbers if set(_split(header[column])) & set(WEIGHT_NAMES)]
        weight = named[0] if len(named) == 1 else -1
    return Choice(*pair, weight)


def _find_ends(header: Sequence[str], counts_up: Callable[[], bool]) -> tuple[int, int]:
    """Return the first two columns that are neither numbers of rows nor times, or simply the first two."""
    is_counted = len(header) > 2 and header[0].strip().lower() in INDICES and counts_up()
    ends = [column for column, name in enumerate(header) if not _is_no_end(name) and not (column == 0 and is_counted)]
    first = 1 if is_counted else 0
    return (ends[0], ends[1]) if len(ends) >= 2 else (first, first + 1)


def _is_no_end(name: str) -> bool:
    """Return whether a column's name says that it holds times, or numbers of rows such as `order_id`."""
    words = _split(name)
    is_row = len(words) == 2 and words[0] in EVENTS and words[1] in _NUMBERS_OF_ROWS
    return is_row or name.strip().lower() in TIMES or bool({"time", "timestamp", "date", "datetime"} & set(words))


def _split(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def describe_choice(header: Sequence[str], choice: Choice, unweighted: bool = False) -> str:
    """Describe which columns were chosen; return an empty text if their names leave no doubt."""
    names = [name.strip().lower() for name in header]
    pair, weight = (choice.source, choice.target), -1 if unweighted else choice.weight
    is_plain = (names[pair[0]], names[pair[1]]) in _PLAIN
    used = {*pair, weight}
    ignored = [header[column] or "a column without a name" for column in range(len(names)) if column not in used]
    if is_plain and (weight < 0 or names[weight] == "weight") and (not ignored or unweighted):
        return ""
    message = f"using columns {header[pair[0]]} and {header[pair[1]]} as edge endpoints"
    message += f", {header[weight]} as weight" if weight >= 0 else ""
    shown = ", ".join(ignored[:5]) + (" and others" if len(ignored) > 5 else "")
    return message + (f"; ignoring {shown}" if ignored else "")


_SAMPLED_LINES = 1000
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
_PLAIN_WORD = "a word"
_NUMBERS = ("a whole number", "a number")
_NO_VALUES = ("", "nan", "na", "n/a", "#n/a", "null", "none", "inf", "infinity")
"""What programs write for a number that is missing or not finite, which is not the name of a column."""


@dataclass(frozen=True)
class Columns:
    """The positions of the columns to read."""

    source: int
    target: int
    weight: int  # −1 for none
    is_exact: bool  # whether lines must have no other columns, as without a header nobody knows what they are
    note: str = ""  # which columns were chosen, if the user should be told


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
    sample = below[:_SAMPLED_LINES]
    later_cells = {cell for line in sample for cell in line}
    pair = find_pair(first)
    if pair is not None and not {first[column] for column in pair} & later_cells:
        return True
    if not below or len(first) < 2:
        return False
    if set(first[:2]) & {cell for line in sample for cell in line[:2] if cell}:  # nodes of other edges
        return False
    words = [column for column, cell in enumerate(first) if _is_name(cell, column) and cell not in later_cells]
    if any(_has_kind(sample, column, _NUMBERS) for column in words if column >= 2 or len(sample) >= 2):
        return True
    for column in range(2):
        kinds = {_kind_of(line[column]) for line in sample if len(line) > column}
        if not _is_name(first[column], column) or first[column] in later_cells or _PLAIN_WORD in kinds or not kinds:
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
    sample = [line[:2] for line in below[:_SAMPLED_LINES] if len(line) >= 2]
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
        header, lambda: _counts_up(below), lambda column: _has_kind(below[:_SAMPLED_LINES], column, _NUMBERS)
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
    return _PLAIN_WORD


def _is_name(cell: str, column: int) -> bool:
    """Whether a cell of a first line can be the name of a column; that of row numbers may be empty."""
    is_value = cell.lower().lstrip("+-") in _NO_VALUES
    return _kind_of(cell) == _PLAIN_WORD and (not is_value or (column == 0 and not cell))


def _has_kind(lines: Sequence[Sequence[str]], column: int, kinds: Sequence[str]) -> bool:
    return bool(lines) and all(len(line) > column and _kind_of(line[column]) in kinds for line in lines)


def _counts_up(lines: Sequence[Sequence[str]]) -> bool:
    cells = [line[0] for line in lines[:_SAMPLED_LINES] if line]
    if not all(cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return bool(numbers) and all(later == before + 1 for before, later in pairwise(numbers))
