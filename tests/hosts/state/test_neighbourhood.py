"""The accessibility circumscription."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manela.errors import AgentError, ClaimError, MalformedError, NotAdjacentError, RefusedError, TooFarError
from manela.hosts.state.names import parse_node
from manela.hosts.state.neighbourhood import Edge, Neighbourhood, check_steps, find_distinct


@pytest.fixture
def near():
    """x - y here, x - p at host b, y - q at host c."""
    edges = [Edge("x", ("y", "a")), Edge("x", ("p", "b"), 2.0), Edge("y", ("q", "c")), Edge("alone", None)]
    return Neighbourhood.build("a", edges)


def admit(near, peer, asker, through):
    """The arc of one edge, or the refusal of it."""
    arcs, refusals = near.admit_all(peer, [asker], [through])
    for refusal in refusals:
        raise refusal
    return int(arcs[0])


def reason(call, *arguments):
    with pytest.raises(RefusedError) as refused:
        call(*arguments)
    return refused.value.reason


def test_own_nodes_come_first_and_edges_go_both_ways(near):
    assert near.nodes == ["alone", "x", "y"]
    assert near.remotes == [("p", "b"), ("q", "c")]
    assert near.peers == ["b", "c"]
    assert np.diff(near.indptr).tolist() == [0, 2, 2]
    names = sorted(near.name_arc(arc) for arc in range(len(near.indices)))
    assert names == [("x", ("p", "b")), ("x", ("y", "a")), ("y", ("q", "c")), ("y", ("x", "a"))]
    assert near.weights[admit(near, "b", "p@b", "x")] == 2.0


def test_a_peer_may_ask_for_its_own_node_through_an_adjacent_one(near):
    assert near.name_arc(admit(near, "b", "p@b", "x")) == ("x", ("p", "b"))


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
    assert reason(admit, near, peer, asker, through) == why


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=5))
def test_nothing_but_an_edge_of_its_own_is_admitted(asker, through, peer):
    near = Neighbourhood.build("a", [Edge("x", ("p", "b"))])
    if (peer, asker, through) != ("b", "p@b", "x"):
        assert reason(admit, near, peer, asker, through) in (
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


def test_a_node_is_not_its_own_neighbour():
    near = Neighbourhood.build("a", [Edge("x", ("x", "a")), Edge("x", ("y", "a"))])
    assert near.indices.tolist() == [1, 0]


def test_the_later_of_two_weights_holds():
    near = Neighbourhood.build("a", [Edge("x", ("p", "b"), 1.0), Edge("x", ("p", "b"), 5.0)])
    assert near.weights.tolist() == [5.0]


def test_arcs_of_a_node_go_by_rank():
    near = Neighbourhood.build("a", [Edge("x", ("q", "b")), Edge("x", ("p", "b")), Edge("x", ("z", "a"))])
    assert [near.name_arc(arc)[1] for arc in range(3)] == [("z", "a"), ("p", "b"), ("q", "b")]


def test_an_edge_that_is_introduced_twice_is_refused():
    near = Neighbourhood.build("a", [Edge("x", ("p", "b"))])
    with pytest.raises(MalformedError, match="introduced twice"):
        near.admit_edges("b", ["p@b", "p@b"], ["x", "x"])


def test_numbers_of_edges_end_where_they_end():
    near = Neighbourhood.build("a", [Edge("x", ("p", "b")), Edge("y", ("p", "b"))])
    admitted, _ = near.admit_edges("b", ["p@b", "p@b"], ["y", "x"])
    assert admitted.find_rows(np.array([0, 1])).tolist() == [1, 0]
    for edges in ([2], [-1]):
        with pytest.raises(NotAdjacentError, match="numbered 0 to 1"):
            admitted.find_rows(np.array(edges))


def test_distinct_values_are_in_the_order_of_first_appearance():
    assert find_distinct(np.array([7, 3, 7, 5, 3])).tolist() == [7, 3, 5]


def test_bytes_of_names_count_for_each_edge():
    near = Neighbourhood.build("a", [Edge("own", ("p", "b")), Edge("own", ("qq", "b")), Edge("own", ("z", "c"))])
    assert near.count_bytes("b") == (2, 2 * len("own") + len("p") + len("qq"))


def test_a_digest_tells_weights_apart():
    one, other = (Neighbourhood.build("a", [Edge("x", ("p", "b"), weight)]) for weight in (1.0, 2.0))
    assert one.digest != other.digest
