"""Pairs of whole numbers are read as the general reader would."""

import numpy as np
import pytest

from manela.formats.numbers import read_pairs


def as_bytes(text):
    return np.frombuffer(text.encode(), dtype=np.uint8)


@pytest.mark.parametrize("factor", [1, 1_000_003, 10**12])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_edges_and_nodes_are_those_that_are_written(factor, ending):
    ends = np.random.default_rng(0).integers(500, size=(3000, 2)) * factor
    lines = [f"{u},{v}" for u, v in ends.tolist()]
    lines[100:100] = ["# a comment", "", "% another"]
    pairs = read_pairs(as_bytes(ending.join(lines)), ord(","), piece=1000)
    np.testing.assert_array_equal(pairs.nodes, np.unique(ends))
    np.testing.assert_array_equal(pairs.nodes[pairs.sources], ends[:, 0])
    np.testing.assert_array_equal(pairs.nodes[pairs.targets], ends[:, 1])


@pytest.mark.parametrize(
    "text",
    ["a b\n", "1 2 3\n", "1\n", "1 -2\n", "007 1\n", "1 2\n3 x\n", "1,2\n", "1 1234567890123456789\n", "",
     "# none\n", "1 "],
)  # fmt: skip
def test_anything_else_is_left_to_others(text):
    assert read_pairs(as_bytes(text), 0) is None


def test_white_space_may_be_of_any_length():
    pairs = read_pairs(as_bytes("5 \t 7\n7  9"), 0)
    assert pairs.nodes.tolist() == [5, 7, 9]
    assert (pairs.sources.tolist(), pairs.targets.tolist()) == ([0, 1], [1, 2])
