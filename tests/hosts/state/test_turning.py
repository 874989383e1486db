"""Turning: one orthogonal matrix, found from edges, or none; and what a new start keeps of the old vectors."""

import numpy as np
import pytest

from manela.hosts.state.messages import NO_FRAME, Frame
from manela.hosts.state.peers import Peer, Peers
from manela.hosts.state.turning import Apart, OldVectors, find_turn, is_new_apart


def draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_a_turn_is_found_from_edges_whose_ends_are_alike():
    here, turn = draw(0, 500, 8), np.linalg.qr(draw(1, 8, 8))[0]
    there = (here + 0.3 * draw(2, 500, 8)) @ turn
    found = find_turn(here, there, 0.9)
    np.testing.assert_allclose(found, turn, atol=0.1)
    np.testing.assert_allclose(found @ found.T, np.eye(8), atol=1e-5)


@pytest.mark.parametrize("edges", [0, 1, 12, 500])
def test_there_is_no_turn_where_ends_have_nothing_in_common(edges):
    assert find_turn(draw(0, edges, 8), draw(1, edges, 8), 0.9) is None


def test_there_is_no_turn_for_a_host_whose_own_neighbours_are_not_alike():
    here = draw(0, 500, 8)
    assert find_turn(here, here, 0.0) is None


def test_vectors_in_another_frame_are_directions_and_impossible_ones_are_none():
    rows = np.array([[3.0, 4.0], [np.inf, 1.0], [np.nan, 0.0], [1e30, 1.0]], np.float32)
    found = Apart.of(Frame(2, 5), np.arange(4), rows)
    np.testing.assert_allclose(found.vectors, [[0.6, 0.8], [0, 0], [0, 0], [0, 0]])


def test_vectors_of_another_frame_are_asked_for_once():
    peer, frame = Peer("b"), Frame(2, 5)
    assert not is_new_apart(peer, frame)
    peer.frame = frame
    assert not is_new_apart(peer, frame)
    peer.frame = Frame(2, 6)
    assert is_new_apart(peer, frame)
    peer.apart = Apart.of(peer.frame, np.arange(1), draw(0, 1, 2))
    assert not is_new_apart(peer, frame)


def test_only_vectors_of_nodes_with_the_same_edges_keep_their_direction():
    old, new = draw(0, 4, 6), draw(1, 3, 6)
    kept = OldVectors(
        ["a", "b", "c", "d"], old, NO_FRAME, np.array([1, 2, 3, 4], np.uint64), old, np.array([True, True, False, True])
    )
    found = new.copy()
    kept.steady(found, {"a": 0, "b": 1, "c": 2}, np.array([1, 9, 3], np.uint64))
    np.testing.assert_array_equal(found[1:], new[1:])  # other edges; learned from few of its neighbours
    units = [one / np.linalg.norm(one) for one in (new[0], old[0])]
    wanted = units[0] + 3.0 * units[1]
    np.testing.assert_allclose(found[0] / np.linalg.norm(found[0]), wanted / np.linalg.norm(wanted), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found[0]), np.linalg.norm(new[0]), rtol=1e-5)


def test_a_turn_leaves_products_as_they_were():
    turn, rows = np.linalg.qr(draw(1, 6, 6))[0], draw(0, 4, 6)
    old = OldVectors(list("abcd"), rows, NO_FRAME, np.zeros(4, np.uint64), 2 * rows, np.ones(4, bool))
    turned = old.turn(turn, Frame(2, 5))
    assert turned.frame == Frame(2, 5)
    np.testing.assert_allclose(turned.rows @ turned.rows.T, rows @ rows.T, atol=1e-4)
    np.testing.assert_allclose(turned.smoothed, 2 * turned.rows, atol=1e-5)


def test_the_peer_that_was_believed_least_spoilt_the_start():
    peers = Peers()
    assert peers.find_spoiler() is None
    for name, started, doubts in (("a", True, 1), ("b", True, 3), ("c", True, 2), ("d", False, 9)):
        peers[name].started, peers[name].doubts = started, doubts
    assert peers.find_spoiler().name == "b"
    del peers["b"]
    assert peers.find_spoiler().name == "c"
    peers["c"].started = False
    assert peers.find_spoiler() is None
