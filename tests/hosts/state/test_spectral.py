"""Two views between hosts that are free to be late: the sweeps, placing, and the join."""

from dataclasses import replace

import numpy as np
import pytest
from harness import carry, gather, learn, make_terms, split_over

from manela.errors import MalformedError
from manela.formats.datasets import planted_partition
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.driver import Driver
from manela.hosts.state.messages import AFFINITY, JOIN, ROUND, SWEEP, VIEW, Products, Shown, Step, Sum
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.publishing import Published
from manela.hosts.state.trust import FEWEST_NODES, Bounded, Trust
from manela.hosts.walks.host import make_host
from manela.hosts.wire.codec import decode_shown, encode

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
    hosts, _ = split_over(graph, 4, make_terms(**TERMS, noise=0.0))
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
    assert new.should_go_on
    new.reopen()
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


def bounded():
    return Bounded(2.0)


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


def test_rows_of_peers_are_bounded_by_own_ones():
    own, rows = np.full((4, 9), 2.0, np.float32), np.full((2, 9), [[100.0], [1.0]], np.float32)
    found = bounded().bound_rows(rows, own)
    np.testing.assert_allclose(found[0], 4.0)
    np.testing.assert_array_equal(found[1], rows[1])


def test_a_sum_of_a_liar_is_bounded():
    own = Sum(100, (90.0,))
    size, total = bounded().pool_sum(own, {"b": Sum(100, (110.0,)), "liar": Sum(2**40, (1e100,))})
    assert size == 200 + 100 * 100
    assert total <= size * 4 * 0.9
    assert Trust().pool_sum(own, {"b": Sum(100, (110.0,))}) == (200, 200.0)


# what a reviewer broke


def drive_with(hosts, change, **options):
    """Move hosts, where `change` makes false what a liar shows: called with the answerer, the request and the reply."""

    def cheat(asker, answerer, request, reply):
        return carry(asker, answerer, request, change(answerer.name, request, reply))

    driver = Driver(hosts, carry=cheat, **options)
    driver.run()
    return driver


@pytest.mark.parametrize("phase", [VIEW, ROUND])
def test_one_of_several_peers_that_says_to_be_past_its_sweeps_is_not_followed(network, phase):
    graph, communities = network
    hosts, numbers = split_over(graph, 4, make_terms(**TERMS))

    def change(name, request, reply):
        if name == "h3" and request.step.phase in (AFFINITY, SWEEP):
            return replace(reply, step=Step(phase, 0), products=None)
        return reply

    drive_with(hosts, change)
    assert share_across(hosts, numbers, communities) > 0.9


def test_a_tiny_host_that_learned_alone_does_not_keep_others_from_sweeping(network):
    graph, _ = network
    parts = [f"h{1 + row % 3}" for row in range(graph.number_of_nodes)]
    parts[:6] = ["h0"] * 6
    hosts, _ = split_over(graph, parts, make_terms(**TERMS))
    driver = Driver(hosts, carry=carry, finish=1)
    driver.away.update({"h1", "h2", "h3"})
    driver.run()
    driver.away.clear()
    driver.run()
    for name in ("h1", "h2", "h3"):
        assert hosts[name].save().view.any(axis=1).mean() > 0.95


@pytest.mark.parametrize("unit", [5e-324, 1e-200, 1e-60, 1e112])
@pytest.mark.parametrize("nodes", [30, 200])
def test_products_of_impossible_size_do_not_count(network, unit, nodes):
    """Also where the liar's are the only ones, as hosts of few nodes show none."""
    graph, _ = planted_partition(2 * nodes, 4, inside=6, outside=2, seed=1)
    few = nodes if nodes > 32 else 20
    parts = np.random.default_rng(1).permutation(np.arange(2 * nodes) >= few)
    hosts, _ = split_over(graph, [f"h{int(part)}" for part in parts], make_terms(**TERMS))

    def change(name, request, reply):
        if (
            name == "h1"
            and request.step.phase in (SWEEP, VIEW, JOIN)
            and (request.step.level or request.step.phase == JOIN)
        ):
            columns = TERMS["dimensions"] * (1 + (request.step.phase == JOIN))
            sums = np.eye(columns).astype(np.int64) * 2**40
            return replace(reply, products=Products(100, sums, unit))
        return reply

    drive_with(hosts, change)
    for host in hosts.values():
        assert np.isfinite(host.save().smoothed).all()
        assert host.save().view.any()


@pytest.mark.parametrize("lie", ["far", "none", "honest"])
def test_products_of_few_nodes_never_leave_their_host(network, lie):
    """Whatever the only peer that shows products shows: h1 has 20 nodes, and shows h0 what it pooled, or nothing."""
    graph, _ = planted_partition(100, 4, inside=6, outside=2, seed=1)
    hosts, _ = split_over(graph, ["h1" if row % 5 == 0 else "h0" for row in range(100)], make_terms(**TERMS))
    own, shown = [], []
    sum_products = hosts["h1"].trust.sum_products

    def note(*arguments, **options):
        found = sum_products(*arguments, **options)
        own.append(found[0])
        return found

    hosts["h1"].trust.sum_products = note

    def change(name, request, reply):
        if name == "h1" and reply.products is not None:
            shown.append(reply.products)
        if name == "h0" and reply.products is not None and lie != "honest":
            false = replace(reply.products, unit=reply.products.unit * 1e6)
            reply = replace(reply, products=false if lie == "far" else None)
        return reply

    driver = drive_with(hosts, change)
    late = make_host(hosts["h0"].terms, hosts["h0"].neighbourhood)  # to be placed by what h1 has
    driver.restart(late)
    driver.run()
    assert all(host.done for host in driver.hosts.values())
    assert lie != "honest" or shown
    assert len(own) > 8
    for products in shown:
        second = products.sums * (products.unit / products.size)
        for mine in own:
            used = np.flatnonzero(np.arange(len(mine.sums)) % 16 < TERMS["dimensions"])
            true = mine.sums[np.ix_(used, used)] * (mine.unit / mine.size)
            assert true.shape != second.shape or not np.allclose(second, true, rtol=1e-3)


def test_a_host_whose_neighbours_were_all_away_finds_its_view_later():
    edges = {"a": [Edge(f"n{i}", (f"m{i}", "b")) for i in range(4)]}
    edges["b"] = [Edge(f"m{i}", (f"n{i}", "a")) for i in range(4)] + [
        Edge(f"m{i}", (f"m{(i + 1) % 40}", "b")) for i in range(40)
    ]
    hosts = {name: make_host(make_terms(**TERMS), Neighbourhood.build(name, one)) for name, one in edges.items()}
    driver = Driver(hosts, carry=carry, finish=1)
    driver.away.add("b")
    driver.run()
    saved = hosts["a"].save()
    assert saved.stretch is None
    driver.away.clear()
    driver.run()
    back = make_host(hosts["a"].terms, hosts["a"].neighbourhood)
    back.restore(saved)
    driver.restart(back)
    back.reopen(3)
    driver.run()
    assert np.isfinite(back.save().smoothed).all()


def test_rows_of_sweeps_and_of_the_view_are_shown_with_noise_but_for_random_ones(network):
    graph, _ = network
    hosts, _ = split_over(graph, 2, make_terms(**TERMS, noise=0.5))
    host, own, shown = hosts["h0"], {}, {}

    def trace(**disclosed):
        if disclosed["kind"] == "own":
            own[disclosed["phase"], disclosed["number"]] = disclosed["rows"][host.edge_rows, 0, 0]

    def note(name, request, reply):
        published = host.publisher._published.steps.get(reply.step)
        if name == "h0" and published is not None and published.rows is not None and reply.step.level == 0:
            shown[reply.step.phase, reply.step.number] = published.rows[:, 0, 0].astype(float)
        return reply

    host.on_disclosure = trace
    drive_with(hosts, note)
    far = {
        at: np.abs(shown[at] - own[at]).mean() / np.abs(own[at]).mean() for at in shown if at in own and at[0] < ROUND
    }
    assert far[SWEEP, 0] < 0.01
    assert all(distance > 0.3 for at, distance in far.items() if at[0] == SWEEP and at[1] > 0)
    assert far[VIEW, 0] > 0.3
    assert all(distance > 0.03 for at, distance in far.items() if at[0] == VIEW)


def test_hosts_of_which_one_does_not_smooth_do_not_wait_for_it(network):
    graph, _ = network
    hosts, _ = split_over(graph, 2, make_terms(**TERMS))
    hosts["h0"] = make_host(make_terms(**TERMS, smooth=False), hosts["h0"].neighbourhood)
    told = []
    Driver(hosts, carry=carry, tell=told.append, finish=200).run()
    assert not any("continues without" in line for line in told)


def test_a_view_that_the_settings_do_not_want_is_not_taken_over(network):
    graph, _ = network
    hosts, _ = split_over(graph, 2, make_terms(**TERMS))
    learn(hosts)
    other = make_host(make_terms(**{**TERMS, "start": "random"}), hosts["h0"].neighbourhood)
    other.restore(hosts["h0"].save())
    assert other.view is None
    assert other.can_be_saved
    np.testing.assert_array_equal(other.vectors, hosts["h0"].vectors)


def test_few_nodes_with_neighbours_show_no_sums(network):
    """However many the host has."""
    trust = Bounded(2.0)
    assert trust.show_products(FEWEST_NODES)
    assert not trust.show_products(FEWEST_NODES - 1)
    graph, _ = network
    hosts, _ = split_over(graph, 2, make_terms(**TERMS))
    publisher = hosts["h0"].publisher
    publisher.publish(Published(Step(SWEEP, 0, 1), 1, np.zeros(0), products=products_of(3), sum=Sum(3, (1.0,))))
    shown = publisher._published.steps[Step(SWEEP, 0, 1)]
    assert shown.products is None
    assert shown.sum is None


@pytest.mark.parametrize("parts", [(-1.0,), (0.0,)])
def test_a_sum_that_no_nodes_have_is_refused(parts):
    message = Shown(Step(AFFINITY, 0, 1), 1, np.zeros(0, np.int64), np.zeros((0, 1, 1, 0), np.float32), np.zeros(0))
    with pytest.raises(MalformedError, match="above 0"):
        decode_shown(encode(replace(message, sum=Sum(3, parts))), (1, 1, 0), 5)
