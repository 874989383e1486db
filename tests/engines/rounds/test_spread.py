"""The spread of vectors."""

import numpy as np
import pytest

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs
from manela.engines.rounds.spread import measure_spread
from manela.engines.state import begin
from manela.system.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


@pytest.fixture(params=["plain", "weighted", "directed"])
def graph(request):
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
