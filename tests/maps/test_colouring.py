"""The group that each node of a map is shown in."""

import numpy as np
import pytest
import scipy.sparse as sp

from manela import Embedding
from manela.errors import FormatError, ParameterError
from manela.formats.labels import Labels
from manela.maps.points import colour_nodes


def embed(nodes, vectors=None):
    ids = np.empty(len(nodes), dtype=object)
    ids[:] = nodes
    return Embedding(ids, np.eye(len(nodes), dtype=np.float32) if vectors is None else vectors)


def shown(colouring):
    """The name of the group of each node."""
    return [colouring.names[group] for group in colouring.groups.tolist()]


LABELS = ["red", "blue", "red", "green", "blue", "red"]


@pytest.mark.parametrize(
    "labels",
    [LABELS, tuple(LABELS), np.array(LABELS), dict(zip("abcdef", LABELS, strict=True)), iter(LABELS)],
    ids=["list", "tuple", "array", "dict", "iterator"],
)
def test_labels_are_groups_the_largest_first(labels):
    found = colour_nodes(embed(list("abcdef")), labels)
    assert found.names == ["red", "blue", "green"]
    assert shown(found) == LABELS
    assert (found.grey, found.title, found.summary) == (0, "Labels", "coloured by 3 labels")
    assert found.groups.dtype == np.uint8


def test_groups_of_one_size_stand_as_they_first_appear():
    assert colour_nodes(embed(list("abcd")), ["x", "y", "z", "y"]).names == ["y", "x", "z"]


def test_no_label_is_shown_in_grey_and_last():
    found = colour_nodes(embed(list("abcd")), ["", "x", None, "x"])
    assert (found.names, found.grey) == (["x", "no label"], 1)
    assert shown(found) == ["no label", "x", "no label", "x"]
    by_node = colour_nodes(embed(list("abcd")), {"b": "x"})
    assert shown(by_node) == ["no label", "x", "no label", "no label"]


def test_a_map_without_any_label_is_all_grey():
    found = colour_nodes(embed(list("ab")), ["", None])
    assert (found.names, found.groups.tolist(), found.grey) == (["no label"], [0, 0], 1)


def test_labels_that_are_no_texts_are_shown_as_theirs():
    assert colour_nodes(embed(list("abc")), np.array([3, 0, 3])).names == ["3", "0"]


def test_of_several_labels_the_first_counts():
    matrix = sp.csr_array(np.array([[False, True], [True, True], [False, False]]))
    labels = Labels(("a", "b", "c"), ("x", "y"), matrix, "labels.csv")
    assert shown(colour_nodes(embed(list("abc")), labels)) == ["y", "x", "no label"]
    with pytest.raises(FormatError, match="labels 1 nodes without a vector, the first is 'b'"):
        colour_nodes(embed(list("ac")), labels)


@pytest.mark.parametrize("labels", [["x"], ["x"] * 3, []])
def test_as_many_labels_as_nodes_are_needed(labels):
    with pytest.raises(ParameterError, match=f"labels must be one for each of 2 nodes, got {len(labels)}"):
        colour_nodes(embed(list("ab")), labels)


def test_groups_that_are_too_many_share_a_colour():
    large = [str(i) for i in range(250)] * 2
    found = colour_nodes(embed(list(range(502))), [*large, "small", None])
    assert found.names == [*large[:250], "1 smaller ones", "no label"]
    assert found.grey == 2
    assert shown(found)[500:] == ["1 smaller ones", "no label"]
    assert found.summary.endswith("251 labels, of which the 250 largest have a colour")


def test_as_many_groups_as_a_page_has_numbers_for_fit_into_a_byte():
    found = colour_nodes(embed(list(range(301))), [str(i) for i in range(300)] + [""])
    assert len(found.names) == 252
    assert found.groups.max() == 251


def test_without_labels_groups_are_found_from_the_vectors():
    random = np.random.default_rng(0)
    side = np.repeat(np.eye(3), 20, axis=0) + random.normal(scale=0.05, size=(60, 3))
    found = colour_nodes(embed(list(range(60)), side.astype(np.float32)))
    groups = found.groups.reshape(3, 20)
    assert (groups == groups[:, :1]).all()
    assert len(set(groups[:, 0].tolist())) == 3
    assert found.title == "Groups"
    assert found.names[:3] == ["group 0", "group 1", "group 2"]
    assert found.summary.startswith("coloured by 3 groups found from the vectors")


def test_a_few_nodes_are_one_group():
    found = colour_nodes(embed(list(range(7))))
    assert (found.names, found.groups.tolist(), found.summary) == (["nodes"], [0] * 7, "too few for groups")


def test_a_label_that_is_not_a_number_is_none():
    embedding = Embedding(np.arange(4), np.eye(4, dtype=np.float32))
    colouring = colour_nodes(embedding, [float("nan"), "a", "a", None])
    assert not any("nan" in name for name in colouring.names)
