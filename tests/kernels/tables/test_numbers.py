"""Pairs of whole numbers from the bytes of a text file."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.kernels.tables import text as kernels


def as_data(text):
    """Bytes as files are read, which can be written to."""
    return np.frombuffer(text if isinstance(text, bytes) else text.encode(), np.uint8).copy()


def parse(text, separator=0, first=0, last=None):
    data = as_data(text)
    last = len(data) if last is None else last
    sources, targets = np.full((2, kernels.count_lines(data, first, last) + 1), -7, np.int64)
    found = kernels.parse_pairs(data, first, last, separator, sources, targets)
    return None if found < 0 else list(zip(sources[:found].tolist(), targets[:found].tolist(), strict=True))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("1 2", [(1, 2)]),
        ("1 2\n", [(1, 2)]),
        ("1\t 2\r\n3  4\r\n", [(1, 2), (3, 4)]),
        ("\n\n1 2\n\n3 4\n\n", [(1, 2), (3, 4)]),
        ("# 5 6\n% 7\n1 2\n#", [(1, 2)]),
        ("0 0", [(0, 0)]),
        ("999999999999999999 1", [(10**18 - 1, 1)]),
    ],
)
def test_lines_of_two_numbers_comments_and_empty_lines_are_read(text, pairs):
    assert parse(text) == pairs


@pytest.mark.parametrize(
    "text",
    [
        "1", "1 ", "1 2 3", "1 2 ", " 1 2", "1,2", "a b", "1 a", "-1 2", "1 -2", "+1 2", "1.0 2", "007 1", "1 00",
        "1000000000000000000 1", "1 1000000000000000000", "1 2\n3", "1 2 # x", "1 2\x00", "1 2\r3", b"1 2\xc2\xa0",
    ],
)  # fmt: skip
def test_anything_else_is_left_to_others(text):
    assert parse(text) is None


def test_a_separator_stands_exactly_once():
    comma = ord(",")
    assert parse("1,2\n3,4", comma) == [(1, 2), (3, 4)]
    for text in ("1 2", "1,,2", "1, 2", "1 ,2", "1,2,", "1,"):
        assert parse(text, comma) is None


def test_pieces_of_a_file_are_read_for_themselves():
    text = "1 2\n30 40\n5 6\n"
    assert parse(text, first=4, last=10) == [(30, 40)]
    assert parse(text, first=4, last=9) == [(30, 40)]
    assert parse(text, first=4, last=6) is None
    assert parse(text, first=14) == []


def test_lines_are_counted_by_their_ends():
    data = as_data("a\nb\r\n\nc")
    assert kernels.count_lines(data, 0, len(data)) == 3
    assert kernels.count_lines(data, 2, 4) == 0
    assert kernels.count_lines(data, 0, 0) == 0


@given(st.lists(st.tuples(st.integers(0, 10**18 - 1), st.integers(0, 10**18 - 1)), max_size=20))
def test_what_is_printed_is_read(pairs):
    assert parse("".join(f"{one} {other}\n" for one, other in pairs)) == pairs


@given(st.text(alphabet="01 9\n\r\t#%-,a", max_size=20))
def test_what_is_read_is_what_a_plain_reader_reads(text):
    found = parse(text)
    if found is not None:
        lines = (line.strip() for line in text.split("\n"))
        kept = [line.split() for line in lines if line and line[0] not in "#%"]
        assert found == [(int(one), int(other)) for one, other in kept]


def test_numbers_are_marked_and_translated_from_the_least():
    values = np.array([7, 5, 9, 5])
    seen = np.zeros(5, np.uint8)
    kernels.mark(values, 5, seen)
    assert seen.tolist() == [1, 0, 1, 0, 1]
    out = np.empty(4, np.int32)
    kernels.translate(values, 5, np.array([10, 11, 12, 13, 14], np.int32), out)
    assert out.tolist() == [12, 10, 14, 10]


def test_a_table_of_keys_grows_and_every_number_is_found_again():
    values = np.random.default_rng(0).integers(0, 2**62, 3000)
    values = np.concatenate((values, values[:500], [0, 2**62]))
    keys, count = np.full(4, -1, np.int64), 0
    for piece in np.array_split(values, 3):
        keys, count = kernels.collect(piece, keys, count)
    distinct = np.unique(values)
    assert count == len(distinct)
    assert 2 * count <= len(keys)
    np.testing.assert_array_equal(np.sort(keys[keys >= 0]), distinct)
    codes, out = np.arange(len(keys), dtype=np.int32), np.empty(len(values), np.int32)
    kernels.look_up(values, keys, codes, out)
    np.testing.assert_array_equal(keys[out], values)


def test_nothing_is_collected_from_nothing():
    keys, count = kernels.collect(np.zeros(0, np.int64), np.full(4, -1, np.int64), 0)
    assert (count, keys.tolist()) == (0, [-1, -1, -1, -1])
