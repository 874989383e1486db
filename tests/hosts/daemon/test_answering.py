"""What a daemon answers from, and that it holds nothing of nodes that the host is not shown."""

import json

import numpy as np
import pytest
from harness import make_terms

from manela.hosts.daemon.status_server import Answering, make_book
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.host import make_host


@pytest.fixture
def host():
    edges = [Edge("a", ("b", "alpha")), Edge("b", ("c", "alpha")), Edge("a", ("x", "beta")), Edge("c", ("y", "gamma"))]
    made = make_host(make_terms(dimensions=8), Neighbourhood.build("alpha", edges), None, {})
    made.can_be_saved = True
    return made


def test_a_book_has_own_nodes_and_their_neighbours_and_those_not_shown_are_not_found(host):
    book = make_book(host)
    assert list(book.names) == ["a", "b", "c", "x@beta", "y@gamma"]
    np.testing.assert_array_equal(book.vectors[:3], host.vectors[:, 0])
    assert not book.vectors[3:].any()
    assert {near.node for near in book.recommend("a", 10)} == {"c"}
    book.vectors[:] = 7  # a copy
    assert not (host.vectors == 7).any()


def test_nothing_is_answered_until_it_is_turned_on_nor_after_it_was_turned_off(host):
    answering = Answering("alpha")
    answering.look(host)
    assert answering.find("/api/near", {"node": "a"}) is None
    answering.turn(True)
    assert answering.find("/api/near", {"node": "a"}).status == 503
    answering.look(host)
    found = json.loads(answering.find("/api/near", {"node": "a"}).text)
    assert {near["node"] for near in found["near"]} == {"b", "c"}
    answering.turn(False)
    assert answering.find("/api/near", {"node": "a"}) is None


def test_vectors_in_the_middle_of_a_round_are_not_taken(host):
    answering = Answering("alpha")
    answering.turn(True)
    host.can_be_saved = False
    answering.look(host)
    assert answering.find("/api/near", {"node": "a"}).status == 503
