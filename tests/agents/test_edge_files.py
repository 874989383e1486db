"""Files of edges as operators write them."""

import io

import pytest

from manela.agents.edge_files import parse_edge, read_edges, read_numbers, write_edges
from manela.agents.neighbourhood import Edge
from manela.errors import AgentError, FormatError


def test_edges_are_read_from_a_file(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text(
        '# comment\nann,bob\nann, cem@beta , 2.5\n\n"o, brien",dora@example@beta\nalone\n', encoding="utf-8"
    )
    assert read_edges(file, "alpha") == [
        Edge("ann", ("bob", "alpha")), Edge("ann", ("cem", "beta"), 2.5),
        Edge("o, brien", ("dora@example", "beta")), Edge("alone", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "got 0 fields"),
        (["a", "b", "1", "2"], "got 4 fields"),
        (["", "b"], "a name must be"),
        (["a\x07", "b"], "a name must be"),
        (["x" * 300, "b"], "a name must be"),
        (["a", "b", "heavy"], "a weight must be a number"),
        (["a", "b", "0"], "a weight must be finite and above 0"),
        (["a", "b", "nan"], "a weight must be finite and above 0"),
    ],
)
def test_wrong_edges_are_refused(fields, words):
    with pytest.raises(FormatError, match=words):
        parse_edge(fields, "alpha", "line 1")
    with pytest.raises(AgentError, match="a host's name"):
        parse_edge(["a", "b@Not A Host"], "alpha", "line 1")


def test_numbers_of_a_lock_step_run(tmp_path):
    file = tmp_path / "numbers.csv"
    file.write_text("x@alpha,0\nb,c@beta,7\n", encoding="utf-8")
    assert read_numbers(file) == {("x", "alpha"): 0, ("b,c", "beta"): 7}
    file.write_text("x@alpha\n", encoding="utf-8")
    with pytest.raises(AgentError, match="name@host,number"):
        read_numbers(file)


def test_edges_are_written_as_they_are_read(tmp_path):
    edges = [
        Edge("x", ("y", "beta"), 2.5), Edge("x", ("z", "alpha")), Edge("alone", None), Edge("a,b", ("c@d", "alpha")),
        Edge('say "x"', ("c@d", "beta"), 1e-3),
    ]  # fmt: skip
    text = io.StringIO()
    assert write_edges(edges, "alpha", text) == 5
    (tmp_path / "edges.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    assert read_edges(tmp_path / "edges.csv", "alpha") == edges
