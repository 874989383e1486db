"""Learners: how long they wait for whom."""

import asyncio

import pytest
from harness import connect, learners_of, make_terms, run_by_turns, split_over

from manela.formats.datasets import stochastic_block_model
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.host import make_host


@pytest.fixture
def services():
    """Of two hosts."""
    graph, _ = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    hosts, _ = split_over(graph, 2, make_terms(rounds=30, pairs=None, smooth=False, start="random", every=1))
    return connect(hosts)


async def learn_until_the_other_is_gone(services, **options):
    """The learner of h0, which learns and has seen h1 go; what it does, and the service of h1."""
    learner, other = learners_of(services, **options)
    await asyncio.gather(learner.meet_all(5.0), other.meet_all(5.0))
    away = services.pop("h1")
    running = asyncio.create_task(learner.run())
    while not learner.service.contacts["h1"].trouble:
        await asyncio.sleep(0.001)
    return learner, running, away


def test_rounds_are_not_spent_while_a_peer_is_away_until_patience_is_over(services):
    async def run():
        learner, running, away = await learn_until_the_other_is_gone(services, wait=1.0)
        spent = learner.host.round
        await asyncio.sleep(0.3)
        assert learner.host.round <= spent + 1
        services["h1"] = away
        while learner.service.contacts["h1"].trouble:
            await asyncio.sleep(0.001)
        assert learner.service.contacts["h1"].patience < 0.9
        services.pop("h1")
        await asyncio.wait_for(running, 30.0)  # it goes on alone when it has waited long enough
        return learner

    learner = run_by_turns(run())
    assert learner.host.done
    assert learner.service.contacts["h1"].patience <= 0.1


async def run_and_stay(learner):
    """As a daemon does: all rounds, and then again whenever there is a reason to."""
    while not learner.stop.is_set():
        if learner.host.done and learner.host.should_go_on:
            learner.host.reopen()
        await learner.run()
        await learner.stay(lambda: learner.host.should_go_on)


@pytest.mark.parametrize("walks", [False, True], ids=["messages", "walks"])
def test_a_peer_that_comes_late_is_learned_from(walks):
    graph, _ = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    budget = {"rounds": 12, "pairs": None} if walks else {"rounds": None, "pairs": None, "patience": 0.1}
    found, _ = split_over(graph, 2, make_terms(walks=walks, smooth=False, **budget))
    services = connect(found)

    async def run():
        late = services.pop("h1")
        learner, other = learners_of({**services, "h1": late})
        await learner.meet_all(0.0)
        running = asyncio.create_task(run_and_stay(learner))
        while not learner.host.done:
            await asyncio.sleep(0.01)
        alone = learner.host.round
        await asyncio.sleep(0.05)
        assert learner.host.round == alone  # rounds are over, and nothing is new
        services["h1"] = late
        following = asyncio.create_task(run_and_stay(other))
        while not (learner.host.done and learner.host.round > alone and other.host.done):
            await asyncio.sleep(0.01)
        assert learner.host.peers["h1"].taught == len(learner.host.peers.links["h1"].arcs)
        rounds = learner.host.round
        await asyncio.sleep(0.05)
        assert learner.host.round == rounds  # a peer that was learned from is no reason to go on
        for one in (learner, other):
            one.stop.set()
        await asyncio.gather(running, following)

    run_by_turns(run())


def test_more_rounds_are_done_when_they_are_asked_for():
    graph, _ = stochastic_block_model(nodes=100, inside=0.3, between=0.01, seed=3)
    found, _ = split_over(graph, 1, make_terms(rounds=None, pairs=None, patience=0.1, smooth=False))
    services = connect(found)

    async def run():
        [learner] = learners_of(services)
        await learner.run()
        rounds = learner.host.round
        learner.host.reopen(7)
        assert not learner.host.done
        await learner.run()
        assert learner.host.round == rounds + 7
        saved = learner.host.save()
        fresh = type(learner.host)(learner.host.terms, learner.host.neighbourhood)
        fresh.restore(saved)
        assert fresh.done
        assert fresh.rounds == rounds + 7

    run_by_turns(run())


def test_a_peer_that_is_back_is_not_waited_for_any_longer(services):
    async def run():
        learner, running, away = await learn_until_the_other_is_gone(services, wait=600.0)
        assert learner.host.sessions.knows("h1")  # it has answered before
        services["h1"] = away
        await asyncio.wait_for(running, 60.0)
        assert learner.service.contacts["h1"].patience > 500.0

    run_by_turns(run())


@pytest.mark.parametrize("walks", [False, True], ids=["messages", "walks"])
def test_that_a_peer_is_away_and_that_it_is_here_again_is_told_once(walks):
    graph, _ = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    hosts, _ = split_over(graph, 3, make_terms(walks=walks, rounds=60, pairs=60_000, away=4, smooth=False))
    services, told = connect(hosts), []

    async def run():
        learners = learners_of(services, grace=0.2, wait=0.2, finish=0.2, tell=told.append)
        await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))
        away, rest = services.pop("h2"), learners[:-1]

        async def come_back():
            await asyncio.sleep(0.1)  # for which a round takes here
            if min(learner.host.round for learner in rest) == 25:
                services["h2"] = away
                for learner in rest:
                    learner.service.contacts["h2"].again = 0.0

        for learner in rest:
            learner.on_commit = come_back
        await asyncio.gather(*(learner.run() for learner in rest))

    run_by_turns(run())
    assert sum("h2 is away" in line for line in told) == 2
    assert sum("h2 is here" in line for line in told) == 2
    assert [hosts[name].round for name in ("h0", "h1")] == [60, 60]
    assert all(hosts[name].sessions.knows("h2") for name in ("h0", "h1"))


@pytest.mark.parametrize("walks", [False, True], ids=["messages", "walks"])
def test_edges_that_came_while_a_host_was_down_are_learned(walks):
    graph, _ = stochastic_block_model(nodes=60, inside=0.3, between=0.01, seed=3)
    budget = {"rounds": 6, "pairs": None} if walks else {"rounds": None, "pairs": None, "patience": 0.1}
    found, _ = split_over(graph, 1, make_terms(walks=walks, smooth=False, **budget))
    [host] = found.values()
    [learner] = learners_of(connect(found))
    run_by_turns(learner.run())
    saved, near = host.save(), host.neighbourhood
    same = type(host)(host.terms, near)
    same.restore(saved)
    assert not same.should_go_on
    edges = [Edge(*near.name_arc(arc)) for arc in range(len(near.indices))]
    fresh = type(host)(
        host.terms, Neighbourhood.build(near.host, [*edges, Edge("newcomer", (near.nodes[0], near.host))])
    )
    fresh.restore(saved)
    assert fresh.done
    assert fresh.should_go_on
    fresh.reopen()
    assert not fresh.should_go_on
    [learner] = learners_of(connect({fresh.name: fresh}))
    run_by_turns(learner.run())
    again = type(host)(host.terms, fresh.neighbourhood)
    again.restore(fresh.save())
    assert not again.should_go_on


@pytest.mark.parametrize("walks", [False, True], ids=["messages", "walks"])
def test_a_host_whose_neighbours_are_all_away_keeps_its_rounds_for_later(walks):
    terms = make_terms(walks=walks, rounds=5, pairs=2_000, start="random", smooth=False)
    a = make_host(terms, Neighbourhood.build("a", [Edge("x", ("y", "b"))]))
    b = make_host(terms, Neighbourhood.build("b", [Edge("y", ("x", "a"))]))
    services = connect({"a": a, "b": b})
    away = services.pop("b")
    if not walks:
        next(b.script())
        b.compute()  # it shows what it has

    async def run():
        [learner] = learners_of(services)
        learner.peers = ["b"]
        await learner.meet_all(0.0)
        learning = asyncio.create_task(learner.run())
        await asyncio.sleep(0.3)
        assert a.round == 0
        services["b"] = away
        learner.service.contacts["b"].again = 0.0
        await learning

    run_by_turns(run())
    assert a.round == 5
    assert a.pairs > 0


def test_a_start_waits_once_for_a_peer_that_does_not_move_and_so_does_smoothing():
    """It answers that it is not ready, at each of some thirty steps."""
    graph, _ = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    hosts, _ = split_over(graph, 3, make_terms(rounds=2, pairs=None, start="spectral", noise=0.0))
    services = connect(hosts, deadline=0.5)

    async def run():
        learners = learners_of(services, grace=0.2, finish=60.0)
        await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(learner.run() for learner in learners[:-1]))  # the third does nothing
        return asyncio.get_running_loop().time() - began

    seconds = run_by_turns(run())
    assert all(hosts[name].done for name in ("h0", "h1"))
    assert 120.0 < seconds < 140.0
