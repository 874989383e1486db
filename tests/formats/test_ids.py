"""Ids of nodes as what files can hold, and back."""

import datetime
import decimal
import ipaddress
import uuid
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.data.csr import as_ids
from manela.errors import OutputError
from manela.formats.ids import check_texts, from_plain, from_words, to_plain, to_words


def there_and_back(values):
    plain, kind = to_plain(as_ids(values), "x.npz")
    assert plain.dtype != object
    return from_plain(plain, kind).tolist(), kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, -1, 2**62], "integer"),
        (["a", "", "ü\n"], "string"),
        (["a", "b\0"], "json"),  # NumPy drops zeros at the end
        ([1, "1", 1.5, None], "json"),
        ([True, False], "json"),
        ([2**70, 0], "json"),
        ([("a", 1), ("a", (2, None))], "json"),
        ([uuid.UUID(int=5), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3)], "json"),
        ([decimal.Decimal("1.10"), decimal.Decimal("1.1e5")], "json"),
        ([b"\0\xff", Path("a/b")], "json"),
        ([ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("::1")], "json"),
        ([(uuid.UUID(int=5), b"x"), "y"], "json"),
    ],
)
def test_ids_come_back_with_their_types(values, kind):
    found, found_kind = there_and_back(values)
    assert found_kind == kind
    assert found == values
    assert [type(one) for one in found] == [type(one) for one in values]


def test_no_ids_come_back():
    assert there_and_back([])[0] == []


def test_an_id_of_another_type_comes_back_as_its_text():
    assert there_and_back([frozenset({1}), "x"])[0] == ["frozenset({1})", "x"]


def test_an_id_without_a_text_form_is_refused_with_what_to_do():
    class Thing:
        pass

    with pytest.raises(OutputError, match=r"x.npz: cannot hold these ids: .* got Thing; convert it with str"):
        to_plain(as_ids([Thing(), "x"]), "x.npz")


def test_two_ids_of_one_text_are_refused():
    class Named:
        def __init__(self, name):
            self.name = name

        def __str__(self):
            return "same"

    with pytest.raises(OutputError, match="two of them have the same text"):
        to_plain(as_ids([Named(1), Named(2)]), "x.npz")


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5) | st.uuids()
ids = st.recursive(scalars, lambda inner: st.tuples(inner, inner), max_leaves=4)


@given(st.lists(ids, max_size=6, unique_by=repr))
def test_any_ids_of_these_types_come_back(values):
    found, _ = there_and_back(values)
    assert found == values
    assert list(map(repr, found)) == list(map(repr, values))


def test_words_are_texts_without_white_space():
    assert to_words(as_ids(["a", "ü,1"]), "x.vec") == ["a", "ü,1"]
    assert to_words(np.array([3, 10]), "x.vec") == ["3", "10"]
    for text in ("a b", "", " a", "a\n", "a\u2003b"):
        with pytest.raises(OutputError, match="must not contain white space"):
            to_words(as_ids([text]), "x.vec")


def test_ids_that_are_the_same_when_written_are_told_both():
    with pytest.raises(OutputError, match="x.csv: ids 1 and '1' are the same when written; use .npz"):
        check_texts(as_ids([1, "1"]), "x.csv")
    with pytest.raises(OutputError, match="are the same when written"):
        to_words(as_ids([1, "1"]), "x.vec")
    check_texts(as_ids([1, "01", "a\nb"]), "x.csv")


@pytest.mark.parametrize("text", ["a\r", "a\0b"])
def test_ids_that_would_break_lines_are_refused(text):
    with pytest.raises(OutputError, match="must not contain line ends or null"):
        check_texts(as_ids([text]), "x.csv")


@pytest.mark.parametrize("words", [["1", "-2", "0"], [str(2**63 - 1)]])
def test_words_that_are_written_as_integers_are_become_integers(words):
    found = from_words(words)
    assert found.dtype == np.int64
    assert [str(one) for one in found.tolist()] == words


@pytest.mark.parametrize("words", [["007", "1"], ["+1"], ["1", "a"], ["1_0"], ["-0"], [str(2**63)], ["٣"], ["1.0"], []])
def test_other_words_stay_as_they_are(words):
    found = from_words(words)
    assert found.dtype == object
    assert found.tolist() == words
