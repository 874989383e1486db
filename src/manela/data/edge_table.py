"""Finds the columns of an edge table that hold the ends and the weight, by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

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
    """Return the positions of a pair of common names."""
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
        for place, of_source in enumerate(words):
            shared = [word for word in of_source if word != source]
            is_named = all(word in nouns if nouns is not None else not word.isdecimal() for word in shared)
            of_target = [target if word == source else word for word in of_source]
            if source in of_source and is_named and words.count(of_source) == words.count(of_target) == 1:
                return place, words.index(of_target)
    return None


def choose_by_names(header: Sequence[str], counts_up: Callable[[], bool], is_number: Callable[[int], bool]) -> Choice:
    """Choose the columns for the ends and the weight of an edge by name, and by content if names do not decide.

    `counts_up` returns whether the first column numbers the rows, and `is_number` whether a column holds numbers.

    Examples
    --------
    >>> choose_by_names(["payer", "payee", "euros"], lambda: False, lambda place: place == 2)
    Choice(source=0, target=1, weight=2)
    >>> choose_by_names(["order_id", "customer", "product", "date", "qty"], lambda: False, lambda place: place == 4)
    Choice(source=1, target=2, weight=4)
    """
    names = [name.strip().lower() for name in header]
    pair = find_pair(header) or _find_variant(header, None) or _find_ends(header, counts_up)
    others = [place for place in range(len(names)) if place not in pair and (place > 0 or names[0] not in INDICES)]
    weight = next((place for name in WEIGHT_NAMES for place in others if names[place] == name), -1)
    numbers = [place for place in others if weight < 0 and not _is_no_end(header[place]) and is_number(place)]
    if len(others) == 1 and numbers and names[numbers[0]] != "id":
        weight = numbers[0]
    elif weight < 0:
        named = [place for place in numbers if set(_split(header[place])) & set(WEIGHT_NAMES)]
        weight = named[0] if len(named) == 1 else -1
    return Choice(*pair, weight)


def _find_ends(header: Sequence[str], counts_up: Callable[[], bool]) -> tuple[int, int]:
    """Return the first two columns that are neither numbers of rows nor times, or simply the first two."""
    is_counted = len(header) > 2 and header[0].strip().lower() in INDICES and counts_up()
    ends = [place for place, name in enumerate(header) if not _is_no_end(name) and not (place == 0 and is_counted)]
    first = 1 if is_counted else 0
    return (ends[0], ends[1]) if len(ends) >= 2 else (first, first + 1)


def _is_no_end(name: str) -> bool:
    """Return whether a column's name says that it holds times, or numbers of rows such as `order_id`."""
    words = _split(name)
    is_row = len(words) == 2 and words[0] in EVENTS and words[1] in _NUMBERS_OF_ROWS
    return is_row or name.strip().lower() in TIMES or bool({"time", "timestamp", "date", "datetime"} & set(words))


def _split(name: str) -> list[str]:
    """Return the words of a name, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def describe_choice(header: Sequence[str], choice: Choice, unweighted: bool = False) -> str:
    """Describe which columns were chosen; return an empty text if their names leave no doubt."""
    names = [name.strip().lower() for name in header]
    pair, weight = (choice.source, choice.target), -1 if unweighted else choice.weight
    is_plain = (names[pair[0]], names[pair[1]]) in _PLAIN
    used = {*pair, weight}
    ignored = [header[place] or "a column without a name" for place in range(len(names)) if place not in used]
    if is_plain and (weight < 0 or names[weight] == "weight") and (not ignored or unweighted):
        return ""
    message = f"using columns {header[pair[0]]} and {header[pair[1]]} as edge endpoints"
    message += f", {header[weight]} as weight" if weight >= 0 else ""
    shown = ", ".join(ignored[:5]) + (" and others" if len(ignored) > 5 else "")
    return message + (f"; ignoring {shown}" if ignored else "")
