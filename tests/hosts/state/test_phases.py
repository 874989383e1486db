"""The start of free-running hosts: sweeps in which each node takes the mean of its neighbours."""

import numpy as np
import pytest

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.spread import sum_rows
from manela.engines.state import begin
from manela.formats.datasets import stochastic_block_model
from manela.hosts.state.phases import Sweeps, choose_size
from manela.system.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


@pytest.fixture(params=["plain", "weighted"])
def graph(request):
    """Without nodes that see the same neighbours: their rows would be the same."""
    rng = np.random.default_rng(6)
    ends = rng.integers(60, size=(2, 400))
    weights = rng.uniform(0.1, 9, 400) if request.param == "weighted" else None
    return Graph.from_edges(*ends, weights, nodes=range(63), duplicates="first" if weights is None else "sum")


def sweep(graph, dimensions, size, seed=5, sweeps=4):
    """First vectors, from random ones, as one host with the whole network gathers them."""
    table = begin(graph.number_of_nodes, dimensions, False, seed).tables[0]
    with Threads(2) as pool:
        neighbours = Neighbours.of(graph, prepare_arcs(graph), 2, pool)
        steps = Sweeps(table, neighbours, dimensions)
        for _ in range(sweeps):
            steps.show()
            steps.average()
            steps.center(sum_rows(table, neighbours)[0], int(neighbours.joined.sum()))
        steps.finish(size)
    return table


def normalise(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_sweeps_take_means_centre_them_and_add_the_last_two(graph):
    joined = graph.degrees > 0
    chances = graph.to_scipy().toarray()[joined][:, joined]
    chances /= chances.sum(axis=1, keepdims=True)
    rows = [begin(63, 20, False, 5).vectors[joined].astype(np.float64)]
    for _ in range(4):
        means = normalise(chances @ rows[-1])
        rows.append(normalise(means - means.mean(axis=0)))
    found = sweep(graph, 20, 0.5)
    # rows of a sweep are seen in half precision, in steps of 2^-11 of a row's norm, and five sweeps add up
    np.testing.assert_allclose(found[joined, :20], 0.5 * normalise(rows[-2] + rows[-1]), rtol=0, atol=5 * 2.0**-12)
    assert not found[:, 20:].any()


def test_nodes_of_a_community_start_near_each_other():
    graph, communities = stochastic_block_model(nodes=240, inside=0.3, between=0.01, seed=1)
    one, other = (normalise(sweep(graph, 32, 1.0, seed)) for seed in (1, 2))
    assert not np.array_equal(one, other)
    cosines, together = one @ one.T, communities[:, None] == communities[None, :]
    assert cosines[together].mean() > cosines[~together].mean() + 0.5


def test_a_dense_network_starts_with_long_rows_and_a_sparse_one_with_short_ones():
    sizes = [choose_size(degree) for degree in (0.5, 4, 16, 32, 63, 64, 1000)]
    assert sizes == sorted(sizes)
    assert sizes[0] == sizes[1] == 0.03
    assert sizes[-2:] == [1.0, 1.0]
