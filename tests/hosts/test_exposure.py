"""Attacks on a host's own trace."""

import numpy as np
import pytest
from harness import learn, make_terms, split_over
from sklearn.metrics import average_precision_score

from manela.errors import FormatError
from manela.formats.datasets import stochastic_block_model
from manela.hosts import exposure
from manela.hosts.exposure import (
    attack,
    average_precision,
    read_record,
    run_attacks,
    take_sample,
    try_on_known_edges,
)  # fmt: skip
from manela.hosts.folder.trace import read_disclosures, write_disclosure
from manela.hosts.state.messages import ROUND, SMOOTH, START
from manela.hosts.state.neighbourhood import Edge, Neighbourhood


def trace(tmp_path, noise):
    """The trace of h0 of three hosts, from a file; and the host."""
    graph, _ = stochastic_block_model(nodes=120, inside=0.1, between=0.01, seed=3)
    hosts, numbers = split_over(graph, 3, make_terms(dimensions=32, pairs=None, rounds=None, noise=noise))
    file = tmp_path / "trace.jsonl"
    with file.open("w") as lines:
        hosts["h0"].on_disclosure = lambda **disclosure: lines.write(write_disclosure(disclosure) + "\n")
        learn(hosts)
    near = hosts["h0"].neighbourhood
    rows = [numbers[node] for node in near.remotes]
    truth = graph.to_scipy()[rows][:, rows].toarray() > 0
    return read_record(read_disclosures(file), near), near, truth


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
    assert record.nodes[: record.seen] == near.remotes
    assert all(len(view) == len(near.remotes) + len(near.nodes) for view in record.views.values())
    assert {phase for phase, _ in record.views} == {START, ROUND, SMOOTH}


@pytest.mark.parametrize("ties", [False, True])
def test_average_precision_is_that_of_scikit_learn(ties):
    random = np.random.default_rng(0)
    truth, scores = random.random(500) < 0.1, random.random(500)
    scores = np.round(scores, 1) if ties else scores
    assert average_precision(truth, scores) == pytest.approx(average_precision_score(truth, scores))
    weights = random.random(500)
    expected = average_precision_score(truth, scores, sample_weight=weights)
    assert average_precision(truth, scores, weights) == pytest.approx(expected)


def make_large(own=8000):
    ring = [Edge(f"n{i}", (f"n{(i + 1) % own}", "alpha")) for i in range(own)]
    return Neighbourhood.build("alpha", [*ring, *(Edge(f"n{7 * i}", (f"s{i % 3}", "beta"), 2.0) for i in range(30))])


def test_a_large_host_attacks_a_sample_with_all_its_known_edges():
    near = make_large()
    sample = take_sample(near)
    assert len(sample.near.nodes) == 30 + 500
    assert sample.near.remotes == near.remotes
    assert sample.weights.sum() == pytest.approx(8000)
    away = sample.near.indices >= len(sample.near.nodes)
    known = [sample.near.nodes[row] for row in sample.near.sources[away]]
    assert sorted(known) == sorted(f"n{7 * i}" for i in range(30))
    assert (sample.near.weights[away] == 2.0).all()
    chance = try_on_known_edges(np.zeros((533, 3), np.float32), sample.near, sample.weights)[1]
    assert chance == pytest.approx(try_on_known_edges(np.zeros((8003, 3), np.float32), near)[1])
    assert take_sample(near).near.nodes == sample.near.nodes


def test_a_sample_tells_about_what_all_nodes_tell(tmp_path, monkeypatch):
    record, near, _ = trace(tmp_path, 0.0)
    assert take_sample(near).near is near
    whole = [try_on_known_edges(scores, near) for scores in attack(record, near).values()]
    for name, most in (("_MOST_SEEN", 50), ("_MOST_LINKED", 25)):
        monkeypatch.setattr(exposure, name, most)
    sample = take_sample(near)
    assert (len(sample.near.remotes), len(sample.near.nodes)) == (50, 25 + 5)
    part = read_record(read_disclosures(tmp_path / "trace.jsonl"), sample.near)
    found = [try_on_known_edges(scores, sample.near, sample.weights) for scores in attack(part, sample.near).values()]
    # the precision of the best attack, and of chance
    assert max(found)[0] == pytest.approx(max(whole)[0], abs=0.1)
    assert found[0][1] == pytest.approx(whole[0][1], rel=0.2)


def test_each_attack_is_there_before_the_next_begins(tmp_path, monkeypatch):
    record, near, _ = trace(tmp_path, 0.0)
    monkeypatch.setattr(exposure, "correlate", None)
    attacks = run_attacks(record, near)
    assert [next(attacks)[0] for _ in range(3)] == [
        "own edges: common neighbours", "cosine of vectors", "product of vectors",
    ]  # fmt: skip


def test_a_line_that_was_cut_off_is_left_out_and_other_damage_is_said(tmp_path):
    file = tmp_path / "trace.jsonl"
    disclosure = {"kind": "shown", "rows": np.arange(6.0).reshape(3, 2)}
    file.write_text(write_disclosure(disclosure) + "\n" + write_disclosure(disclosure)[:20])
    [read] = read_disclosures(file)
    np.testing.assert_array_equal(read["rows"], disclosure["rows"])
    file.write_text("nonsense\n")
    with pytest.raises(FormatError, match="is not a trace"):
        list(read_disclosures(file))
    with pytest.raises(FormatError, match="cannot be read"):
        list(read_disclosures(tmp_path / "nothing"))
