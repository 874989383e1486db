"""The arcs that a host uses as peers come and go."""

import numpy as np
import pytest

from manela.hosts.state.arcs import UsedArcs
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.peers import Link

EDGES = [
    Edge("x", ("y", "a"), 2.0), Edge("x", ("p", "b"), 3.0), Edge("y", ("p", "b"), 5.0), Edge("y", ("r", "c"), 7.0),
    Edge("z", None),
]  # fmt: skip
X, Y, Z, P, R = range(5)


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def weighted(request):
    return request.param


def make(weighted=False):
    near = Neighbourhood.build("a", EDGES)
    assert (near.nodes, near.remotes) == (["x", "y", "z"], [("p", "b"), ("r", "c")])
    return near, UsedArcs(near, 3, 5, weighted)


def link_to(near, peer):
    arcs = near.arcs_to(peer)
    return Link(1, arcs, np.unique(near.indices[arcs]))


def ends(near, used):
    return sorted(zip(near.sources[used].tolist(), near.indices[used].tolist(), strict=True))


def test_at_first_only_arcs_between_own_nodes_are_used(weighted):
    near, used = make(weighted)
    assert ends(near, used.used) == [(X, Y), (Y, X)]
    assert not used.is_stale
    assert used.have_all(used.used).tolist() == [False, False, True]


def test_what_own_edges_with_a_node_add_up_to_goes_by_weight_only_where_weights_count():
    _, used = make(weighted=True)
    assert used.known_strengths.tolist() == [2.0, 2.0, 0.0, 8.0, 7.0]
    assert used.largest_weights.tolist() == [2.0, 2.0, 0.0, 5.0, 7.0]
    _, used = make(weighted=False)
    assert used.known_strengths.tolist() == [1.0, 1.0, 0.0, 2.0, 1.0]
    assert used.largest_weights.tolist() == [1.0, 1.0, 0.0, 1.0, 1.0]


def test_an_arc_to_a_peer_is_used_when_it_is_linked_seen_and_believed(weighted):
    near, used = make(weighted)
    links = {"b": link_to(near, "b"), "c": link_to(near, "c")}
    used.see(np.array([P]), np.array([9.0]))
    assert used.is_stale
    assert used.update(links, ())
    assert ends(near, used.used) == [(X, Y), (X, P), (Y, X), (Y, P)]
    assert used.have_all(used.used).tolist() == [True, False, True]
    assert used.have_all(used.find(links)).all()  # once all have been seen
    used.is_stale = True
    used.update(links, {"b"})
    assert ends(near, used.used) == [(X, Y), (Y, X)]
    used.is_stale = True
    used.update({}, ())
    assert ends(near, used.used) == [(X, Y), (Y, X)]


def test_nothing_is_built_anew_where_nothing_changed():
    near, used = make()
    links = {"b": link_to(near, "b")}
    before = used.neighbours
    assert not used.update(links, ())
    used.see(np.array([X, Y]))  # own ones are always seen
    assert not used.update(links, ())
    assert used.neighbours is before
    used.see(np.array([P]), np.array([4.0]))
    assert used.update(links, ())
    used.see(np.array([P]), np.array([4.0]))
    assert not used.update(links, ())
    used.see(np.array([P]), np.array([4.5]))
    assert used.update(links, ())


def test_a_node_that_is_forgotten_must_be_seen_again():
    near, used = make()
    links = {"b": link_to(near, "b")}
    used.see(np.array([P]))
    used.update(links, ())
    used.forget(np.arange(5) == P)
    assert used.update(links, ())
    assert ends(near, used.used) == [(X, Y), (Y, X)]


def test_means_are_over_the_arcs_in_use_and_those_of_peers_go_by_the_strength_that_they_say(weighted):
    near, used = make(weighted)
    used.see(np.array([P]), np.array([16.0]))
    used.update({"b": link_to(near, "b")}, ())
    [scales] = used.neighbours.scales
    own = [1 / 5.0, 1 / 7.0] if weighted else [1 / 2.0, 1 / 2.0]
    np.testing.assert_allclose(scales, [*own, 0.0, 1 / 16.0, 0.0])
    assert used.neighbours.arcs.indptr.tolist() == [0, 2, 4, 4, 4, 4]
    if weighted:
        np.testing.assert_allclose(used.neighbours.strengths[:3], [5.0, 7.0, 0.0])


def test_a_host_without_edges_has_no_arcs(weighted):
    near = Neighbourhood.build("a", [Edge("x", None)])
    used = UsedArcs(near, 1, 1, weighted)
    assert used.used.tolist() == []
    assert used.have_all(used.used).tolist() == [True]
    assert used.neighbours.scales.tolist() == [[0.0]]
