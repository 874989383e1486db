"""What the command shows."""

import numpy as np
import pytest

from manela import Embedding, Graph
from manela.cli.display import (
    describe,
    estimate_facts,
    facts_of,
    print_facts,
    say_written,
)
from manela.settings.settings import check_all


@pytest.fixture
def graph():
    return Graph.from_edges(
        ["a", "a", "b", "d", "a"], ["b", "c", "a", "e", "a"], nodes=list("abcdefg"), duplicates="first"
    )  # fmt: skip


def test_a_network_is_described_with_what_was_dropped(graph):
    assert describe(graph) == "7 nodes, 3 edges (1 self-loops dropped, 1 repeated edges)"
    assert describe(Graph.from_edges([1], [2], directed=True)) == "2 nodes, 1 arcs, directed"


def test_facts_are_size_components_and_degrees(graph):
    facts = facts_of(graph)
    assert (facts["nodes"], facts["edges"], facts["directed"], facts["weighted"]) == (7, 3, False, False)
    assert (facts["self-loops dropped"], facts["repeated edges"]) == (1, 1)
    assert (facts["components"], facts["largest component"], facts["isolated nodes"]) == (4, 3, 2)
    assert (facts["degree, mean"], facts["degree, median"], facts["degree, largest"]) == (0.86, 1.0, 2)


def test_components_of_a_directed_network_are_those_of_its_edges():
    facts = facts_of(Graph.from_edges([1, 3], [2, 2], directed=True))
    assert (facts["components"], facts["largest component"]) == (1, 3)


def test_facts_stand_below_each_other(capsys):
    print_facts({"network": "x.csv", "nodes": 1234567, "mean": 0.5, "directed": True, "weighted": False})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["network", "x.csv"], ["nodes", "1,234,567"], ["mean", "0.5"], ["directed", "yes"], ["weighted", "no"]
    ]  # fmt: skip
    assert {len(line) - len(line.split()[-1]) for line in lines} == {27}


def test_a_long_name_moves_all_values(capsys):
    print_facts({"x" * 40: 1, "y": 2})
    assert [len(line) for line in capsys.readouterr().out.splitlines()] == [43, 43]


def test_what_a_run_takes_is_estimated_before_it_begins(graph):
    settings = check_all({"dimensions": 4, "pairs": 5000, "n_jobs": 1})
    facts = estimate_facts(graph, settings)
    assert (facts["update pairs"], facts["threads"]) == (5000, 1)
    assert all(value >= 0 for value in facts.values())


def test_what_was_written_is_said_on_stderr(capsys, tmp_path):
    embedding = Embedding(np.arange(3), np.eye(3, dtype=np.float32), None, {"pairs_made": 12345, "engine": "cpu"})
    say_written(embedding, tmp_path / "x.npz")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"{tmp_path / 'x.npz'}: 3 vectors after 12,345 update pairs on cpu\n"
