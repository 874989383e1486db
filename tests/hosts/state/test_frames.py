"""Frames: hosts that learned apart come to one frame, in whatever order they meet."""

from dataclasses import replace

import numpy as np
import pytest
from harness import carry, gather, make_terms, split_over

from manela import Graph
from manela.formats.datasets import planted_partition
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.driver import Driver
from manela.hosts.state.frames import Frames, find_line
from manela.hosts.state.messages import BY_SWEEPS, NO_FRAME, Frame
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

    def __init__(self, network, apart, **terms):
        """`apart` are the groups of hosts that cannot reach each other at first."""
        graph, self.communities = network
        terms = {**TERMS, **terms}
        hosts, self.numbers = split_over(graph, sum(map(len, apart)), make_terms(**terms))
        hosts = {  # each has a secret of its own
            name: make_host(make_terms(**terms, random_state=seed), host.neighbourhood)
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
        self.ask_again()
        going = [host for host in hosts.values() if host.done and host.should_go_on]
        for host in going:
            host.reopen()
            self.driver.restart(host)
        return going

    def ask_again(self):
        """Hosts that are done ask their peers, as they do every few seconds."""
        hosts = self.driver.hosts
        for name, host in hosts.items():
            for peer, request in host.refresh().items():
                if (name, peer) in self.driver.broken:
                    continue
                reply = carry(host, hosts[peer], request, hosts[peer].answer(name, request))
                host.receive(peer, request, reply)

    def restart(self):
        """Have all hosts start again, together."""
        for host in self.driver.hosts.values():
            host.frames.hear(host.frames.now.generation + 1)
            host.reopen()
            self.driver.restart(host)
        self.driver.run()

    def find_cosines(self, before):
        """The mean cosine of the nodes of each host with what they were before."""
        after = self.vectors
        norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        cosines = (before * after).sum(axis=1) / norms
        return {name: cosines[self.find_rows(name)].mean() for name in self.driver.hosts}

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
    assert world.frames[0].number == 2
    assert world.across > 0.97


@pytest.mark.parametrize(
    ("nodes", "start", "dimensions"),
    [(400, "spectral", 16), (400, "spectral", 128), (400, "neighbours", 16), (100, "spectral", 16)],
)
def test_a_new_start_leaves_vectors_where_they_were(nodes, start, dimensions):
    """What users have exported does not jump. Hosts of 25 nodes start by means."""
    network = planted_partition(nodes, 8 if nodes > 100 else 4, inside=8, outside=2, seed=3)
    world = World(network, [["h0", "h1", "h2", "h3"]], start=start, dimensions=dimensions)
    before, frame = world.vectors, world.frames[0]
    world.restart()
    assert len(set(world.frames)) == 1
    assert world.frames[0].number == 2
    assert find_line(world.frames[0]) == find_line(frame)
    assert min(world.find_cosines(before).values()) > 0.9
    assert world.across > 0.97


@pytest.mark.parametrize("dimensions", [16, 128])
def test_vectors_of_many_stay_where_they_were_when_few_join_them(network, dimensions):
    """A quarter of all nodes is new to the three hosts, whose own nodes had no whole neighbourhood before."""
    world = World(network, [["h0", "h1", "h2"], ["h3"]], dimensions=dimensions)
    before = world.vectors
    world.meet()
    assert world.frames[0].number == 2
    cosines = world.find_cosines(before)
    assert min(cosines[name] for name in ("h0", "h1", "h2")) > 0.9
    assert world.across > 0.97


@pytest.mark.parametrize("dimensions", [16, 128])
def test_a_host_that_meets_many_is_turned_into_their_frame_at_once(network, dimensions):
    """Before a new start begins, by its edges with them alone."""
    world = World(network, [["h0", "h1", "h2"], ["h3"]], dimensions=dimensions)
    before, host = world.vectors, world.driver.hosts["h3"]
    world.driver.broken = {}
    for name in ("h0", "h1", "h2"):
        world.driver.meet(name, "h3")
        world.driver.meet("h3", name)
    world.ask_again()
    for other in world.driver.hosts.values():
        other.reopen()
    assert host.smoothed_frame == world.driver.hosts["h0"].smoothed_frame
    after, rows, others = world.vectors, world.find_rows("h3"), world.find_rows("h0", "h1", "h2")
    np.testing.assert_array_equal(after[others], before[others])
    np.testing.assert_allclose(after[rows] @ after[rows].T, before[rows] @ before[rows].T, atol=1e-3)
    assert world.across > 0.95


def test_a_peer_without_much_in_common_turns_nobody(network):
    world = World(network, [["h0", "h1", "h2"], ["h3"]])
    host = world.driver.hosts["h3"]
    before = host.smoothed.copy()
    world.driver.broken = {}
    for name in ("h0", "h1", "h2"):
        world.driver.hosts[name].tables[0][:] = np.random.default_rng(0).normal(
            size=world.driver.hosts[name].tables[0].shape
        )
        world.driver.hosts[name].publisher.show()
        world.driver.meet("h3", name)
    world.ask_again()
    host.reopen()
    np.testing.assert_array_equal(host.smoothed, before)
    assert host.smoothed_frame != world.driver.hosts["h0"].smoothed_frame


def test_of_hosts_that_meet_the_many_stay_and_the_few_turn():
    network = planted_partition(2000, 20, inside=8, outside=2, seed=3)
    world = World(network, [["h0", "h1", "h2"], ["h3"]], dimensions=32)
    before, lines = world.vectors, list(map(find_line, world.frames))
    world.meet()
    cosines = world.find_cosines(before)
    assert find_line(world.frames[0]) == lines[0] != lines[3]
    assert min(cosines[name] for name in ("h0", "h1", "h2")) > 0.8
    assert cosines["h3"] < 0.5


def test_an_operator_who_starts_anew_keeps_nothing_of_bad_vectors(network):
    """Each host alone, so that no peer keeps the old ones."""
    world = World(network, [["h0"], ["h1"], ["h2"], ["h3"]])
    host, before, line = world.driver.hosts["h0"], world.vectors, world.frames[0]
    host.view[:], host.tables[0][:], host.smoothed[:] = host.view[0], 1.0, 1.0
    host.start_anew()
    world.driver.restart(host)
    world.driver.run()
    assert host.frames.line != find_line(line)
    assert world.find_cosines(before)["h0"] > 0.97


@pytest.mark.parametrize("apart", [[["h0"], ["h1"], ["h2"], ["h3"]], [["h0", "h1", "h2"], ["h3"]]], ids=str)
def test_small_hosts_that_learned_apart_come_to_one_frame_without_a_view(apart):
    world = World(planted_partition(100, 4, inside=8, outside=2, seed=3), apart)
    assert all(host.view is None for host in world.driver.hosts.values())
    world.meet()
    assert len(set(world.frames)) == 1
    assert world.frames[0].generation < BY_SWEEPS
    assert world.across > 0.97


def test_small_hosts_get_a_view_with_their_first_large_peer():
    """h0 to h2 have 20 nodes each, and h3 has 240."""
    graph, communities = planted_partition(300, 4, inside=8, outside=2, seed=3)
    parts = np.random.default_rng(0).permutation(np.minimum(np.arange(300) // 20, 3))
    terms = make_terms(**TERMS)
    hosts, numbers = split_over(graph, [f"h{part}" for part in parts], terms)
    world = World.__new__(World)
    world.communities, world.numbers = communities, numbers
    world.driver = Driver(hosts, carry=carry, finish=10)
    world.driver.away.add("h3")
    world.driver.run()
    assert all(hosts[name].view is None for name in ("h0", "h1", "h2"))
    world.driver.away.clear()
    world.driver.run()
    world.meet()
    assert len(set(world.frames)) == 1
    assert world.frames[0].generation > BY_SWEEPS
    assert all(host.view.any(axis=1).all() for host in hosts.values())
    assert world.across > 0.97


def test_a_small_host_is_placed_in_the_view_that_its_small_peers_have():
    """h2 has edges with h1 only, which has 24 nodes and sweeps with h0."""
    graph, communities = planted_partition(300, 4, inside=10, outside=1, seed=3)
    parts = np.array(["h0"] * 300, object)
    random = np.random.default_rng(0)
    inner = random.permutation(300)[:24]
    parts[inner] = "h1"
    near = np.unique(graph.to_scipy()[inner].indices)
    parts[random.permutation(near[parts[near] == "h0"])[:24]] = "h2"
    sources, targets = graph.to_scipy().nonzero()
    kept = ~((parts[sources] == "h2") & (parts[targets] == "h0") | (parts[sources] == "h0") & (parts[targets] == "h2"))
    graph = Graph.from_edges(sources[kept], targets[kept], nodes=range(300), duplicates="first")
    hosts, numbers = split_over(graph, parts.tolist(), make_terms(**TERMS))
    world = World.__new__(World)
    world.communities, world.numbers = communities, numbers
    world.driver = Driver(hosts, carry=carry, finish=10)
    world.driver.run()
    world.meet()
    assert len(set(world.frames)) == 1
    assert hosts["h2"].view.any(axis=1).sum() > 12
    joined = np.array(sorted(numbers[node, "h2"] for node in hosts["h2"].neighbourhood.nodes))
    vectors = world.vectors / np.linalg.norm(world.vectors, axis=1, keepdims=True)
    here = np.array(sorted(numbers[node, "h1"] for node in hosts["h1"].neighbourhood.nodes))
    cosines = vectors[joined] @ vectors[here].T
    same = communities[joined][:, None] == communities[here]
    assert cosines[same].mean() > cosines[~same].mean() + 0.3


def test_hosts_of_one_frame_do_not_start_again(network):
    world = World(network, [["h0", "h1", "h2", "h3"]])
    before = world.vectors
    assert world.meet() == 0
    assert world.frames[0].number == 1
    np.testing.assert_array_equal(world.vectors, before)


def test_a_host_that_comes_later_takes_on_the_frame_of_the_others(network):
    world = World(network, [["h0", "h1", "h2"], ["h3"]])
    fresh = make_host(make_terms(**TERMS), world.driver.hosts["h3"].neighbourhood)
    world.driver.restart(fresh)
    world.driver.broken = {}
    world.driver.run()
    assert len(set(world.frames)) == 1
    assert world.frames[0].number == 1
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
    one.begin(by_sweeps=True)
    other.begin(by_sweeps=True)
    assert one.now != other.now
    ids = one.now, other.now
    assert one.note_in_start(Peer("b"), ids[1], False)
    assert other.note_in_start(Peer("a"), ids[0], False)
    assert one.now == other.now == min(ids)
    assert one.note_in_start(Peer("c"), Frame(one.now.generation, 0), False, agrees=False)
    assert one.now == min(ids)


def test_vectors_of_another_frame_are_not_used_and_a_newer_start_is_wanted():
    frames, peer = Frames(1), Peer("b")
    frames.begin(by_sweeps=False)
    assert frames.note_in_rounds(peer, frames.now)
    assert not frames.is_outdated
    assert not frames.note_in_rounds(peer, Frame(1, frames.now.id + 1))
    assert frames.wanted == 2
    frames.begin(by_sweeps=False)
    assert frames.now.generation == 2
    assert not frames.is_outdated
    assert not frames.note_in_rounds(peer, Frame(1, 5))  # it is for the peer to start anew
    assert not frames.is_outdated


def test_a_liar_cannot_use_up_the_generations():
    frames = Frames(1)
    frames.begin(by_sweeps=False)
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
    newer = old.frames.now.generation + 1
    old.frames.hear(newer)
    assert old.renew(old.neighbourhood).frames.wanted == newer
    old.start_anew()
    new = old.renew(old.neighbourhood)
    assert new.frames.wanted == newer
    np.testing.assert_array_equal(new.save().smoothed, exported)
    world.driver.restart(new)
    world.driver.run()
    world.meet()
    assert len(set(world.frames)) == 1
    assert world.frames[0].number >= 2


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
