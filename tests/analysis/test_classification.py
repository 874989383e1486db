import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import f1_score

from manela.analysis.classification import best_threshold, classify, learn, split, summarise, take_best
from manela.errors import ParameterError


def test_the_best_labels_of_each_row_are_taken():
    chances = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]])
    np.testing.assert_array_equal(take_best(chances, np.array([2, 1])), [[False, True, True], [True, False, False]])


def test_labels_that_the_vectors_tell_are_found_and_others_are_not():
    rng = np.random.default_rng(0)
    labels = np.eye(4, dtype=bool)[rng.integers(4, size=200)]
    told = labels @ rng.normal(size=(4, 8)) + 0.01 * rng.normal(size=(200, 8))
    scores = classify(told, sp.csr_array(labels), shuffles=3)
    assert scores.micro.shape == (3,)
    assert scores.micro.mean() > 0.99
    assert scores.macro.mean() > 0.99
    noise = classify(rng.normal(size=(200, 8)), labels, shuffles=3)
    assert noise.micro.mean() < 0.5


def test_the_same_seed_gives_the_same_splits():
    rng = np.random.default_rng(1)
    vectors, labels = rng.normal(size=(100, 5)), rng.random((100, 3)) < 0.3
    one, two = (classify(vectors, labels, shuffles=2, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(one.micro, two.micro)


def test_given_test_nodes_are_predicted_from_all_others():
    vectors = np.repeat(np.eye(2), 20, axis=0)
    labels = np.repeat(np.eye(2, dtype=bool), 20, axis=0)
    test = np.zeros(40, dtype=bool)
    test[[3, 30]] = True
    assert classify(vectors, labels, test=test).micro.tolist() == [1.0]


def test_nodes_without_a_label_are_left_out():
    vectors = np.vstack([np.repeat(np.eye(2), 20, axis=0), np.full((10, 2), np.nan)])
    labels = np.vstack([np.repeat(np.eye(2, dtype=bool), 20, axis=0), np.zeros((10, 2), dtype=bool)])
    assert classify(vectors, labels, shuffles=2).micro.mean() == pytest.approx(1.0)


def test_no_test_node_is_trained_on_and_all_methods_have_the_same_splits():
    splits = split(50, 0.3, 4, random_state=2)
    for train, test in splits:
        assert len(train) == 15
        assert sorted([*train, *test]) == list(range(50))
    again = split(50, 0.3, 4, random_state=2)
    for (train, _), (other, _) in zip(splits, again, strict=True):
        np.testing.assert_array_equal(train, other)
    larger = split(50, 0.5, 4, random_state=2)
    assert set(splits[0][0]) < set(larger[0][0])


def test_no_warning_comes_while_another_thread_has_reset_the_filters():
    labels = np.eye(2, dtype=bool)[np.arange(40) % 2]
    with warnings.catch_warnings(record=True) as seen:
        warnings.resetwarnings()
        classify(labels.astype(float), labels, shuffles=2)
    assert seen == []


def test_no_test_label_is_seen_in_training():
    """Labels of test nodes that are changed after the split change no prediction, and so only their own score."""
    rng = np.random.default_rng(3)
    vectors, labels = rng.normal(size=(60, 4)), rng.random((60, 3)) < 0.4
    labels[:, 0] |= ~labels.any(axis=1)
    train, test = split(60, 0.5, 1)[0]
    changed = labels.copy()
    changed[test] = rng.permutation(labels[test])
    for one, other in zip(learn(vectors, labels, train, test), learn(vectors, changed, train, test), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_threshold_is_the_best_of_all():
    rng = np.random.default_rng(4)
    for _ in range(20):
        chances = np.round(rng.random((12, 3)), 1)
        truth = rng.random((12, 3)) < 0.4
        truth[0, 0] = True
        best = f1_score(truth, chances >= best_threshold(chances, truth), average="micro", zero_division=0)
        every = [f1_score(truth, chances >= t, average="micro", zero_division=0) for t in np.unique(chances)]
        assert best == pytest.approx(max(every))


def test_an_open_number_of_labels_is_harder():
    rng = np.random.default_rng(5)
    labels = rng.random((300, 4)) < [0.7, 0.4, 0.3, 0.2]
    vectors = labels @ rng.normal(size=(4, 8)) + 1.5 * rng.normal(size=(300, 8))
    scores = classify(vectors, labels, shuffles=3)
    assert 0.4 < scores.open_micro.mean() < scores.micro.mean()
    assert scores.open_macro.shape == (3,)


def test_threads_and_what_is_told_change_nothing():
    rng = np.random.default_rng(6)
    vectors, labels = rng.normal(size=(80, 5)), rng.random((80, 3)) < 0.4
    calls = []
    one = classify(vectors, labels, shuffles=4)
    two = classify(vectors, labels, shuffles=4, jobs=2, done=lambda: calls.append(1))
    np.testing.assert_array_equal(one.macro, two.macro)
    assert len(calls) == 4


def test_a_label_that_all_training_nodes_have_is_always_predicted():
    vectors = np.random.default_rng(7).normal(size=(20, 3))
    labels = np.ones((20, 1), dtype=bool)
    assert classify(vectors, labels, shuffles=1).micro.tolist() == [1.0]


@pytest.mark.parametrize("ratio", [0.0, 1.0, 0.001])
def test_a_split_leaves_nodes_on_both_sides(ratio):
    with pytest.raises(ParameterError, match="both sides"):
        classify(np.zeros((10, 2)), np.ones((10, 1)), train_ratio=ratio)


def test_labels_and_vectors_are_of_the_same_nodes():
    with pytest.raises(ParameterError, match="5 rows"):
        classify(np.zeros((5, 2)), np.ones((4, 1)))


def test_the_deviation_is_that_of_a_sample():
    assert summarise([1.0, 2.0, 3.0]) == (2.0, 1.0)
    assert summarise([0.5]) == (0.5, 0.0)
