"""Which columns of a text file are read, and whether its first line names them."""

import pytest

from manela.data.edge_table import choose_columns, find_header, names_columns, stands_alone
from manela.errors import FormatError


def lines(*texts):
    return [text.split() for text in texts]


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("source target", ["1 2"]),
        ("Source Target", []),  # known names need no lines below
        ("x y", ["1 2", "3 4"]),
        ("x y", ["1a 2b"]),
        ("x y", ["ann@x.org bob@y.org"]),
        ("x y", ["deadbeef01 cafe000002"]),
        ("who whom euros", ["ann bob 3", "bob cem 4.5"]),
        ("who whom euros", ["ann bob -3e5"]),
    ],
)
def test_a_first_line_that_names_columns_is_a_header(first, rest):
    assert find_header(first.split(), lines(*rest))


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("1 2", ["3 4"]),
        ("source 2", ["3 4"]),
        ("ann bob", ["cem dora", "ann dora"]),
        ("ann bob", []),
        ("ann", ["1", "2"]),
        ("source target", ["target x"]),  # nodes that happen to have these names
        ("x y", ["1 x", "x 3"]),
        ("ann bob 3", ["cem dora 4"]),
        ("x y", ["1 2", "word 3", "4 word"]),
        ("x y", ["2020-01-01 a1", "5 b6"]),
        ("ann bob nan", ["cem dora 1", "dora emil 2"]),
        ("ann bob NA", ["cem dora 1", "dora emil 2"]),
        ("ann bob -inf", ["cem dora 1", "dora emil 2"]),
        ("ann bob heavy", ["bob dora 1", "dora emil 2"]),  # a name of a column is no node
    ],
)
def test_a_first_line_of_data_is_no_header(first, rest):
    assert not find_header(first.split(), lines(*rest))


def test_only_the_column_of_row_numbers_may_have_an_empty_name():
    assert find_header(["", "who", "whom"], lines("0 ann bob", "1 bob cem"))
    assert not find_header(["ann", "bob", ""], lines("cem dora 1", "dora emil 2"))


def test_without_a_header_the_first_columns_are_read_and_there_may_be_no_others():
    found = choose_columns(None, [], None, False)
    assert (found.source, found.target, found.weight, found.is_exact, found.note) == (0, 1, 2, True, "")
    assert choose_columns(None, [], None, True).weight == -1


def test_a_header_says_which_columns_are_read_and_a_note_what_was_taken():
    header = ["id", "payee", "payer", "euros"]
    found = choose_columns(header, lines("1 a b 3", "2 b c 4"), None, False)
    assert (found.source, found.target, found.weight, found.is_exact) == (2, 1, 3, False)
    assert found.note.startswith("using columns payer and payee as edge endpoints, euros as weight; ignoring id")
    assert choose_columns(header, lines("1 a b 3"), None, True).weight == -1


def test_plain_names_need_no_note():
    found = choose_columns(["source", "target", "weight"], lines("a b 1"), None, False)
    assert (found.source, found.target, found.weight, found.note) == (0, 1, 2, "")


def test_a_column_that_numbers_the_rows_is_passed_over():
    assert choose_columns(["", "a", "b"], lines("0 x y", "1 y z", "2 x z"), None, False).source == 1
    assert choose_columns(["id", "a", "b"], lines("5 x y", "7 y z"), None, False).source == 0
    assert choose_columns(["id", "a", "b"], [], None, False).source == 0


def test_numbers_are_looked_for_in_every_line():
    assert choose_columns(["payer", "payee", "euros"], lines("a b 3", "b c"), None, False).weight == -1
    assert choose_columns(["payer", "payee", "euros"], lines("a b 3", "b c four"), None, False).weight == -1
    assert choose_columns(["payer", "payee", "euros"], [], None, False).weight == -1


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["to", "from"], (1, 0, -1)), (["TO", "From"], (1, 0, -1)), (["2", "1"], (1, 0, -1)),
        (["from", "3"], (0, 2, -1)), (["from", "to", "n"], (0, 1, 3)), (["to", "from", "4"], (1, 0, 3)),
        (["1", "9"], (0, 8, -1)),
    ],
)  # fmt: skip
def test_columns_are_wanted_by_name_in_any_case_or_by_number(wanted, found):
    columns = choose_columns(["from", "to", "year", "n"], [], wanted, False)
    assert (columns.source, columns.target, columns.weight) == found
    assert not columns.is_exact
    assert choose_columns(["from", "to", "year", "n"], [], wanted, True).weight == -1


def test_a_name_that_looks_like_a_number_is_a_name():
    assert choose_columns(["2", "1", "3"], [], ["1", "2"], False).source == 1


@pytest.mark.parametrize(
    ("header", "wanted", "words"),
    [
        (["a", "b"], ["a"], "columns must be two, or three with a weight, got a"),
        (["a", "b"], ["a", "b", "c", "d"], "columns must be two"),
        (["a", "b"], ["a", "x"], "no column is named 'x'; the file has a, b"),
        (None, ["a", "b"], "no column is named 'a'; the file has no header, so use numbers from 1"),
        (["a", "b"], ["0", "1"], "no column is named '0'"),
        (["a", "b"], ["a", "-1"], "no column is named '-1'"),
        (["a", "b"], ["a", "1"], "columns must be different, got a, 1"),
    ],
)
def test_columns_that_are_not_there_are_told(header, wanted, words):
    with pytest.raises(FormatError) as caught:
        choose_columns(header, [], wanted, False)
    assert str(caught.value).startswith(words)


def test_a_first_line_is_a_header_if_it_has_the_names_that_are_wanted():
    assert names_columns(["Ann", "Bob"], ["ann", "BOB"])
    assert names_columns(["Ann", "Bob"], ["ann", "2"])
    assert not names_columns(["Ann", "Bob"], ["ann", "cem"])
    assert not names_columns(["Ann", "Bob"], ["1", "2"])
    assert not names_columns(["Ann", "Bob"], None)


@pytest.mark.parametrize("rest", [["a b", "b c"], ["a b", "a c", "d c"], ["a b 1", "b c 2"]])
def test_words_that_no_other_line_has_stand_alone_if_all_others_are_joined(rest):
    assert stands_alone(["employee", "manager"], lines(*rest))


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("a x", ["a b", "b c"]),
        ("x y", ["a b"]),  # too few to tell
        ("x y", ["a b", "b c", "d e"]),  # d e stands alone as well
        ("x y", ["a a", "b c", "c b"]),  # a loop joins nothing
        ("x1 y2", ["a b", "b c"]),
        ("x nan", ["a b", "b c"]),
        ("x y 1", ["a b 1", "b c 2"]),
        ("x", ["a b", "b c"]),
        ("x y", []),
    ],
)
def test_a_first_line_that_may_well_be_an_edge_does_not_stand_alone(first, rest):
    assert not stands_alone(first.split(), lines(*rest))


def test_a_decimal_comma_is_a_number():
    assert find_header(["Kunde", "Lieferant", "Betrag"], [["ann", "bob", "398,63"], ["bob", "cem", "7,5"]])
