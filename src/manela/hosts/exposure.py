"""Exposure: attacks a host's own trace to measure what a curious host could learn about other hosts' edges.

A host sees the vectors of its nodes' remote neighbours. By messages it also sees values that these compute from
their own neighbours: means, sweeps of the start, steps of smoothing. The attacks score pairs of such nodes; a higher
score means that an edge between them is more likely. Nodes that are not neighbours of the host's own nodes are in no
trace, so no attack can score them.

The regressions take time with the cube of the number of nodes, so a large host attacks a sample of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.hosts.state.messages import ROUND, SMOOTH, START, SWEEP, VIEW
from manela.hosts.state.names import Node
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.kernels.layout import normalise_rows

Scores = npt.NDArray[np.float32]
"""Scores for an edge between each node (rows, own nodes last) and each seen node of other hosts, (nodes, seen)."""

_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
"""Strengths of the ridge penalty; larger ones suit more noise, so an attacker would try several."""
_MOST_SEEN, _MOST_LINKED, _MOST_OTHERS = 500, 1000, 500
"""Most nodes that are attacked: of other hosts, own neighbours of these, and other own nodes; more take longer."""
_NAMES = {
    START: "sweeps of the start",
    SWEEP: "sweeps",
    VIEW: "steps of the view",
    ROUND: "means in rounds",
    SMOOTH: "steps of smoothing",
}


@dataclass(frozen=True)
class Sample:
    """The part of a neighbourhood that is attacked."""

    near: Neighbourhood  # the nodes of the sample, with the edges between them
    weights: npt.NDArray[np.float64]  # shape (own nodes,): how many own nodes each own node of the sample stands for


def take_sample(near: Neighbourhood) -> Sample:
    """Draw the nodes to attack, always the same ones; a small neighbourhood is taken whole.

    Own nodes with known edges are few in most hosts, and are drawn apart from the others. Those without one are not
    what a seen node computes its values from, so leaving some of them out does not weaken an attack.
    """
    random, own = np.random.default_rng(0), len(near.nodes)
    is_seen, is_linked = np.zeros(len(near.remotes), bool), np.zeros(own, bool)
    is_seen[random.permutation(len(is_seen))[:_MOST_SEEN]] = True
    is_kept = np.concatenate((np.zeros(own, bool), is_seen))
    is_linked[near.sources[is_kept[near.indices]]] = True
    weights = np.zeros(own)
    for group, most in ((np.flatnonzero(is_linked), _MOST_LINKED), (np.flatnonzero(~is_linked), _MOST_OTHERS)):
        drawn = random.permutation(group)[:most]
        weights[drawn] = len(group) / max(1, len(drawn))
    if is_seen.all() and weights.all():
        return Sample(near, weights)
    is_kept[:own] = weights > 0.0
    arcs = is_kept[near.sources] & is_kept[near.indices]
    rows = np.cumsum(is_kept) - 1
    # not built from edges: a seen node stays in the sample even if none of its neighbours does
    kept = Neighbourhood(
        near.host,
        [name for name, weight in zip(near.nodes, weights, strict=True) if weight],
        [node for node, seen in zip(near.remotes, is_seen, strict=True) if seen],
        np.concatenate(([0], np.cumsum(np.bincount(near.sources[arcs], minlength=own)[is_kept[:own]]))),
        rows[near.indices[arcs]],
        near.weights[arcs],
    )
    return Sample(kept, weights[weights > 0.0])


@dataclass(frozen=True)
class Record:
    """What a host has seen, in order."""

    nodes: list[Node]  # the nodes that it has seen, its own nodes last
    seen: int  # how many of them belong to other hosts
    # shape (nodes, levels, m): what was shown, by phase and number; nan where nothing was shown
    views: dict[tuple[int, int], npt.NDArray[np.float32]]


def read_record(disclosures: Iterable[Mapping[str, Any]], near: Neighbourhood) -> Record:
    """Collect the disclosures of a trace into a record."""
    nodes = [*near.remotes, *((name, near.host) for name in near.nodes)]
    rows = {node: row for row, node in enumerate(nodes)}
    views: dict[tuple[int, int], npt.NDArray[np.float32]] = {}
    at = (START, 0)
    for disclosure in disclosures:
        if disclosure["kind"] == "own":
            at = (disclosure["phase"], disclosure["number"])
        if disclosure["kind"] not in ("own", "shown") or disclosure["rows"].size == 0:
            continue
        host = near.host if disclosure["kind"] == "own" else disclosure["peer"]
        shown = disclosure["rows"][:, 0]
        view = views.get(at, np.zeros((len(nodes), 0, shown.shape[2]), np.float32))
        if view.shape[1] < shown.shape[1]:
            new_levels = np.full((len(nodes), shown.shape[1] - view.shape[1], shown.shape[2]), np.nan, np.float32)
            views[at] = view = np.concatenate((view, new_levels), axis=1)
        positions = [
            (rows[name, host], position) for position, name in enumerate(disclosure["nodes"]) if (name, host) in rows
        ]
        targets, sources = np.array(positions, np.int64).reshape(-1, 2).T
        view[targets, : shown.shape[1]] = shown[sources]
    seen = len(near.remotes)
    views = {at: views[at] for at in sorted(views) if np.isfinite(views[at][:seen]).any()}
    _fill_gaps(views)
    return Record(nodes, seen, views)


def _fill_gaps(views: dict[tuple[int, int], npt.NDArray[np.float32]]) -> None:
    """Fill values that were not shown in a round, because they had not changed, with those shown last."""
    last: npt.NDArray[np.float32] | None = None
    for at, view in list(views.items()):
        if at[0] != ROUND:
            continue
        levels = max(view.shape[1], 0 if last is None else last.shape[1])
        filled = np.full((len(view), levels, view.shape[2]), np.nan, np.float32)
        if last is not None:
            filled[:, : last.shape[1]] = last
        is_shown = ~np.isnan(view)
        filled[:, : view.shape[1]][is_shown] = view[is_shown]
        views[at] = last = filled


def attack(record: Record, near: Neighbourhood) -> dict[str, Scores]:
    """Return the scores of all attacks that the record allows, by name."""
    return dict(run_attacks(record, near))


def run_attacks(record: Record, near: Neighbourhood) -> Iterator[tuple[str, Scores]]:
    """Yield the name and the scores of each attack that the record allows, as soon as they are computed."""
    yield "own edges: common neighbours", count_common(near)
    rounds = [view for (phase, _), view in record.views.items() if phase == ROUND]
    if rounds:
        last = np.nan_to_num(rounds[-1][:, 0])
        units = normalise_rows(last)
        yield "cosine of vectors", units @ units[: record.seen].T
        yield "product of vectors", last @ last[: record.seen].T
    for name, pairs in _find_pairs(record).items():
        yield f"correlation, {name}", correlate(pairs, record.seen)
        for ridge, scores in regress(pairs, record.seen):
            yield f"regression by {ridge:g}, {name}", scores
        changes = _find_changes(pairs)
        for ridge, scores in regress(changes, record.seen) if changes else ():
            yield f"regression by {ridge:g}, changes of {name}", scores


def try_sums(disclosures: Iterable[Mapping[str, Any]], record: Record) -> tuple[float, float] | None:
    """Return how near a change of a peer's sums came to the vector of a node that was seen there, and chance did.

    Both are the largest cosine with any vector; None if no sums have changed. A node that came or went, or learned by
    itself, would show its vector.
    """
    rounds = [view for (phase, _), view in record.views.items() if phase == ROUND]
    if not rounds:
        return None
    vectors, random = normalise_rows(np.nan_to_num(rounds[-1][: record.seen, 0])), np.random.default_rng(0)
    found = chance = 0.0
    for disclosure in disclosures:
        if disclosure["kind"] == "sums":
            there = [row for row, (_, host) in enumerate(record.nodes[: record.seen]) if host == disclosure["peer"]]
            directions = disclosure["rows"]
            others = normalise_rows(random.standard_normal(directions.shape)).astype(np.float32)
            if there:
                found = max(found, float(np.abs(directions @ vectors[there].T).max()))
                chance = max(chance, float(np.abs(others @ vectors[there].T).max()))
    return (found, chance) if found > 0.0 else None


def try_on_known_edges(
    scores: Scores, near: Neighbourhood, weights: npt.NDArray[np.float64] | None = None
) -> tuple[float, float]:
    """Return the average precision, of an attack and of chance, on pairs of own and other nodes with known edges.

    `weights`, (own nodes,), tells how many own nodes each one stands for; by default itself alone.
    """
    own, seen = len(near.nodes), len(near.remotes)
    truth = np.zeros((own, seen), bool)
    away = near.indices >= own
    truth[near.sources[away], near.indices[away] - own] = True
    counts = np.repeat(np.ones(own) if weights is None else weights, seen)
    precision = average_precision(truth.reshape(-1), scores[seen:].reshape(-1), counts)
    return precision, float(np.average(truth.reshape(-1), weights=counts))


def average_precision(
    truth: npt.NDArray[np.bool_], scores: npt.NDArray[np.floating], weights: npt.NDArray[np.float64] | None = None
) -> float:
    """Return the average precision: the mean, over all true pairs, of the precision at the rank of their score.

    `weights` tells how many pairs each one stands for; by default itself alone.
    """
    order = np.argsort(-scores, kind="stable")
    counts = np.ones(len(scores)) if weights is None else weights[order]
    ranked, sorted_scores = truth[order] * counts, scores[order]
    # pairs with the same score share one rank
    last = np.append(np.flatnonzero(np.diff(sorted_scores)), len(sorted_scores) - 1)
    hits = np.cumsum(ranked)[last]
    precision, gained = hits / np.cumsum(counts)[last], np.diff(np.concatenate(([0], hits)))
    total = float(ranked.sum())
    return float((precision * gained).sum() / total) if total else 0.0


def count_common(near: Neighbourhood) -> Scores:
    """Count the own nodes that are neighbours of both nodes of a pair, which a host knows without any vector."""
    own, seen = len(near.nodes), len(near.remotes)
    joined = np.zeros((own, seen + own), np.float32)
    positions = np.where(near.indices >= own, near.indices - own, near.indices + seen)
    joined[near.sources, positions] = 1.0
    return joined.T @ joined[:, :seen]


View = npt.NDArray[np.float32]


def correlate(pairs: list[tuple[View, View]], seen: int) -> Scores:
    """Score pairs by the cosine between what a node shows of its neighbours and the rows of each node."""
    scores = np.zeros((len(pairs[0][0]), seen), np.float32)
    for before, after in pairs:
        scores += normalise_rows(np.nan_to_num(before)) @ normalise_rows(np.nan_to_num(after[:seen])).T
    return _make_symmetric(scores)


def regress(pairs: list[tuple[View, View]], seen: int) -> Iterator[tuple[float, Scores]]:
    """Score pairs by ridge regressions of what nodes show of their neighbours on the rows of all nodes.

    In each pair of views the second, (nodes, m), is what each node computes from its neighbours' rows in the first,
    (nodes, m). A ridge times the mean square of rows is added to the diagonal, so that the regression is stable; yields
    each ridge with its scores.
    """
    nodes = len(pairs[0][0])
    gram, cross = np.zeros((nodes, nodes)), np.zeros((nodes, seen))
    for before, after in pairs:
        rows, shown = np.nan_to_num(before).astype(np.float64), np.nan_to_num(after[:seen]).astype(np.float64)
        gram += rows @ rows.T
        cross += rows @ shown.T
    scale, diagonal = max(float(np.trace(gram)) / nodes, 1e-30), gram[np.diag_indices(nodes)]
    for ridge in _RIDGES:
        gram[np.diag_indices(nodes)] = diagonal + ridge * scale
        coefficients = np.linalg.solve(gram, cross)
        coefficients[np.arange(seen), np.arange(seen)] = 0.0
        yield ridge, np.abs(_make_symmetric(coefficients.astype(np.float32)))


def _make_symmetric(scores: Scores) -> Scores:
    """Add the scores of both directions for pairs of seen nodes."""
    symmetric = scores.copy()
    symmetric[: scores.shape[1]] += scores[: scores.shape[1]].T
    return symmetric


def _find_pairs(record: Record) -> dict[str, list[tuple[View, View]]]:
    """Return, for each kind of message, pairs of views: nodes compute the second from neighbours' rows in the first."""
    pairs: dict[str, list[tuple[View, View]]] = {}
    for (phase, number), view in sorted(record.views.items()):
        before = record.views.get((phase, number - 1))
        if phase == ROUND and view.shape[1] > 1:
            pairs.setdefault(_NAMES[ROUND], []).append((view[:, 0], view[:, 1]))
        elif phase != ROUND and before is not None:
            pairs.setdefault(_NAMES[phase], []).append((before[:, 0], view[:, 0]))
    return pairs


def _find_changes(pairs: list[tuple[View, View]]) -> list[tuple[View, View]]:
    return [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairwise(pairs)]
