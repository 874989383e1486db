"""The accessibility circumscription."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.agents.names import parse_node
from manela.agents.neighbourhood import Edge, Neighbourhood, check_steps
from manela.errors import AgentError, ClaimError, MalformedError, NotAdjacentError, RefusedError, TooFarError


@pytest.fixture
def near():
    """x - y here, x - p at host b, y - q at host c."""
    edges = [Edge("x", ("y", "a")), Edge("x", ("p", "b"), 2.0), Edge("y", ("q", "c")), Edge("alone", None)]
    return Neighbourhood.build("a", edges)


def reason(call, *arguments):
    with pytest.raises(RefusedError) as refused:
        call(*arguments)
    return refused.value.reason


def test_own_nodes_come_first_and_edges_go_both_ways(near):
    assert near.nodes == ["alone", "x", "y"]
    assert near.strangers == [("p", "b"), ("q", "c")]
    assert near.peers == ["b", "c"]
    assert np.diff(near.indptr).tolist() == [0, 2, 2]
    names = sorted(near.name_arc(arc) for arc in range(len(near.indices)))
    assert names == [("x", ("p", "b")), ("x", ("y", "a")), ("y", ("q", "c")), ("y", ("x", "a"))]
    assert near.weights[near.admit("b", "p@b", "x")] == 2.0


def test_a_peer_may_ask_for_its_own_node_through_an_adjacent_one(near):
    assert near.name_arc(near.admit("b", "p@b", "x")) == ("x", ("p", "b"))


@pytest.mark.parametrize(
    ("peer", "asker", "through", "why"),
    [
        ("c", "p@b", "x", ClaimError.reason),  # a node of another host
        ("b", "x@a", "y", ClaimError.reason),  # a node of the host that is asked
        ("b", "p@b", "y", NotAdjacentError.reason),  # hosted here, not adjacent
        ("b", "p@b", "alone", NotAdjacentError.reason),
        ("b", "p@b", "nobody", NotAdjacentError.reason),  # told apart from the above by nothing
        ("b", "stranger@b", "x", NotAdjacentError.reason),
        ("b", "p", "x", MalformedError.reason),
        ("b", "p@", "x", MalformedError.reason),
        ("b", "@b", "x", MalformedError.reason),
        ("b", "p@B!", "x", MalformedError.reason),
        ("b", "p\n@b", "x", MalformedError.reason),
        ("b", "p" * 300 + "@b", "x", MalformedError.reason),
    ],
)
def test_everything_else_is_refused(near, peer, asker, through, why):
    assert reason(near.admit, peer, asker, through) == why


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=5))
def test_nothing_but_an_edge_of_its_own_is_admitted(asker, through, peer):
    near = Neighbourhood.build("a", [Edge("x", ("p", "b"))])
    if (peer, asker, through) != ("b", "p@b", "x"):
        assert reason(near.admit, peer, asker, through) in (
            ClaimError.reason,
            NotAdjacentError.reason,
            MalformedError.reason,
        )


def test_walks_stay_within_the_hops():
    check_steps(np.array([], dtype=np.int64), 1)
    check_steps(np.array([1, 2]), 3)
    for steps, hops in (([1], 1), ([0], 3), ([3], 3), ([1, 200], 3)):
        assert reason(check_steps, np.array(steps), hops) == TooFarError.reason


def test_a_name_may_have_an_at_sign():
    assert parse_node("ann@home@b") == ("ann@home", "b")


def test_lock_step_needs_numbers_of_all():
    with pytest.raises(AgentError, match="p@b has none"):
        Neighbourhood.build("a", [Edge("x", ("p", "b"))], {("x", "a"): 0})
