"""The two ways to learn between hosts: which host, which calls, and what a call may cost."""

import numpy as np
import pytest
from harness import draw_graph, make_terms, meet_all, split_over

from manela.errors import MalformedError
from manela.hosts.state.instructions import Ask
from manela.hosts.state.messages import ROUND, START, Pull, Step, WalkReply, WalkRequest
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.rounds import MessageHost
from manela.hosts.walks.host import WalkHost, make_host
from manela.hosts.wire import calls
from manela.hosts.wire.calls import SHOW, WALK
from manela.hosts.wire.codec import decode_walk_reply, encode
from manela.hosts.wire.frames import LARGEST


def met(**options):
    """Two hosts that have met."""
    hosts, _ = split_over(draw_graph(3), 2, make_terms(**options))
    meet_all(hosts)
    return hosts["h0"], hosts["h1"]


def walk(edges=3, neighbours=True, **more):
    places = np.zeros(edges, np.int64)
    return WalkRequest(1, 0, neighbours, 0, places, places + 1, **more)


@pytest.mark.parametrize(("walks", "kind", "call"), [(False, MessageHost, SHOW), (True, WalkHost, WALK)])
def test_terms_say_which_host_it_is_and_by_which_call_it_asks(walks, kind, call):
    host = make_host(make_terms(walks=walks), Neighbourhood.build("a", [Edge("x", ("y", "a"))]))
    assert type(host) is kind
    assert calls.name_call(host) == call


def test_by_messages_a_request_costs_a_vector_for_each_neighbour_table_and_level():
    host, _ = met(context=True, ratios=(0.5, 0.3, 0.2))
    neighbours = host.sessions.count_neighbours("h1")
    assert neighbours > 0
    assert calls.count_cost(host, "h1", Pull(1, Step(ROUND, 0))) == (0, 2 * 3 * neighbours)
    assert calls.count_cost(host, "h1", Pull(1, Step(START, 0))) == (0, neighbours)
    assert calls.count_cost(host, "stranger", Pull(1, Step(ROUND, 0))) == (0, 0)


def test_by_walks_a_request_costs_its_walks_random_nodes_and_neighbours():
    host, _ = met(walks=True)
    neighbours = host.sessions.count_neighbours("h1")
    assert calls.count_cost(host, "h1", walk(random=5)) == (3, 3 + 5 + neighbours)
    assert calls.count_cost(host, "h1", walk(neighbours=False)) == (3, 3)
    assert calls.count_cost(host, "stranger", walk()) == (3, 3)


def test_requests_come_back_from_bytes_and_other_bytes_are_refused():
    host, _ = met()
    request = Pull(7, Step(ROUND, 3, 1), since=9)
    assert calls.decode_request(host, encode(request)) == request
    assert len(encode(request)) <= calls.bound_request(host)
    with pytest.raises(MalformedError):
        calls.decode_request(host, b"\xff\xff")
    host, _ = met(walks=True)
    found = calls.decode_request(host, encode(walk(random=2)))
    assert (found.edges.tolist(), found.steps.tolist(), found.random) == ([0, 0, 0], [1, 1, 1], 2)
    with pytest.raises(MalformedError):
        calls.decode_request(host, b"\xff\xff")


@pytest.mark.parametrize("options", [{}, {"half": False}, {"context": True}, {"lock_step": True}])
def test_an_honest_answer_by_messages_fits_and_comes_back(options):
    host, other = met(**options)
    script = host.script()
    while not isinstance(next(script), Ask):  # by then it has published something
        host.compute()
    request = Pull(other.peers.links["h0"].session, host.step)
    answer = host.answer("h1", request)
    content = calls.encode_reply(host, "h1", answer)
    assert len(content) <= calls.bound_reply(other, "h0", request)
    found = calls.decode_reply(other, "h0", request, content)
    np.testing.assert_allclose(found.rows, answer.rows.astype(np.float32), rtol=1e-3, atol=1e-6)
    assert found.changed.tolist() == answer.changed.tolist()
    assert found.step == host.step
    script.close()


def test_an_answer_by_walks_is_bound_by_what_was_asked_for():
    host, _ = met(walks=True)
    known = len(host.peers.links["h1"].neighbours)
    bound = calls.bound_reply(host, "h1", walk(edges=10))
    assert bound == (16 + 4 * 8) * (10 + known) + 4096
    assert calls.bound_reply(host, "stranger", walk(edges=10)) == (16 + 4 * 8) * 10 + 4096
    assert calls.bound_reply(host, "h1", walk(edges=10, random=10**9)) == LARGEST


@pytest.mark.parametrize(
    ("own", "theirs", "lock_step", "halves"),
    [(True, True, False, True), (False, True, False, False), (True, False, False, False), (True, True, True, False)],
)
def test_vectors_travel_as_halves_where_both_say_so_and_bits_do_not_matter(own, theirs, lock_step, halves):
    terms = [make_terms(lock_step, walks=True, half=half) for half in (own, theirs)]
    graph = draw_graph(3)
    host = split_over(graph, 2, terms[0])[0]["h0"]
    other = split_over(graph, 2, terms[1])[0]["h1"]
    meet_all({"h0": host, "h1": other})
    vectors = np.full((2, 1, 8), 1 / 3, np.float32)
    reply = WalkReply(1, np.zeros(0, np.int64), np.zeros((0, 1, 8), np.float32), np.arange(2), vectors)
    request = walk(edges=2, neighbours=False)
    found = decode_walk_reply(calls.encode_reply(host, "h1", reply), request, 1, 8)
    assert (found.vectors[0, 0, 0] != np.float32(1 / 3)) == halves
    np.testing.assert_allclose(found.vectors, vectors, rtol=1e-3)
