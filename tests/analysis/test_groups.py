"""Groups from vectors: that planted ones are found, that noise scores as noise, and what cannot be grouped."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, silhouette_score

from manela.analysis import groups as module
from manela.analysis.groups import compare_with_labels, find_groups
from manela.errors import ParameterError


def plant(sizes, dimensions=16, noise=0.15, seed=0):
    """Directions about random centres, and whose they are."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(len(sizes), dimensions))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    planted = np.repeat(np.arange(len(sizes)), sizes)
    vectors = centres[planted] + rng.normal(scale=noise, size=(len(planted), dimensions))
    order = rng.permutation(len(planted))
    # lengths say nothing: only directions do
    return (vectors * rng.uniform(0.1, 10.0, size=(len(planted), 1)))[order].astype(np.float32), planted[order]


@pytest.mark.parametrize("method", ["kmeans", "hdbscan"])
def test_planted_groups_are_found_with_their_number_and_numbered_by_size(method):
    vectors, planted = plant([300, 200, 120, 60])
    found = find_groups(vectors, method=method)
    assert found.count == 4
    assert adjusted_rand_score(planted, found.labels) > 0.95
    assert found.sizes.tolist() == sorted(found.sizes.tolist(), reverse=True)
    assert found.sizes.tolist() == np.bincount(found.labels[found.labels >= 0]).tolist()
    assert found.silhouette > 0.5
    assert found.stability > 0.9
    assert found.hidden == 136


def test_noise_has_groups_that_score_near_nothing():
    vectors = np.random.default_rng(0).normal(size=(1500, 32))
    found = find_groups(vectors)
    assert found.silhouette < 0.1
    assert found.stability < 0.1


def test_the_number_of_groups_can_be_given():
    vectors, _ = plant([100, 100, 100])
    assert find_groups(vectors, count=5).count == 5
    assert find_groups(vectors, count=1).labels.tolist() == [0] * 300
    assert find_groups(vectors[:6], count=6).sizes.tolist() == [1] * 6


@pytest.mark.parametrize("method", ["kmeans", "hdbscan"])
def test_the_same_random_state_gives_the_same_groups(method):
    vectors, _ = plant([150, 100, 50], noise=0.4)
    first, second = (find_groups(vectors, method=method, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert (first.silhouette, first.stability) == (second.silhouette, second.stability)


def test_the_silhouette_by_means_is_that_of_all_pairs():
    vectors, planted = plant([40, 30, 20], noise=0.5)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    wanted = silhouette_score(directions, planted, metric="cosine")
    assert module.measure_silhouette(directions, planted) == pytest.approx(wanted, abs=1e-5)


def test_the_score_is_of_nodes_that_had_no_part(monkeypatch):
    vectors, _ = plant([100, 100])
    seen = []
    find = module.find_centres

    def remember(known, *given):
        seen.append(len(known))
        return find(known, *given)

    monkeypatch.setattr(module, "find_centres", remember)
    assert find_groups(vectors, count=2).hidden == 40
    assert seen == [160, 80, 80]  # without a fifth, and then each half of what is left


def test_nodes_without_a_direction_are_in_no_group():
    vectors, _ = plant([50, 50])
    vectors[[3, 8]] = 0.0
    found = find_groups(vectors)
    assert np.flatnonzero(found.labels < 0).tolist() == [3, 8]


def test_very_small_and_very_large_numbers_have_directions():
    vectors, planted = plant([60, 60])
    for scale in (1e-38, 1e30):
        assert adjusted_rand_score(planted, find_groups(vectors * np.float32(scale), count=2).labels) == 1.0


def test_few_nodes_have_groups_and_no_score():
    found = find_groups(np.eye(3))
    assert found.hidden == 0
    assert np.isnan(found.silhouette)
    assert np.isnan(found.stability)
    assert find_groups(np.ones((4, 2))).count == 1


def test_labels_agree_or_do_not():
    vectors, planted = plant([100, 80, 60])
    found = find_groups(vectors)
    truth = np.eye(3, dtype=bool)[planted]
    truth[:10] = True  # nodes with several labels do not count
    score, nodes = compare_with_labels(found, truth)
    assert score > 0.95
    assert nodes == 230
    assert compare_with_labels(found, np.zeros((240, 3), dtype=bool))[1] == 0


@pytest.mark.parametrize(
    ("vectors", "arguments", "words"),
    [
        (np.eye(3), {"count": 4}, "at most the number of nodes with a direction, 3, got 4"),
        (np.ones((5, 2)), {"count": 2}, "different directions, 1, got 2"),
        (np.eye(3), {"count": 0}, "count must be a whole number of at least 1, got 0"),
        (np.eye(3), {"count": True}, "count must be a whole number"),
        (np.eye(3), {"method": "hdbscan", "count": 2}, "count is for kmeans"),
        (np.eye(3), {"method": "hdbscan"}, "at least 5 nodes"),
        (np.eye(3), {"method": "louvain"}, "method must be one of kmeans, hdbscan, got 'louvain'"),
        (np.ones((1, 2)), {}, "at least 2 nodes, got 1"),
        (np.zeros((5, 2)), {}, "other than zero, got 0"),
        (np.array([[1, np.nan], [0, 1]]), {}, "finite"),
        (np.ones(4), {}, "a row for each node"),
        ([["a"], ["b"]], {}, "must be numbers"),
    ],
)
def test_what_cannot_be_grouped_is_said(vectors, arguments, words):
    with pytest.raises(ParameterError, match=words):
        find_groups(vectors, **arguments)
