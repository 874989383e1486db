"""A network split over hosts."""

import numpy as np
import pytest

from manela.formats.datasets import stochastic_block_model
from manela.hosts.federation import assign, split_graph


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=150, inside=0.3, between=0.01, seed=3)


def test_every_edge_is_known_to_the_hosts_of_its_ends_and_to_no_other(blocks):
    graph, _ = blocks
    hosts = assign(graph, 4, "random", 0)
    pieces, numbers = split_graph(graph, hosts)
    assert sorted(numbers.values()) == list(range(150))
    for host, edges in pieces.items():
        rows = np.flatnonzero(np.array(hosts) == host)
        expected = {(v, int(u)) for v in rows for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]}
        assert {(numbers[edge.own, host], numbers[edge.other]) for edge in edges if edge.other} == expected


def test_random_parts_are_alike_in_size_and_depend_on_the_seed(blocks):
    graph, _ = blocks
    _, sizes = np.unique(assign(graph, 4, "random", 0), return_counts=True)
    assert sizes.max() - sizes.min() <= 1
    assert assign(graph, 4, "random", 0) == assign(graph, 4, "random", 0)
    assert assign(graph, 4, "random", 0) != assign(graph, 4, "random", 1)


@pytest.mark.parametrize("hosts", [2, 3, 7])
def test_communities_stay_together(blocks, hosts):
    pytest.importorskip("igraph")
    graph, _ = blocks
    where = np.array(assign(graph, hosts, "community", 0))
    assert len(set(where)) == hosts
    sources = np.repeat(np.arange(150), graph.degrees)
    kept = (where[sources] == where[graph.indices]).mean()
    random = np.array(assign(graph, hosts, "random", 0))
    assert kept > (random[sources] == random[graph.indices]).mean() + 0.15
