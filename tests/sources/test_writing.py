import csv

import numpy as np
import pytest

from manela.formats.graphs import read_graph
from manela.sources.edges import Edges
from manela.sources.source import write_edges


def test_names_with_commas_and_quotes_are_read_as_they_were(tmp_path):
    names = ["a,b", 'c"d', "e f", "plain"]
    batches = [Edges(names[:2], names[2:]), Edges(names[2:3], names[3:], np.array([2.5]))]
    assert write_edges(batches, tmp_path / "edges.csv") == 3
    with (tmp_path / "edges.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["source", "target", "weight"], ["a,b", "e f", "1"], ['c"d', "plain", "1"], ["e f", "plain", "2.5"],
    ]  # fmt: skip


def test_manela_reads_what_was_written(tmp_path):
    write_edges(
        [Edges(["anna@x.org"], ["bob@y.org"], np.array([2.0])), Edges(["carl@x.org"], ["bob@y.org"])],
        tmp_path / "e.csv",
    )
    graph = read_graph(tmp_path / "e.csv")
    assert set(graph.nodes.tolist()) == {"anna@x.org", "bob@y.org", "carl@x.org"}
    assert graph.is_weighted


def test_what_could_not_be_read_again_is_left_out_with_a_word(tmp_path):
    batch = Edges(["#a", "%b", "c\nd", "e", "f"], ["x"] * 5, np.array([1.0, 1.0, 1.0, 1e-150, 1.0]))
    with pytest.warns(UserWarning, match="4 edges were left out"):
        assert write_edges([batch], tmp_path / "edges.csv") == 1
    assert (tmp_path / "edges.csv").read_text().splitlines()[1:] == ["f,x,1"]


def test_a_source_that_fails_in_the_middle_leaves_no_file(tmp_path):
    def batches():
        yield Edges(["a"], ["b"])
        raise ValueError("gone")

    with pytest.raises(ValueError, match="gone"):
        write_edges(batches(), tmp_path / "edges.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_dash_is_standard_output(capsys):
    from pathlib import Path

    write_edges([Edges(["a"], ["b"])], Path("-"))
    assert capsys.readouterr().out == "source,target,weight\na,b,1\n"
