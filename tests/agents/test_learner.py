"""Learners: how long they wait for whom."""

import asyncio

import pytest
from harness import connect, learners_of, make_terms, split_over

from manela.datasets.generators import stochastic_block_model


@pytest.fixture(scope="module")
def hosts():
    graph, _ = stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)
    found, _ = split_over(graph, 2, make_terms(rounds=30, pairs=None, smooth=False, start="random", every=1))
    return found


def test_rounds_are_not_spent_while_a_peer_is_away_until_patience_is_over(hosts):
    services = connect(hosts)

    async def run():
        learner, other = learners_of(services, wait=1.0)
        await asyncio.gather(learner.meet_all(5.0), other.meet_all(5.0))
        away = services.pop("h1")
        running = asyncio.create_task(learner.run())
        while not learner.trouble_with("h1"):
            await asyncio.sleep(0.001)
        spent = learner.host.round
        await asyncio.sleep(0.3)
        assert learner.host.round <= spent + 1
        services["h1"] = away
        learner.contacts["h1"].again = 0.0
        while learner.trouble_with("h1"):
            await asyncio.sleep(0.001)
        left = learner.contacts["h1"].patience
        assert left < 0.9
        services.pop("h1")
        await asyncio.wait_for(running, 30.0)  # it goes on alone when it has waited long enough
        return learner

    learner = asyncio.run(run())
    assert learner.host.done
    assert learner.contacts["h1"].patience <= 0.1
