"""What the spectral view tells beside rounds, on generated networks of two kinds."""

import warnings

import numpy as np

from manela import Manela
from manela.analysis.classification import classify
from manela.data.graph import Graph
from manela.errors import ManelaWarning
from manela.formats.datasets import planted_partition


def ring_of_roles(nodes, roles, degree, strong):
    """Groups in a ring: this share of the edges goes to a neighbouring group, and the rest to any node."""
    random = np.random.default_rng(0)
    role = np.arange(nodes) % roles
    sources = np.repeat(np.arange(nodes), degree // 2)
    is_strong = random.random(len(sources)) < strong
    aimed = (role[sources] + random.choice((-1, 1), len(sources))) % roles
    in_role = aimed + roles * random.integers(nodes // roles, size=len(sources))
    targets = np.where(is_strong, in_role, random.integers(nodes, size=len(sources)))
    return Graph.from_arcs(sources, targets, None, np.arange(nodes), duplicates="first"), role


def share_of_own(vectors, communities, nearest=10):
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -2.0)
    best = np.argpartition(-cosines, nearest, axis=1)[:, :nearest]
    return float((communities[best] == communities[:, None]).mean())


def tell_roles(**parameters):
    graph, role = ring_of_roles(800, 8, 20, 0.6)
    vectors = Manela(**parameters, n_jobs=2).fit(graph).embedding_
    return float(classify(vectors, np.equal.outer(role, np.unique(role)), shuffles=3).micro.mean())


def test_two_views_tell_roles_that_rounds_alone_do_not():
    assert tell_roles() >= tell_roles(views="rounds") + 0.1


def test_two_views_keep_the_communities_of_a_sparse_network():
    graph, communities = planted_partition(3000, 30, inside=3, outside=3)
    both, rounds = (
        share_of_own(Manela(views=views, n_jobs=2).fit(graph).embedding_, communities) for views in ("both", "rounds")
    )
    assert rounds > 0.5
    assert both >= rounds - 0.02


def test_a_hub_with_hundreds_of_thousands_of_neighbours_is_learned_with():
    leaves = np.arange(1, 200_001)
    vectors = Manela(dimensions=16, n_jobs=2).fit(Graph.from_edges(np.zeros_like(leaves), leaves)).embedding_
    assert np.isfinite(vectors).all()
    assert (np.linalg.norm(vectors, axis=1) > 0).all()


def fit_in_time(graph: Graph, seconds: float) -> Manela:
    """Learn three views in some seconds, or in twice as many where a busy machine stopped the rounds early."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ManelaWarning)
        model = Manela(dimensions=16, views="all", max_seconds=seconds, n_jobs=1).fit(graph)
    return fit_in_time(graph, 2 * seconds) if caught else model


def test_the_pairs_of_a_run_of_some_seconds_give_its_three_views_again():
    graph = planted_partition(300, 5, inside=5, outside=2)[0]
    model = fit_in_time(graph, seconds=1.0)
    again = Manela(dimensions=16, views="all", pairs=model.provenance_["budget"], n_jobs=1).fit(graph)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
