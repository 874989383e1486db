"""Edges from the bytes of a text file, in one pass."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.kernels.tables import text as kernels
from manela.kernels.tables.text import EMPTY, LONG, LONGEST, QUOTE, TOO_FEW, TOO_MANY, UNEVEN

COMMA = ord(",")


def as_data(text):
    """Bytes as files are read, which can be written to."""
    return np.frombuffer(text if isinstance(text, bytes) else text.encode(), np.uint8).copy()


def scan(text, separator=0, first=0, second=1, weight=-1, exact=True):
    """Edges by their ids, and weights; or the error and its line."""
    data = as_data(text)
    lines = text.count("\n" if isinstance(text, str) else b"\n") + 1
    error, line, ends, weights, ids = kernels.scan_edges(data, separator, first, second, weight, exact, lines)
    if error:
        return error, line
    names = [bytes(data[start : start + length]).decode() for start, length in ids.tolist()]
    assert len(set(names)) == len(names)
    edges = [(names[one], names[other]) for one, other in ends.reshape(-1, 2).tolist()]
    return edges, weights.tolist()


def test_edges_are_read_and_ids_numbered_as_they_first_appear():
    assert scan("b a\n# no\n\na  c\t\r\n% no\nb c") == ([("b", "a"), ("a", "c"), ("b", "c")], [])
    *_, ids = kernels.scan_edges(as_data("b a\na c\n"), 0, 0, 1, -1, True, 2)
    assert ids.tolist() == [[0, 1], [2, 1], [6, 1]]


@pytest.mark.parametrize("text", ["", "\n\n", "# a b\n", "  \t\r\n"])
def test_a_file_without_edges_has_none(text):
    assert scan(text) == ([], [])


def test_weights_are_read_exactly_and_those_that_are_no_plain_decimals_are_left_to_others():
    edges, weights = scan("a b 1\nb c 2.50\nc d .125\nd e 123456789012345", weight=2)
    assert len(edges) == 4
    assert weights == [1.0, 2.5, 0.125, 123456789012345.0]
    for odd in ("1e5", "-1", "0", "x", "1.2.3", "1234567890123456", "+1", "."):
        _, weights = scan(f"a b {odd}", weight=2)
        assert weights == [-1.0 - 4]  # where it stands


def test_weights_may_be_missing_in_all_lines_but_not_in_some():
    assert scan("a b\nb c\n", weight=2) == ([("a", "b"), ("b", "c")], [])
    assert scan("a b 1\nb c\n", weight=2) == (UNEVEN, 2)
    assert scan("a b\nb c 1\n", weight=2) == (UNEVEN, 2)
    assert scan("a b 1\nb c\n", weight=2, exact=False) == (UNEVEN, 2)


def test_other_columns_are_an_error_where_nothing_names_them_and_passed_over_elsewhere():
    assert scan("a b 1 x\n", weight=2) == (TOO_MANY, 1)
    assert scan("a b 1 x\n", weight=2, exact=False) == ([("a", "b")], [1.0])
    assert scan("a b 1 x\n") == ([("a", "b")], [])
    assert scan("x a 2 b\n", first=1, second=3, weight=2, exact=False) == ([("a", "b")], [2.0])


@pytest.mark.parametrize(
    ("text", "error"), [("a b\nc\n", (TOO_FEW, 2)), ("a,b\nc,\n", (TOO_FEW, 2)), ("a,b\n,c\n", (EMPTY, 2))]
)
def test_a_line_without_two_ends_is_told_by_its_number(text, error):
    assert scan(text, COMMA if "," in text else 0) == error


def test_an_empty_weight_is_told():
    assert scan("a,b,,x\n", COMMA, weight=2, exact=False) == (EMPTY, 1)


def test_quotation_marks_hold_separators_together_and_must_be_closed():
    assert scan('"a,1",b\n"c" ,"d"\n', COMMA) == ([("a,1", "b"), ("c", "d")], [])
    assert scan('"say ""x""",b\n', COMMA)[0] == [('say ""x""', "b")]
    assert scan('a,"b\n', COMMA) == (QUOTE, 1)
    assert scan('"a" b\n') == ([('"a"', "b")], [])  # where white space separates, they are letters


def test_white_space_around_fields_does_not_count_and_within_it_does_with_a_separator():
    assert scan(" a b , c \n", COMMA) == ([("a b", "c")], [])
    assert scan("a\tb c\n", ord("\t")) == ([("a", "b c")], [])


def test_an_id_may_be_so_long_and_no_longer():
    assert scan(f"{'x' * LONGEST} b\n")[0] == [("x" * LONGEST, "b")]
    assert scan(f"a b\n{'x' * (LONGEST + 1)} b\n") == (LONG, 2)


def test_many_ids_are_told_apart():
    """More than are looked up together, and more than there is room for at first."""
    random = np.random.default_rng(0)
    pairs = [(f"n{one}", f"n{other}") for one, other in random.integers(0, 5000, (9000, 2)).tolist()]
    assert scan("".join(f"{one} {other}\n" for one, other in pairs)) == (pairs, [])


words = st.text(alphabet="abü01.-", min_size=1, max_size=4)


@given(st.lists(st.tuples(words, words), max_size=30), st.sampled_from(["\n", "\r\n", "\n\n# x\n"]))
def test_what_is_written_is_read(pairs, end):
    assert scan("".join(f"{one} {other}{end}" for one, other in pairs)) == (pairs, [])


def scan_lists(text, separator=0):
    data = as_data(text)
    error, line, numbers, counts, ids = kernels.scan_adjacency(
        data, separator, text.count("\n") + 1, len(text.split()) + text.count(",")
    )
    if error:
        return error, line
    names = [bytes(data[start : start + length]).decode() for start, length in ids.tolist()]
    fields = iter(names[number] for number in numbers.tolist())
    return [[next(fields) for _ in range(count)] for count in counts[1:].tolist()]


def test_adjacency_lists_are_read_line_by_line():
    assert scan_lists("a b c\n# x\nb\n\nc a\n") == [["a", "b", "c"], [], ["b"], [], ["c", "a"], []]
    assert scan_lists("") == [[]]
    assert scan_lists("a,b\n,c\n", COMMA) == (EMPTY, 2)
    assert scan_lists('a,"b\n', COMMA) == (QUOTE, 1)
    assert scan_lists("a\n" + "x" * 2000) == (LONG, 2)


def test_a_line_longer_than_what_is_looked_up_together_is_read_whole():
    row = [f"n{number % 700}" for number in range(2000)]
    assert scan_lists(" ".join(row)) == [row]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["1", "-20", "0", "999999999999999999"], [1, -20, 0, 10**18 - 1]), ([], []), (["007"], None), (["-0"], None),
        (["-"], None), (["1", "a"], None), (["1.0"], None), (["1000000000000000000"], None), (["+1"], None),
        (["1 "], None),
    ],
)  # fmt: skip
def test_ids_are_integers_if_all_are_written_as_integers_are_printed(texts, found):
    data = as_data("".join(texts))
    starts = np.cumsum([0, *map(len, texts)])[:-1]
    ids = np.array([[start, len(text)] for start, text in zip(starts, texts, strict=True)], np.int64).reshape(-1, 2)
    out = np.empty(len(texts), np.int64)
    assert kernels.parse_integers(data, ids, out) == (found is not None)
    if found is not None:
        assert out.tolist() == found
