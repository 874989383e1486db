"""The arcs of a network, as the kernels take them."""

import numpy as np

from manela import Graph
from manela.engines.rounds.neighbours import prepare_arcs


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
