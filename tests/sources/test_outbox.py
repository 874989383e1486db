"""Long JSON lists, cut anywhere."""

import io
import json
from decimal import Decimal
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.errors import SourceError
from manela.sources import mastodon_archive
from manela.sources.mastodon_archive import read_items

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(values, max_size=8), st.integers(1, 9), st.booleans())
def test_items_are_those_of_the_list_wherever_blocks_end(items, block, indented):
    data = json.dumps({"a": [1], "items": items, "b": 2}, ensure_ascii=False, indent=1 if indented else None)
    with mock.patch.object(mastodon_archive, "_BLOCK", block):
        read = list(read_items(io.BytesIO(data.encode(errors="replace")), "items", "file"))
    assert read == json.loads(data.encode(errors="replace"), parse_float=Decimal)["items"]


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"items": 3}', b'{"items": [', b'{"items": [1, 2', b'{"items": [{"a": }]}', b"\xff\xfe", b"[" * 99],
)
def test_what_is_no_list_is_told_in_a_line(data):
    with pytest.raises(SourceError, match="^file: "):
        list(read_items(io.BytesIO(data), "items", "file"))


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_items_are_refused(opening):
    with pytest.raises(SourceError, match="^file: an item must have at most 100 levels"):
        list(read_items(io.BytesIO(b'{"items": [' + opening * 200_000), "items", "file"))


def test_the_same_key_inside_an_item_is_no_list_of_items():
    data = b'{"first": {"items": [7]}, "a": [{"items": [8]}], "items": [{"items": [9]}]}'
    assert list(read_items(io.BytesIO(data), "items", "file")) == [{"items": [9]}]


@pytest.mark.parametrize("before", [b'{"items": ["', b'{"', b'{"a": ["', b'{"items": [{"a": "'])
def test_long_items_are_refused_before_they_are_in_memory(before):
    class Endless:
        given = 0

        def read(self, size):
            if size == 0:  # ijson asks for nothing to see the type
                return b""
            data = b"x" * size if self.given else before
            self.given += len(data)
            return data

    endless = Endless()
    with pytest.raises(SourceError, match=r"^file: an item must have at most 4,194,304 bytes"):
        list(read_items(endless, "items", "file"))
    assert endless.given < 5_000_000


def test_many_items_are_longer_together_than_one_may_be():
    data = b'{"items": [' + b",".join([b'"' + b"x" * 100_000 + b'"'] * 100) + b"]}"
    assert len(list(read_items(io.BytesIO(data), "items", "file"))) == 100
