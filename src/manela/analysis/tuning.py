"""Tuning: tries ratios, numbers of hops and context vectors, and scores them on held-back data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.analysis.classification import classify
from manela.analysis.links import hide_edges, rank_links, sample_nodes, score_vectors
from manela.data.graph import Graph
from manela.errors import ManelaWarning
from manela.estimators.manela import Manela
from manela.settings.budget import Sizes, resolve
from manela.settings.settings import check_all
from manela.system.threads import count_jobs

_SMALLEST_SHARE = 0.1
"""Smallest share of the budget for a trial; a larger one tries fewer candidates in the same time."""
_GROWTH = 3.0
"""Factor by which the share grows after each stage."""
_NODES = 1024
"""Nodes whose hidden edges are ranked; more are more precise and slower."""


@dataclass(frozen=True)
class Candidate:
    """Parameters to try."""

    ratios: tuple[float, ...]
    context: bool

    def __str__(self) -> str:
        ratios = ", ".join(f"{ratio:g}" for ratio in self.ratios)
        return f"ratios ({ratios}){', context' if self.context else ''}"


@dataclass(frozen=True)
class Trial:
    """A candidate tried with a share of the budget; `score` is micro-F1 of labels, or MAP of hidden edges."""

    candidate: Candidate
    share: float
    score: float
    seconds: float


def candidates() -> list[Candidate]:
    """Return candidates of one, two, three and five hops, with and without context vectors."""
    ratios: list[tuple[float, ...]] = [(1.0,)]
    ratios += [(r, round(1 - r, 2)) for r in (0.9, 0.8, 0.7, 0.5, 0.3, 0.1)]
    ratios += [(0.5, 0.3, 0.2), (0.2, 0.2, 0.2, 0.2, 0.2)]
    return [Candidate(r, context) for r in ratios for context in (False, True)]


def tune(
    graph: Graph,
    labels: npt.NDArray[np.bool_] | None = None,
    *,
    max_seconds: float = 300.0,
    pairs_per_node: int | None = None,
    preset: Mapping[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    tell: Callable[[Trial], None] = lambda _: None,
) -> list[Trial]:
    """Try candidates within a time limit, and return all trials, the best last.

    All candidates get the whole budget if half of the time is enough for that. Otherwise all get a part of it, and
    then the better half of them three times as much, up to the whole budget.

    With labels the score is micro-F1 of three splits, with half of the labelled nodes for training; without labels it
    is the MAP of hidden edges. The score of the winner is optimistic, as it was chosen on the same data. The whole
    budget is the default of a run, or `pairs_per_node`. `preset` are parameters of all candidates.
    """
    started = time.perf_counter()
    trials: list[Trial] = []
    fit = _Fit({**(preset or {}), "random_state": random_state, "n_jobs": n_jobs}, pairs_per_node)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManelaWarning)
        if labels is not None:
            score = _score_labels(graph, labels, fit, random_state, n_jobs)
        else:
            score = _score_links(graph, fit, random_state)
        remaining, share = candidates(), 1.0
        if max_seconds < float("inf"):
            measured = [_try(score, remaining[0], _SMALLEST_SHARE)]
            full_seconds = sum(_expect(measured, candidate, 1.0) for candidate in remaining)
            share = float(np.clip(max_seconds / 2 / max(full_seconds, 1e-9), _SMALLEST_SHARE, 1.0))
        while remaining:
            stage: list[Trial] = []
            for candidate in remaining:
                expected = _expect([*trials, *stage], candidate, share)
                if time.perf_counter() - started + expected > max_seconds and (trials or stage):
                    continue
                trial = _try(score, candidate, share)
                tell(trial)
                stage.append(trial)
            trials += stage
            if len(stage) <= 1 or share >= 1.0:
                break
            stage.sort(key=lambda trial: -trial.score)
            remaining = [trial.candidate for trial in stage[: (len(stage) + 1) // 2]]
            share = min(1.0, share * _GROWTH)
    largest = max(trial.share for trial in trials)
    return sorted(trials, key=lambda trial: (trial.share == largest, trial.score))


def _try(score: Callable[[Candidate, float], float], candidate: Candidate, share: float) -> Trial:
    started = time.perf_counter()
    value = score(candidate, share)
    return Trial(candidate, share, value, time.perf_counter() - started)


def _expect(trials: list[Trial], candidate: Candidate, share: float) -> float:
    """Estimate the seconds of a trial from the last one of its kind; context vectors at most double the work."""
    same_kind = [trial for trial in trials if trial.candidate.context == candidate.context]
    factor = 1.0 if same_kind else 2.0
    return max((factor * t.seconds * share / t.share for t in (same_kind or trials)[-1:]), default=0.0)


@dataclass(frozen=True)
class _Fit:
    parameters: dict[str, Any]
    pairs_per_node: int | None

    def __call__(self, graph: Graph, candidate: Candidate, share: float) -> npt.NDArray[np.float32]:
        parameters = {**self.parameters, "ratios": candidate.ratios, "context": candidate.context}
        if self.pairs_per_node is not None:
            full_budget = self.pairs_per_node * graph.number_of_nodes
        else:
            full_budget = resolve(check_all(parameters), Sizes.of(graph.indptr)).expected_pairs
        pairs = max(1, round(share * full_budget)) if share < 1.0 or self.pairs_per_node is not None else None
        return Manela(**parameters, pairs=pairs).fit(graph).embedding_


def _score_labels(
    graph: Graph, labels: npt.NDArray[np.bool_], fit: _Fit, random_state: int, n_jobs: int | None
) -> Callable[[Candidate, float], float]:
    def score(candidate: Candidate, share: float) -> float:
        vectors = fit(graph, candidate, share)
        scores = classify(vectors, labels, shuffles=3, random_state=random_state + 1, jobs=count_jobs(n_jobs))
        return float(scores.micro.mean())

    return score


def _score_links(graph: Graph, fit: _Fit, random_state: int) -> Callable[[Candidate, float], float]:
    split = hide_edges(graph, random_state=random_state)
    nodes = sample_nodes(split, _NODES, random_state)

    def score(candidate: Candidate, share: float) -> float:
        vectors = fit(split.graph, candidate, share)
        return rank_links(score_vectors(vectors), split, nodes).mean_average_precision

    return score
