"""What hosts say to each other, as values."""

import dataclasses

import numpy as np
import pytest

from manela.hosts.state.messages import NOTHING, OWN, ROUND, SMOOTH, START, Hello, Step, WalkRequest, no_integers


def hello(**more):
    return Hello("a", "messages", 8, 2, False, False, True, 5, **more)


def test_empty_arrays_are_whole_numbers_and_nobody_shares_them():
    one, two = no_integers(), no_integers()
    assert (one.dtype, one.shape) == (np.int64, (0,))
    assert one is not two
    assert hello().numbers is not hello().numbers


def test_messages_cannot_be_changed_on_their_way():
    with pytest.raises(dataclasses.FrozenInstanceError):
        hello().host = "b"


def test_steps_stand_in_the_order_in_which_hosts_take_them():
    steps = [Step(SMOOTH, 0), Step(ROUND, 1), Step(START, 7), Step(ROUND, 0, 1), Step(ROUND, 0), Step(ROUND, 10)]
    assert sorted(steps) == [
        Step(START, 7), Step(ROUND, 0), Step(ROUND, 0, 1), Step(ROUND, 1), Step(ROUND, 10), Step(SMOOTH, 0)
    ]  # fmt: skip


def test_a_request_is_as_large_as_its_walks_and_random_nodes():
    edges = np.arange(3)
    assert WalkRequest(1, 0, True, 0, edges, edges).size == 3
    assert WalkRequest(1, 0, True, 0, edges, edges, random=4).size == 7
    assert WalkRequest(1, 0, True, 0, no_integers(), no_integers()).size == 0


def test_in_lock_step_random_nodes_are_named_and_their_number_is_not_believed():
    edges = np.arange(3)
    assert WalkRequest(1, 0, True, 0, edges, edges, random=4, numbers=np.arange(5)).size == 8
    assert WalkRequest(1, 0, True, 0, edges, edges, random=4, numbers=no_integers()).size == 3


def test_what_stands_for_no_vector_is_told_from_own_ends_and_from_rows():
    ends = [OWN - edge for edge in range(3)]
    assert NOTHING not in ends
    assert max(*ends, NOTHING) < 0
