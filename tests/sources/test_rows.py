"""Rows of a query as edges."""

import datetime
import uuid
from decimal import Decimal

import numpy as np
import pytest

from manela.errors import SourceError
from manela.sources.rows import Rows, check_columns


def take(*rows):
    found = list(Rows().take(rows))
    return [
        (list(batch.own), list(batch.other), None if batch.weights is None else batch.weights.tolist())
        for batch in found
    ]


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"], ["a", "a"]])
def test_two_columns_or_three_are_edges(names):
    check_columns(names)


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b", "c", "d"]])
def test_other_numbers_of_columns_are_refused_with_their_names(names):
    with pytest.raises(SourceError, match=f"got {len(names)}: {', '.join(names)}"):
        check_columns(names)


def test_very_many_names_are_cut():
    with pytest.raises(SourceError) as caught:
        check_columns(["column"] * 1000)
    assert len(str(caught.value)) < 250


def test_rows_become_columns_with_and_without_weights():
    assert take(("ann", "bob"), ("bob", 3)) == [(["ann", "bob"], ["bob", 3], None)]
    assert take(("ann", "bob", 2), ("bob", "cem", Decimal("0.5"))) == [(["ann", "bob"], ["bob", "cem"], [2.0, 0.5])]


def test_rows_with_a_gap_are_left_out_and_counted():
    rows = Rows()
    batches = list(rows.take([("a", "b", 1.0), (None, "b", 1.0), ("a", "", 1.0), ("a", "b", None), ("c", "d", 2.0)]))
    assert [(list(batch.own), batch.weights.tolist()) for batch in batches] == [(["a", "c"], [1.0, 2.0])]
    assert list(rows.take([(None, None, 1.0)])) == []
    assert rows.describe() == "6 rows, of which 4 were left out as an end or the weight is NULL or empty"


def test_rows_of_several_batches_are_counted_together():
    rows = Rows()
    assert rows.describe() == "0 rows"
    for _ in range(3):
        list(rows.take([("a", "b")] * 1000))
    assert rows.describe() == "3,000 rows"


def test_zero_and_false_are_no_gaps():
    assert take((0, False)) == [([0], ["False"], None)]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (5, 5), ("05", "05"), (Decimal("5"), 5), (Decimal("5.00"), 5), (5.0, 5), (Decimal("5.5"), "5.5"), (2.5, "2.5"),
        (float("nan"), "nan"), (float("inf"), "inf"), (b"\x01\xff", "01ff"), (memoryview(b"\x02"), "02"),
        (bytearray(b"\x03"), "03"), (uuid.UUID(int=1), str(uuid.UUID(int=1))),
        (datetime.date(2024, 2, 29), "2024-02-29"), (True, "True"),
    ],
)  # fmt: skip
def test_ends_are_whole_numbers_and_texts_and_anything_else_is_its_text(value, name):
    [(own, _, _)] = take((value, "x"))
    assert own == [name]
    assert type(own[0]) is type(name)


@pytest.mark.parametrize("weight", ["heavy", b"x", datetime.date(2024, 1, 1)])
def test_a_weight_that_is_no_number_is_told(weight):
    with pytest.raises(SourceError, match="the third column of a query is the weight, a number, got"):
        take(("a", "b", weight))


@pytest.mark.parametrize("weight", [0.0, -1, float("nan"), float("inf"), 1e101, Decimal("-0.5")])
def test_a_weight_outside_of_its_range_is_told_with_about_where_it_is(weight):
    rows = Rows()
    list(rows.take([("a", "b", 1.0)] * 1000))
    with pytest.raises(SourceError, match="about row 1,002: leave such rows out by a WHERE"):
        list(rows.take([("a", "b", 1.0), ("a", "b", weight)]))


def test_weights_at_the_ends_of_the_range_are_taken():
    [(_, _, weights)] = take(("a", "b", 1e-100), ("a", "c", 1e100), ("a", "d", True))
    np.testing.assert_allclose(weights, [1e-100, 1e100, 1.0])


def test_a_list_is_no_weight():
    with pytest.raises(SourceError, match="the weight, a number"):
        list(Rows().take([("a", "b", [1.0, 2.0])]))


def test_long_decimal_ids_stay_apart():
    [batch] = Rows().take([(Decimal("9007199254740993.5"), "b"), (Decimal("9007199254740993.25"), Decimal("NaN"))])
    assert list(batch.own) == ["9007199254740993.5", "9007199254740993.25"]
    assert list(batch.other) == ["b", "NaN"]


def test_no_rows_give_no_edges():
    assert list(Rows().take([])) == []
