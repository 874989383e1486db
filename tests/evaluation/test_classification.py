import numpy as np
import pytest
import scipy.sparse as sp

from manela.evaluation.classification import classify, take_best


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
