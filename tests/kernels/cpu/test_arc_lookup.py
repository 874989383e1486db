"""The arc between two nodes."""

import numpy as np
import pytest

from manela import Graph
from manela.kernels.cpu.draws import find_arc


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_an_arc_is_found_where_it_is_and_only_there(kind):
    random = np.random.default_rng(1)
    sources, targets = random.integers(0, 30, (2, 150))
    graph = Graph.from_arcs(sources, targets, None, np.arange(30), duplicates="first")
    indptr, indices = graph.indptr.astype(np.int64), graph.indices.astype(kind)
    for source in range(30):
        row = indices[indptr[source] : indptr[source + 1]].tolist()
        for target in range(30):
            wanted = indptr[source] + row.index(target) if target in row else -1
            assert find_arc(indptr, indices, source, target) == wanted


def test_a_node_without_neighbours_has_no_arc():
    assert find_arc(np.array([0, 0, 1]), np.array([0]), 0, 1) == -1
