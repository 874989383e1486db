"""Sums over all nodes of a host: no difference between two of them shows a vector."""

import numpy as np
import pytest
from harness import learn, make_terms, meet_all, split_over

from manela.formats.datasets import planted_partition
from manela.hosts.state.messages import ROUND, Pull, Step
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.host import make_host

TERMS = {"start": "spectral", "dimensions": 16, "pairs": None, "rounds": 6, "ratios": (0.5, 0.5)}


@pytest.fixture
def hosts():
    graph, _ = planted_partition(400, 8, inside=3, outside=0.5, seed=3)  # sparse, so that most nodes are hidden
    parts = ["a" if row < 200 else "b" for row in np.random.default_rng(0).permutation(400)]
    found, _ = split_over(graph, parts, make_terms(**TERMS))
    # a host that shows moments: few of its nodes have neighbours at the other
    near = found["a"].neighbourhood
    kept = [edge for edge in list_edges(near) if edge.other[1] == "a" or int(edge.own) % 3 == 0]
    found["a"] = make_host(found["a"].terms, Neighbourhood.build("a", kept))
    return found


def list_edges(near):
    names = [(name, near.host) for name in near.nodes] + near.remotes
    return [
        Edge(near.nodes[source], names[index])
        for source, index in zip(near.sources.tolist(), near.indices.tolist(), strict=True)
    ]


def test_sums_stay_as_they_are_when_one_of_their_nodes_is_removed(hosts):
    learn(hosts)
    host = hosts["a"]
    moments, joined = host.publisher.sums.moments, host.publisher.sums.joined
    assert moments
    assert joined is not None
    gone = next(name for name in host.neighbourhood.nodes if int(name) % 3)
    kept = [edge for edge in list_edges(host.neighbourhood) if gone not in (edge.own, edge.other[0])]
    after = host.renew(Neighbourhood.build("a", kept))
    assert after.own < host.own
    after.reopen()
    hosts["a"] = after
    meet_all(hosts)
    learn(hosts)
    assert after.round > host.round
    assert after.publisher.sums.moments is moments
    assert after.publisher.sums.joined is joined


def test_a_new_node_is_in_no_sum_before_the_next_frame(hosts):
    learn(hosts)
    host = hosts["a"]
    edges = [*list_edges(host.neighbourhood), Edge("new", (host.neighbourhood.nodes[0], "a"))]
    after = host.renew(Neighbourhood.build("a", edges))
    assert len(after.publisher.sums.find_cohort(after.neighbourhood)) == host.own
    assert after.own == host.own + 1


def test_moments_are_shown_a_few_times_in_a_frame_however_long_a_host_learns(hosts):
    learn(hosts)
    host = hosts["a"]
    shown = [host.publisher.sums.moments]
    for _ in range(40):
        host.version += 1
        host.publisher._means_due = 0
        host.publisher.show()
        shown.append(host.publisher.sums.moments)
    assert len({id(moments) for moments in shown}) <= 16


def test_a_peer_that_introduces_some_of_its_edges_sees_no_moments_that_all_of_them_would_hide():
    """64 nodes have an edge with b, and one has none; b introduces 33 edges first, as if 32 nodes were hidden."""
    edges = [Edge(f"n{row}", ("x", "b")) for row in range(64)] + [Edge("n0", ("hidden", "a"))]
    few = Neighbourhood.build("b", [Edge("x", (f"n{row}", "a")) for row in range(33)])
    terms = make_terms(start="random")
    found = {"a": make_host(terms, Neighbourhood.build("a", edges)), "b": make_host(terms, few)}
    meet_all(found)
    found["a"].publisher.show()
    session = found["a"].peers["b"].session
    assert len(session.admitted.neighbours) == 33
    assert found["a"].publisher.sums.moments
    assert found["a"].answer("b", Pull(session.number, Step(ROUND, 0))).moments == []


def test_peers_that_pool_what_they_see_have_no_sums_of_a_few_nodes():
    """Each of two peers does not see 45 of 65 nodes, but both together see all but five."""
    edges = [Edge(f"n{row}", ("x", "b" if row % 2 else "c")) for row in range(60)]
    edges += [Edge("n0", (f"hidden{row}", "a")) for row in range(5)]
    terms = make_terms(start="random")
    found = {"a": make_host(terms, Neighbourhood.build("a", edges))}
    for name, odd in (("b", 1), ("c", 0)):
        own = [Edge("x", (f"n{row}", "a")) for row in range(60) if row % 2 == odd]
        found[name] = make_host(terms, Neighbourhood.build(name, own))
    meet_all(found)
    found["a"].publisher.show()
    for name in ("b", "c"):
        number = found["a"].peers[name].session.number
        assert found["a"].answer(name, Pull(number, Step(ROUND, 0))).moments == []
