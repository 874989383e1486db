import numpy as np
import pytest

from manela import Embedding
from manela.analysis.answers import AnswerBook
from manela.errors import ParameterError, UnknownNodeError


@pytest.fixture
def book():
    """Two communities of own nodes, a node elsewhere in each, and one elsewhere that has not been shown."""
    rng = np.random.default_rng(1)
    centres = np.repeat(np.eye(8, dtype=np.float32)[:2], 10, axis=0)
    own = centres + 0.1 * rng.normal(size=(20, 8)).astype(np.float32)
    elsewhere = np.eye(8, dtype=np.float32)[:2] + 0.01
    vectors = np.concatenate((own, elsewhere, np.zeros((1, 8), np.float32)))
    names = [*(f"n{number}" for number in range(20)), "p@beta", "q@beta", "unseen@beta"]
    # each own node with the next one; n0 with p and the unseen one, n1 with q, which is of the other community
    ends = [*((i, (i + 1) % 20) for i in range(20)), *(((i + 1) % 20, i) for i in range(20)), (0, 20), (0, 22), (1, 21)]
    sources, targets = np.array(sorted(ends)).T
    indptr = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=20))))
    return AnswerBook(names, vectors, 20, indptr, targets)


def test_near_are_own_nodes_by_cosine(book):
    own = Embedding(np.array(book.names[:20], dtype=object), book.vectors[:20])
    found = book.find_near("n3", 5)
    assert [near.node for near in found] == [node for node, _ in own.most_similar("n3", 5)]
    np.testing.assert_allclose(
        [near.similarity for near in found], [c for _, c in own.most_similar("n3", 5)], rtol=1e-5
    )


def test_recommended_are_own_and_visible_nodes_that_are_no_neighbours(book):
    found = {near.node for near in book.recommend("n2", 1000)}
    assert found == set(book.names) - {"n2", "n1", "n3", "unseen@beta"}
    assert "p@beta" not in {near.node for near in book.recommend("n0", 1000)}
    assert "p@beta" in [near.node for near in book.recommend("n2", 9)]


def test_only_own_nodes_can_be_asked_for(book):
    for name in ("p@beta", "unseen@beta", "nobody"):
        with pytest.raises(UnknownNodeError, match="no node here"):
            book.recommend(name)
    with pytest.raises(UnknownNodeError, match="can be seen from here"):
        book.judge_edge("n0", "unseen@beta")


def test_an_edge_inside_a_community_is_expected_and_one_across_is_odd(book):
    inside, across = book.judge_edge("n2", "n3"), book.judge_edge("n1", "q@beta")
    assert inside.is_edge
    assert across.is_edge
    assert inside.oddness < 0.5 < across.oddness
    assert not book.judge_edge("n2", "n5").is_edge
    with pytest.raises(ParameterError, match="twice"):
        book.judge_edge("n1", "n1")


def test_odd_edges_come_first_and_each_once(book):
    found = book.find_odd_edges(1000)
    assert len(found) == 22
    assert {frozenset(edge[:2]) for edge in found[:3]} == {
        frozenset({"n9", "n10"}), frozenset({"n19", "n0"}), frozenset({"n1", "q@beta"}),
    }  # fmt: skip
    assert [edge[2] for edge in found] == sorted(edge[2] for edge in found)


def test_without_edges_everybody_can_be_recommended(book):
    bare = AnswerBook(book.names[:20], book.vectors[:20], 20)
    assert len(bare.recommend("n0", 100)) == 19
    assert bare.find_odd_edges() == []


def test_better_vectors_of_own_nodes_are_used_among_own_nodes(book):
    better = AnswerBook(book.names, book.vectors, 20, book.indptr, book.indices, own_vectors=book.vectors[:20][::-1])
    assert better.find_near("n0", 3) != book.find_near("n0", 3)
    assert better.recommend("n0", 3) == book.recommend("n0", 3)


@pytest.mark.parametrize("count", [0, -1, 10**9])
def test_a_count_out_of_bounds_is_refused(book, count):
    with pytest.raises(ParameterError, match="count"):
        book.find_near("n0", count)


def test_names_are_found_by_their_begin_first(book):
    assert book.find_names("N1", 3) == ["n1", "n10", "n11"]
    assert book.find_names("9", 5) == ["n9", "n19"]
    assert book.find_names("p@", 5) == []
