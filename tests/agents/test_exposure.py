"""Attacks on a host's own trace."""

import asyncio

import numpy as np
import pytest
from harness import connect, learn, make_terms, split_over
from sklearn.metrics import average_precision_score

from manela.agents.exposure import attack, average_precision, read_record, try_on_known_edges
from manela.agents.trace import read_facts, write_fact
from manela.datasets.generators import stochastic_block_model
from manela.errors import FormatError


def trace(tmp_path, noise):
    """The trace of h0 of three hosts, from a file; and the host."""
    graph, _ = stochastic_block_model(nodes=120, inside=0.1, between=0.01, seed=3)
    hosts, numbers = split_over(graph, 3, make_terms(dimensions=32, pairs=None, rounds=None, noise=noise))
    file = tmp_path / "trace.jsonl"
    with file.open("w") as lines:
        hosts["h0"].on_disclosure = lambda **fact: lines.write(write_fact(fact) + "\n")
        asyncio.run(learn(connect(hosts)))
    near = hosts["h0"].neighbourhood
    rows = [numbers[node] for node in near.strangers]
    truth = graph.to_scipy()[rows][:, rows].toarray() > 0
    return read_record(read_facts(file), near), near, truth


def find(scores, truth, words):
    """The best average precision of attacks that have these words in their names."""
    upper = np.triu_indices(len(truth), 1)
    return max(
        average_precision(truth[upper], found[: len(truth)][upper]) for name, found in scores.items() if words in name
    )


def test_noise_takes_away_what_the_start_tells(tmp_path):
    found = {}
    for noise in (0.0, 3.0):
        record, near, truth = trace(tmp_path, noise)
        scores = attack(record, near)
        found[noise] = {words: find(scores, truth, words) for words in ("start",)}
        # what is found of edges that are known is about what is found of others
        known = max(try_on_known_edges(one, near)[0] for name, one in scores.items() if "start" in name)
        assert known > 0.3 if noise == 0.0 else known < 0.6
    chance = truth[np.triu_indices(len(truth), 1)].mean()
    assert found[0.0]["start"] > 0.5 > 5 * chance
    assert found[3.0]["start"] < found[0.0]["start"] - 0.2


def test_a_trace_has_nodes_of_the_circle_only(tmp_path):
    record, near, _ = trace(tmp_path, 1.0)
    assert record.nodes[: record.seen] == near.strangers
    assert all(len(view) == len(near.strangers) + len(near.nodes) for view in record.views.values())
    assert {phase for phase, _ in record.views} == {0, 1, 2}


@pytest.mark.parametrize("ties", [False, True])
def test_average_precision_is_that_of_scikit_learn(ties):
    random = np.random.default_rng(0)
    truth, scores = random.random(500) < 0.1, random.random(500)
    scores = np.round(scores, 1) if ties else scores
    assert average_precision(truth, scores) == pytest.approx(average_precision_score(truth, scores))


def test_a_line_that_was_cut_off_is_left_out_and_other_damage_is_said(tmp_path):
    file = tmp_path / "trace.jsonl"
    fact = {"kind": "shown", "rows": np.arange(6.0).reshape(3, 2)}
    file.write_text(write_fact(fact) + "\n" + write_fact(fact)[:20])
    [read] = read_facts(file)
    np.testing.assert_array_equal(read["rows"], fact["rows"])
    file.write_text("nonsense\n")
    with pytest.raises(FormatError, match="is no trace"):
        list(read_facts(file))
    with pytest.raises(FormatError, match="cannot be read"):
        list(read_facts(tmp_path / "nothing"))
