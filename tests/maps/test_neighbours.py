"""The nearest nodes of every node."""

import numpy as np
import pytest

from manela.errors import MissingExtraError
from manela.maps import page as module
from manela.maps.page import find_all_neighbours


def draw(nodes, m=8, seed=0):
    return np.random.default_rng(seed).normal(size=(nodes, m)).astype(np.float32)


def find_by_hand(vectors, count):
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1)[:, :count]
    return order, np.take_along_axis(cosines, order, axis=1)


@pytest.fixture(params=["exact", "index"])
def search(request, monkeypatch):
    """Both ways to search."""
    if request.param == "index":
        pytest.importorskip("usearch")
        monkeypatch.setattr(module, "_EXACT", 1)
    return request.param


def test_nearest_nodes_come_first_and_nobody_is_near_itself(search):
    vectors = draw(200)
    rows, cosines = find_all_neighbours(vectors, 5)
    assert rows.shape == cosines.shape == (200, 5)
    assert not (rows == np.arange(200)[:, None]).any()
    assert all(len(set(row)) == 5 for row in rows.tolist())
    assert (np.diff(cosines, axis=1) <= 1e-6).all()
    wanted, wanted_cosines = find_by_hand(vectors, 5)
    if search == "exact":
        np.testing.assert_array_equal(rows, wanted)
        np.testing.assert_allclose(cosines, wanted_cosines, atol=1e-5)
    else:
        assert np.mean([len(set(a) & set(b)) for a, b in zip(rows.tolist(), wanted.tolist(), strict=True)]) > 4.5


@pytest.mark.parametrize("count", [4, 5, 100])
def test_there_are_no_more_neighbours_than_other_nodes(search, count):
    rows, _ = find_all_neighbours(draw(5), count)
    assert sorted(map(sorted, rows.tolist())) == sorted(sorted(set(range(5)) - {node}) for node in range(5))


def test_many_equal_vectors_have_others_for_neighbours(search):
    vectors = np.ones((30, 4), np.float32)
    rows, cosines = find_all_neighbours(vectors, 3)
    assert not (rows == np.arange(30)[:, None]).any()
    assert all(len(set(row)) == 3 for row in rows.tolist())
    assert (np.abs(cosines) <= 1.0).all()


def test_an_index_is_needed_for_very_many_nodes(monkeypatch):
    monkeypatch.setattr(module, "_MOST_EXACT", 3)

    def missing(name, extra, purpose):
        raise MissingExtraError(f"{purpose}: {name} of {extra}")

    monkeypatch.setattr(module, "import_extra", missing)
    with pytest.raises(MissingExtraError, match="a map of more than 3 nodes: usearch.index of index"):
        find_all_neighbours(draw(4), 2)
    assert find_all_neighbours(draw(3), 2)[0].shape == (3, 2)


def test_without_an_index_some_more_nodes_are_searched_exactly(monkeypatch):
    monkeypatch.setattr(module, "_EXACT", 1)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    np.testing.assert_array_equal(find_all_neighbours(draw(40), 3)[0], find_by_hand(draw(40), 3)[0])
