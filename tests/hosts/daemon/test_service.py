"""What a service does with whatever peers ask."""

import asyncio

import numpy as np
import pytest
from harness import connect, draw_graph, make_terms, split_over
from hypothesis import given, settings
from hypothesis import strategies as st

from manela.errors import REFUSALS, MalformedError, RefusedError, SessionError, TooOftenError, TooSlowError
from manela.hosts.daemon.contacts import TokenBuckets
from manela.hosts.state.messages import ROUND, Hello, Introduction, Pull, Step, WalkRequest
from manela.hosts.state.terms import RateLimits
from manela.hosts.wire.calls import GREET, INTRODUCE, SHOW, WALK
from manela.hosts.wire.codec import encode

EMPTY = np.zeros(0, np.int64)


@pytest.fixture(
    scope="module", params=[(False, True), (True, True), (False, False), (True, False)],
    ids=["free, walks", "lock-step, walks", "free, messages", "lock-step, messages"],
)  # fmt: skip
def met(request):
    """Two hosts that have met."""
    lock_step, walks = request.param
    hosts, _ = split_over(draw_graph(3), 2, make_terms(lock_step, walks=walks))
    services = connect(hosts, rates=RateLimits(requests=1e9, walks=1e12, vectors=1e12), deadline=0.01)

    async def meet_both():
        await asyncio.gather(services["h0"].meet("h1"), services["h1"].meet("h0"))

    with asyncio.Runner() as runner:
        runner.run(meet_both())
        services["h0"].runner = runner
        yield services


def ask(service, kind, content, peer="h1"):
    """The answer, or the reason of a refusal; nothing else may come out."""
    try:
        return service.runner.run(service.serve(peer, kind, content))
    except RefusedError as refused:
        assert refused.reason in REFUSALS
        assert refused.expected or service.contacts[peer].refusals[refused.reason]
        return refused.reason


@settings(max_examples=150)
@given(st.sampled_from([GREET, INTRODUCE, SHOW, WALK, "Nothing"]), st.binary(max_size=100))
def test_bytes_of_any_kind_are_answered_or_refused(met, kind, content):
    ask(met["h0"], kind, content)


numbers = st.integers(0, 2**32 - 1)
few = st.lists(st.one_of(st.integers(0, 100), numbers), max_size=5)


@settings(max_examples=200)
@given(
    st.integers(0, 2**64 - 1), st.booleans(), st.integers(0, 2**64 - 1), few, st.lists(st.integers(0, 255), max_size=5),
    st.integers(0, 10_000), few, st.integers(0, 50), st.booleans(),
)  # fmt: skip
def test_valid_shaped_nonsense_is_answered_or_refused(
    met, session, neighbours, since, edges, steps, random, some, round_, real
):
    service = met["h0"]
    if real:
        session = service.host.peers["h1"].session.number
    size = min(len(edges), len(steps))
    request = WalkRequest(
        session, round_, neighbours, since, np.array(edges[:size], np.int64), np.array(steps[:size], np.int64),
        random=random, firsts=np.zeros(size, np.int64), keys=np.arange(size).astype(np.uint64),
        numbers=np.array(some, np.int64),
    )  # fmt: skip
    found = ask(service, WALK, encode(request))
    if not real and hasattr(service.host, "drawing"):
        assert found == SessionError.reason


@settings(max_examples=200)
@given(
    st.integers(0, 2**64 - 1), st.integers(0, 8), st.integers(0, 2**40), st.integers(0, 5),
    st.integers(0, 2**64 - 1), st.booleans(),
)  # fmt: skip
def test_pulls_of_nonsense_are_answered_or_refused(met, session, phase, number, level, since, real):
    service = met["h0"]
    if real:
        session = service.host.peers["h1"].session.number
    found = ask(service, SHOW, encode(Pull(session, Step(phase, number, level), since)))
    if not real and hasattr(service.host, "step"):
        assert found in (SessionError.reason, MalformedError.reason)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6)), max_size=5))
def test_introductions_of_nonsense_open_nothing(met, pairs):
    service = met["h0"]
    kept = service.host.peers["h1"].session
    try:
        introduction = Introduction([f"{a}@h1" for a, _ in pairs], [b for _, b in pairs])
        content = encode(introduction)
    except RefusedError:
        return
    ask(service, INTRODUCE, content)
    near = service.host.neighbourhood
    real = {near.name_arc(arc) for arc in range(len(near.indices)) if near.name_arc(arc)[1][1] == "h1"}
    introduced = {
        service.host.neighbourhood.name_arc(arc) for arc in service.host.peers["h1"].session.admitted.arcs.tolist()
    }
    assert introduced <= real
    service.host.peers["h1"].session = kept


@given(st.integers(0, 2**32 - 1), st.integers(0, 300), st.text(max_size=5), st.text(max_size=9))
def test_greetings_on_other_terms_are_refused(met, dimensions, hops, host, exchange):
    service = met["h0"]
    try:
        content = encode(Hello(host, exchange, dimensions, hops, False, False, True, 5))
    except RefusedError:
        return
    before = service.host.peers.greetings["h1"]
    assert isinstance(ask(service, GREET, content), str)
    assert service.host.peers.greetings["h1"] is before


def test_a_flood_waits_and_is_then_refused():
    hosts, _ = split_over(draw_graph(3), 2, make_terms(walks=True))
    services = connect(hosts, rates=RateLimits(requests=20.0, longest_wait=0.2))

    async def flood():
        await services["h1"].meet("h0")
        session = hosts["h0"].peers["h1"].session.number
        content = encode(WalkRequest(session, 0, False, 0, EMPTY, EMPTY, random=1))
        loop = asyncio.get_running_loop()
        begun = loop.time()
        answers = []
        for _ in range(250):
            try:
                await services["h0"].serve("h1", WALK, content)
                answers.append(None)
            except RefusedError as refused:
                answers.append(refused.reason)
        return answers, loop.time() - begun

    answers, seconds = asyncio.run(flood())
    assert answers.count(None) >= 198  # ten seconds' worth at once, less the meeting
    # what comes faster is held back to the rate, not dropped
    assert seconds > 0.5 * (answers.count(None) - 198) / 20.0
    assert set(answers) <= {None, TooOftenError.reason}

    async def all_at_once():
        content = encode(WalkRequest(hosts["h0"].peers["h1"].session.number, 0, False, 0, EMPTY, EMPTY, random=1))
        calls = [services["h0"].serve("h1", WALK, content) for _ in range(100)]
        return await asyncio.gather(*calls, return_exceptions=True)

    found = asyncio.run(all_at_once())
    refused = [one for one in found if isinstance(one, RefusedError)]
    assert len(refused) >= 60
    assert {one.reason for one in refused} == {TooOftenError.reason}
    assert services["h0"].contacts["h1"].refusals[TooOftenError.reason] == len(refused) + answers.count(
        TooOftenError.reason
    )


def test_limits_of_one_peer_leave_others_alone():
    limits = {name: TokenBuckets(RateLimits(vectors=100.0, longest_wait=1.0)) for name in "ab"}
    assert limits["a"].take(0.0, 0, 1000) == 0.0
    with pytest.raises(RefusedError, match="try again in 9 s"):
        limits["a"].take(0.0, 0, 900)
    assert limits["b"].take(0.0, 0, 1000) == 0.0
    assert limits["a"].take(9.0, 0, 900) == 0.0


def test_a_round_that_never_begins_is_refused_in_time(met):
    service = met["h0"]
    session, lock_step = service.host.peers["h1"].session.number, service.host.terms.lock_step
    if hasattr(service.host, "step"):
        found = ask(service, SHOW, encode(Pull(session, Step(ROUND, 5))))
    else:
        request = WalkRequest(
            session, 5, True, 0, EMPTY, EMPTY, firsts=EMPTY, keys=EMPTY.astype(np.uint64), numbers=EMPTY
        )
        found = ask(service, WALK, encode(request))
    # free hosts answer with what they have
    assert found == TooSlowError.reason if lock_step else isinstance(found, bytes)


def test_what_a_peer_may_send_goes_by_the_edges_listed_with_it(met):
    service = met["h0"]
    near = service.host.neighbourhood
    edges, names = near.count_bytes("h1")
    assert edges == len(near.arcs_to("h1"))
    assert names == sum(
        len(one) for arc in near.arcs_to("h1").tolist() for one in (near.name_arc(arc)[0], near.name_arc(arc)[1][0])
    )
    true = encode(met["h1"].host.sessions.introduce("h0"))
    assert len(true) < service.bound_request("h1", INTRODUCE) < 1_000_000
    assert near.count_bytes("stranger") == (0, 0)
    assert service.bound_request("stranger", INTRODUCE) < 1_000_000


def test_bytes_that_went_count():
    hosts, _ = split_over(draw_graph(3), 2, make_terms())
    services = connect(hosts, rates=RateLimits(megabytes=1e-3, longest_wait=0.001))

    async def ask_often():
        await services["h1"].meet("h0")
        content = encode(hosts["h1"].sessions.introduce("h0"))
        for _ in range(1000):
            await services["h0"].serve("h1", INTRODUCE, content)

    with pytest.raises(TooOftenError):
        asyncio.run(ask_often())


def test_nothing_is_left_of_a_peer_that_is_forgotten():
    hosts, _ = split_over(draw_graph(3), 2, make_terms())
    services = connect(hosts)

    async def meet_and_forget():
        await asyncio.gather(services["h0"].meet("h1"), services["h1"].meet("h0"))
        await services["h0"].serve("h1", INTRODUCE, encode(hosts["h1"].sessions.introduce("h0")))
        services["h0"].forget("h1")

    asyncio.run(meet_and_forget())
    assert "h1" not in services["h0"].contacts
    assert "h1" not in hosts["h0"].peers
