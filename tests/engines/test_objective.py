"""An estimate of the objective on a fixed sample."""

import math

import numpy as np
import pytest

from manela import Graph
from manela.engines.rounds.neighbours import prepare_arcs
from manela.engines.state import begin
from manela.engines.training import Objective
from manela.formats.datasets import stochastic_block_model
from manela.settings.settings import check_all


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(nodes=100, seed=2)[0]


def objective_of(graph, **parameters):
    settings = check_all({"dimensions": 8, "random_state": 1, "exchange": "walks", **parameters})
    return Objective(graph, settings, prepare_arcs(graph))


def test_vectors_of_nothing_have_the_objective_of_a_coin(graph):
    state = begin(100, 8, False, seed=1)
    state.tables[0][:] = 0
    for negatives in (0, 1, 5):
        assert objective_of(graph, negatives=negatives).of(state) == pytest.approx(-(1 + negatives) * math.log(2))


def test_it_is_the_mean_over_pairs_of_the_logarithms_of_equation_1(graph):
    objective, state = objective_of(graph, negatives=2), begin(100, 8, False, seed=1)
    state.tables[0][:] *= 50
    total = pairs = 0
    for node, row, sign in zip(objective._nodes, objective._rows, objective._signs, strict=True):
        product = float(state.vectors[node].astype(float) @ state.vectors[row].astype(float))
        total += math.log(1 / (1 + math.exp(-sign * product)))
        pairs += sign > 0
    assert pairs * 3 == len(objective._signs)
    assert objective.of(state) == pytest.approx(total / pairs, rel=1e-5)


def test_targets_are_read_from_context_vectors_where_there_are_any(graph):
    objective, state = objective_of(graph, negatives=0), begin(100, 8, True, seed=1)
    state.tables[0][:, :8], state.tables[1][:, :8] = 1.0, -1.0
    assert objective.of(state) == pytest.approx(-8.0, rel=1e-3)
    state.tables[1][:, :8] = 1.0
    assert objective.of(state) == pytest.approx(-math.log(1 + math.exp(-8)), rel=1e-3)


def test_large_products_do_not_overflow(graph):
    objective, state = objective_of(graph), begin(100, 8, False, seed=1)
    state.tables[0][:, :8] = 1e6
    assert objective.of(state) < -1e12
    assert math.isfinite(objective.of(state))


def test_the_sample_goes_by_the_seed_alone(graph):
    state = begin(100, 8, False, seed=1)
    state.tables[0][:] *= 50
    values = [objective_of(graph, random_state=seed).of(state) for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


def test_nodes_without_edges_are_not_drawn():
    graph = Graph.from_edges([3], [7], nodes=range(50))
    assert set(objective_of(graph, ratios=(1.0,))._nodes.tolist()) == {3, 7}


def test_with_no_pairs_there_is_no_number():
    # two steps along the only edge lead back to where they began, which is no target
    graph = Graph.from_edges([0], [1])
    assert np.isnan(objective_of(graph, ratios=(0.0, 1.0)).of(begin(2, 8, False, seed=1)))
