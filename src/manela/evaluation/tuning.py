"""Tuning: which ratios, how many hops, and whether context vectors help, tried out on what is held back."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.errors import ManelaWarning
from manela.estimators.manela import Manela
from manela.evaluation.classification import classify
from manela.evaluation.links import hide_edges, rank_links, sample_nodes, score_vectors
from manela.graph import Graph
from manela.params import count_jobs
from manela.schedule import count_pairs
from manela.settings import check_all

_SMALLEST_SHARE = 0.1
_GROWTH = 3.0
_NODES = 1024


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
    """One, two, three and five hops, with and without context vectors."""
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
    """Try candidates within a time.

    All with the whole budget if half of the time is enough for that, otherwise all with a part of it, and then the
    better half of them with three times as much, up to the whole.

    Scored by labels, if there are any: micro-F1 of three splits, half of the nodes with labels trained on. Otherwise by
    hidden edges: MAP. Returns all trials, the best last. What is measured here is not what the winner would score on
    data that no trial has seen. The whole budget is that of a run by default, or so many pairs a node; `preset` are
    parameters of all candidates.
    """
    begun = time.perf_counter()
    trials: list[Trial] = []
    fit = _Fit({**(preset or {}), "random_state": random_state, "n_jobs": n_jobs}, pairs_per_node)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManelaWarning)
        if labels is not None:
            score = _score_labels(graph, labels, fit, random_state, n_jobs)
        else:
            score = _score_links(graph, fit, random_state)
        left, share = candidates(), 1.0
        if max_seconds < float("inf"):
            measured = [_try(score, left[0], _SMALLEST_SHARE)]
            whole = sum(_expect(measured, candidate, 1.0) for candidate in left)
            share = float(np.clip(max_seconds / 2 / max(whole, 1e-9), _SMALLEST_SHARE, 1.0))
        while left:
            found: list[Trial] = []
            for candidate in left:
                expected = _expect([*trials, *found], candidate, share)
                if time.perf_counter() - begun + expected > max_seconds and (trials or found):
                    continue
                trial = _try(score, candidate, share)
                tell(trial)
                found.append(trial)
            trials += found
            if len(found) <= 1 or share >= 1.0:
                break
            found.sort(key=lambda trial: -trial.score)
            left = [trial.candidate for trial in found[: (len(found) + 1) // 2]]
            share = min(1.0, share * _GROWTH)
    largest = max(trial.share for trial in trials)
    return sorted(trials, key=lambda trial: (trial.share == largest, trial.score))


def _try(score: Callable[[Candidate, float], float], candidate: Candidate, share: float) -> Trial:
    begun = time.perf_counter()
    value = score(candidate, share)
    return Trial(candidate, share, value, time.perf_counter() - begun)


def _expect(trials: list[Trial], candidate: Candidate, share: float) -> float:
    """How long a trial will take at most, from the last one of its kind; context vectors double the work."""
    alike = [trial for trial in trials if trial.candidate.context == candidate.context]
    factor = 1.0 if alike else 2.0
    return max((factor * t.seconds * share / t.share for t in (alike or trials)[-1:]), default=0.0)


@dataclass(frozen=True)
class _Fit:
    """Fits candidates with some parameters and a share of the budget."""

    parameters: dict[str, Any]
    pairs_per_node: int | None

    def __call__(self, graph: Graph, candidate: Candidate, share: float) -> npt.NDArray[np.float32]:
        parameters = {**self.parameters, "ratios": candidate.ratios, "context": candidate.context}
        if self.pairs_per_node is not None:
            whole = self.pairs_per_node * graph.number_of_nodes
        else:
            whole = count_pairs(graph, check_all(parameters))
        pairs = max(1, round(share * whole)) if share < 1.0 or self.pairs_per_node is not None else None
        return Manela(**parameters, pairs=pairs).fit(graph).embedding_


def _score_labels(
    graph: Graph, labels: npt.NDArray[np.bool_], fit: _Fit, random_state: int, n_jobs: int | None
) -> Callable[[Candidate, float], float]:
    def score(candidate: Candidate, share: float) -> float:
        vectors = fit(graph, candidate, share)
        found = classify(vectors, labels, shuffles=3, random_state=random_state + 1, jobs=count_jobs(n_jobs))
        return float(found.micro.mean())

    return score


def _score_links(graph: Graph, fit: _Fit, random_state: int) -> Callable[[Candidate, float], float]:
    split = hide_edges(graph, random_state=random_state)
    nodes = sample_nodes(split, _NODES, random_state)

    def score(candidate: Candidate, share: float) -> float:
        vectors = fit(split.graph, candidate, share)
        return rank_links(score_vectors(vectors), split, nodes).mean_average_precision

    return score
