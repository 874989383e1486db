"""What neighbours show: means and own parts, against the reference."""

import numpy as np
import pytest

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import Neighbours, allocate_shown, prepare_arcs
from manela.kernels import reference
from manela.kernels.layout import allocate
from manela.system.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


@pytest.fixture
def threads():
    with Threads(2) as threads:
        yield threads


def draw_network(directed=False, weighted=False, wide=False):
    """40 nodes that are joined, of which one has a single neighbour, and two that are not."""
    rng = np.random.default_rng(6)
    ends = np.hstack((rng.integers(39, size=(2, 120)), [[39], [5]]))
    weights = rng.uniform(0.1, 9, 121)
    if wide:
        weights[::3], weights[1::3] = 1e-90, 1e90
    return Graph.from_edges(
        *ends,
        weights if weighted or wide else None,
        nodes=range(42),
        directed=directed,
        duplicates="sum" if weighted or wide else "first",
    )


KINDS = [
    {},
    {"weighted": True},
    {"wide": True},
    {"directed": True},
    {"directed": True, "weighted": True},
    {"directed": True, "wide": True},
]


@pytest.fixture(params=KINDS, ids=["-".join(kind) or "plain" for kind in KINDS])
def graph(request):
    return draw_network(**request.param)


def test_scales_are_those_of_the_reference(graph, threads):
    arcs = prepare_arcs(graph)
    for hops in (1, 2, 3, 5):
        neighbours = Neighbours.of(graph, arcs, hops, threads)
        # on an undirected network every level is as the first
        for hop, scale in enumerate(reference.find_scales(arcs, graph.weights, hops)):
            found = neighbours.scales[min(hop, len(neighbours.scales) - 1)]
            np.testing.assert_allclose(found, scale, rtol=1e-12)
            np.testing.assert_array_equal(found == 0, scale == 0)


def test_own_parts_are_those_of_the_reference(graph, threads):
    arcs = prepare_arcs(graph)
    expected = reference.find_own_shares(arcs, graph.weights, reference.find_scales(arcs, graph.weights, 2))
    neighbours = Neighbours.of(graph, arcs, 3, threads)
    found = neighbours.find_own_shares()
    if graph.weights is None and not graph.directed:  # then they need no room of their own
        assert found is None
        found = neighbours.scales[0][graph.indices]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-30)
    assert (expected == 1).any()
    if graph.directed:
        assert (found == 0).any()


def test_means_are_those_of_the_reference(graph, threads):
    arcs, n = prepare_arcs(graph), graph.number_of_nodes
    neighbours = Neighbours.of(graph, arcs, 3, threads)
    source, target = allocate(n, 20), allocate(n, 20)
    source[:, :20] = np.random.default_rng(0).normal(size=(n, 20))
    neighbours.average(source, target, neighbours.scales[0])
    expected = reference.average(source.astype(np.float64), arcs, graph.weights, neighbours.scales[0])
    np.testing.assert_allclose(target, expected, rtol=1e-5, atol=1e-6)
    assert not target[~neighbours.joined].any()


def test_what_is_shown_is_every_mean_behind_the_vectors(graph, threads):
    arcs, n, hops = prepare_arcs(graph), graph.number_of_nodes, 4
    neighbours = Neighbours.of(graph, arcs, hops, threads)
    table, shown = allocate(n, 20), allocate_shown(hops * n, 20)
    table[:, :20] = np.random.default_rng(0).normal(size=(n, 20))
    neighbours.show(table, shown)
    neighbours.show_means(shown, hops)
    found = (shown.view(np.float16) if shown.dtype == np.uint16 else shown).astype(np.float64).reshape(hops, n, -1)
    scales = reference.find_scales(arcs, graph.weights, hops)
    np.testing.assert_array_equal(found[0], table.astype(np.float16))
    for before, mean, scale in zip(found, found[1:], scales, strict=False):
        exact, sizes = (reference.average(rows, arcs, graph.weights, scale) for rows in (before, np.abs(before)))
        spacing = np.spacing(np.maximum(np.abs(exact), np.abs(mean)).astype(np.float16)).astype(np.float64)
        assert (np.abs(mean - exact) <= spacing / 2 + sizes * 2.0**-20).all()  # the nearest half, or the other one


def test_every_number_of_threads_shows_the_same_bits(graph):
    arcs, n = prepare_arcs(graph), graph.number_of_nodes
    tables, shares = [], []
    for count in (1, 2, 3):
        with Threads(count) as threads:
            neighbours = Neighbours.of(graph, arcs, 3, threads)
            table, shown = allocate(n, 20), allocate_shown(3 * n, 20)
            table[:, :20] = np.random.default_rng(0).normal(size=(n, 20))
            neighbours.show(table, shown)
            neighbours.show_means(shown, 3)
            tables.append(shown)
            shares.append(neighbours.find_own_shares())
    for shown, share in zip(tables[1:], shares[1:], strict=True):
        np.testing.assert_array_equal(shown, tables[0])
        np.testing.assert_array_equal(share, shares[0])


def test_the_mean_degree_is_that_of_nodes_with_neighbours(threads):
    graph = Graph.from_edges([0, 1, 0], [1, 2, 2], nodes=range(10))
    neighbours = Neighbours.of(graph, prepare_arcs(graph), 2, threads)
    assert neighbours.mean_degree == 2.0
    assert neighbours.joined.tolist() == [True] * 3 + [False] * 7


def test_where_halves_cannot_be_read_the_same_is_shown_in_single_precision(graph, threads, monkeypatch):
    arcs, n = prepare_arcs(graph), graph.number_of_nodes
    neighbours = Neighbours.of(graph, arcs, 3, threads)
    table = allocate(n, 20)
    table[:, :20] = np.random.default_rng(0).normal(size=(n, 20))
    tables = []
    for can in (True, False):
        if not can:
            monkeypatch.setattr("manela.engines.rounds.neighbours.can_convert", lambda: False)
        shown = allocate_shown(3 * n, 20)
        neighbours.show(table, shown)
        neighbours.show_means(shown, 3)
        tables.append((shown.view(np.float16) if shown.dtype == np.uint16 else shown).astype(np.float32))
    np.testing.assert_array_equal(*tables)


def chances(arcs, node):
    """How likely a step from a node goes to each of its neighbours, by its alias table."""
    first, last = arcs.indptr[node], arcs.indptr[node + 1]
    found = np.zeros(last - first)
    for place in range(last - first):
        kept = (int(arcs.thresholds[first + place]) + 1) / 2**32
        found[place] += kept / len(found)
        found[arcs.aliases[first + place]] += (1 - kept) / len(found)
    return found


def test_arcs_of_a_network_without_weights_are_its_own_arrays():
    graph = Graph.from_edges([0, 1], [1, 2])
    arcs = prepare_arcs(graph)
    assert arcs.indptr is graph.indptr
    assert arcs.indices is graph.indices
    assert arcs.thresholds is arcs.aliases is None


def test_alias_tables_go_by_weight():
    random = np.random.default_rng(0)
    graph = Graph.from_edges(
        random.integers(0, 20, 100), random.integers(0, 20, 100), random.lognormal(size=100), duplicates="first"
    )
    arcs = prepare_arcs(graph)
    assert (arcs.thresholds.dtype, arcs.aliases.dtype) == (np.uint32, np.int32)
    for node in range(graph.number_of_nodes):
        weights = graph.weights[graph.indptr[node] : graph.indptr[node + 1]]
        np.testing.assert_allclose(chances(arcs, node), weights / weights.sum(), atol=1e-6)


def test_a_node_without_arcs_has_no_table_and_one_with_one_arc_takes_it():
    graph = Graph.from_edges([0, 2, 2], [2, 3, 4], [1.0, 2.0, 3.0], nodes=range(5), directed=True)
    arcs = prepare_arcs(graph)
    assert len(arcs.thresholds) == len(arcs.aliases) == 3
    np.testing.assert_allclose(chances(arcs, 0), [1.0], atol=1e-6)
    np.testing.assert_allclose(chances(arcs, 2), [0.4, 0.6], atol=1e-6)
