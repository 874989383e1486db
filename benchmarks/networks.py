"""Generated networks of different kinds with a label for each node, on which the defaults were found."""

import numpy as np

from manela import Graph
from manela.formats.datasets import planted_partition

Labelled = tuple[Graph, np.ndarray]


def mix(
    nodes: int,
    degree: float,
    affinity: np.ndarray,
    seed: int,
    exponent: float | None = None,
    tail: float | None = None,
    factor: float = 1.0,
) -> Labelled:
    """Groups that link to each other by their affinity.

    With an `exponent`, degrees follow a power law. With a `tail`, weights do, and edges inside groups weigh `factor`
    times as much.
    """
    random = np.random.default_rng(seed)
    groups = len(affinity)
    group = random.integers(groups, size=nodes)
    weight = np.ones(nodes) if exponent is None else random.pareto(exponent - 1, nodes) + 1
    weight = np.minimum(weight, np.sqrt(nodes) * weight.mean())
    members = np.argsort(group, kind="stable")
    begins = np.searchsorted(group[members], np.arange(groups + 1))
    ranks = np.concatenate(([0.0], np.cumsum(weight[members])))
    edges = int(nodes * degree / 2)
    sources = np.minimum(np.searchsorted(np.cumsum(weight), random.random(edges) * weight.sum()), nodes - 1)
    chances = np.cumsum(affinity / affinity.sum(axis=1, keepdims=True), axis=1)
    other = (random.random(edges)[:, None] > chances[group[sources]]).sum(axis=1).clip(max=groups - 1)
    low, high = ranks[begins[other]], ranks[begins[other + 1]]
    targets = members[np.searchsorted(ranks[1:], low + random.random(edges) * (high - low)).clip(max=nodes - 1)]
    weights = None
    if tail is not None:
        weights = (random.pareto(tail, edges) + 1) * np.where(group[sources] == group[targets], factor, 1.0)
    return Graph.from_arcs(sources, targets, weights, np.arange(nodes)), group


def communities(nodes: int, groups: int, degree: float, inside: float, seed: int, **options: float) -> Labelled:
    """Groups whose edges stay inside with this chance; the options are those of `mix`."""
    affinity = np.full((groups, groups), (1 - inside) / groups) + np.eye(groups) * inside
    return mix(nodes, degree, affinity, seed, **options)


def roles(nodes: int = 4000, groups: int = 8, degree: float = 12, strong: float = 0.6) -> Labelled:
    """Groups in a ring that link to the next ones, and not to themselves."""
    ring = np.roll(np.eye(groups), 1, axis=1) + np.roll(np.eye(groups), -1, axis=1)
    return mix(nodes, degree, np.full((groups, groups), (1 - strong) / groups) + ring * strong / 2, 0)


def bipartite(left: int = 4000, right: int = 1000, groups: int = 20, degree: int = 8, inside: float = 0.5) -> Labelled:
    """Nodes of two kinds, those of one with edges to the other only."""
    random = np.random.default_rng(0)
    first, second = random.integers(groups, size=left), random.integers(groups, size=right)
    sources = np.repeat(np.arange(left), degree)
    members = [np.flatnonzero(second == group) for group in range(groups)]
    own = np.array([random.choice(members[first[source]]) for source in sources])
    targets = np.where(random.random(len(sources)) < inside, own, random.integers(right, size=len(sources)))
    return Graph.from_arcs(sources, targets + left, None, np.arange(left + right)), np.concatenate((first, second))


def ring_of_cliques(cliques: int = 300, size: int = 8) -> Labelled:
    """Cliques with an edge to the next one; ten neighbouring cliques have one label."""
    rows, columns = np.triu_indices(size, k=1)
    base = size * np.arange(cliques)[:, None]
    sources = np.concatenate(((base + rows).ravel(), base[:, 0]))
    targets = np.concatenate(((base + columns).ravel(), np.roll(base[:, 0], -1) + 1))
    return Graph.from_arcs(sources, targets, None, np.arange(cliques * size)), np.arange(cliques * size) // (10 * size)


NETWORKS = {
    "SBM, sparse": lambda: planted_partition(10_000, 100, inside=3, outside=3),
    "SBM, dense": lambda: communities(3000, 60, 60, 0.12, 1),
    "power law": lambda: communities(10_000, 50, 12, 0.5, 2, exponent=2.5),
    "mail-like": lambda: communities(1000, 40, 32, 0.5, 4, exponent=2.3),
    "citation-like": lambda: communities(3000, 7, 4, 0.75, 3, exponent=2.8),
    "ring of cliques": ring_of_cliques,
    "bipartite": bipartite,
    "roles": roles,
    "bipartite, large": lambda: bipartite(15_000, 10_000, 100, 8, 0.4),
    "roles, large": lambda: roles(40_000, 40, 10, 0.5),
    "heavy weights": lambda: communities(10_000, 50, 12, 0.3, 5, exponent=2.8, tail=1.2, factor=3.0),
}
