"""Colouring: assigns each node of a map to a group, by its label or by its vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.analysis.groups import find_groups
from manela.data.embedding import Embedding
from manela.errors import ParameterError
from manela.formats.labels import Labels

_MOST_GROUPS = 250
"""Groups with a colour of their own; a page stores group numbers in one byte, so at most 256 fit."""
_FEWEST = 8
"""With fewer nodes no groups are searched for; if larger, more small maps have no groups."""


@dataclass(frozen=True, eq=False)
class Colouring:
    """Groups of a map.

    Attributes
    ----------
    names : list of str
        Names of the groups, largest first, followed by entries that are not groups, such as "no label".
    groups : array of uint8, shape (n,)
        The group of each node, as an index into `names`.
    grey : int
        The number of last names that are not groups; they are shown in grey.
    title : str
        What the groups are: "Labels" or "Groups".
    words : str
        A text that describes them.
    """

    names: list[str]
    groups: npt.NDArray[np.uint8]
    grey: int
    title: str
    words: str


def colour_nodes(embedding: Embedding, labels: Any = None, random_state: int = 0) -> Colouring:
    """Find the group of each node.

    Parameters
    ----------
    embedding : Embedding
    labels : Labels, dict by node, or array of shape (n,), optional
        The first label of a node counts; None or an empty text is not a label. By default groups are found from the
        vectors.
    random_state : int

    Examples
    --------
    >>> embedding = Embedding(np.arange(3), np.eye(3, dtype=np.float32))
    >>> colouring = colour_nodes(embedding, ["red", "blue", "red"])
    >>> colouring.names, colouring.groups.tolist()
    (['red', 'blue'], [0, 1, 0])
    """
    if labels is not None:
        return _by_labels(_list_labels(embedding.nodes, labels))
    if len(embedding) < _FEWEST:
        return Colouring(["nodes"], np.zeros(len(embedding), dtype=np.uint8), 0, "Groups", "too few for groups")
    groups = find_groups(embedding.vectors, random_state=random_state)
    words = f"coloured by {groups.count:,} groups found from the vectors"
    if groups.hidden:
        words += (
            f" (silhouette of hidden nodes {groups.silhouette:.2f}, agreement of two halves {groups.stability:.2f})"
        )
    names = [f"group {number}" for number in range(groups.count)]
    return _merge(names, groups.labels, "no group", "Groups", words)


def _list_labels(nodes: npt.NDArray[Any], labels: Any) -> list[str]:
    """Return a label for each node, "" for none."""
    if isinstance(labels, Labels):
        matrix = labels.of(nodes)
        first = np.where(matrix.any(axis=1), matrix.argmax(axis=1), -1).tolist()
        return [labels.names[place] if place >= 0 else "" for place in first]
    if isinstance(labels, Mapping):
        listed = [labels.get(node) for node in nodes.tolist()]
    else:
        listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if len(listed) != len(nodes):
        raise ParameterError(f"labels must be one for each of {len(nodes):,} nodes, got {len(listed):,}")
    return ["" if label is None or label != label else str(label) for label in listed]  # NaN is not a label


def _by_labels(labels: list[str]) -> Colouring:
    """Return groups by label, the largest first."""
    places: dict[str, int] = {}
    numbers = np.array([places.setdefault(label, len(places)) if label else -1 for label in labels], dtype=np.int64)
    sizes = np.bincount(numbers[numbers >= 0], minlength=len(places))
    order = np.argsort(-sizes, kind="stable")
    ranks = np.empty(len(places) + 1, dtype=np.int64)
    ranks[order], ranks[-1] = np.arange(len(places)), -1
    names = list(places)
    words = f"coloured by {len(places):,} labels"
    return _merge([names[place] for place in order], ranks[numbers], "no label", "Labels", words)


def _merge(names: list[str], numbers: npt.NDArray[np.int64], none: str, title: str, words: str) -> Colouring:
    """Keep the largest groups, merge all others into one, and put nodes without a group into another."""
    shown, grey = names[:_MOST_GROUPS], []
    groups = numbers.copy()
    if len(names) > _MOST_GROUPS:
        groups[numbers >= _MOST_GROUPS] = _MOST_GROUPS
        grey.append(f"{len(names) - _MOST_GROUPS:,} smaller ones")
        words += f", of which the {_MOST_GROUPS} largest have a colour"
    if (numbers < 0).any():
        groups[numbers < 0] = len(shown) + len(grey)
        grey.append(none)
    return Colouring([*shown, *grey], groups.astype(np.uint8), len(grey), title, words)
