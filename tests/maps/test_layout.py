"""Layouts: which is chosen, that they keep groups together, and that they repeat."""

import numpy as np
import pytest

from manela.data.nearest import find_nearest
from manela.errors import ManelaWarning, MissingExtraError, ParameterError
from manela.maps import points as layout
from manela.maps.page import find_all_neighbours
from manela.maps.points import choose_method, lay_out


def plant(groups=3, each=40, dimensions=16):
    rng = np.random.default_rng(0)
    planted = np.repeat(np.arange(groups), each)
    vectors = np.eye(dimensions)[planted] + rng.normal(scale=0.1, size=(len(planted), dimensions))
    return vectors.astype(np.float32), planted


@pytest.mark.parametrize("method", ["pca", "tsne", "umap"])
def test_groups_lie_together_and_the_same_state_gives_the_same_points(method):
    if method == "umap":
        pytest.importorskip("umap")
    vectors, planted = plant()
    near = find_all_neighbours(vectors, 14)
    points = lay_out(vectors, method, 3, near)
    assert points.shape == (120, 2)
    centres = np.array([points[planted == group].mean(axis=0) for group in range(3)])
    nearest = np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == planted).mean() > 0.95
    np.testing.assert_array_equal(points, lay_out(vectors, method, 3, near))


def test_lengths_do_not_matter_and_zeros_have_a_place():
    vectors, _ = plant()
    longer = vectors * np.linspace(0.1, 9, len(vectors), dtype=np.float32)[:, None]
    np.testing.assert_allclose(lay_out(vectors, "pca"), lay_out(longer, "pca"), atol=1e-4)
    vectors[5] = 0.0
    assert np.isfinite(lay_out(vectors, "tsne")).all()


def test_one_dimension_is_a_line():
    points = lay_out(np.array([[1.0], [-2.0], [3.0]], dtype=np.float32), "pca")
    assert points[:, 1].tolist() == [0, 0, 0]


def test_the_method_goes_by_the_number_of_nodes(monkeypatch):
    assert choose_method("auto", 5) == "pca"
    assert choose_method("auto", 2000) == "tsne"
    monkeypatch.setattr(layout, "find_spec", lambda _: object())
    assert choose_method("auto", 2001) == "umap"
    monkeypatch.setattr(layout, "find_spec", lambda _: None)
    with pytest.warns(ManelaWarning, match="pip install 'manela\\[map\\]'"):
        assert choose_method("auto", 2001) == "pca"
    assert choose_method("pca", 100) == "pca"


def test_what_cannot_be_laid_out_is_said(monkeypatch):
    with pytest.raises(ParameterError, match="method must be one of auto, umap, tsne, pca, got 'spring'"):
        choose_method("spring", 10)
    with pytest.raises(ParameterError, match="at most 20,000 nodes"):
        choose_method("tsne", 20_001)
    monkeypatch.setitem(__import__("sys").modules, "umap", None)
    with pytest.raises(MissingExtraError, match="manela\\[map\\]"):
        choose_method("umap", 100)


@pytest.mark.parametrize("index", [False, True])
def test_neighbours_are_the_nearest_others(index):
    if index:
        pytest.importorskip("usearch")
    vectors, _ = plant()
    vectors[7] = vectors[8]  # of two that are the same, neither is found for itself
    rows, cosines = find_all_neighbours(vectors, 5, exact=10 if index else 1000)
    wanted, _ = find_nearest(vectors, vectors, 5, exclude=np.arange(120)[:, None])
    assert rows.shape == cosines.shape == (120, 5)
    assert not (rows == np.arange(120)[:, None]).any()
    common = [len({*found} & {*true}) for found, true in zip(rows.tolist(), wanted.tolist(), strict=True)]
    assert np.mean(common) > 4.7


def test_few_nodes_have_few_neighbours():
    rows, _ = find_all_neighbours(np.eye(3, dtype=np.float32), 5)
    assert rows.shape == (3, 2)
