"""A start by neighbours, against the reference."""

import numpy as np
import pytest

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.start import choose_size, measure_spread, start_by_neighbours
from manela.engines.state import begin
from manela.formats.datasets import stochastic_block_model
from manela.kernels import reference
from manela.system.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


@pytest.fixture(params=["plain", "weighted", "directed"])
def graph(request):
    """Without nodes that see the same neighbours: their rows would be the same."""
    rng = np.random.default_rng(6)
    ends = rng.integers(60, size=(2, 400))
    weights = rng.uniform(0.1, 9, 400) if request.param == "weighted" else None
    return Graph.from_edges(
        *ends,
        weights,
        nodes=range(63),
        directed=request.param == "directed",
        duplicates="first" if weights is None else "sum",
    )


def start(graph, dimensions, threads, seed=5):
    table = begin(graph.number_of_nodes, dimensions, False, seed).tables[0]
    with Threads(threads) as pool:
        start_by_neighbours(table, Neighbours.of(graph, prepare_arcs(graph), 2, pool), seed, dimensions)
    return table


def test_the_start_is_that_of_the_reference(graph):
    table = start(graph, 20, 2)
    arcs = prepare_arcs(graph)
    size = choose_size(len(graph.indices) / np.count_nonzero(graph.degrees))
    expected = reference.start_by_neighbours(arcs, graph.weights, 5, 20, size)
    # rows of a sweep are seen in half precision, in steps of 2^-11 of a row's norm, and five sweeps add up
    np.testing.assert_allclose(table[:, :20], expected, rtol=0, atol=5 * 2.0**-11 * size)
    assert np.median(np.abs(table[:, :20] - expected)) < 2e-5 * size
    assert not table[:, 20:].any()
    joined = graph.degrees > 0
    np.testing.assert_allclose(np.linalg.norm(table[joined], axis=1), size, rtol=1e-5)


def test_every_number_of_threads_gives_the_same_bits(graph):
    first, *others = (start(graph, 37, threads) for threads in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_nodes_without_neighbours_keep_their_random_rows(graph):
    table = start(graph, 20, 2)
    random = begin(63, 20, False, 5).tables[0]
    alone = graph.degrees == 0
    assert alone.sum() >= 3
    np.testing.assert_array_equal(table[alone], random[alone])


def test_seeds_give_other_starts_and_nodes_of_a_community_start_near_each_other():
    graph, communities = stochastic_block_model(nodes=240, inside=0.3, between=0.01, seed=1)
    one, other = (start(graph, 32, 1, seed) for seed in (1, 2))
    assert not np.array_equal(one, other)
    rows = one / np.linalg.norm(one, axis=1, keepdims=True)
    cosines, together = rows @ rows.T, communities[:, None] == communities[None, :]
    assert cosines[together].mean() > cosines[~together].mean() + 0.5


def test_a_dense_network_starts_with_long_rows_and_a_sparse_one_with_short_ones():
    sizes = [choose_size(degree) for degree in (0.5, 4, 16, 32, 63, 64, 1000)]
    assert sizes == sorted(sizes)
    assert sizes[0] == sizes[1] == 0.03
    assert sizes[-2:] == [1.0, 1.0]


@pytest.mark.parametrize("threads", [1, 3])
def test_spread_is_the_distance_from_the_mean_over_nodes_with_neighbours(graph, threads):
    table = begin(63, 20, False, 0).tables[0]
    table[:, :20] = np.random.default_rng(0).normal(size=(63, 20)) + 0.5
    joined = graph.degrees > 0
    expected = np.sqrt(((table[joined] - table[joined].mean(axis=0)) ** 2).sum(axis=1).mean())
    table[~joined, :20] = 7.0
    with Threads(threads) as pool:
        found = measure_spread(table, Neighbours.of(graph, prepare_arcs(graph), 2, pool))
    assert found == pytest.approx(expected, rel=1e-5)
    with Threads(1) as pool:
        assert found == measure_spread(table, Neighbours.of(graph, prepare_arcs(graph), 2, pool))
