import numpy as np
import pytest
from scipy.stats import chisquare

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import prepare_arcs
from manela.kernels.cpu import skipgram
from manela.kernels.cpu import walks as cpu
from manela.kernels.randomness import derive, scale_to

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(5)
    ends = rng.integers(12, size=(2, 40))
    return Graph.from_edges(ends[0], ends[1], rng.uniform(0.2, 5.0, 40))


def walk(graph, start, key, length, p=1.0, q=1.0, weighted=False):
    room = np.empty(length, np.int64)
    arcs = prepare_arcs(graph if weighted else graph.without_weights())
    size, draws = skipgram.walk_from(start, np.uint64(key), *arcs, p, q, room)
    return room[:size], draws


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 0.25), (4.0, 0.5), (1.0, 3.0)])
def test_steps_have_the_probabilities_of_node2vec(graph, weighted, p, q):
    matrix = graph.to_scipy().toarray()
    if not weighted:
        matrix = (matrix > 0).astype(float)
    n = len(matrix)
    before, here = 0, int(np.flatnonzero(matrix[0])[0])
    bias = np.where(np.arange(n) == before, 1 / p, np.where(matrix[before] > 0, 1.0, 1 / q))
    expected = matrix[here] * bias
    expected /= expected.sum()
    counts = np.zeros(n)
    for key in derive(1234, np.arange(60_000)):
        path, _ = walk(graph, before, int(key), 3, p, q, weighted)
        if path[1] == here:
            counts[path[2]] += 1
    possible = expected > 0
    assert counts.sum() > 1000
    assert not counts[~possible].any()
    assert chisquare(counts[possible], expected[possible] * counts.sum()).pvalue > 1e-3


def test_a_walk_ends_where_no_arc_goes_on():
    graph = Graph.from_edges([0, 1], [1, 2], directed=True)
    path, draws = walk(graph, 0, 7, 10)
    assert path.tolist() == [0, 1, 2]
    assert draws == 2


def test_updates_are_those_of_skip_gram():
    """One walk, followed by hand in double precision with the same draws."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(9, size=30), rng.integers(9, size=30), duplicates="first")
    n, m, window, negatives, rate = graph.number_of_nodes, 5, 3, 4, 0.1
    vectors, contexts = (np.zeros((n, 16), np.float32) for _ in range(2))
    vectors[:, :m], contexts[:, :m] = rng.normal(size=(2, n, m))
    thresholds, aliases = np.empty(n, np.uint32), np.empty(n, np.int32)
    cpu.build_aliases(np.array([0, n]), np.arange(1.0, n + 1), thresholds, aliases)
    x, u = vectors[:, :m].astype(float), contexts[:, :m].astype(float)
    key = int(derive(99, 4))
    path, number = walk(graph, 4, key, 12)
    moved = np.zeros(n, np.int64)
    pairs = 0
    for place, target in enumerate(path):
        reach = 1 + int(scale_to(derive(key, number), window))
        number += 1
        for near in range(max(0, place - reach), min(len(path), place + reach + 1)):
            if near == place:
                continue
            rows, labels = [target], [1.0]
            for _ in range(negatives):
                drawn = int(derive(key, number))
                number += 1
                other, rest = divmod(drawn * n, 2**64)
                if rest >> 32 >= thresholds[other]:
                    other = int(aliases[other])
                if other != target:
                    rows.append(other)
                    labels.append(0.0)
            node = path[near]
            steps = rate * (np.array(labels) - 1 / (1 + np.exp(-u[rows] @ x[node])))
            before = x[node].copy()
            for row, step in zip(rows, steps, strict=True):
                x[node] += step * u[row]
                u[row] += step * before
            moved[node] += 1
            pairs += 1
    updates = np.zeros(n, np.int64)
    made = skipgram.train(
        np.array([4]), np.uint64(99), 12, prepare_arcs(graph), 1.0, 1.0, window, negatives,
        thresholds, aliases, rate, rate, vectors, contexts, updates, np.zeros(1, np.uint8),
    )  # fmt: skip
    assert made == pairs > 20
    np.testing.assert_array_equal(updates, moved)
    np.testing.assert_allclose(vectors[:, :m], x, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(contexts[:, :m], u, rtol=1e-4, atol=1e-4)
    assert not vectors[:, m:].any()


def test_visits_are_those_of_the_walks(graph):
    visits = np.zeros(graph.number_of_nodes, np.int64)
    starts = np.arange(graph.number_of_nodes)
    steps = skipgram.count_visits(
        starts, np.uint64(3), 20, prepare_arcs(graph.without_weights()), 1.0, 1.0, visits, np.zeros(1, np.uint8)
    )
    paths = [walk(graph, start, int(derive(3, start)), 20)[0] for start in starts]
    np.testing.assert_array_equal(visits, np.bincount(np.concatenate(paths), minlength=len(visits)))
    assert steps == sum(len(path) - 1 for path in paths)


def test_a_stopped_run_makes_no_pairs(graph):
    vectors, contexts = (np.zeros((graph.number_of_nodes, 16), np.float32) for _ in range(2))
    tables = np.full(graph.number_of_nodes, 2**32 - 1, np.uint32), np.zeros(graph.number_of_nodes, np.int32)
    pairs = skipgram.train(
        np.arange(3), np.uint64(1), 9, prepare_arcs(graph.without_weights()), 1.0, 1.0, 2, 2, *tables, 0.1, 0.1,
        vectors, contexts, np.zeros(graph.number_of_nodes, np.int64), np.ones(1, np.uint8),
    )  # fmt: skip
    assert pairs == 0
