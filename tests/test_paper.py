"""The paper's promises, a test each, with the sentence quoted (Zhang and Xu, MANELA).

What every engine computes is compared with `kernels.reference` in tests/contracts; here the reference, the estimator
with the paper's settings and the hosts are compared with the paper.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from harness import draw_graph, gather, learn, make_terms, split_over

from manela import DeepWalk, Graph, Manela, Node2Vec
from manela.errors import ClaimError, NotAdjacentError, ParameterError, TooFarError
from manela.formats.loading import load_graph
from manela.hosts.state.messages import WalkRequest
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.host import make_host
from manela.kernels.layout import Arcs
from manela.kernels.randomness import VECTORS, derive, draw_vectors
from manela.kernels.reference import advance, draw, sigmoid, walk
from manela.settings.settings import check_all

# a triangle, a path that leaves it, and a hub
NETWORK = Graph.from_edges([0, 0, 1, 2, 3, 4, 5, 5, 5, 5], [1, 2, 2, 3, 4, 5, 6, 7, 8, 9])
ARCS = Arcs(NETWORK.indptr, NETWORK.indices)
STEPS = NETWORK.to_scipy().toarray() / NETWORK.degrees[:, None]


def paper(**parameters):
    return check_all({**Manela.paper().get_params(), **parameters})


# Section III: the multi-agent model


def test_maintenance():
    """“On the given network G, each node v ∈ V is maintained by an agent a(v).” “The vector Φ(v) … is maintained by
    agent a(v) and is only directly accessible to it.”
    """
    table = np.random.default_rng(0).normal(size=(10, 4))
    for node in range(10):
        counts = np.zeros(10, np.int64)
        counts[node] = 3
        [moved] = advance([table], ARCS, counts, 5, 0.1, (4, 4), 2)
        others = np.arange(10) != node
        np.testing.assert_array_equal(moved[others], table[others])
        assert (moved[node] != table[node]).any()


def test_communication():
    """“Every agent knows the existence of all other agents and is permitted to communicate with any of them.”"""
    edges = {name: [Edge("x", ("y", name))] for name in "abc"}
    hosts = {name: make_host(make_terms(walks=True), Neighbourhood.build(name, edges[name])) for name in edges}
    learn(hosts)
    assert all(set(host.peers.greetings) == set("abc") - {name} for name, host in hosts.items())


def test_possession():
    """“Each agent a(v) by itself only directly possesses knowledge on all edges incident to v.”"""
    graph = draw_graph(3)
    hosts, numbers = split_over(graph, 4, make_terms(walks=True))
    edges = {frozenset((row, int(other))) for row in range(40)
             for other in graph.indices[graph.indptr[row] : graph.indptr[row + 1]]}  # fmt: skip
    for name, host in hosts.items():
        near = host.neighbourhood
        own = {numbers[node, name] for node in near.nodes}
        known = set()
        for arc in range(len(near.indices)):
            node, other = near.name_arc(arc)
            known.add(frozenset((numbers[node, name], numbers[other])))
        assert known == {edge for edge in edges if edge & own}


@pytest.mark.parametrize(
    ("asker", "through", "steps", "refusal"),
    [
        ("x@a", "y", 2, TooFarError),  # s = 2: a neighbour is asked for one step more
        ("x@a", "z", 1, NotAdjacentError),
        ("z@b", "y", 1, ClaimError),
    ],
)
def test_accessibility(asker, through, steps, refusal):
    """“Each agent is permitted and is only permitted to know the subnetwork induced by all nodes within a small
    distance s to v … it is prohibited from acquiring knowledge on G beyond its permission by any means.”
    """
    b = make_host(make_terms(walks=True), Neighbourhood.build("b", [Edge("y", ("x", "a")), Edge("y", ("z", "b"))]))
    admitted, refusals = b.neighbourhood.admit_edges("a", [asker], [through])
    if refusal is not TooFarError:
        assert [type(one) for one in refusals] == [refusal]
        return
    acceptance, _ = b.sessions.open("a", admitted, refusals)
    empty = np.zeros(0, np.int64)
    b.answer("a", WalkRequest(acceptance.session, 0, False, 0, empty, empty))
    with pytest.raises(refusal):
        b.answer("a", WalkRequest(acceptance.session, 0, False, 0, np.array([0]), np.array([steps])))


@pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")
def test_the_algorithm_is_multi_agent():
    """“The task is to learn a vector representation for each node under the AC.” Hosts that keep to it learn the bits
    that one process learns that holds the whole network.
    """
    graph, parameters = draw_graph(3), {"dimensions": 8, "ratios": (0.5, 0.5), "pairs": 8_000, "rounds": 5}
    hosts, numbers = split_over(graph, 3, make_terms(True, walks=True, **parameters))
    learn(hosts)
    whole = Manela.paper(**parameters, random_state=0).fit(graph)
    np.testing.assert_array_equal(gather(hosts, numbers)[:, 0], whole.embedding_)


# Section IV-B: the objective and the updates


def test_a_single_positive_update_climbs_the_gradient():
    """“Φ(v) ← Φ(v) + α·∂ log σ(Φ(v)ᵀΦ(v′)) / ∂Φ(v) = Φ(v) + α·(1 − σ(Φ(v)ᵀΦ(v′)))·Φ(v′)”"""
    check_update(label=1.0)


def test_a_single_negative_update_has_the_sign_of_the_vector_turned():
    """“… is similar to its positive counterpart except that Φ(v′) is replaced with −Φ(v′).”"""
    check_update(label=0.0)


def check_update(label):
    random = np.random.default_rng(1)
    x, other = random.normal(size=(2, 6))
    toward = other if label else -other
    step = (label - sigmoid(x @ other)) * other  # as in reference.advance
    np.testing.assert_allclose(step, (1 - sigmoid(x @ toward)) * toward)
    nudges = 1e-6 * np.eye(6)
    slopes = [(log_sigmoid((x + nudge) @ toward) - log_sigmoid((x - nudge) @ toward)) / 2e-6 for nudge in nudges]
    np.testing.assert_allclose(step, slopes, rtol=1e-6)


def log_sigmoid(logit):
    return -np.logaddexp(0.0, -logit)


def test_the_objective_rises():
    """“We model our maximization objective as Σ_v {Σ E log σ(Φ(v)ᵀΦ(v′_i)) + ΣΣ E log σ(−Φ(v)ᵀΦ(v′_ij))}”"""
    seen = []
    Manela.paper(dimensions=16, pairs=2_000_000, rounds=100).fit(load_graph("sbm"), progress=seen.append)
    assert seen[-1].objective > -6 * math.log(2)  # which it is at the start, where vectors are next to zero, as κ = 5


# Algorithm 1, line by line


def test_line_1_initialization():
    """“Each agent v initializes Φ(v) to a random m-D vector.”"""
    assert paper().start == "random"
    first, second = np.zeros((2, 10, 16), np.float32)
    draw_vectors(7, np.arange(10), first, VECTORS)
    draw_vectors(8, np.arange(10), second, VECTORS)
    assert len(np.unique(first)) == first.size
    assert (first != second).all()
    assert np.abs(first).max() <= 0.5 / 16


@pytest.mark.filterwarnings("ignore:stopped by max_seconds")  # as it can be on a busy machine
def test_lines_2_and_9_a_running_time():
    """“MANELA terminates upon reaching a running time limit.”"""
    model = Manela.paper(dimensions=4, max_seconds=0.5).fit(load_graph("sbm"))
    assert 0 < model.provenance_["rounds_done"] <= model.provenance_["rounds"]
    assert model.provenance_["pairs_made"] > 0


@pytest.mark.parametrize("rounds", [7, 300])
def test_line_3_frequency(rounds):
    """“We set the frequency at which an agent a(v) performs updates to be proportional to v's degree d(v), i.e., f(v) ∝
    d(v).”
    """
    model = Manela.paper(pairs=60_000, rounds=rounds, window=1, ratios=(1.0,), dimensions=4).fit(NETWORK)
    iterations = model.updates_ / 2
    np.testing.assert_allclose(iterations, NETWORK.degrees * (30_000 / NETWORK.degrees.sum()), atol=1.0)


@pytest.mark.parametrize("walks", [(4,), (3, 2), (1, 2, 3)])
def test_lines_4_to_8_one_agent_at_work(walks):
    """The body of algorithm 1, written as it stands there, with the draws of the reference."""
    table, rate, negatives = np.random.default_rng(0).normal(size=(10, 4)), 0.1, 3
    counts = np.zeros(10, np.int64)
    counts[5] = 2
    [moved] = advance([table], ARCS, counts, 17, rate, walks, negatives, singly=True)
    phi = table[5].copy()
    for iteration in range(2):
        rows, labels = draw(5, int(derive(derive(17, 5), iteration)), ARCS, walks, negatives)
        assert len(rows) % (1 + negatives) == 0
        for place in range(0, len(rows), 1 + negatives):
            positive, *drawn = rows[place : place + 1 + negatives].tolist()  # v₊ ∈ Sample(v, w, r), and V₋
            assert labels[place : place + 1 + negatives].tolist() == [1.0, *[0.0] * negatives]
            phi = phi + rate * (1 - sigmoid(phi @ table[positive])) * table[positive]
            for negative in drawn:
                phi = phi + rate * (1 - sigmoid(phi @ -table[negative])) * -table[negative]
    np.testing.assert_allclose(moved[5], phi)


def test_line_6_negatives():
    """“a(v) randomly samples κ nodes …, which corresponds to a P_G that is uniform over V.”"""
    drawn = np.concatenate([draw(3, key, ARCS, (4,), 5)[0].reshape(-1, 6)[:, 1:].ravel() for key in range(2_000)])
    counts = np.bincount(drawn, minlength=10)
    expected = len(drawn) / 10
    assert ((counts - expected) ** 2 / expected).sum() < 27.9  # χ² with 9 degrees of freedom exceeds it once in 1,000


def test_a_round_is_algorithm_1_with_all_agents_at_once():
    """What we do differently, and say so: agents read vectors as the round began, and add up an iteration."""
    table = np.random.default_rng(0).normal(size=(10, 4))
    [moved] = advance([table], ARCS, np.ones(10, np.int64), 5, 1e-6, (3, 3), 2)
    [singly] = advance([table], ARCS, np.ones(10, np.int64), 5, 1e-6, (3, 3), 2, singly=True)
    np.testing.assert_allclose(moved - table, singly - table, rtol=1e-4, atol=1e-11)


# Section IV-C: definitions


@pytest.mark.parametrize("window", [1, 5, 10])
@pytest.mark.parametrize("ratios", [(1.0,), (0.7, 0.3), (0.33, 0.33, 0.34)])
def test_an_iteration_has_2w_update_pairs(window, ratios):
    """“An iteration is a set of … update pairs ⟨v_src, v_tgt^i⟩, i = 1, …, 2w”; “the size of the samples is
    approximately 2w.”
    """
    settings = paper(window=window, ratios=ratios)
    assert settings.targets_by_hop == tuple(math.floor(2 * window * ratio + 0.5) for ratio in ratios)
    assert abs(sum(settings.targets_by_hop) - 2 * window) <= len(ratios) / 2


def test_pairs_can_be_the_budget():
    """“Instead of setting a maximum running time T, we set a maximum number of update pairs.”"""
    model = Manela.paper(pairs=50_000, rounds=20, dimensions=4, ratios=(1.0,)).fit(NETWORK)
    assert model.provenance_["pairs_made"] == model.updates_.sum()
    assert abs(model.provenance_["pairs_made"] - 50_000) <= 20 * NETWORK.number_of_nodes


# Section IV-D: M(v, s, r) and algorithm 2


@pytest.mark.parametrize("hop", [1, 2, 3])
def test_a_target_is_a_k_hop_neighbor(hop):
    """“A node v′ is a k-hop neighbor to v on G if there exists a path of length k on G that starts at v and ends at
    v′.”
    """
    reached = np.linalg.matrix_power(STEPS, hop)
    for node in range(10):
        ends = {walk(node, key, hop, ARCS) for key in range(300)}
        assert ends <= set(np.flatnonzero(reached[node]).tolist())


@pytest.mark.parametrize("hop", [1, 2, 3])
def test_a_walk_takes_uniform_steps(hop):
    """“Repeat k times: uniformly randomly sample a node v′ from N(v); v ← v′.”"""
    expected = np.linalg.matrix_power(STEPS, hop)[4]
    ends = np.array([walk(4, key, hop, ARCS) for key in range(4_000)])
    counts = np.bincount(ends, minlength=10)
    reached = expected > 0
    assert ((counts - 4_000 * expected)[reached] ** 2 / (4_000 * expected[reached])).sum() < 29.6
    assert not counts[~reached].any()


def test_the_ratio_vector_is_normalized():
    """“r⃗, called the ratio vector, is a normalized s-dimension vector hyperparameter.”"""
    with pytest.raises(ParameterError, match="ratios must sum to 1"):
        paper(ratios=(0.7, 0.7))


def test_the_source_is_no_target():
    """“Our implementation also removes v_src from S before the return statement.”"""
    for key in range(200):
        rows, labels = draw(1, key, ARCS, (0, 6), 2)
        assert 1 not in rows[labels > 0]


def test_at_one_extreme_all_targets_are_adjacent():
    """“If r₁ = 1 and all other components are set to 0, then obviously all sampled target nodes are adjacent to v.”"""
    for key in range(100):
        rows, labels = draw(5, key, ARCS, paper(ratios=(1.0, 0.0)).targets_by_hop, 2)
        assert set(rows[labels > 0].tolist()) <= set(NETWORK.neighbours(5).tolist())


# Section V: Table I, counted in draws and updates


class Counted:
    """An array that counts what is read of it."""

    def __init__(self, array):
        self.array, self.reads = array, 0

    def __getitem__(self, position):
        self.reads += 1
        return self.array[position]

    def __len__(self):
        return len(self.array)


@pytest.mark.parametrize("ratios", [(1.0,), (0.5, 0.5), (0.2, 0.3, 0.5)])
def test_sampling_costs_at_most_s_steps_a_pair(ratios):
    """“The amortized time complexity of the sampling subprocedure for each update pair is O(s).”"""
    walks = paper(ratios=ratios).targets_by_hop
    for graph in (NETWORK, draw_graph(0), draw_graph(1, nodes=4_000, edges=40_000)):
        node = int(np.argmax(graph.degrees))
        indices = Counted(graph.indices)
        draw(node, 3, Arcs(graph.indptr, indices), walks, 5)
        assert indices.reads == sum((hop + 1) * count for hop, count in enumerate(walks))
        assert indices.reads <= len(ratios) * sum(walks)


def test_an_update_costs_the_same_on_every_network():
    """“All three embedding learning algorithms share the same time complexity of O(1) per update pair.”"""
    for nodes in (40, 4_000):
        graph = draw_graph(1, nodes=nodes, edges=10 * nodes)
        table = Counted(np.random.default_rng(0).normal(size=(nodes, 4)))
        table.copy = table.array.copy
        counts = np.zeros(nodes, np.int64)
        counts[int(np.argmax(graph.degrees))] = 1
        arcs = Arcs(graph.indptr, graph.indices)
        advance([table], arcs, counts, 3, 0.1, (20,), 5, singly=True)
        assert table.reads == 2 * 20 * (1 + 5)  # once for the product, and once for the step


def test_deepwalk_makes_w_2l_w_1_pairs_a_walk():
    """“The number of performed update pairs with the source node being in the walk path is thus … w(2ℓ − w − 1).”"""
    for length in (2, 10, 40):
        model = DeepWalk(dimensions=4, walks=3, walk_length=length, window=1, n_jobs=1).fit(NETWORK)
        assert model.provenance_["pairs_made"] == 3 * NETWORK.number_of_nodes * (2 * length - 1 - 1)
    w, length = 10, 80
    assert sum(abs(i - j) <= w for i in range(length) for j in range(length) if i != j) == w * (2 * length - w - 1)


def test_node2vec_would_prepare_a_number_for_every_pair_of_edges_at_a_node():
    """“The time complexity of this preprocessing subprocedure is Θ(Σ d(v)²)”, at least 4|E|²/|V|. Ours prepares none:
    this star has 4·10⁸ such pairs.
    """
    star = Graph.from_edges(np.zeros(20_000, int), np.arange(1, 20_001))
    assert (star.degrees**2).sum() >= 4 * star.number_of_edges**2 / star.number_of_nodes
    assert (star.degrees**2).sum() > 4e8
    model = Node2Vec(dimensions=2, walks=1, walk_length=3, n_jobs=1).fit(star)
    assert np.isfinite(model.embedding_).all()


# Section VII


def test_the_synthetic_network():
    """SYN-SBM: 1,024 nodes in 3 communities, edges with probability 0.1 inside and 0.01 between."""
    graph = load_graph("sbm")
    assert graph.number_of_nodes == 1024
    pairs = 1024 * 1023 / 2
    expected = pairs * (0.1 / 3 + 0.01 * 2 / 3)
    assert abs(graph.number_of_edges - expected) < 0.05 * expected
    assert all(first <= last for first, last in pairwise(graph.indptr))
