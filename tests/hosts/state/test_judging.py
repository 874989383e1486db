"""Whether peers are believed."""

import numpy as np
import pytest

from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.peers import Link, Peers
from manela.hosts.state.trust import FEWEST_NODES, Bounded, Judge, Trust

OWN = 40


class World:
    """A host whose nodes lie on a ring, each with a node of a peer that lies where it does, and a judge."""

    def __init__(self, trust=None, arcs=OWN, **options):
        edges = [Edge(f"n{i:02}", (f"n{(i + 1) % OWN:02}", "a")) for i in range(OWN)]
        edges += [Edge(f"n{i:02}", (f"p{i:02}", "b")) for i in range(arcs)]
        self.near = Neighbourhood.build("a", edges)
        angles = 2 * np.pi * np.arange(OWN) / OWN
        ring = np.stack((np.cos(angles), np.sin(angles)), axis=1).astype(np.float32)
        self.vectors = np.concatenate((ring, ring[:arcs]))
        self.seen = np.ones(len(self.vectors), bool)
        self.judge = Judge(self.near, trust or Bounded(2.0), key=1, **options)
        arcs_to = self.near.arcs_to("b")
        self.peers = Peers()
        self.peers["b"].link = Link(1, arcs_to, np.unique(self.near.indices[arcs_to]))

    def ask(self, number=20):
        return self.judge.judge(self.peers, self.seen, lambda rows: self.vectors[rows], number)


def test_a_peer_whose_nodes_are_like_ours_is_believed():
    world = World()
    assert world.ask() == (False, [])
    assert world.peers["b"].distrust == 0


def test_a_peer_whose_nodes_are_unlike_ours_is_not_and_is_believed_again_when_they_are():
    world = World()
    world.vectors[OWN:] *= -1
    assert world.ask() == (True, [])
    assert world.peers["b"].distrust == 1
    assert world.ask() == (False, [])  # nothing new
    world.vectors[OWN:] *= -1
    assert world.ask() == (True, [])
    assert world.peers["b"].distrust == 0


def test_an_alarm_is_raised_once_when_it_is_certain():
    world = World()
    world.vectors[OWN:] *= -1
    alarms = [list(world.ask()[1]) for _ in range(8)]
    assert alarms == [[], [], [], [], ["b"], [], [], []]
    assert world.peers["b"].distrust == 8


def test_many_vectors_that_are_nearly_the_same_are_not_believed_however_like_ours_they_are():
    assert OWN >= FEWEST_NODES
    world = World()
    world.vectors += np.float32(0.01)
    world.vectors[OWN:] = np.array([3.0, 4.0], np.float32) + 0.1 * world.vectors[OWN:]
    assert world.ask() == (True, [])
    few = World(arcs=FEWEST_NODES - 1)
    few.vectors[OWN:] = np.array([3.0, 4.0], np.float32) + 0.1 * few.vectors[OWN:]
    assert few.ask() == (False, [])


def test_what_both_sides_have_in_common_does_not_make_them_alike():
    world = World()
    world.vectors[OWN:] *= -1
    world.vectors += np.float32(1.5)  # with which the cosine of two opposite ones is 0.6
    world.ask()
    assert world.peers["b"].distrust == 1


@pytest.mark.parametrize("seen", [0, 7])
def test_a_peer_of_which_too_little_is_seen_is_not_judged(seen):
    world = World()
    world.vectors[OWN:] *= -1
    world.seen[OWN + seen :] = False
    assert world.ask() == (False, [])
    assert world.peers["b"].distrust == 0


def test_one_that_is_not_linked_or_has_no_edges_here_is_not_judged():
    world = World()
    world.vectors[OWN:] *= -1
    world.peers["unknown"].link, world.peers["b"].link = world.peers["b"].link, None
    assert world.ask() == (False, [])


def test_in_the_first_rounds_it_matters_how_many_vectors_were_too_long():
    world = World()
    world.vectors[OWN:] *= -1
    assert world.ask(number=0) == (False, [])
    world.peers["b"].clipped = 0.9
    assert world.ask(number=0) == (True, [])


def test_a_host_without_edges_of_its_own_believes_everybody():
    near = Neighbourhood.build("a", [Edge(f"n{i}", (f"p{i}", "b")) for i in range(10)])
    judge = Judge(near, Bounded(2.0), key=1)
    arcs = near.arcs_to("b")
    peers = Peers()
    peers["b"].link = Link(1, arcs, near.indices[arcs])
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    vectors[10:] = -vectors[:10]
    assert judge.judge(peers, np.ones(20, bool), lambda rows: vectors[rows], 20) == (False, [])


def test_exact_trust_believes_what_is_unlike_but_not_what_is_constant():
    world = World(Trust())
    world.vectors[OWN:] *= -1
    assert world.ask() == (False, [])
    world.vectors[OWN:] = 1.0
    assert world.ask() == (True, [])


def test_a_peer_is_judged_by_a_sample_that_is_the_same_for_the_same_key():
    one, two = World(most=10), World(most=10)
    assert len(one.judge.samples["b"]) == 10
    np.testing.assert_array_equal(one.judge.samples["b"], two.judge.samples["b"])
    assert len(set(one.judge.samples["b"].tolist())) == 10
