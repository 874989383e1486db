"""Hosts that learn by walks: relays, and the bounds of what travels."""

import asyncio

import numpy as np
import pytest
from harness import connect, learners_of, make_terms, meet_all, run_by_turns, split_over

from manela.errors import BadVectorError, MalformedError
from manela.formats.datasets import stochastic_block_model
from manela.hosts.state.messages import WalkReply, WalkRequest
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.answering import Pending
from manela.hosts.walks.host import make_host

EMPTY = np.zeros(0, np.int64)


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)


def ask_for_walks(host):
    """The requests of a round."""
    next(host.script())
    return host.requests()


def relaying(graph):
    """Three hosts that have met, walks of three hops, and an answer of h1 to h0 for which h2 must be asked."""
    terms = make_terms(walks=True, ratios=(0.2, 0.2, 0.6), rounds=20, pairs=100_000)
    hosts, _ = split_over(graph, 3, terms)
    meet_all(hosts)
    request = ask_for_walks(hosts["h0"])["h1"]
    pending = hosts["h1"].answer("h0", request)
    assert isinstance(pending, Pending)
    assert "h2" in pending.requests
    return hosts, request, pending


def test_a_third_host_that_answers_wrongly_is_refused_and_the_asker_is_answered(blocks):
    hosts, request, pending = relaying(blocks[0])
    asked = pending.requests["h2"]
    vectors = np.zeros((0, 1, 8), np.float32)
    wrong = WalkReply(1, EMPTY, vectors, np.full(asked.size, -2 - 10**6), vectors)
    reply, refused = hosts["h1"].resume(pending, {"h2": wrong})
    assert isinstance(refused["h2"], MalformedError)
    assert len(reply.index) == request.size


def test_a_peer_that_is_forgotten_while_it_is_asked_does_no_harm(blocks):
    hosts, _, pending = relaying(blocks[0])
    asked = pending.requests["h2"]
    vectors = np.ones((1, 1, 8), np.float32)
    hosts["h1"].sessions.forget("h2")
    reply, refused = hosts["h1"].resume(
        pending, {"h2": WalkReply(1, EMPTY, vectors[:0], np.zeros(asked.size, int), vectors)}
    )
    assert not refused
    assert (reply.vectors == 1.0).all(axis=(1, 2)).any()


def test_a_third_host_that_hangs_holds_nobody_up(blocks):
    hosts, _ = split_over(blocks[0], 3, make_terms(walks=True, ratios=(0.2, 0.2, 0.6), rounds=6, pairs=10_000))
    services = connect(hosts, deadline=1.0)

    async def run():
        learners = learners_of(services, grace=0.6)
        await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))

        async def hang(*_):
            await asyncio.sleep(3600)

        services["h2"].serve = hang
        await asyncio.gather(*(learner.run() for learner in learners[:2]))
        for service in services.values():
            for contact in service.contacts.values():
                contact.end()

    run_by_turns(run())
    assert hosts["h0"].round == hosts["h1"].round == 6
    assert services["h0"].contacts["h1"].trouble == services["h1"].contacts["h0"].trouble == ""


def ask_for_random(host, peer, amount):
    session = host.peers[peer].session.number
    return host.answer(peer, WalkRequest(session, 0, False, 0, EMPTY, EMPTY, random=amount))


def test_a_peer_without_an_edge_gets_no_random_vectors():
    a = make_host(make_terms(walks=True), Neighbourhood.build("a", [Edge("x", ("y", "a")), Edge("x", ("z", "b"))]))
    b = make_host(make_terms(walks=True), Neighbourhood.build("b", [Edge("u", ("v", "b"))]))
    meet_all({"a": a, "b": b})
    reply = ask_for_random(a, "b", 100)
    assert len(reply.vectors) == 0
    assert (reply.index == -1).all()


def test_a_peer_gets_its_share_of_the_pool_in_a_round_however_often_it_asks(blocks):
    hosts, _ = split_over(blocks[0], 3, make_terms(walks=True, pool=30))
    for host in hosts.values():
        host.peers.configure({name: other.own for name, other in hosts.items()})
    meet_all(hosts)
    given = [np.count_nonzero(ask_for_random(hosts["h0"], "h1", 20).index >= 0) for _ in range(5)]
    assert sum(given) == 11  # a third of the pool, and one for rounding


def test_the_order_of_vectors_tells_nothing(blocks):
    hosts, _ = split_over(blocks[0], 2, make_terms(walks=True, pool=10_000))
    meet_all(hosts)
    host = hosts["h0"]
    vectors = ask_for_random(host, "h1", 2000).vectors[:, 0]
    rows = [int(np.flatnonzero((host.vectors[:, 0] == vector).all(axis=1))[0]) for vector in vectors]
    assert len(set(rows)) > 60
    assert abs(np.corrcoef(rows, np.arange(len(rows)))[0, 1]) < 0.4
    again = ask_for_random(host, "h1", 100).vectors[:, 0]
    assert len(again)


def test_a_bad_vector_is_left_out_and_its_sender_blamed(blocks):
    hosts, _ = split_over(blocks[0], 2, make_terms(walks=True))
    meet_all(hosts)
    host = hosts["h0"]
    request = ask_for_walks(host)["h1"]
    honest = hosts["h1"].answer("h0", request)
    vectors, neighbours = honest.vectors.copy(), honest.neighbours.copy()
    vectors[0], neighbours[0], neighbours[1] = np.nan, np.inf, 1e6
    refusals = host.receive("h1", request, WalkReply(1, honest.changed, neighbours, honest.index, vectors))
    assert [type(refusal) for refusal in refusals] == [BadVectorError, BadVectorError]
    host._settle(host._plan)
    host._plan.compute()
    assert all(np.isfinite(room).all() for room in host._plan.moved)
    longest = np.linalg.norm(host.tables[0][host.own : host.known], axis=1).max()
    assert longest <= 2.01 * np.median(np.linalg.norm(host.vectors[:, 0], axis=1))


def test_a_host_that_is_done_keeps_knowing_its_peers(blocks):
    hosts, _ = split_over(blocks[0], 2, make_terms(walks=True, rounds=3, pairs=3_000))
    services = connect(hosts)

    async def run():
        learners = learners_of(services)
        await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))
        await asyncio.gather(*(learner.run() for learner in learners))
        # h1 is restarted, and moves on
        fresh = make_host(hosts["h1"].terms, hosts["h1"].neighbourhood)
        services["h1"].host = fresh
        staying = asyncio.create_task(learners[0].stay())
        while "h0" not in fresh.peers.greetings or not hosts["h0"].sessions.knows("h1"):
            await asyncio.sleep(0.1)
        learners[0].end()
        await staying
        return fresh

    fresh = run_by_turns(run())
    assert "h0" in fresh.peers.greetings
    assert hosts["h0"].sessions.knows("h1")
