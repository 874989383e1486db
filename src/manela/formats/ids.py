"""Converts node ids to plain values that files can store, and back."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import json
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import OutputError

Ids = npt.NDArray[Any]

_TYPES: dict[str, tuple[Any, Callable[[Any], str], Callable[[str], Any]]] = {
    "uuid": (uuid.UUID, str, uuid.UUID),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "path": (PurePath, str, Path),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "ip": (ipaddress.IPv4Address | ipaddress.IPv6Address, str, ipaddress.ip_address),
    "text": (object, str, str),
}
"""Types of ids that survive saving, with their conversion to text and back; any other type is read back as text."""


def to_plain(nodes: Ids, name: object) -> tuple[Ids, str]:
    """Convert ids to an array without objects; also return their kind: "integer", "string" or "json".

    `name` is the file name for error messages.
    """
    if nodes.dtype != object:
        return nodes, "integer"
    ids = nodes.tolist()
    if all(type(node) is str and not node.endswith("\0") for node in ids):  # NumPy drops trailing zeros
        return np.array(ids, dtype=np.str_), "string"
    try:
        texts = [json.dumps(_to_json(node)) for node in ids]
    except TypeError as error:
        raise OutputError(f"{name}: cannot hold these ids: {error}") from error
    if len(set(texts)) < len(texts):
        raise OutputError(f"{name}: cannot hold these ids: two of them have the same text")
    return np.array(texts, dtype=np.str_), "json"


def from_plain(nodes: Ids | Sequence[Any], kind: str) -> Ids:
    """Restore the ids that `to_plain` converted."""
    if kind == "integer":
        return np.asarray(nodes, dtype=np.int64)
    values = nodes.tolist() if isinstance(nodes, np.ndarray) else nodes
    ids = np.empty(len(values), dtype=object)
    for row, node in enumerate(values):
        ids[row] = _from_json(json.loads(node)) if kind == "json" else node
    return ids


def to_words(nodes: Ids, name: object) -> list[str]:
    """Convert ids to words; raise OutputError for white space, which the word2vec formats cannot hold."""
    words = [str(node) for node in nodes.tolist()]
    for word in words:
        if word.split() != [word]:
            raise OutputError(
                f"{name}: ids must not contain white space in this format, got {word!r}; use .npz or .csv"
            )
    check_texts(nodes, name)
    return words


def check_texts(nodes: Ids, name: object) -> None:
    """Raise OutputError if two ids have the same text, or one contains a line end."""
    if nodes.dtype != object:
        return
    texts: dict[str, Any] = {}
    for node in nodes.tolist():
        text = str(node)
        if "\r" in text or "\0" in text:
            raise OutputError(
                f"{name}: ids must not contain line ends or null characters in this format, got {text!r}; use .npz"
            )
        if text in texts:
            raise OutputError(f"{name}: ids {texts[text]!r} and {node!r} are the same when written; use .npz")
        texts[text] = node


def from_words(words: list[str]) -> Ids:
    """Convert words to integers if all are in the form in which integers are printed, and otherwise to strings."""
    try:
        values = [int(word) for word in words]
    except ValueError:
        values = []
    if values and [str(value) for value in values] == words and max(map(abs, values)) < 2**63:
        return np.array(values, dtype=np.int64)
    ids = np.empty(len(words), dtype=object)
    ids[:] = words
    return ids


def _to_json(node: Any) -> Any:
    """Convert an id to JSON: tuples to lists, types with a text form to objects; no id is a list or a dict."""
    if isinstance(node, tuple):
        return [_to_json(part) for part in node]
    if node is None or type(node) in (bool, int, float, str):
        return node
    kind_of_id: Any = type(node)
    if kind_of_id.__str__ is object.__str__ and kind_of_id.__repr__ is object.__repr__:
        raise TypeError(
            f"an id must have a text form to be saved, got {kind_of_id.__name__}; convert it with str(…) before fitting"
        )
    return next({name: write(node)} for name, (kind, write, _) in _TYPES.items() if isinstance(node, kind))


def _from_json(node: Any) -> Any:
    if isinstance(node, dict):
        [(name, text)] = node.items()
        return _TYPES[name][2](text)
    return tuple(_from_json(part) for part in node) if isinstance(node, list) else node
