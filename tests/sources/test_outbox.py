"""Long JSON lists, cut anywhere."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.errors import SourceError
from manela.sources import json_items
from manela.sources.json_items import read_items

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(values, max_size=8), st.integers(1, 9), st.booleans())
def test_items_are_those_of_the_list_wherever_blocks_end(items, block, indented):
    data = json.dumps({"a": [1], "items": items, "b": 2}, ensure_ascii=False, indent=1 if indented else None)
    usual, json_items._BLOCK = json_items._BLOCK, block
    try:
        assert (
            list(read_items(io.BytesIO(data.encode(errors="replace")), "items", "file"))
            == json.loads(data.encode(errors="replace"))["items"]
        )
    finally:
        json_items._BLOCK = usual


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"items": 3}', b'{"items": [', b'{"items": [1, 2', b'{"items": [{"a": }]}', b"\xff\xfe", b"[" * 99],
)
def test_what_is_no_list_is_told_in_a_line(data):
    with pytest.raises(SourceError, match="^file: "):
        list(read_items(io.BytesIO(data), "items", "file"))


def test_deep_and_long_items_are_refused(monkeypatch):
    with pytest.raises(SourceError, match="^file: "):
        list(read_items(io.BytesIO(b'{"items": [' + b"[" * 200_000), "items", "file"))
    monkeypatch.setattr(json_items, "_MOST_LETTERS", 1000)
    monkeypatch.setattr(json_items, "_BLOCK", 100)
    with pytest.raises(SourceError, match="at most 1,000 characters"):
        list(read_items(io.BytesIO(b'{"items": ["' + b"x" * 5000), "items", "file"))
