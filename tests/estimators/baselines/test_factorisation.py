"""What estimators that factorise a matrix have in common."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from manela import Graph
from manela.errors import ManelaWarning
from manela.estimators.baselines.factorisation import Parts, ThreadedMatrix, factorise, pad_columns, symmetric_adjacency


def test_vectors_are_the_left_singular_ones_times_the_root_of_the_values():
    random = np.random.default_rng(0)
    low = random.normal(size=(60, 5)) @ random.normal(size=(5, 60))
    vectors = factorise(low.astype(np.float32), 5, seed=1)
    left, values, _ = np.linalg.svd(low)
    assert vectors.dtype == np.float32
    assert vectors.shape == (60, 5)
    wanted = left[:, :5] * np.sqrt(values[:5])
    np.testing.assert_allclose(vectors @ vectors.T, wanted @ wanted.T, atol=1e-2)


def test_sparse_and_dense_matrices_have_the_same_vectors_and_a_seed_the_same_bits():
    rng = np.random.default_rng(0)
    matrix = sp.csr_array(np.where(rng.random((50, 50)) < 0.2, rng.random((50, 50)), 0).astype(np.float32))
    matrix = sp.csr_array(matrix + matrix.T)
    vectors = factorise(matrix, 8, seed=3)
    np.testing.assert_array_equal(factorise(matrix, 8, seed=3), vectors)
    np.testing.assert_allclose(np.abs(factorise(matrix.toarray(), 8, seed=3)), np.abs(vectors), atol=1e-3)


def test_no_more_columns_are_computed_than_there_are_rows():
    assert factorise(np.eye(4, dtype=np.float32), 10, seed=0).shape == (4, 4)


def test_columns_that_are_missing_are_zeros_and_full_vectors_are_not_copied():
    vectors = np.ones((2, 3), np.float32)
    padded = pad_columns(vectors, 5)
    assert padded.tolist() == [[1, 1, 1, 0, 0]] * 2
    assert padded.dtype == np.float32
    assert pad_columns(vectors, 3) is vectors


def test_an_undirected_network_has_its_own_matrix_and_a_directed_one_that_of_both_ways():
    graph = Graph.from_edges([0, 1], [1, 2], [1.0, 2.0])
    assert symmetric_adjacency(graph, "X").toarray().tolist() == [[0, 1, 0], [1, 0, 2], [0, 2, 0]]
    arcs = Graph.from_edges([0, 1, 1], [1, 2, 0], [1.0, 2.0, 4.0], directed=True)
    with pytest.warns(ManelaWarning, match="ProNE takes the arcs of a directed network both ways"):
        matrix = symmetric_adjacency(arcs, "ProNE")
    assert matrix.toarray().tolist() == [[0, 5, 0], [5, 0, 2], [0, 2, 0]]
    assert matrix.format == "csr"


def test_parts_are_timed_and_told_as_rounds():
    told = []
    parts = Parts(["one", "two", "three"], told.append)
    assert parts.seconds == {}
    for name in ("one", "two", "three"):
        parts.finish(name)
    assert list(parts.seconds) == ["one", "two", "three"]
    assert all(seconds >= 0 for seconds in parts.seconds.values())
    assert [(progress.round, progress.rounds) for progress in told] == [(1, 3), (2, 3), (3, 3)]
    assert told[2].seconds_left == 0
    assert told[1].seconds_left == pytest.approx(told[1].seconds / 2)
    assert told[2].seconds == pytest.approx(sum(parts.seconds.values()))


def test_parts_are_timed_where_nobody_wants_to_know():
    parts = Parts(["one"], None)
    parts.finish("one")
    assert list(parts.seconds) == ["one"]


@pytest.mark.parametrize("blocks", [1, 2, 3, 50])
def test_products_have_the_bits_of_scipy_for_any_number_of_blocks(blocks):
    rng = np.random.default_rng(0)
    matrix = sp.csr_array(np.where(rng.random((40, 30)) < 0.1, rng.random((40, 30)), 0).astype(np.float32))
    right, left = (rng.normal(size=shape).astype(np.float32) for shape in ((30, 7), (7, 40)))
    with ThreadPoolExecutor(2) as threads:
        shared = ThreadedMatrix(matrix, threads, blocks)
        np.testing.assert_array_equal(shared @ right, matrix @ right)
        np.testing.assert_array_equal(shared.T @ left.T, matrix.T.tocsr() @ left.T)
        np.testing.assert_array_equal(left @ shared, (matrix.T.tocsr() @ left.T).T)
        assert (shared @ right).dtype == np.float32


def test_other_transpositions_are_refused():
    with ThreadPoolExecutor(1) as threads, pytest.raises(ValueError, match="without axes and copies"):
        ThreadedMatrix(sp.eye_array(3, format="csr"), threads, 1).transpose(copy=True)
