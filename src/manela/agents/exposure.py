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
"""How likely an edge is between each node, its own ones last, and each node that was seen, (nodes, seen)."""

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
    for at, view in list(views.items()):
        if at[0] != ROUND:
            continue
        levels = max(view.shape[1], 0 if last is None else last.shape[1])
        whole = np.full((len(view), levels, view.shape[2]), np.nan, np.float32)
        if last is not None:
            whole[:, : last.shape[1]] = last
        there = ~np.isnan(view)
        whole[:, : view.shape[1]][there] = view[there]
        views[at] = last = whole


def attack(record: Record, near: Neighbourhood) -> dict[str, Scores]:
    """The scores of all attacks that the record allows, by name."""
    scores = {"own edges: common neighbours": count_common(near)}
    rounds = [view for (phase, _), view in record.views.items() if phase == ROUND]
    if rounds:
        last = np.nan_to_num(rounds[-1][:, 0])
        units = _normalise(last)
        scores["cosine of vectors"] = units @ units[: record.seen].T
        scores["product of vectors"] = last @ last[: record.seen].T
    for name, pairs in _find_pairs(record).items():
        scores[f"correlation, {name}"] = correlate(pairs, record.seen)
        changes = _find_changes(pairs)
        for ridge in _RIDGES:
            scores[f"regression by {ridge:g}, {name}"] = regress(pairs, record.seen, ridge)
            if changes:
                scores[f"regression by {ridge:g}, changes of {name}"] = regress(changes, record.seen, ridge)
    return scores


def try_on_known_edges(scores: Scores, near: Neighbourhood) -> tuple[float, float]:
    """Average precision of an attack on pairs of own and other nodes, whose edges are known; and that of chance."""
    own, seen = len(near.nodes), len(near.strangers)
    truth = np.zeros((own, seen), bool)
    away = near.indices >= own
    truth[near.sources[away], near.indices[away] - own] = True
    return average_precision(truth.reshape(-1), scores[seen:].reshape(-1)), float(truth.mean())


def average_precision(truth: npt.NDArray[np.bool_], scores: npt.NDArray[np.floating]) -> float:
    """The mean, over all that is true, of the share of what is true among what has at least its score."""
    order = np.argsort(-scores, kind="stable")
    ranked, sorted_scores = truth[order], scores[order]
    # what has the same score comes at once
    last = np.append(np.flatnonzero(np.diff(sorted_scores)), len(sorted_scores) - 1)
    found = np.cumsum(ranked)[last]
    precision, gained = found / (last + 1), np.diff(np.concatenate(([0], found)))
    return float((precision * gained).sum() / max(1, ranked.sum()))


def count_common(near: Neighbourhood) -> Scores:
    """How many own nodes are neighbours of both: what a host knows without any vector."""
    own, seen = len(near.nodes), len(near.strangers)
    joined = np.zeros((own, seen + own), np.float32)
    places = np.where(near.indices >= own, near.indices - own, near.indices + seen)
    joined[near.sources, places] = 1.0
    return joined.T @ joined[:, :seen]


View = npt.NDArray[np.float32]


def correlate(pairs: list[tuple[View, View]], seen: int) -> Scores:
    """How like what a node says of its neighbours is to each node."""
    found = np.zeros((len(pairs[0][0]), seen), np.float32)
    for before, after in pairs:
        found += _normalise(np.nan_to_num(before)) @ _normalise(np.nan_to_num(after[:seen])).T
    return _make_symmetric(found)


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
    found = np.linalg.solve(gram, cross)
    found[np.arange(seen), np.arange(seen)] = 0.0
    return np.abs(_make_symmetric(found.astype(np.float32)))


def _make_symmetric(found: Scores) -> Scores:
    """What two nodes that were seen say of each other, added."""
    both = found.copy()
    both[: found.shape[1]] += found[: found.shape[1]].T
    return both


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
