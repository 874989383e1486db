"""Finds the columns of an edge table that hold the ends and the weight, by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
WEIGHT_NAMES = ("weight", "weights", "w", "value", "count", "counts", "strength", "amount", "edge_weight", "n")
TIMES = ("time", "timestamp", "date", "datetime", "year", "month", "day", "t", "ts", "when", "unixts", "created_at",
         "updated_at", "created", "updated")  # fmt: skip
INDICES = ("", "index", "unnamed: 0", "unnamed:0", "level_0", "row", "rownum", "id")
"""Names of a first column that numbers the rows."""
_PLAIN = COLUMN_NAMES[:5]


class Choice(NamedTuple):
    """The positions of the columns of a table; `weight` is −1 if there is none."""

    source: int
    target: int
    weight: int


def find_pair(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of the columns for the ends of an edge, given names in lower case."""
    for source, target in COLUMN_NAMES:
        if source in names and target in names:
            return names.index(source), names.index(target)
    return None


def choose_by_names(header: Sequence[str], counts_up: Callable[[], bool], is_number: Callable[[int], bool]) -> Choice:
    """Choose the columns for the ends and the weight of an edge by name, and by content if names do not decide.

    `counts_up` returns whether the first column numbers the rows, and `is_number` whether a column holds numbers.

    Examples
    --------
    >>> choose_by_names(["payer", "payee", "euros"], lambda: False, lambda place: place == 2)
    Choice(source=0, target=1, weight=2)
    >>> choose_by_names(["a", "b", "year"], lambda: False, lambda place: place == 2)
    Choice(source=0, target=1, weight=-1)
    """
    names = [name.strip().lower() for name in header]
    pair = find_pair(names)
    if pair is None:
        first = 1 if len(names) > 2 and names[0] in INDICES and counts_up() else 0
        pair = (first, first + 1)
    candidates = [place for place in range(len(names)) if place not in pair and (place > 0 or names[0] not in INDICES)]
    weight = next((place for name in WEIGHT_NAMES for place in candidates if names[place] == name), -1)
    if weight < 0 and len(candidates) == 1 and names[candidates[0]] not in (*TIMES, "id") and is_number(candidates[0]):
        weight = candidates[0]
    return Choice(*pair, weight)


def describe_choice(header: Sequence[str], choice: Choice, unweighted: bool = False) -> str:
    """Describe which columns were chosen; return an empty text if their names leave no doubt."""
    names = [name.strip().lower() for name in header]
    pair, weight = (choice.source, choice.target), -1 if unweighted else choice.weight
    is_plain = (names[pair[0]], names[pair[1]]) in _PLAIN
    used = {*pair, weight}
    ignored = [header[place] or "a column without a name" for place in range(len(names)) if place not in used]
    if is_plain and (weight < 0 or names[weight] == "weight") and (not ignored or unweighted):
        return ""
    words = f"{header[pair[0]]} and {header[pair[1]]} are taken for the ends of edges"
    words += f", {header[weight]} for the weight" if weight >= 0 else ""
    shown = ", ".join(ignored[:5]) + (" and others" if len(ignored) > 5 else "")
    return words + (f"; {shown} {'is' if len(ignored) == 1 else 'are'} not read" if ignored else "")
