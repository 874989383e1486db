"""Exposure: what a curious host could have learned of other hosts' edges, by known attacks on its own trace.

A host sees vectors of its nodes' neighbours elsewhere, and by messages also what these say of their own neighbours:
means, sweeps of the start, steps of smoothing. The attacks score pairs of such nodes; the higher a score, the more
likely is an edge between them. Nodes that are not neighbours of the host's own are in no trace, so no attack can score
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.agents.messages import ROUND, SMOOTH, START
from manela.agents.names import Node
from manela.agents.neighbourhood import Neighbourhood

Scores = npt.NDArray[np.float32]
"""For each pair of nodes that were seen, how likely there is an edge between them, (n, n)."""

_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
"""How strongly regressions are held back; an attacker would try several, as which is best depends on the noise."""
_NAMES = {START: "sweeps of the start", ROUND: "means in rounds", SMOOTH: "steps of smoothing"}


@dataclass(frozen=True)
class Record:
    """What a host has seen, in order.

    Attributes
    ----------
    nodes : list of Node
        Whom it has seen, its own nodes last.
    seen : int
        How many of them are other hosts'.
    views : dict of arrays, shape (nodes, levels, m)
        By phase and number, what was shown; nan where nothing was.
    """

    nodes: list[Node]
    seen: int
    views: dict[tuple[int, int], npt.NDArray[np.float32]]


def read_record(facts: Iterable[Mapping[str, Any]], near: Neighbourhood) -> Record:
    """What the facts of a trace say."""
    nodes = [*near.strangers, *((name, near.host) for name in near.nodes)]
    rows = {node: row for row, node in enumerate(nodes)}
    views: dict[tuple[int, int], npt.NDArray[np.float32]] = {}
    at = (START, 0)
    for fact in facts:
        if fact["kind"] == "own":
            at = (fact["phase"], fact["number"])
        if fact["kind"] not in ("own", "shown") or fact["rows"].size == 0:
            continue
        host = near.host if fact["kind"] == "own" else fact["peer"]
        shown = fact["rows"][:, 0]
        view = views.get(at, np.zeros((len(nodes), 0, shown.shape[2]), np.float32))
        if view.shape[1] < shown.shape[1]:
            more = np.full((len(nodes), shown.shape[1] - view.shape[1], shown.shape[2]), np.nan, np.float32)
            views[at] = view = np.concatenate((view, more), axis=1)
        places = [(rows[name, host], place) for place, name in enumerate(fact["nodes"]) if (name, host) in rows]
        here, there = np.array(places, np.int64).reshape(-1, 2).T
        view[here, : shown.shape[1]] = shown[there]
    seen = len(near.strangers)
    views = {at: views[at] for at in sorted(views) if np.isfinite(views[at][:seen]).any()}
    _fill_gaps(views)
    return Record(nodes, seen, views)


def _fill_gaps(views: dict[tuple[int, int], npt.NDArray[np.float32]]) -> None:
    """What was not shown in a round, as it had not changed, is as it was shown last."""
    last: npt.NDArray[np.float32] | None = None
    for (phase, _), view in views.items():
        if phase == ROUND:
            if last is not None and last.shape == view.shape:
                view[:] = np.where(np.isnan(view), last, view)
            last = view


def attack(record: Record, near: Neighbourhood) -> dict[str, Scores]:
    """The scores of all attacks that the record allows, by name."""
    scores = {"own edges: common neighbours": count_common(near)}
    rounds = sorted(key for key in record.views if key[0] == ROUND)
    if rounds:
        last = np.nan_to_num(record.views[rounds[-1]][: record.seen, 0])
        units = _normalise(last)
        scores["cosine of vectors"] = units @ units.T
        scores["product of vectors"] = last @ last.T
    for name, pairs in _find_pairs(record).items():
        scores[f"correlation, {name}"] = correlate(pairs, record.seen)
        changes = _find_changes(pairs)
        for ridge in _RIDGES:
            scores[f"regression by {ridge:g}, {name}"] = regress(pairs, record.seen, ridge)
            if changes:
                scores[f"regression by {ridge:g}, changes of {name}"] = regress(changes, record.seen, ridge)
    return scores


def count_common(near: Neighbourhood) -> Scores:
    """How many own nodes are neighbours of both: what a host knows without any vector."""
    own, seen = len(near.nodes), len(near.strangers)
    joined = np.zeros((own, seen), np.float32)
    away = near.indices >= own
    joined[near.sources[away], near.indices[away] - own] = 1.0
    return joined.T @ joined


View = npt.NDArray[np.float32]


def correlate(pairs: list[tuple[View, View]], seen: int) -> Scores:
    """How like what a node says of its neighbours is to each node."""
    found = np.zeros((seen, seen), np.float32)
    for before, after in pairs:
        found += _normalise(np.nan_to_num(after[:seen])) @ _normalise(np.nan_to_num(before[:seen])).T
    return found + found.T


def regress(pairs: list[tuple[View, View]], seen: int, ridge: float) -> Scores:
    """How much of what nodes say of their neighbours is explained by each node: a regression over all pairs of views.

    In each pair the second, (nodes, m), is what each node says of its neighbours' rows in the first, (nodes, m).
    `ridge` is how much of the mean square of rows is added to each, so that the regression is stable.
    """
    nodes = len(pairs[0][0])
    gram, cross = np.zeros((nodes, nodes)), np.zeros((nodes, seen))
    for before, after in pairs:
        known, said = np.nan_to_num(before).astype(np.float64), np.nan_to_num(after[:seen]).astype(np.float64)
        gram += known @ known.T
        cross += known @ said.T
    gram[np.diag_indices(nodes)] += ridge * max(float(np.trace(gram)) / nodes, 1e-30)
    found = np.linalg.solve(gram, cross)[:seen]
    np.fill_diagonal(found, 0.0)
    return np.abs(found + found.T).astype(np.float32)


def _normalise(rows: View) -> View:
    units: View = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return units


def _find_pairs(record: Record) -> dict[str, list[tuple[View, View]]]:
    """For each kind of message, pairs of views of which the second is said of neighbours' rows in the first."""
    pairs: dict[str, list[tuple[View, View]]] = {}
    for (phase, number), view in sorted(record.views.items()):
        before = record.views.get((phase, number - 1))
        if phase == ROUND and view.shape[1] > 1:
            pairs.setdefault(_NAMES[ROUND], []).append((view[:, 0], view[:, 1]))
        elif phase != ROUND and before is not None:
            pairs.setdefault(_NAMES[phase], []).append((before[:, 0], view[:, 0]))
    return pairs


def _find_changes(pairs: list[tuple[View, View]]) -> list[tuple[View, View]]:
    """How both views of pairs that follow each other differ."""
    return [(two[0] - one[0], two[1] - one[1]) for one, two in pairwise(pairs)]
