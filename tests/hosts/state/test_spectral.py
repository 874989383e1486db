"""Two views between hosts that are free to be late: the sweeps, placing, and the join."""

from dataclasses import replace

import numpy as np
import pytest
from harness import carry, gather, learn, make_terms, split_over

from manela.errors import MalformedError
from manela.formats.datasets import planted_partition
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.driver import Driver
from manela.hosts.state.messages import Products, Sum
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.trust import FEWEST_NODES, Bounded, Trust
from manela.hosts.walks.host import make_host

pytestmark = pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")

TERMS = {"start": "spectral", "dimensions": 16, "pairs": None, "rounds": None, "ratios": (0.5, 0.5)}


@pytest.fixture(scope="module")
def network():
    """Eight communities of fifty nodes."""
    return planted_partition(400, 8, inside=8, outside=2, seed=3)


def share_across(hosts, numbers, communities, of=None):
    """Of the ten nearest at other hosts, the share that is of the own community; of one host's nodes, or all."""
    vectors = gather(hosts, numbers)[:, 0]
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    homes = np.empty(len(vectors), object)
    for (_, home), row in numbers.items():
        homes[row] = home
    cosines = np.where(homes[:, None] == homes, -2.0, units @ units.T)
    nearest = np.argsort(-cosines, axis=1)[:, :10]
    found = (communities[nearest] == communities[:, None]).mean(axis=1)
    return float(found[homes == of].mean() if of else found.mean())


def test_hosts_with_noise_find_a_view_that_all_share(network):
    graph, communities = network
    hosts, numbers = split_over(graph, 4, make_terms(**TERMS))
    learn(hosts)
    assert all(host.view is not None for host in hosts.values())
    assert share_across(hosts, numbers, communities) > 0.98
    assert not any(peer.alarms for host in hosts.values() for peer in host.peers.values())


def test_hosts_survive_lost_calls_in_every_phase(network):
    graph, communities = network
    hosts, numbers = split_over(graph, 4, make_terms(**TERMS))
    learn(hosts, seed=1, loss=0.1, delay=2, finish=30)
    assert share_across(hosts, numbers, communities) > 0.95


def test_a_host_that_comes_later_is_placed_in_the_view_of_the_others(network):
    graph, communities = network
    hosts, numbers = split_over(graph, 4, make_terms(**TERMS))
    driver = Driver(hosts, carry=carry, finish=1)
    driver.away.add("h2")
    driver.run()
    driver.away.discard("h2")
    driver.run()
    assert hosts["h2"].view is not None
    assert share_across(hosts, numbers, communities, of="h2") > 0.9


def test_nodes_that_come_later_are_placed_beside_their_neighbours(network):
    graph, _ = network
    hosts, _ = split_over(graph, 4, make_terms(**TERMS))
    learn(hosts)
    old, row = hosts["h0"], 7
    name = old.neighbourhood.nodes[row]
    arcs = slice(*old.neighbourhood.indptr[row : row + 2])
    saved = old.save().keep(set(old.neighbourhood.nodes) - {name})
    new = make_host(old.terms, old.neighbourhood)
    new.restore(saved)
    assert not new.can_be_saved
    driver = Driver({**hosts, "h0": new}, carry=carry, finish=1)
    for peer in ("h1", "h2", "h3"):
        driver.meet("h0", peer)
        driver.meet(peer, "h0")
    driver.run()
    assert arcs.stop > arcs.start
    before, after = (host.save().view[row].astype(float) for host in (old, new))
    assert before @ after > 0.8
    kept = np.arange(old.own) != row
    np.testing.assert_array_equal(new.save().view[kept], old.save().view[kept])


def test_a_killed_host_keeps_its_view(network, tmp_path):
    graph, _ = network
    hosts, _ = split_over(graph, 4, make_terms(**TERMS))
    learn(hosts)
    saved, file = hosts["h1"].save(), VectorsFile(tmp_path)
    file.save(saved)
    loaded = file.load()
    np.testing.assert_array_equal(loaded.view, saved.view)
    np.testing.assert_array_equal(loaded.stretch, saved.stretch)
    back = make_host(hosts["h1"].terms, hosts["h1"].neighbourhood)
    back.restore(loaded)
    assert back.can_be_saved
    assert back.done
    np.testing.assert_array_equal(back.save().view, saved.view)


def test_a_saved_state_without_a_view_is_learned_anew(network):
    graph, _ = network
    terms = make_terms(**TERMS)
    hosts, _ = split_over(graph, 2, make_terms(**{**TERMS, "start": "neighbours"}))
    learn(hosts)
    new = make_host(terms, hosts["h0"].neighbourhood)
    new.restore(hosts["h0"].save())
    assert new.round == 0
    assert not new.done


@pytest.mark.parametrize("lie", ["opposite", "huge", "random"])
def test_a_liar_in_the_sweeps_spoils_little(network, lie):
    """Of four hosts one shows false rows, and false products of their columns, in every phase."""
    graph, communities = network
    hosts, numbers = split_over(graph, 4, make_terms(**TERMS))
    random = np.random.default_rng(0)

    def cheat(asker, answerer, request, reply):
        if answerer.name == "h3":
            rows = reply.rows.astype(np.float32)
            false = {
                "opposite": -rows,
                "huge": np.clip(rows * 1e3, -6e4, 6e4),
                "random": random.normal(size=rows.shape),
            }[lie]
            products = reply.products
            if products is not None:
                false_sums = {"opposite": -products.sums, "huge": products.sums, "random": np.eye(len(products.sums))}
                size = 2**30 if lie == "huge" else products.size
                products = Products(size, np.asarray(false_sums[lie]).astype(np.int64), products.unit)
            reply = replace(reply, rows=false.astype(reply.rows.dtype), products=products)
        return carry(asker, answerer, request, reply)

    driver = Driver(hosts, carry=cheat)
    driver.run()
    honest = {name: host for name, host in hosts.items() if name != "h3"}
    rows = {node: row for node, row in numbers.items() if node[1] != "h3"}
    order = np.array(sorted(rows.values()))
    places = {node: int(np.searchsorted(order, row)) for node, row in rows.items()}
    assert share_across(honest, places, communities[order]) > 0.9


def test_a_peer_with_other_views_is_refused(network):
    graph, _ = network
    hosts, _ = split_over(graph, 2, make_terms(**TERMS))
    other = make_host(make_terms(**{**TERMS, "start": "random"}), hosts["h1"].neighbourhood)
    with pytest.raises(Exception, match="views must be both as at h0, got rounds"):
        hosts["h0"].greet("h1", other.hello())


def test_a_host_alone_has_a_view_of_its_own():
    ring = [Edge(f"n{i}", (f"n{(i + 1) % 6}", "a")) for i in range(6)]
    host = make_host(make_terms(**TERMS), Neighbourhood.build("a", ring))
    learn({"a": host})
    assert host.done
    assert np.isfinite(host.save().smoothed).all()


# trust


def bounded(noise=0.0):
    return Bounded(noise, 2.0, 1)


def products_of(size, scale=1.0, seed=0):
    rows = scale * np.random.default_rng(seed).normal(size=(size, 6))
    return Products(size, np.rint(rows.T @ rows * 2**20).astype(np.int64), 2.0**-20)


def test_all_hosts_that_hear_the_same_pool_the_same():
    parts = {"a": products_of(50), "b": products_of(500, seed=1), "c": products_of(70, 30.0, seed=2)}
    one = bounded().pool_products(parts)
    np.testing.assert_array_equal(bounded().pool_products(dict(reversed(parts.items()))), one)


def test_nobody_counts_for_more_than_a_few_times_the_usual():
    parts = {"a": products_of(100), "b": products_of(100, seed=1)}
    honest = bounded().pool_products(parts)
    more = {**parts, "liar": Products(2**31, products_of(100, 1e3, seed=2).sums, 2.0**-20)}
    pooled = bounded().pool_products(more)
    assert np.trace(pooled) < 5 * np.trace(honest)


def test_products_of_few_nodes_and_those_of_no_rows_are_refused():
    bounded().check_products(products_of(FEWEST_NODES), True)
    with pytest.raises(MalformedError, match="at least"):
        bounded().check_products(products_of(FEWEST_NODES - 1), True)
    false = Products(100, -products_of(100).sums, 1.0)
    with pytest.raises(MalformedError, match="second moment"):
        bounded().check_products(false, True)
    bounded().check_products(false, False)  # eigenvalues of a network may be negative


def test_rows_and_shares_of_peers_are_bounded_by_own_ones():
    own, rows = np.full((4, 9), 2.0, np.float32), np.full((2, 9), [[100.0], [1.0]], np.float32)
    found = bounded().bound_rows(rows, own)
    np.testing.assert_allclose(found[0], 4.0)
    np.testing.assert_array_equal(found[1], rows[1])
    shares = bounded().bound_shares(np.array([1e9, 0.7, np.nan, -3.0]), np.array([0.5, 2.0, 0.0]))
    np.testing.assert_allclose(shares, [2.0, 0.7, 1.0, 0.5])
    np.testing.assert_array_equal(Trust().bound_shares(shares, shares), shares)


def test_a_sum_of_a_liar_counts_as_the_usual_one():
    own = Sum(100, (90.0,))
    size, total = bounded().pool_sum(own, {"b": Sum(100, (110.0,)), "liar": Sum(2**40, (1e100,))})
    assert size == 600
    assert total < 600 * 4 * 1.1
    assert Trust().pool_sum(own, {"b": Sum(100, (110.0,))}) == (200, 200.0)


def test_shares_are_shown_with_noise_that_stays_the_same():
    shares = np.ones(500)
    one, other = (bounded(1.0).blur_shares(shares) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert 0.15 < np.log(one).std() < 0.35
    np.testing.assert_array_equal(bounded(0.0).blur_shares(shares), shares)
