"""Frames: hosts that learned apart come to one frame, in whatever order they meet."""

from dataclasses import replace

import numpy as np
import pytest
from harness import carry, gather, make_terms, split_over

from manela.formats.datasets import planted_partition
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.driver import Driver
from manela.hosts.state.frames import Frames
from manela.hosts.state.messages import NO_FRAME, Frame
from manela.hosts.state.peers import Peer
from manela.hosts.walks.host import make_host

pytestmark = pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")

TERMS = {"start": "spectral", "dimensions": 16, "pairs": None, "rounds": None, "ratios": (0.5, 0.5)}


@pytest.fixture(scope="module")
def network():
    """Eight communities of fifty nodes."""
    return planted_partition(400, 8, inside=8, outside=2, seed=3)


class World:
    """Hosts that do what daemons would: they go on when there is a reason to, until nothing changes."""

    def __init__(self, network, apart):
        """`apart` are the groups of hosts that cannot reach each other at first."""
        graph, self.communities = network
        hosts, self.numbers = split_over(graph, 4, make_terms(**TERMS))
        hosts = {  # each has a secret of its own
            name: make_host(make_terms(**TERMS, random_state=seed), host.neighbourhood)
            for seed, (name, host) in enumerate(hosts.items())
        }
        self.driver = Driver(hosts, carry=carry, finish=10)
        group = {name: number for number, names in enumerate(apart) for name in names}
        self.driver.broken = {
            (one, other): "cannot be reached" for one in hosts for other in hosts if group[one] != group[other]
        }
        self.driver.run()

    def meet(self, apart=()):
        """Let everybody reach everybody but those still apart, and settle; returns how often hosts had to go on."""
        self.driver.broken = dict(apart)
        hosts = self.driver.hosts
        for pair in apart:
            hosts[pair[0]].forget(pair[1])
        for one in hosts:
            for other in hosts:
                if one != other and (one, other) not in self.driver.broken:
                    self.driver.meet(one, other)
        for times in range(9):
            if not self._go_on():
                return times
            self.driver.run()
        raise AssertionError("hosts never settle")

    def _go_on(self):
        hosts = self.driver.hosts
        for name, host in hosts.items():
            for peer, request in host.refresh().items():
                if (name, peer) in self.driver.broken:
                    continue
                reply = carry(host, hosts[peer], request, hosts[peer].answer(name, request))
                host.receive(peer, request, reply)
        going = [host for host in hosts.values() if host.done and host.should_go_on]
        for host in going:
            host.reopen()
            self.driver.restart(host)
        return going

    @property
    def frames(self):
        return [host.frames.now for host in self.driver.hosts.values()]

    @property
    def vectors(self):
        return gather(self.driver.hosts, self.numbers)[:, 0]

    def find_rows(self, *names):
        return np.array(sorted(row for (_, home), row in self.numbers.items() if home in names))

    @property
    def across(self):
        """Of the ten nearest at other hosts, the share that is of the own community."""
        units = self.vectors / np.linalg.norm(self.vectors, axis=1, keepdims=True)
        homes = np.empty(len(units), object)
        for (_, home), row in self.numbers.items():
            homes[row] = home
        cosines = np.where(homes[:, None] == homes, -2.0, units @ units.T)
        nearest = np.argsort(-cosines, axis=1)[:, :10]
        return float((self.communities[nearest] == self.communities[:, None]).mean())


@pytest.mark.parametrize(
    "apart",
    [
        [["h0"], ["h1"], ["h2"], ["h3"]],
        [["h0", "h1", "h2"], ["h3"]],
        [["h0", "h1"], ["h2", "h3"]],
    ],
    ids=["each alone", "three and one", "two and two"],
)
def test_hosts_that_learned_apart_come_to_one_frame(network, apart):
    world = World(network, apart)
    assert len(set(world.frames)) == len(apart)
    assert world.across < 0.97  # hosts of one group are alike
    world.meet()
    assert len(set(world.frames)) == 1
    assert world.frames[0].generation == 2
    assert world.across > 0.97


def test_hosts_of_one_frame_do_not_start_again(network):
    world = World(network, [["h0", "h1", "h2", "h3"]])
    before = world.vectors
    assert world.meet() == 0
    assert world.frames[0].generation == 1
    np.testing.assert_array_equal(world.vectors, before)


def test_a_host_that_comes_later_takes_on_the_frame_of_the_others(network):
    world = World(network, [["h0", "h1", "h2"], ["h3"]])
    fresh = make_host(make_terms(**TERMS), world.driver.hosts["h3"].neighbourhood)
    world.driver.restart(fresh)
    world.driver.broken = {}
    world.driver.run()
    assert len(set(world.frames)) == 1
    assert world.frames[0].generation == 1
    assert world.across > 0.97


def test_a_frame_is_saved_with_the_vectors(network, tmp_path):
    world = World(network, [["h0", "h1", "h2", "h3"]])
    saved, file = world.driver.hosts["h1"].save(), VectorsFile(tmp_path)
    assert saved.frame == saved.smoothed_frame != NO_FRAME
    file.save(saved)
    loaded = file.load()
    assert (loaded.frame, loaded.smoothed_frame) == (saved.frame, saved.smoothed_frame)
    back = make_host(world.driver.hosts["h1"].terms, world.driver.hosts["h1"].neighbourhood)
    back.restore(loaded)
    assert back.frames.now == saved.frame


# the state of one host


def test_hosts_in_one_start_agree_on_the_least_id_while_it_is_young():
    one, other = Frames(1), Frames(2)
    one.begin()
    other.begin()
    assert one.now != other.now
    ids = one.now, other.now
    assert one.note_in_start(Peer("b"), ids[1], False)
    assert other.note_in_start(Peer("a"), ids[0], False)
    assert one.now == other.now == min(ids)
    assert one.note_in_start(Peer("c"), Frame(1, 0), False, agrees=False)
    assert one.now == min(ids)


def test_vectors_of_another_frame_are_not_used_and_a_newer_start_is_wanted():
    frames, peer = Frames(1), Peer("b")
    frames.begin()
    assert frames.note_in_rounds(peer, frames.now)
    assert not frames.is_outdated
    assert not frames.note_in_rounds(peer, Frame(1, frames.now.id + 1))
    assert frames.wanted == 2
    frames.begin()
    assert frames.now.generation == 2
    assert not frames.is_outdated
    assert not frames.note_in_rounds(peer, Frame(1, 5))  # it is for the peer to start anew
    assert not frames.is_outdated


def test_a_liar_cannot_use_up_the_generations():
    frames = Frames(1)
    frames.begin()
    frames.note_in_rounds(Peer("liar"), Frame(2**62, 1))
    assert not frames.is_outdated
    frames.note_in_rounds(Peer("liar"), Frame(2**40, 1))
    assert frames.is_outdated


def test_a_liar_does_not_keep_a_host_from_its_rounds(network):
    """However often it says to be in a newer start, while the host starts and afterwards."""
    world = World(network, [["h0", "h1", "h2", "h3"]])
    host = world.driver.hosts["h0"]
    host.start_anew()
    world.driver.restart(host)

    def lie(asker, answerer, request, reply):
        if answerer.name == "h3":
            reply = replace(reply, frame=Frame(asker.frames.now.generation + 1, 7))
        return carry(asker, answerer, request, reply)

    world.driver._carry = lie
    world.driver.run()
    assert host.done
    assert host.view is not None
    assert np.isfinite(host.save().smoothed).all()


def test_a_change_of_edges_in_a_new_start_loses_nothing(network):
    world = World(network, [["h0", "h1", "h2", "h3"]])
    old = world.driver.hosts["h0"]
    exported = old.save().smoothed
    old.frames.hear(2)
    assert old.renew(old.neighbourhood).frames.wanted == 2
    old.start_anew()
    new = old.renew(old.neighbourhood)
    assert new.frames.wanted == 2
    np.testing.assert_array_equal(new.save().smoothed, exported)
    world.driver.restart(new)
    world.driver.run()
    world.meet()
    assert len(set(world.frames)) == 1
    assert world.frames[0].generation >= 2


def test_vectors_of_an_old_frame_are_not_kept_for_better_ones(network):
    """They may have been smoothed with more neighbours."""
    world = World(network, [["h0", "h1", "h2", "h3"]])
    host = world.driver.hosts["h0"]
    saved = host.save()
    back = make_host(host.terms, host.neighbourhood)
    back.restore(replace(saved, frame=Frame(2, 5), whole=np.ones(host.own, bool)))
    world.driver.restart(back)
    world.driver.away.update({"h1", "h2", "h3"})
    world.driver.run()
    assert back.smoothed_frame == Frame(2, 5)


def test_daemons_of_a_chain_come_to_one_frame(network):
    """Of which not all are peers of all."""
    world = World(network, [["h0", "h1"], ["h2", "h3"]])
    chain = {("h0", "h1"), ("h1", "h2"), ("h2", "h3")}
    apart = {
        (one, other): "cannot be reached"
        for one in world.driver.hosts
        for other in world.driver.hosts
        if one != other and (one, other) not in chain and (other, one) not in chain
    }
    world.meet(apart)
    assert len(set(world.frames)) == 1
    assert world.across > 0.8
