"""What was disclosed to a host, line by line."""

import json

import numpy as np
import pytest

from manela.errors import FormatError
from manela.hosts.folder.trace import read_disclosures, write_disclosure


def read(path):
    return list(read_disclosures(path))


def test_facts_come_back_with_vectors_in_half_precision(tmp_path):
    vectors = np.array([[1.0, -0.5], [1 / 3, 65504.0]], np.float32)
    disclosures = [{"kind": "edge", "own": "ü", "steps": 1}, {"kind": "walk", "vector": vectors, "none": None}]
    (tmp_path / "trace").write_text("".join(write_disclosure(disclosure) + "\n" for disclosure in disclosures))
    first, second = read(tmp_path / "trace")
    assert first == disclosures[0]
    assert second["none"] is None
    assert second["vector"].dtype == np.float32
    np.testing.assert_array_equal(second["vector"], vectors.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (), (2, 1, 3)])
def test_arrays_of_any_shape_come_back(tmp_path, shape):
    vectors = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    (tmp_path / "trace").write_text(write_disclosure({"vector": vectors}) + "\n")
    [disclosure] = read(tmp_path / "trace")
    np.testing.assert_array_equal(disclosure["vector"], vectors)
    assert disclosure["vector"].shape == shape


def test_numbers_that_halves_cannot_hold_are_infinite_without_a_word(tmp_path):
    (tmp_path / "trace").write_text(write_disclosure({"vector": np.array([1e30, np.nan], np.float32)}) + "\n")
    [disclosure] = read(tmp_path / "trace")
    assert np.isinf(disclosure["vector"][0])
    assert np.isnan(disclosure["vector"][1])


def test_a_fact_is_one_line():
    line = write_disclosure({"own": "two\nlines", "vector": np.zeros((100, 9))})
    assert "\n" not in line
    assert json.loads(line)["own"] == "two\nlines"


def test_a_line_that_a_crash_has_cut_off_is_left_out(tmp_path):
    whole = write_disclosure({"number": 1}) + "\n"
    for cut in ("", '{"num', write_disclosure({"number": 2})):
        (tmp_path / "trace").write_text(whole + cut)
        assert read(tmp_path / "trace") == [{"number": 1}]
    (tmp_path / "trace").write_text("")
    assert read(tmp_path / "trace") == []


@pytest.mark.parametrize(
    "line",
    [
        "no json", '{"v": {"shape": [2], "float16": "AAA"}}', '{"v": {"shape": [2], "float16": "AAAA"}}', '{"v": {}}',
        '{"v": {"shape": 1, "float16": 5}}', "\xff",
    ],
)  # fmt: skip
def test_a_file_that_is_no_trace_is_told(tmp_path, line):
    (tmp_path / "trace").write_bytes(line.encode("latin-1") + b"\n")
    with pytest.raises(FormatError, match="trace: is not a trace of a host"):
        read(tmp_path / "trace")


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(FormatError, match="nowhere: cannot be read: No such file"):
        read(tmp_path / "nowhere")


def test_a_line_that_is_no_object_is_told(tmp_path):
    (tmp_path / "trace").write_text("[1]\n")
    with pytest.raises(FormatError, match="is not a trace of a host: a line is not an object"):
        list(read_disclosures(tmp_path / "trace"))
