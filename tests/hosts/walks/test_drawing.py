"""What a host draws for a round by walks."""

import numpy as np
import pytest

from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.drawing import ActiveArcs, WalkPlan
from manela.kernels.layout import allocate

EDGES = [Edge("x", ("y", "a"), 3.0), Edge("x", ("p", "b"), 1.0), Edge("y", ("p", "b"), 5.0), Edge("z", None)]


@pytest.fixture
def near():
    return Neighbourhood.build("a", EDGES)


def test_active_arcs_keep_their_order_and_say_which_they_are_among_all(near):
    assert near.indices.tolist() == [1, 3, 0, 3]
    found = ActiveArcs.build(near, np.array([False, True, True, True]), weighted=False)
    assert found.arcs.indptr.tolist() == [0, 1, 3, 3]
    assert found.arcs.indices.tolist() == [3, 0, 3]
    assert found.positions.tolist() == [1, 2, 3]
    assert found.names(np.array([0, -1, 2])).tolist() == [1, -1, 3]
    assert found.arcs.thresholds is found.arcs.aliases is None


def test_where_no_arc_is_active_nothing_can_be_named(near):
    found = ActiveArcs.build(near, np.zeros(4, bool), weighted=True)
    assert found.arcs.indptr.tolist() == [0, 0, 0, 0]
    assert found.names(np.array([-1, -1])).tolist() == [-1, -1]
    assert found.names(np.zeros(0, np.int64)).tolist() == []


def test_weights_of_active_arcs_alone_decide_where_a_step_goes(near):
    found = ActiveArcs.build(near, np.ones(4, bool), weighted=True)
    chances = np.zeros(2)
    for place in range(2):  # the arcs of x, 3 to 1
        kept = found.arcs.thresholds[place] / 2**32
        chances[place] += kept / 2
        chances[found.arcs.aliases[place]] += (1 - kept) / 2
    np.testing.assert_allclose(chances, [0.75, 0.25], atol=1e-6)
    alone = ActiveArcs.build(near, np.array([False, True, True, True]), weighted=True)
    assert alone.arcs.thresholds[0] >= 2**32 - 2  # the only one of x


def make_plan(targets, negatives=0, rate=0.1, lookup=(), tables=1):
    table = [allocate(4, 3) for _ in range(tables)]
    for number, one in enumerate(table):
        one[:, :3] = np.random.default_rng(number).normal(size=(4, 3))
    targets = np.array(targets, np.int64)
    return WalkPlan(
        round=0, rate=rate, key=np.uint64(5), negatives=negatives, nodes=np.array([0]), numbers=np.array([0]),
        counts=np.array([len(targets)]), targets=targets, lookup=np.array(lookup, np.int64), tables=table,
    )  # fmt: skip


def test_a_node_moves_towards_its_target_by_the_rate_and_touches_no_table():
    plan = make_plan([[2]])
    [table] = plan.tables
    before = table.copy()
    plan.compute()
    x, u = before[0, :3].astype(np.float64), before[2, :3].astype(np.float64)
    step = 0.1 * (1 - 1 / (1 + np.exp(-x @ u)))
    np.testing.assert_allclose(plan.moved[0][0, :3], x + step * u, rtol=1e-4)
    np.testing.assert_array_equal(table, before)
    assert plan.made == 1


def test_a_target_that_is_not_there_makes_no_pair():
    plan = make_plan([[2, -1], [-1, -1]])
    plan.compute()
    assert plan.made == 1
    nothing = make_plan([[-1, -1]])
    nothing.compute()
    assert nothing.made == 0


def test_with_context_vectors_each_table_moves_against_the_other():
    plan = make_plan([[2]], tables=2)
    plan.compute()
    assert len(plan.moved) == 2
    assert not np.allclose(plan.moved[0], plan.moved[1])
    same = make_plan([[2]], tables=2)
    same.tables[1][:] = same.tables[0]
    same.compute()
    np.testing.assert_array_equal(same.moved[0], same.moved[1])


def test_a_plan_of_no_nodes_makes_nothing():
    plan = make_plan([[2]])
    plan.nodes = plan.numbers = plan.counts = np.zeros(0, np.int64)
    plan.compute()
    assert (plan.made, plan.moved[0].shape) == (0, (0, 16))


def test_plans_share_nothing():
    one, two = make_plan([[2]]), make_plan([[2]])
    one.requests["b"] = None
    one.stop[0] = 1
    assert two.requests == {}
    assert two.stop[0] == 0
