from itertools import pairwise

import numpy as np
import pytest

from manela.analysis import tuning
from manela.analysis.tuning import candidates, tune
from manela.formats.datasets import stochastic_block_model


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=90, inside=0.4, between=0.02, seed=2)


def test_candidates_are_distributions_over_hops():
    tried = candidates()
    assert len(set(tried)) == len(tried)
    assert all(sum(candidate.ratios) == pytest.approx(1.0) for candidate in tried)
    assert {len(candidate.ratios) for candidate in tried} >= {1, 2, 3}
    assert {candidate.context for candidate in tried} == {False, True}


@pytest.mark.parametrize("labelled", [True, False])
def test_the_better_half_goes_on_with_more(blocks, labelled, monkeypatch):
    graph, communities = blocks
    labels = np.eye(3, dtype=bool)[communities] if labelled else None
    told = []
    monkeypatch.setattr(tuning, "_expect", lambda trials, candidate, share: 600 * share)
    trials = tune(graph, labels, pairs_per_node=500, max_seconds=1800, tell=told.append)
    assert sorted(map(repr, trials)) == sorted(map(repr, told))
    shares = sorted({trial.share for trial in trials})
    assert shares == pytest.approx([0.1, 0.3, 0.9, 1.0])
    for small, large in pairwise(shares):
        first = sorted((t for t in trials if t.share == small), key=lambda t: -t.score)
        second = {t.candidate for t in trials if t.share == large}
        assert second == {t.candidate for t in first[: (len(first) + 1) // 2]}
    best = [t for t in trials if t.share == 1.0]
    assert trials[-1].score == max(t.score for t in best)


def test_the_whole_budget_is_used_where_there_is_time(blocks, monkeypatch):
    few = candidates()[:4]
    monkeypatch.setattr(tuning, "candidates", lambda: list(few))
    trials = tune(blocks[0], pairs_per_node=200, max_seconds=float("inf"))
    assert {trial.share for trial in trials} == {1.0}
    assert {trial.candidate for trial in trials} == set(few)
    assert trials[-1].score == max(trial.score for trial in trials)


def test_a_short_time_still_tries_one(blocks):
    trials = tune(blocks[0], pairs_per_node=200, max_seconds=1e-9)
    assert len(trials) == 1


def test_the_same_seed_tries_and_finds_the_same(blocks, monkeypatch):
    few = candidates()[:3]
    monkeypatch.setattr(tuning, "candidates", lambda: list(few))
    one, two = (tune(blocks[0], pairs_per_node=200, max_seconds=600) for _ in range(2))
    assert [(t.candidate, t.score) for t in one] == [(t.candidate, t.score) for t in two]
