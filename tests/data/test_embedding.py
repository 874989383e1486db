import numpy as np
import pandas as pd
import pytest

from manela.data.embedding import Embedding
from manela.errors import ParameterError, UnknownNodeError


@pytest.fixture
def embedding():
    vectors = np.array([[1, 0], [2, 0.2], [0, 3], [-1, 0], [0, 0]], dtype=np.float32)
    ids = np.empty(5, dtype=object)
    ids[:] = ["a", "b", "c", 4, ("e",)]
    return Embedding(ids, vectors)


def test_a_vector_is_found_by_id(embedding):
    np.testing.assert_array_equal(embedding["c"], [0, 3])
    np.testing.assert_array_equal(embedding[4], [-1, 0])


def test_most_similar_are_sorted_by_cosine_without_the_node_itself(embedding):
    found = embedding.most_similar("a", k=10)
    assert [node for node, _ in found] == ["b", "c", ("e",), 4]
    assert found[0][1] == pytest.approx(2 / np.hypot(2, 0.2))
    assert found[-1][1] == pytest.approx(-1)
    assert embedding.most_similar("a", k=1) == found[:1]


@pytest.mark.parametrize("node", ["zed", [1]])
def test_an_unknown_node_is_named(embedding, node):
    with pytest.raises(UnknownNodeError, match="no node has the id"):
        embedding.most_similar(node)


def test_k_below_one_is_refused(embedding):
    with pytest.raises(ParameterError, match="k must be at least 1, got 0"):
        embedding.most_similar("a", k=0)


def test_many_vectors_are_had_at_once():
    ids = np.empty(3, dtype=object)
    ids[:] = ["a", "b", ("c", 1)]
    embedding = Embedding(ids, np.eye(3, dtype=np.float32))
    np.testing.assert_array_equal(embedding[["b", "a"]], np.eye(3, dtype=np.float32)[[1, 0]])
    np.testing.assert_array_equal(embedding[pd.Series(["b", "b"])], np.eye(3, dtype=np.float32)[[1, 1]])
    np.testing.assert_array_equal(embedding["c", 1], np.eye(3, dtype=np.float32)[2])
    assert embedding[[]].shape == (0, 3)
    with pytest.raises(UnknownNodeError, match="'z'"):
        embedding[["a", "z"]]
    frame = embedding.to_pandas()
    assert frame.loc["b"].tolist() == [0, 1, 0]
    assert list(frame.columns) == ["d0", "d1", "d2"]
