"""Smoothing, against the reference."""

import numpy as np
import pytest

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.smoothing import smooth
from manela.kernels import reference
from manela.kernels.layout import allocate
from manela.system.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


def draw_network(kind, scale=1.0):
    rng = np.random.default_rng(6)
    ends = np.hstack((rng.integers(59, size=(2, 200)), [[59], [5]]))
    weights = scale * rng.uniform(0.1, 9, 201)
    return Graph.from_edges(
        *ends,
        weights if kind == "weighted" else None,
        nodes=range(62),
        directed=kind == "directed",
        duplicates="sum" if kind == "weighted" else "first",
    )


@pytest.fixture(params=["plain", "weighted", "directed"])
def kind(request):
    return request.param


def draw_vectors(graph, dimensions=37):
    table = allocate(graph.number_of_nodes, dimensions)
    table[:, :dimensions] = np.random.default_rng(0).normal(size=(graph.number_of_nodes, dimensions))
    return table


def smoothed(graph, table, threads=2, **options):
    with Threads(threads) as pool:
        smooth(table, Neighbours.of(graph, prepare_arcs(graph), 2, pool), **options)
    return table


def test_vectors_are_those_of_the_reference(kind):
    graph = draw_network(kind)
    before = draw_vectors(graph)
    found = smoothed(graph, before.copy())
    expected = reference.smooth(before.astype(np.float64), prepare_arcs(graph), graph.weights)
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-5 * reference.SCALE)
    assert not found[:, 37:].any()


def test_every_number_of_threads_gives_the_same_bits(kind):
    graph = draw_network(kind)
    first, *others = (smoothed(graph, draw_vectors(graph), threads) for threads in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_columns_have_the_same_bits_whichever_are_filtered_together(kind):
    graph = draw_network(kind)
    together = smoothed(graph, draw_vectors(graph))
    np.testing.assert_array_equal(smoothed(graph, draw_vectors(graph), room=1), together)


def test_nodes_without_neighbours_keep_their_vectors(kind):
    graph = draw_network(kind)
    before = draw_vectors(graph)
    alone = graph.degrees == 0
    assert alone.sum() >= 2
    np.testing.assert_array_equal(smoothed(graph, before.copy())[alone], before[alone])


def test_norms_are_proportional_to_a_power_of_degree(kind):
    graph = draw_network(kind)
    joined = graph.degrees > 0
    norms = np.linalg.norm(smoothed(graph, draw_vectors(graph)), axis=1)[joined]
    sizes = graph.degrees[joined] ** reference.POWER
    np.testing.assert_allclose(norms / norms.mean(), sizes / sizes.mean(), rtol=1e-5)
    assert norms.mean() == pytest.approx(reference.SCALE, rel=1e-5)


@pytest.mark.parametrize("scale", [1000.0, 1e-90, 1e90])
def test_the_unit_of_weights_does_not_matter(scale):
    graph, scaled = (draw_network("weighted", scale=scale) for scale in (1.0, scale))
    one, other = (smoothed(graph, draw_vectors(graph)) for graph in (graph, scaled))
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-5)


def test_the_same_weight_for_all_is_as_no_weight():
    graph = draw_network("plain")
    sources = np.repeat(np.arange(62), graph.degrees)
    weighted = Graph.from_edges(sources, graph.indices, np.full(len(sources), 0.3), nodes=range(62))
    one, other = (smoothed(graph, draw_vectors(graph)) for graph in (graph, weighted))
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-5)
