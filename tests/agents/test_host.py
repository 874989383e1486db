"""Hosts that learn freely, over the memory transport."""

import asyncio
import math
from dataclasses import replace

import numpy as np
import pytest
from harness import connect, draw_graph, gather, learn, learners_of, make_terms, split_over

from manela.agents.host import Host, exact_sum
from manela.agents.messages import Reason, Reply
from manela.agents.neighbourhood import Edge, Neighbourhood
from manela.agents.service import meet
from manela.datasets.generators import stochastic_block_model
from manela.errors import AgentError, DivergenceError, PeerError, RefusedError
from manela.evaluation.separation import measure_separation


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)


def settings_of(**parameters):
    return {"dimensions": 16, "rounds": 40, "pairs": 300_000, "ratios": (0.7, 0.3), **parameters}


@pytest.mark.parametrize(("ratios", "context"), [((1.0,), False), ((0.7, 0.3), False), ((0.4, 0.3, 0.3), True)])
def test_free_hosts_find_the_communities(blocks, ratios, context):
    graph, communities = blocks
    hosts, numbers = split_over(graph, 4, make_terms(**settings_of(ratios=ratios, context=context)))
    asyncio.run(learn(connect(hosts)))
    found = gather(hosts, numbers)
    assert np.isfinite(found).all()
    assert measure_separation(found[:, 0], communities).accuracy > 0.95
    budget = sum(host.pairs for host in hosts.values())
    assert 0.8 * 300_000 < budget <= 300_100  # some targets are the node itself
    assert {host.round for host in hosts.values()} == {40}


def test_every_host_moves_its_own_vectors_only(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 3, make_terms(**settings_of(rounds=3, pairs=20_000)))
    before = {name: host.vectors.copy() for name, host in hosts.items()}
    services = connect(hosts)
    asyncio.run(learn(services))
    for name, host in hosts.items():
        assert (host.vectors != before[name]).any(axis=(1, 2)).mean() > 0.9
        assert host.own == len(host.neighbourhood.nodes)


def test_a_vector_travels_once_while_it_does_not_change(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 2, make_terms(**settings_of(rounds=2, pairs=200)))
    a, b = hosts.values()

    async def ask():
        services = connect(hosts)
        await asyncio.gather(meet(services[a.name], b.name), meet(services[b.name], a.name))
        first, second = a.plan(), a.plan(ahead=1)
        reply = await services[a.name].ask(b.name, first.requests[b.name])
        a.receive(first, {b.name: reply})
        again = await services[a.name].ask(b.name, replace(second.requests[b.name], since=reply.version))
        plan = b.plan()
        b.receive(plan, {})
        b.commit(plan, plan.compute())
        later = await services[a.name].ask(b.name, replace(second.requests[b.name], since=reply.version))
        return len(reply.changed), len(again.changed), len(later.changed), len(plan.nodes)

    first, again, later, moved = asyncio.run(ask())
    assert first == len({i for i in a.neighbourhood.indices.tolist() if i >= a.own})
    assert again == 0
    assert 0 < later <= moved


def test_a_peer_that_goes_is_done_without_and_one_that_comes_back_is_used_again(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 3, make_terms(**settings_of(rounds=60, pairs=60_000, patience=4)))
    services = connect(hosts)
    told = []

    async def run():
        learners = learners_of(services, grace=0.2, tell=told.append)
        await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))
        name, gone = services.popitem()
        rest = learners[:-1]

        async def come_back():
            while min(learner.host.round for learner in rest) < 25:
                await asyncio.sleep(0.001)
            assert all(not learner.host.knows(name) for learner in rest)
            active = [learner.host._active().arcs.indices for learner in rest]
            for learner, indices in zip(rest, active, strict=True):
                hosts_of = [h for _, h in learner.host.neighbourhood.strangers]
                assert name not in {hosts_of[i - learner.host.own] for i in indices.tolist() if i >= learner.host.own}
            services[name] = gone
            for learner in rest:
                learner.contacts[name].again = 0.0

        await asyncio.gather(come_back(), *(learner.run_freely() for learner in rest))
        return name, rest

    name, rest = asyncio.run(run())
    assert all(learner.host.round == 60 for learner in rest)
    assert all(learner.host.knows(name) for learner in rest)
    assert sum(f"{name} is away" in words for words in told) == len(rest)  # told once each
    assert sum(f"{name} is here" in words for words in told) == len(rest)


def test_hosts_go_on_alone(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 2, make_terms(**settings_of(rounds=5, pairs=5_000)))
    host = hosts["h0"]
    services = connect({"h0": host})

    async def run():
        [learner] = learners_of(services)
        learner.peers = ["h1"]
        await learner.meet_all(0.0)
        await learner.run_freely()

    asyncio.run(run())
    assert host.round == 5
    assert host.pairs > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dimensions": 9}, "dimensions must be 8 .*, got 9"),
        ({"hops": 3}, "hops must be 2 .*, got 3"),
        ({"context": True}, "context must be False"),
        ({"lock_step": True}, "lock-step must be False"),
        ({"protocol": 2}, "protocol must be 1, got 2"),
        ({"host": "c"}, "b greets as c"),
        ({"strengths": (float("nan"),)}, "the sum of weights must be from 0"),
        ({"strengths": (-1.0,)}, "the sum of weights must be from 0"),
        ({"strengths": (1.7e308, 1.7e308)}, "the sum of weights must be from 0"),
    ],
)
def test_other_terms_are_refused_with_a_reason(change, words):
    host = Host(make_terms(), Neighbourhood.build("a", [Edge("x", ("y", "b"))]))
    other = Host(make_terms(), Neighbourhood.build("b", [Edge("y", ("x", "a"))]))
    with pytest.raises(RefusedError, match=words):
        host.greet("b", replace(other.hello(), **change))
    assert "b" not in host.peers


def test_lock_step_hosts_must_have_the_same_run():
    numbers = {("x", "a"): 0, ("y", "b"): 1}
    near = Neighbourhood.build("a", [Edge("x", ("y", "b"))], numbers)
    hosts = [Host(make_terms(True, random_state=seed), near, numbers) for seed in (1, 2)]
    with pytest.raises(RefusedError, match="the parameters of a lock-step run"):
        hosts[0].greet("b", replace(hosts[1].hello(), host="b"))


def test_edges_that_one_side_has_only_are_not_used():
    a = Host(
        make_terms(), Neighbourhood.build("a", [Edge("x", ("y", "b")), Edge("x", ("z", "b")), Edge("w", ("x", "a"))])
    )
    b = Host(make_terms(), Neighbourhood.build("b", [Edge("y", ("x", "a")), Edge("z", None)]))
    services = connect({"a": a, "b": b})
    assert asyncio.run(meet(services["a"], "b")) == 1
    assert services["b"].refusals == {("a", Reason.NOT_ADJACENT): 1}
    names = {a.neighbourhood.name_arc(arc) for arc in a._active().places.tolist()}
    assert names == {("x", ("y", "b")), ("x", ("w", "a")), ("w", ("x", "a"))}


def test_a_session_that_is_not_known_is_refused_and_made_anew(blocks):
    graph, _ = blocks
    terms = make_terms(**settings_of(rounds=20, pairs=20_000))
    hosts, _ = split_over(graph, 2, terms)
    services = connect(hosts)

    async def run():
        learners = learners_of(services)
        await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))
        # h1 is restarted: what it knew of sessions is gone
        fresh = Host(terms, hosts["h1"].neighbourhood)
        services["h1"].host = fresh
        await learners[0].run_freely()
        return fresh

    fresh = asyncio.run(run())
    assert hosts["h0"].knows("h1")
    assert "h0" in fresh.peers
    assert services["h1"].refusals["h0", Reason.SESSION] >= 1


def test_what_was_kept_goes_on():
    graph = draw_graph(2)
    terms = make_terms(dimensions=8, rounds=6)
    hosts, _ = split_over(graph, 2, terms)
    asyncio.run(learn(connect(hosts)))
    host = hosts["h0"]
    names = ["unknown", *host.neighbourhood.nodes[1:]]
    fresh = Host(terms, host.neighbourhood)
    first = fresh.vectors[0].copy()
    fresh.restore(names, host.vectors, 4, 17, 99)
    np.testing.assert_array_equal(fresh.vectors[1:], host.vectors[1:])
    np.testing.assert_array_equal(fresh.vectors[0], first)
    assert (fresh.round, fresh.pairs, fresh.done) == (4, 99, False)
    assert fresh.version > 17
    with pytest.raises(AgentError, match="shape"):
        fresh.restore(names, host.vectors[:, :, :5], 4, 17, 99)


def test_new_edges_keep_the_vectors():
    near = Neighbourhood.build("a", [Edge("x", ("y", "a"))])
    host = Host(make_terms(), near)
    plan = host.plan()
    host.receive(plan, {})
    host.commit(plan, plan.compute())
    more = host.renew(Neighbourhood.build("a", [Edge("x", ("y", "a")), Edge("x", ("new", "a"))]))
    assert more.neighbourhood.nodes == ["new", "x", "y"]
    np.testing.assert_array_equal(more.vectors[1:], host.vectors)
    assert more.round == 1


def test_new_edges_forget_the_vectors_of_peers_and_keep_their_greetings(blocks):
    graph, _ = blocks
    hosts, _ = split_over(graph, 2, make_terms())
    asyncio.run(learn(connect(hosts)))
    host = hosts["h0"]
    assert host._present[host.own :].any()
    again = host.renew(host.neighbourhood)
    assert not again._present[again.own :].any()
    assert again.peers == host.peers
    np.testing.assert_array_equal(again.vectors, host.vectors)


def test_vectors_that_explode_end_the_run():
    host = Host(make_terms(learning_rate=1e38), Neighbourhood.build("a", [Edge("x", ("y", "a"))]))

    def advance():
        plan = host.plan()
        host.receive(plan, {})
        host.commit(plan, plan.compute())

    advance()
    with pytest.raises(DivergenceError, match="learning_rate must be smaller"):
        advance()


def test_a_host_without_nodes_says_so():
    with pytest.raises(AgentError, match="import edges"):
        Host(make_terms(), Neighbourhood.build("a", []))


def test_lock_step_does_not_go_on_without_a_peer():
    hosts, _ = split_over(draw_graph(4), 3, make_terms(True))
    services = connect(hosts)

    async def run():
        learners = learners_of(services)
        await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))
        del services["h2"]
        await learners[0].run_lock_step()

    with pytest.raises(PeerError, match="h2"):
        asyncio.run(run())


def test_sums_are_exact_in_any_order():
    values = np.random.default_rng(0).lognormal(sigma=30, size=1000)
    parts = [*exact_sum(values[:300]), *exact_sum(values[300:])]
    assert math.fsum(parts) == math.fsum(values)


def test_a_peer_that_lies_about_its_size_cannot_make_a_host_work_without_end():
    settings = make_terms(pairs=None, rounds=10)
    host = Host(settings, Neighbourhood.build("a", [Edge("x", ("y", "b")), Edge("x", ("z", "a"))]))
    usual = host.plan().targets.size
    other = Host(settings, Neighbourhood.build("b", [Edge("y", ("x", "a"))]))
    host.greet("b", replace(other.hello(), nodes=2**31, strengths=(1e-300,)))
    assert host.plan().targets.size <= 101 * usual
    host.greet("b", replace(other.hello(), nodes=2**31, strengths=(1e112, -1e111)))
    host.greet("b", replace(other.hello(), strengths=(1e112,)))
    assert host.rounds == 10


def test_lock_step_does_not_begin_with_numbers_that_do_not_add_up():
    numbers = {("x", "a"): 0, ("y", "b"): 1}
    near = Neighbourhood.build("a", [Edge("x", ("y", "b"))], numbers)
    host = Host(make_terms(True), near, numbers)
    for theirs in ([], [0], [2]):
        hello = replace(host.hello(), host="b", nodes=1, numbers=np.array(theirs, np.int64))
        host.greet("b", hello)
        with pytest.raises(AgentError, match="without gaps"):
            host.check_numbers()
    host.greet("b", replace(host.hello(), host="b", nodes=1, numbers=np.array([1])))
    host.check_numbers()


def relaying(graph, **options):
    """Three hosts that have met, walks of three hops, and a request of h0 that h1 relays to h2."""
    hosts, _ = split_over(graph, 3, make_terms(ratios=(0.2, 0.2, 0.6), rounds=20, pairs=100_000, **options))
    services = connect(hosts)

    async def meet_all():
        for one in services:
            for two in services:
                if one != two:
                    await meet(services[one], two)

    asyncio.run(meet_all())
    relay = hosts["h1"].answer("h0", hosts["h0"].plan().requests["h1"])
    assert "h2" in relay.requests
    return hosts, relay


def test_a_third_host_that_answers_wrongly_is_refused_and_the_asker_is_answered(blocks):
    hosts, relay = relaying(blocks[0])
    asked = relay.requests["h2"]
    vectors = np.zeros((0, 1, 8), np.float32)
    wrong = Reply(1, asked.edges[:0], vectors, np.full(asked.size, -2 - 10**6), vectors)
    reply, refused = relay.finish({"h2": wrong})
    assert refused["h2"].reason == Reason.MALFORMED
    assert len(reply.index) == hosts["h0"].plan().requests["h1"].size


def test_a_peer_that_is_forgotten_while_it_is_asked_does_no_harm(blocks):
    hosts, relay = relaying(blocks[0])
    asked = relay.requests["h2"]
    vectors = np.ones((1, 1, 8), np.float32)
    hosts["h1"].forget("h2")
    reply, refused = relay.finish({"h2": Reply(1, asked.edges[:0], vectors[:0], np.zeros(asked.size, int), vectors)})
    assert not refused
    assert (reply.vectors == 1.0).all(axis=(1, 2)).any()


def test_a_third_host_that_hangs_holds_nobody_up(blocks):
    hosts, _ = split_over(blocks[0], 3, make_terms(ratios=(0.2, 0.2, 0.6), rounds=6, pairs=10_000))
    services = connect(hosts, deadline=1.0)

    async def run():
        learners = learners_of(services, grace=0.6)
        await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))

        async def hang(*_):
            await asyncio.sleep(3600)

        services["h2"].serve = hang
        await asyncio.gather(*(learner.run_freely() for learner in learners[:2]))
        for learner in learners:
            for contact in learner.contacts.values():
                if contact.call is not None:
                    contact.call.cancel()
        return learners

    learners = asyncio.run(run())
    assert hosts["h0"].round == hosts["h1"].round == 6
    assert learners[0].trouble_with("h1") == learners[1].trouble_with("h0") == ""


def test_a_host_that_is_done_keeps_knowing_its_peers(blocks):
    hosts, _ = split_over(blocks[0], 2, make_terms(rounds=3, pairs=3_000))
    services = connect(hosts)

    async def run():
        learners = await learn(services)
        # h1 is restarted, and moves on
        fresh = Host(hosts["h1"].terms, hosts["h1"].neighbourhood)
        services["h1"].host = fresh
        staying = asyncio.create_task(learners[0].stay())
        for _ in range(500):
            await asyncio.sleep(0.01)
            learners[0].contacts["h1"].again = 0.0
            if "h0" in fresh.peers and hosts["h0"].knows("h1"):
                break
        learners[0].end()
        await staying
        return fresh

    fresh = asyncio.run(run())
    assert "h0" in fresh.peers
    assert hosts["h0"].knows("h1")


def test_a_host_whose_neighbours_are_all_away_keeps_its_rounds_for_later():
    terms = make_terms(rounds=5, pairs=2_000)
    a = Host(terms, Neighbourhood.build("a", [Edge("x", ("y", "b"))]))
    b = Host(terms, Neighbourhood.build("b", [Edge("y", ("x", "a"))]))
    services = connect({"a": a, "b": b})
    away = services.pop("b")

    async def run():
        [learner] = learners_of(services)
        learner.peers = ["b"]
        await learner.meet_all(0.0)
        learning = asyncio.create_task(learner.run_freely())
        await asyncio.sleep(0.3)
        assert a.round == 0
        services["b"] = away
        learner.contacts["b"].again = 0.0
        await asyncio.wait_for(learning, 20.0)

    asyncio.run(run())
    assert a.round == 5
    assert a.pairs > 0
