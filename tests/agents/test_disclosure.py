"""What a host learned: edges that it can infer lie inside the circles of its nodes."""

import asyncio

import numpy as np
import pytest
from harness import connect, draw_graph, learn, make_terms, split_over

from manela import Graph
from manela.agents.host import _fingerprint


def distances(graph, row, most):
    """Nodes within some hops of a node."""
    reached, edge = {row}, {row}
    for _ in range(most):
        edge = {int(x) for v in edge for x in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]} - reached
        reached |= edge
    return reached


def circles(graph, rows, hops):
    """The edges that agents of these nodes may know: those between nodes within some hops of one of them."""
    found = set()
    for row in rows:
        near = distances(graph, row, hops)
        found |= {frozenset((v, int(x))) for v in near for x in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
                  if int(x) in near}  # fmt: skip
    return found


def draw_ring(nodes, hosts):
    """A ring where circles are small, each node tied to the next two, and each host with a piece of it."""
    rows = np.arange(nodes)
    graph = Graph.from_edges(np.tile(rows, 2), np.concatenate(((rows + 1) % nodes, (rows + 2) % nodes)))
    return graph, [f"h{row * hosts // nodes}" for row in rows]


class Observer:
    """Keeps what is disclosed to a host, and the host's own vectors as they change."""

    def __init__(self, host, numbers):
        self.host, self.numbers, self.facts = host, numbers, []
        self.vectors = {}
        host.disclosed = self.take
        commit = host.commit

        def watch(*arguments):
            commit(*arguments)
            self.remember()

        host.commit = watch
        self.remember()

    def remember(self):
        for name, vector in zip(self.host.neighbourhood.nodes, self.host.vectors, strict=True):
            self.vectors[_fingerprint(vector)] = self.numbers[name, self.host.name]

    def take(self, **fact):
        self.facts.append(fact)

    def infer(self, known):
        """Edges told by ids, and those told by a vector that is known to be some node's."""
        own = {self.numbers[name, self.host.name] for name in self.host.neighbourhood.nodes}
        edges, by_vector = set(), set()
        for fact in self.facts:
            if fact["kind"] == "edge":
                here, there = self.numbers[fact["own"], self.host.name], self.numbers[fact["other"], fact["peer"]]
                edges.add(frozenset((here, there)))
            elif fact["kind"] == "walk" and fact["steps"] == 1 and fact["vector"] in known:
                by_vector.add(frozenset((self.numbers[fact["through"], fact["peer"]], known[fact["vector"]])))
        assert all(edge & own for edge in edges)
        return edges, {edge for edge in by_vector if len(edge) == 2}


@pytest.mark.parametrize("lock_step", [True, False])
@pytest.mark.parametrize("ratios", [(1.0,), (0.5, 0.5), (0.4, 0.3, 0.3)])
def test_no_host_and_no_pair_of_hosts_can_infer_an_edge_outside_its_circles(ratios, lock_step):
    graph, where = draw_ring(80, 8)
    terms = make_terms(lock_step, ratios=ratios, pairs=30_000, rounds=6, half=False)
    hosts, numbers = split_over(graph, where, terms)
    observers = {name: Observer(host, numbers) for name, host in hosts.items()}
    asyncio.run(learn(connect(hosts)))
    everything = circles(graph, range(80), 1)
    inferred_more = 0
    names = sorted(hosts)
    for group in [[name] for name in names] + [[one, two] for one in names for two in names if one < two]:
        rows = [numbers[node, name] for name in group for node in hosts[name].neighbourhood.nodes]
        allowed = circles(graph, rows, len(ratios))
        assert allowed < everything  # otherwise this would prove nothing
        known = {}
        for name in group:
            known |= observers[name].vectors
            for fact in observers[name].facts:
                if fact["kind"] == "neighbour":
                    known[fact["vector"]] = numbers[fact["node"], fact["peer"]]
                    assert any(numbers[fact["node"], fact["peer"]] in edge for edge in circles(graph, rows, 1))
        for name in group:
            by_id, by_vector = observers[name].infer(known)
            incident = {edge for edge in everything if edge & set(rows)}
            assert by_id <= incident
            assert by_vector <= allowed
            assert by_vector <= everything  # the inference is right, not only harmless
            inferred_more += len(by_vector - incident)
    # with one hop nothing but the host's own edges is seen; with more, the attack above does see some
    assert (inferred_more > 0) == (len(ratios) > 1)


def test_walks_and_random_nodes_come_without_ids():
    graph = draw_graph(9, nodes=60, edges=75)
    hosts, numbers = split_over(graph, 3, make_terms(ratios=(0.5, 0.5), pairs=5_000, rounds=3))
    observers = {name: Observer(host, numbers) for name, host in hosts.items()}
    asyncio.run(learn(connect(hosts)))
    kinds = set()
    for name, observer in observers.items():
        strangers = {f"{node}@{host}" for node, host in hosts[name].neighbourhood.strangers}
        for fact in observer.facts:
            kinds.add(fact["kind"])
            assert set(fact) <= {"kind", "peer", "own", "other", "node", "through", "steps", "vector"}
            for key in ("other", "node", "through"):
                assert key not in fact or f"{fact[key]}@{fact['peer']}" in strangers
    assert kinds == {"edge", "neighbour", "walk", "random"}
