"""Files of edges as operators write them."""

import io

import pytest

from manela.errors import AgentError, FormatError
from manela.hosts.folder.edges import parse_edge, read_edges, read_numbers, write_edges
from manela.hosts.state.neighbourhood import Edge
from manela.sources import source as writing
from manela.sources.edges import Edges


def test_edges_are_read_from_a_file(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text(
        '# comment\nann,bob\nann, cem@beta , 2.5\n\n"o, brien",dora@example@beta\nalone\n', encoding="utf-8"
    )
    assert read_edges(file, "alpha") == [
        Edge("ann", ("bob", "alpha")), Edge("ann", ("cem", "beta"), 2.5),
        Edge("o, brien", ("dora@example", "beta")), Edge("alone", None),
    ]  # fmt: skip


@pytest.mark.parametrize("header", ["source,target,weight", "Source, Target", "own,other,weight", "own,other"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_header_and_a_byte_order_mark_are_no_edge(tmp_path, header, mark):
    file = tmp_path / "edges.csv"
    file.write_text(f"{mark}{header}\nann,bob,2\nsource,target\n", encoding="utf-8")
    assert read_edges(file, "alpha") == [Edge("ann", ("bob", "alpha"), 2.0), Edge("source", ("target", "alpha"))]


def test_what_a_source_writes_to_a_file_is_read(tmp_path):
    writing.write_edges([Edges(["ann"], ["bob@beta"])], tmp_path / "edges.csv")
    assert read_edges(tmp_path / "edges.csv", "alpha", ["beta"]) == [Edge("ann", ("bob", "beta"))]


def test_another_header_is_refused_with_the_one_that_is_known(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("payer,payee,euros\nann,bob,2\n", encoding="utf-8")
    with pytest.raises(
        FormatError, match=r"line 1: .*got 'euros'; a header must be `source,target,weight`, or left out"
    ):
        read_edges(file, "alpha")


def test_an_edge_that_looks_like_a_header_is_written_so_that_it_is_read(tmp_path):
    edges, text = [Edge("source", ("target", "alpha"))], io.StringIO()
    write_edges(edges, "alpha", text)
    (tmp_path / "edges.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    assert read_edges(tmp_path / "edges.csv", "alpha") == edges


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ann@beta,bob", "the first node must be one of this host, but 'ann@beta' is a node of beta; swap the two"),
        ("ann@alpha,bob@beta", "own nodes are written without their host: expected 'ann', got 'ann@alpha'"),
    ],
)
def test_swapped_columns_are_refused(tmp_path, line, words):
    (tmp_path / "edges.csv").write_text(f"bob,ann@beta\n{line}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=f"line 2: {words}"):
        read_edges(tmp_path / "edges.csv", "alpha", ["beta"])


def test_own_nodes_may_have_other_addresses_as_names(tmp_path):
    (tmp_path / "edges.csv").write_text("ann@example.org,bob@beta\n@beta,bob\n", encoding="utf-8")
    assert [edge.own for edge in read_edges(tmp_path / "edges.csv", "alpha", ["beta"])] == ["ann@example.org", "@beta"]


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
