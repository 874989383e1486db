"""RDF files, well written and not."""

from pathlib import Path

import pytest

from manela.errors import SourceError
from manela.sources import rdf
from manela.sources.rdf import RdfSource
from manela.sources.state import ImportState

KNOWS, LIKES = "http://a/knows", "http://a/likes"


def edges(*paths, predicates=()):
    source = RdfSource(paths, predicates)
    with ImportState(None, source.key) as state:
        return [edge for batch in source.read(state) for edge in zip(batch.own, batch.other, strict=True)]


def write(path, text):
    path.write_text(text)
    return path


def test_predicates_are_chosen(tmp_path):
    path = write(tmp_path / "a.nt", f"<http://a/1> <{KNOWS}> <http://a/2> .\n<http://a/2> <{LIKES}> <http://a/3>.\n")
    assert edges(path) == [("http://a/1", "http://a/2"), ("http://a/2", "http://a/3")]
    assert edges(path, predicates=[LIKES]) == [("http://a/2", "http://a/3")]
    assert edges(path, predicates=[rdf.TYPE]) == []


def test_quads_lose_their_graph_and_literals_of_all_kinds_are_left_out(tmp_path):
    path = write(
        tmp_path / "a.nq",
        f"<http://a/1> <{KNOWS}> <http://a/2> <http://a/graph> .\n"
        f'<http://a/1> <{KNOWS}> "text \\" <http://a/3>"@en <http://a/graph> .\n'
        f'<http://a/1> <{KNOWS}> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        "\n   # a remark\n",
    )
    assert edges(path) == [("http://a/1", "http://a/2")]


def test_blank_nodes_of_different_files_are_different(tmp_path):
    one = write(tmp_path / "a.nt", f"_:x <{KNOWS}> <http://a/2> .\n")
    two = write(tmp_path / "b.nt", f"_:x <{KNOWS}> <http://a/2> .\n")
    assert edges(one, two) == [("_:x", "http://a/2"), ("_:2.x", "http://a/2")]


def test_turtle_is_read_the_same_each_time(tmp_path):
    path = write(
        tmp_path / "a.ttl", "@prefix a: <http://a/> .\n[] a:knows [ a:knows a:x ] .\na:x a a:Person; a:age 3 .\n"
    )
    assert edges(path) == edges(path)
    assert len(edges(path)) == 2


def test_escapes_in_iris_are_letters(tmp_path):
    path = write(tmp_path / "a.nt", f"<http://a/\\u00e4\\U0001F989> <{KNOWS}> <http://a/\\uD800> .\n")
    assert edges(path) == [("http://a/ä🦉", "http://a/\ufffd")]


@pytest.mark.parametrize(
    "line", ["nonsense", "<a> <b>", "<a b> <c> <d> .", '"x" <b> <c> .', "<a> _:b <c> .", "<" * 200]
)
def test_a_line_that_is_no_triple_is_told_with_its_number(tmp_path, line):
    path = write(tmp_path / "a.nt", f"<http://a/1> <{KNOWS}> <http://a/2> .\n{line}\n")
    with pytest.raises(SourceError, match=r"a\.nt:2: ") as caught:
        edges(path)
    assert "\n" not in str(caught.value)


def test_an_overlong_line_is_refused(tmp_path):
    with pytest.raises(SourceError, match="fewer than 1,048,576 bytes"):
        edges(write(tmp_path / "a.nt", "<http://a/" + "x" * (1 << 20)))


@pytest.mark.parametrize("text", ["@prefix", "a:b a:c a:d .", "<a> <b> [[[[", "\x00"])
def test_damaged_turtle_is_told_in_a_line(tmp_path, text):
    with pytest.raises(SourceError, match="is not Turtle") as caught:
        edges(write(tmp_path / "a.ttl", text))
    assert "\n" not in str(caught.value)


def test_other_kinds_of_files_and_none_at_all_are_refused():
    with pytest.raises(SourceError, match=r"must end in \.nt, \.nq, \.ttl, got '\.xml'"):
        edges(Path("a.xml"))
    with pytest.raises(SourceError, match="at least one file"):
        edges()
