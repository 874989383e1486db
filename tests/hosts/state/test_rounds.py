"""Hosts that learn by messages: what they show, what they take, and what they do without."""

from dataclasses import replace

import numpy as np
import pytest
from harness import carry, gather, learn, make_terms, meet_all, split_over

from manela.analysis.classification import measure_separation
from manela.errors import BadVectorError, MalformedError
from manela.formats.datasets import draw_random, planted_partition, stochastic_block_model
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.driver import Driver
from manela.hosts.state.instructions import Ask, Commit, Compute
from manela.hosts.state.messages import ROUND, SMOOTH, START, Pull, Shown, Step
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.noise import find_longest
from manela.hosts.state.trust import pool_moments
from manela.hosts.walks.host import make_host
from manela.kernels.moments import Moments, measure


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)


def pair(**options):
    """Two hosts of a block model that have met and shown themselves once; the second is h1."""
    graph, _ = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    hosts, _ = split_over(graph, 2, make_terms(start="random", every=1, means=1, **options))
    meet_all(hosts)
    for host in hosts.values():
        show(host)
    return hosts["h0"], hosts["h1"]


def show(host):
    """Have a host show what it has."""
    next(host.script())
    host.compute()


def exchange(host, other, **change):
    """Have a host take what another shows, with some of it changed; returns what is refused."""
    request = host.requests()[other.name]
    reply = other.answer(host.name, request)
    reply = replace(reply, rows=reply.rows.astype(np.float32), **change)
    return host.receive(other.name, request, reply)


def test_a_vector_is_clipped_to_a_multiple_of_the_median_of_own_ones():
    host, other = pair(clip=3.0)
    request = host.requests()["h1"]
    reply = other.answer("h0", request)
    rows = np.random.default_rng(0).normal(size=reply.rows.shape).astype(np.float32) * 500
    assert host.receive("h1", request, replace(reply, rows=rows)) == []
    seen = host._rounds.shown[0].view(np.float16).astype(np.float32)
    own = np.median(np.linalg.norm(host.vectors[:, 0], axis=1))
    lengths = np.linalg.norm(seen[host.own : host.known], axis=1)
    assert lengths.max() <= 3.01 * own
    assert lengths.min() >= 2.99 * own
    assert host.peers["h1"].alarms["outliers"] == 1


def test_bad_vectors_are_left_out_and_their_sender_blamed():
    host, other = pair()
    request = host.requests()["h1"]
    reply = other.answer("h0", request)
    rows = reply.rows.astype(np.float32)
    rows[0, 0, 0, 0], rows[3] = np.nan, np.inf
    [refusal] = host.receive("h1", request, replace(reply, rows=rows))
    assert isinstance(refusal, BadVectorError)
    assert refusal.times == 2
    neighbours = host.peers.links["h1"].neighbours
    assert not host.arcs.seen[neighbours[[0, 3]]].any()
    assert host.arcs.seen[np.delete(neighbours, [0, 3])].all()


@pytest.mark.parametrize("numbers", [[0, 0, 1], [1, 0, 2], [0, 1, 10**6], [-1, 0, 1]])
def test_neighbours_must_be_numbered_in_order_each_once(numbers):
    host, other = pair()
    request = host.requests()["h1"]
    reply = other.answer("h0", request)
    crooked = replace(
        reply, changed=np.array(numbers), rows=reply.rows[:3].astype(np.float32), strengths=reply.strengths[:3]
    )
    with pytest.raises(MalformedError):
        host.receive("h1", request, crooked)


@pytest.mark.parametrize("claim", [1e112, np.inf, np.nan, -5.0, 0.0, 1.0001])
def test_a_lie_about_strength_makes_no_mean_grow(claim):
    host, other = pair()
    exchange(host, other, strengths=np.full(len(other.answer("h0", host.requests()["h1"]).strengths), claim))
    host.update_neighbours()
    near = host.neighbourhood
    away = near.indices >= host.own
    shares = host.arcs.neighbours.scales[0][near.indices[away]]  # of a mean that is the asker's own
    assert np.isfinite(shares).all()
    assert ((shares <= 0.75) | (shares == 1.0)).all()


def pool(host):
    """The moments that a host's negatives are drawn with."""
    return pool_moments(
        host.trust, host.publisher.moments, host.peers, host.find_sizes_of_peers(), host.tables[0].shape[1]
    )


def test_the_share_of_a_peer_in_the_moments_is_what_the_operator_wrote_down():
    host, other = pair()
    exchange(host, other)
    true = pool(host)[0]
    lies = [Moments(2**31 - 1, of.total * 10**6, of.products * 10**6) for of in other.publisher.moments]
    exchange(host, other, moments=lies)
    known = len(host.peers.links["h1"].neighbours)
    assert pool(host)[0].size == host.own + known == true.size
    host.peers.configure({"h1": 5})
    assert pool(host)[0].size == host.own + 5


def test_moments_of_vectors_that_are_too_long_are_shrunk():
    host, other = pair()
    exchange(host, other, moments=[measure(np.full((75, 8), 7.9))])
    [pooled] = pool(host)
    own = host.publisher.moments[0]
    mean_square = np.trace(pooled.products) / pooled.size
    assert mean_square <= 4.01 * np.trace(own.products) / own.size


@pytest.mark.parametrize("which", ["not positive", "negative variance", "few"])
def test_moments_that_no_vectors_have_are_refused(which):
    host, other = pair()
    moments = measure(np.random.default_rng(0).normal(size=(75, 8)))
    products = moments.products.copy()
    if which == "not positive":
        products[0, 1] = products[1, 0] = 3 * max(products[0, 0], products[1, 1])
    elif which == "negative variance":
        products[2, 2] = 0
        moments = moments._replace(total=moments.total + 10**6)
    size = 31 if which == "few" else 75
    [refusal] = exchange(host, other, moments=[Moments(size, moments.total, products)])
    assert isinstance(refusal, MalformedError)
    assert pool(host)[0].size == host.own


def test_moments_whose_sums_overflow_are_refused_or_shrunk():
    host, other = pair()
    for size, total, product in ((2**24, 2**43, 2**62), (2**24, 2**42, 2**61), (75, 75 * 2**19, 75 * 2**38)):
        lies = [Moments(size, np.full(8, total), np.full((8, 8), product))]
        exchange(host, other, moments=lies)
        [pooled] = pool(host)
        own = host.publisher.moments[0]
        squares = [np.diag(of.products).astype(float).sum() / of.size for of in (pooled, own)]
        assert squares[0] <= 4.01 * squares[1]


def test_moments_do_not_tell_of_a_few_nodes_that_a_peer_does_not_see():
    """With all vectors but one, the sum of all would be the vector of that one."""
    edges = [Edge(f"n{i}", ("x", "b")) for i in range(39)] + [Edge("n0", ("hidden", "a"))]
    terms = make_terms(start="random")
    hosts = {
        "a": make_host(terms, Neighbourhood.build("a", edges)),
        "b": make_host(terms, Neighbourhood.build("b", [Edge("x", (f"n{i}", "a")) for i in range(39)])),
    }
    meet_all(hosts)
    show(hosts["a"])
    shown = hosts["a"].answer("b", hosts["b"].requests()["a"])
    assert len(shown.rows) == 39
    assert shown.moments == []


def test_a_host_with_few_nodes_shows_no_moments():
    graph, _ = stochastic_block_model(nodes=60, inside=0.3, between=0.05, seed=3)
    hosts, _ = split_over(graph, 2, make_terms(start="random"))
    meet_all(hosts)
    show(hosts["h1"])
    assert hosts["h1"].own < 32
    assert hosts["h1"].answer("h0", hosts["h0"].requests()["h1"]).moments == []


def test_means_are_shown_with_noise_in_inverse_proportion_to_neighbours():
    def answer(noise):
        _, other = pair(noise=noise)
        shown = other.answer("h0", Pull(other.peers["h0"].session.number, Step(ROUND, 0)))
        return other, shown.rows.astype(np.float64)

    other, plain = answer(0.0)
    _, noisy = answer(2.0)
    np.testing.assert_array_equal(plain[:, :, 0], noisy[:, :, 0])  # with eight dimensions vectors are shown as they are
    nodes = other.peers["h0"].session.admitted.neighbours
    shares = other.arcs.find_largest_shares()[nodes]
    added = (noisy - plain)[:, 0, 1] / shares[:, None]
    longest = find_longest(other.vectors[:, 0], 2.0)
    assert added.std() == pytest.approx(2.0 * 3.0 * 2.0 * longest, rel=0.15)


def test_means_are_shown_anew_only_now_and_then():
    graph, _ = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    hosts, _ = split_over(graph, 2, make_terms(start="random", every=1, means=4, rounds=8, pairs=None))
    meet_all(hosts)
    host, shapes, means = hosts["h1"], [], []
    session, since = host.peers["h0"].session.number, 0
    for instruction in host.script():
        if isinstance(instruction, Compute):
            host.compute()
        elif isinstance(instruction, Ask):
            shown = host.answer("h0", Pull(session, Step(ROUND, host.round), since))
            everything = host.answer("h0", Pull(session, Step(ROUND, host.round)))
            since = shown.version
            shapes.append(shown.rows.shape[2])
            means.append(everything.rows[:, 0, 1])
            if host.round == 7:
                break
    # the first ones are made before the vectors of others are there, and are shown once only
    assert shapes == [2, 2, 1, 1, 1, 2, 1, 1]
    np.testing.assert_array_equal(means[1], means[4])
    assert (means[4] != means[5]).any()


def test_whoever_comes_late_to_the_start_begins_beside_vectors_as_they_are():
    """A host that starts while another has long been learning takes the other's vectors in place of its sweeps."""
    graph, communities = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    hosts, numbers = split_over(graph, 3, make_terms(dimensions=16, pairs=None, rounds=None))
    driver = Driver(hosts, carry=carry)
    driver.away = {"h2"}
    driver.run()
    assert hosts["h0"].done
    driver.away.clear()
    driver.run()
    everyone = hosts
    found = gather(everyone, numbers)
    assert measure_separation(found[:, 0], communities).accuracy > 0.95


def test_of_a_peer_that_does_not_come_to_smoothing_the_last_vectors_are_used(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 2, make_terms(pairs=None, rounds=4))
    driver = Driver(hosts, carry=carry)
    driver.run(until=lambda: hosts["h1"].round >= 3)
    driver.away = {"h1"}
    driver.run()
    host = hosts["h0"]
    assert host.whole.all()
    assert np.isfinite(host.smoothed).all()


def test_nodes_are_not_whole_whose_neighbours_never_showed_a_vector(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 2, make_terms(pairs=None, rounds=4))
    driver = Driver(hosts, carry=carry)
    driver.away = {"h1"}
    driver.run()
    host = hosts["h0"]
    near = host.neighbourhood
    inside = np.ones(host.own, bool)
    inside[near.sources[near.indices >= host.own]] = False
    np.testing.assert_array_equal(host.whole, inside)


def test_a_node_whose_neighbours_are_all_away_keeps_its_vector():
    """Its only neighbour is at a host that never shows it; others of this host learn."""
    edges = [Edge("x", ("y", "a")), Edge("x", ("z", "a")), Edge("lonely", ("w", "b"))]
    host = make_host(make_terms(start="random", smooth=False), Neighbourhood.build("a", edges))
    before = host.vectors.copy()
    for instruction in host.script():
        if isinstance(instruction, Compute):
            host.compute()
    rows = host.neighbourhood.rows
    np.testing.assert_array_equal(host.vectors[rows["lonely"]], before[rows["lonely"]])
    assert (host.vectors[rows["x"]] != before[rows["x"]]).any()


def test_a_peer_that_says_the_opposite_is_done_without(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 3, make_terms(dimensions=16, pairs=None, rounds=None))
    liar, answer = hosts["h2"], hosts["h2"].answer
    liar.answer = lambda peer, request: flip(answer(peer, request))
    learn(hosts)
    for name in ("h0", "h1"):
        assert hosts[name].peers["h2"].alarms["disagreeing"] >= 1
        assert "h2" in hosts[name].peers.distrusted
        assert {peer for peer, known in hosts[name].peers.items() if known.alarms["disagreeing"]} == {"h2"}
        assert hosts[name].find_likeness("h2")[0] is False


def test_whoever_leaves_a_node_out_is_judged_by_the_others():
    host, other = pair()
    neighbours = len(host.peers.links["h1"].neighbours)
    for _ in range(8):
        request = host.requests()["h1"]
        reply = other.answer("h0", request)
        rows = np.full((neighbours - 1, *reply.rows.shape[1:]), 3.0, np.float32)
        few = replace(reply, rows=rows, changed=np.arange(neighbours - 1), strengths=reply.strengths[:-1])
        host.receive("h1", request, few)
        host._judge_peers()
        host.peers.links["h1"].seen = 0
    assert "h1" in host.peers.distrusted
    assert not host.stranded


@pytest.mark.parametrize("phase", [START, ROUND])
def test_rows_that_a_start_begins_with_are_small_whatever_a_peer_claims(phase):
    graph, _ = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    hosts, _ = split_over(graph, 2, make_terms(dimensions=32))
    meet_all(hosts)
    host = hosts["h0"]
    next(host.script())
    request = host.requests()["h1"]
    rows = np.full((len(host.peers.links["h1"].neighbours), 1, 1, 32), 50.0, np.float32)
    reply = Shown(Step(phase, 0), 5, np.arange(len(rows)), rows, np.full(len(rows), 9.0))
    reply = replace(reply, frame=host.frames.now)
    host.receive("h1", request, reply)
    seen = host._phase.sweeps.shown.view(np.float16).astype(np.float32)
    own, others = (np.linalg.norm(part, axis=1) for part in (seen[: host.own], seen[host.own :]))
    np.testing.assert_allclose(others, np.median(own), rtol=0.2)


def test_a_host_is_not_saved_while_its_start_or_a_round_is_half_done(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 1, make_terms(pairs=None, rounds=2))
    host, states = hosts["h0"], []
    assert not host.can_be_saved
    for instruction in host.script():
        if isinstance(instruction, Compute):
            states.append(host.can_be_saved)
            host.compute()
        elif isinstance(instruction, Commit):
            assert host.can_be_saved
    assert True in states
    assert False in states


def test_smoothed_vectors_are_kept_through_a_restart_and_through_new_edges(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 1, make_terms(pairs=None, rounds=2))
    learn(hosts)
    host = hosts["h0"]
    again = make_host(host.terms, host.neighbourhood)
    again.restore(host.save())
    np.testing.assert_array_equal(again.smoothed, host.smoothed)
    assert again.whole.all()
    edges = [Edge(name, None) for name in host.neighbourhood.nodes] + [Edge("new", (host.neighbourhood.nodes[0], "h0"))]
    more = host.renew(Neighbourhood.build("h0", edges))
    rows = more.neighbourhood.rows
    old = [rows[name] for name in host.neighbourhood.nodes]
    np.testing.assert_array_equal(more.smoothed[old], host.smoothed)
    assert not more.whole[rows["new"]]


def flip(shown: Shown) -> Shown:
    return replace(shown, rows=-shown.rows)


def test_steps_come_in_order_and_are_published_before_they_are_asked_for(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 1, make_terms(pairs=None, rounds=3, every=1))
    host, phases = hosts["h0"], []
    for instruction in host.script():
        if isinstance(instruction, Compute):
            host.compute()
        elif isinstance(instruction, Ask):
            assert host.step in host.publisher._published.steps
            phases.append(host.step)
        else:
            assert isinstance(instruction, Commit)
    assert phases == sorted(phases)
    assert {step.phase for step in phases} == {START, ROUND, SMOOTH}
    assert sum(step.phase == SMOOTH for step in phases) == 1


@pytest.mark.parametrize("start", ["neighbours", "spectral"])
@pytest.mark.parametrize("kind", ["communities", "two nodes each", "random"])
def test_no_honest_peer_is_distrusted(kind, start):
    """Where hosts are communities, edges between them join nodes that are hardly alike; in a random network all are."""
    if kind == "random":
        graph, parts = draw_random(400, 2000), 4
    else:
        graph, communities = planted_partition(400 if kind == "communities" else 60, 8, inside=8, outside=2, seed=1)
        parts = [f"h{community // 2}" for community in communities]
        if kind == "two nodes each":
            parts = [f"h{row // 2}" for row in range(60)]
    terms = make_terms(start=start, dimensions=32, pairs=None, rounds=40, ratios=(0.5, 0.5))
    hosts, _ = split_over(graph, parts, terms)
    learn(hosts)
    for host in hosts.values():
        assert {name: peer.distrust for name, peer in host.peers.items() if peer.distrust} == {}
        assert not any(peer.alarms["disagreeing"] for peer in host.peers.values())
        found = [host.find_likeness(peer) for peer in host.peers]
        assert all(likeness is None or likeness[0] for likeness in found)
        assert kind == "two nodes each" or all(likeness[1] > 0.05 for likeness in found)


def test_after_a_change_of_edges_only_the_nodes_near_it_learn(tmp_path):
    graph, _ = planted_partition(2000, 20, inside=4, outside=2, seed=1)
    hosts, _ = split_over(graph, 2, make_terms(dimensions=16, pairs=None, rounds=None, ratios=(0.5, 0.5)))
    learn(hosts)
    old = hosts["h0"]
    whole, before = old.pairs, old.vectors[:, 0].copy()
    one, other = old.neighbourhood.nodes[3], old.neighbourhood.nodes[-3]
    edges = [
        Edge(old.neighbourhood.nodes[source], (target, "h0") if host is None else (target, host))
        for source, (target, host) in list_arcs(old.neighbourhood)
    ]
    near = Neighbourhood.build("h0", [*edges, Edge(one, (other, "h0"))])
    file = VectorsFile(tmp_path)
    file.save(old.save())  # as if the daemon had been started again, too
    new = make_host(old.terms, near)
    new.restore(file.load())
    new.peers.update(old.peers.renew())
    assert new.has_new_edges
    new.reopen()
    driver = Driver({"h0": new, "h1": hosts["h1"]}, carry=carry)
    driver.meet("h0", "h1")
    driver.meet("h1", "h0")
    driver.run()
    assert 0 < new.pairs - whole < 0.05 * whole
    moved = np.flatnonzero((new.vectors[:, 0] != before).any(axis=1))
    rows = [near.rows[one], near.rows[other]]
    assert set(rows) <= set(moved.tolist())
    assert len(moved) < 50
    assert not new.has_new_edges


def list_arcs(near):
    """Each arc as its source and its target, a name and a host; None for the own one."""
    names = [*((name, None) for name in near.nodes), *near.remotes]
    return [
        (source, names[target]) for source, target in zip(near.sources.tolist(), near.indices.tolist(), strict=True)
    ]


@pytest.mark.parametrize("start", ["neighbours", "spectral"])
def test_a_host_that_is_alone_for_long_does_not_wander(start):
    """Its edges change again and again while its peers are away."""
    graph, communities = planted_partition(400, 8, inside=8, outside=2, seed=3)
    hosts, numbers = split_over(
        graph, 4, make_terms(start=start, dimensions=16, pairs=None, rounds=None, ratios=(0.5, 0.5))
    )
    learn(hosts)
    host, random = hosts["h3"], np.random.default_rng(1)
    of = {row: communities[numbers[name, "h3"]] for row, name in enumerate(host.neighbourhood.nodes)}
    for _ in range(12):
        near = host.neighbourhood
        edges = [
            Edge(near.nodes[source], (name, home or "h3")) for source, (name, home) in list_arcs(near)
        ]  # fmt: skip
        row = int(random.integers(host.own))
        like = random.choice([other for other in of if of[other] == of[row] and other != row])
        host = host.renew(Neighbourhood.build("h3", [*edges, Edge(near.nodes[row], (near.nodes[like], "h3"))]))
        host.reopen()
        Driver({"h3": host}).run()
    assert host.round >= 12 * 16
    vectors = gather({**hosts, "h3": host}, numbers)[:, 0]
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    here = np.array([numbers[name, "h3"] for name in host.neighbourhood.nodes])
    there = np.setdiff1d(np.arange(400), here)
    nearest = there[np.argsort(-(units[here] @ units[there].T), axis=1)[:, :10]]
    assert (communities[nearest] == communities[here, None]).mean() > 0.95
