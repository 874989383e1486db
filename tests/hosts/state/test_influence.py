"""How much the nodes of one peer count for a node."""

import numpy as np
import pytest

from manela.hosts.state.arcs import UsedArcs
from manela.hosts.state.influence import Influence
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.peers import Link, Peers


def make(false=20, size=100, honest=4, key=1, victims=("n00",)):
    """A host whose node n00 has edges with 12 own nodes, with honest nodes of b that others know, and with false."""
    edges = [Edge("n00", (f"n{i:02}", "a")) for i in range(1, 13)]
    edges += [Edge("n00", (f"true{i}", "b")) for i in range(honest)]
    edges += [Edge(f"n{j:02}", (f"true{i}", "b")) for i in range(honest) for j in (1 + i, 5 + i, 8)]
    edges += [Edge(victim, (f"false{i:02}", "b")) for i in range(false) for victim in victims]
    near = Neighbourhood.build("a", edges)
    peers = Peers()
    peers.configure({"b": size})
    return near, Influence(near, peers, near.weights, key)


def used_by(near, influence, node="n00"):
    used = influence.limit(np.ones(len(near.indices), bool))
    arcs = [near.name_arc(int(arc)) for arc in np.flatnonzero(used)]
    return [other[0] for own, other in arcs if own == node and other[1] == "b"]


def test_nodes_that_more_users_here_know_come_first_and_false_ones_get_what_is_left():
    used = used_by(*make(false=20, size=6))
    assert {name for name in used if name.startswith("true")} == {f"true{i}" for i in range(4)}
    assert sum(name.startswith("false") for name in used) < 6


@pytest.mark.parametrize("false", [5, 10, 20, 200])
def test_how_many_false_nodes_count_does_not_depend_on_how_many_there_are(false):
    assert len(used_by(*make(false=false, size=4))) == len(used_by(*make(false=5, size=4)))


def test_false_nodes_that_have_the_same_two_users_count_no_less():
    one, two = make(size=20), make(size=20, victims=("n00", "n12"))
    names = [[name for name in used_by(*case) if name.startswith("false")] for case in (one, two)]
    assert len(names[0]) == len(names[1]) < 20


def test_a_larger_peer_counts_for_more():
    counts = [len(used_by(*make(size=size))) for size in (0, 5, 20, 10_000)]
    assert counts == sorted(counts)
    assert counts[-1] == 24


def test_one_neighbour_counts_however_small_the_peer_is():
    near, influence = make(false=3, honest=0, size=0)
    assert len(used_by(near, influence)) == 1


def test_a_node_without_other_neighbours_uses_all():
    near = Neighbourhood.build("a", [Edge("x", (f"p{i}", "b")) for i in range(9)])
    peers = Peers()
    peers.configure({"b": 1})
    assert Influence(near, peers, near.weights, 1).limit(np.ones(9, bool)).all()


def test_edges_that_all_are_well_known_are_all_used():
    near, influence = make(false=0, size=40)
    assert influence.limit(np.ones(len(near.indices), bool)).all()


def test_the_same_are_chosen_each_time_and_the_key_decides_which():
    one, two, other = (used_by(*make(size=4, key=key)) for key in (1, 1, 2))
    assert one == two
    assert one != other


def test_heavy_edges_are_counted_by_weight():
    near, _ = make(false=20, size=100)
    weights = near.weights.copy()
    false = np.array([near.name_arc(arc)[1][0].startswith("false") for arc in range(len(weights))])
    weights[false] = 100.0
    peers = Peers()
    peers.configure({"b": 100})
    heavy = Influence(near, peers, weights, 1)
    assert sum(name.startswith("false") for name in used_by(near, heavy)) <= 1 < len(used_by(*make(size=100)))


def test_long_rows_of_several_nodes_that_only_one_user_knows_are_shortened():
    near, influence = make(false=5, honest=1)
    rows = np.arange(len(near.nodes), len(near.nodes) + len(near.remotes))
    names = [name for name, _ in near.remotes]
    vectors = np.full((len(rows), 1, 1, 4), 3.0, np.float32)
    lengths = np.linalg.norm(influence.shorten(rows, vectors, np.array([[2.0]])), axis=-1)[:, 0, 0]
    for name, length in zip(names, lengths.tolist(), strict=True):
        assert length <= 2.0 if name.startswith("false") else length == pytest.approx(6.0)


def test_nodes_are_whole_when_all_arcs_that_are_ever_used_are():
    near, influence = make(size=4)
    arcs = UsedArcs(near, len(near.nodes), len(near.nodes) + len(near.remotes), False, influence)
    arcs.see(np.arange(len(near.nodes), arcs.known))
    linked = near.arcs_to("b")
    arcs.update({"b": Link(1, linked, np.unique(near.indices[linked]))}, ())
    assert not arcs.used.all()
    assert arcs.have_all(arcs.used).all()
    assert not arcs.have_all(arcs.find({})).all()
