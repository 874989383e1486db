"""Tiny networks: neighbours do not point apart, and are nearer to each other than nodes that are not neighbours."""

import networkx as nx
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from manela import Manela

NETWORKS = {
    "two triangles with a bridge": nx.barbell_graph(3, 0),
    "path of 4": nx.path_graph(4),
    "path of 6": nx.path_graph(6),
    "path of 15": nx.path_graph(15),
    "star of 6": nx.star_graph(5),
    "star of 15": nx.star_graph(14),
    "Krackhardt's kite": nx.krackhardt_kite_graph(),
    "barbell": nx.barbell_graph(5, 2),
    "complete, 4": nx.complete_graph(4),
    "complete, 10": nx.complete_graph(10),
    "K20,20": nx.complete_bipartite_graph(20, 20),
    "cycle of 12": nx.cycle_graph(12),
    "grid": nx.grid_2d_graph(4, 4),
    "tree": nx.balanced_tree(2, 3),
    "wheel": nx.wheel_graph(8),
    "lollipop": nx.lollipop_graph(5, 4),
    "Petersen's": nx.petersen_graph(),
    "Florentine families": nx.florentine_families_graph(),
    "southern women": nx.davis_southern_women_graph(),
    "karate": nx.karate_club_graph(),
    "Les Misérables": nx.les_miserables_graph(),
}
ALIKE = ("Petersen's",)
"""Where any two nodes that are not neighbours have a neighbour in common, all vectors are nearly the same."""


def compare(network, seed):
    """The cosines of neighbours, and of nodes that are not; those with the same neighbours are left out."""
    graph = nx.Graph(nx.convert_node_labels_to_integers(network))
    for *_, facts in graph.edges(data=True):
        facts.clear()  # without weights
    vectors = Manela(random_state=seed).fit(graph).embedding_
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = nx.to_numpy_array(graph) > 0
    same = (near[:, None, :] == near[None, :, :]).all(axis=2)
    cosines = units @ units.T
    return cosines[near], cosines[~near & ~same]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NETWORKS)
def test_neighbours_do_not_point_apart_and_are_nearer_than_others(name, seed):
    joined, apart = compare(NETWORKS[name], seed)
    assert joined.min() > 0.0
    if len(apart):
        assert joined.mean() > apart.mean() - (0.02 if name in ALIKE else 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_clubs_of_karate_are_found_by_k_means(seed):
    graph = nx.karate_club_graph()
    vectors = Manela(random_state=seed).fit(graph).embedding_
    clubs = [graph.nodes[node]["club"] for node in graph]
    found = KMeans(2, n_init=10, random_state=0).fit_predict(vectors)
    assert adjusted_rand_score(clubs, found) >= 0.88
