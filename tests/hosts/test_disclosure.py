"""What a host learned: edges that it can infer lie inside the circles of its nodes."""

import pytest
from harness import circles, draw_graph, draw_ring, infer, learn, make_terms, split_over

from manela.hosts.walks.host import fingerprint


class Observer:
    """Keeps what is disclosed to a host, and the host's own vectors as they change."""

    def __init__(self, host, numbers):
        self.host, self.numbers, self.disclosures = host, numbers, []
        self.vectors = {}
        host.on_disclosure = self.take
        commit = host._commit

        def watch(*arguments):
            commit(*arguments)
            self.remember()

        host._commit = watch
        self.remember()

    def remember(self):
        for name, vector in zip(self.host.neighbourhood.nodes, self.host.vectors, strict=True):
            self.vectors[fingerprint(vector)] = self.numbers[name, self.host.name]

    def take(self, **disclosure):
        self.disclosures.append(disclosure)


@pytest.mark.parametrize("lock_step", [True, False])
@pytest.mark.parametrize("ratios", [(1.0,), (0.5, 0.5), (0.4, 0.3, 0.3)])
def test_no_host_and_no_pair_of_hosts_can_infer_an_edge_outside_its_circles(ratios, lock_step):
    graph, where = draw_ring(80, 8)
    terms = make_terms(lock_step, walks=True, ratios=ratios, pairs=30_000, rounds=6, half=False)
    hosts, numbers = split_over(graph, where, terms)
    observers = {name: Observer(host, numbers) for name, host in hosts.items()}
    learn(hosts)
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
            for disclosure in observers[name].disclosures:
                if disclosure["kind"] == "neighbour":
                    known[disclosure["vector"]] = numbers[disclosure["node"], disclosure["peer"]]
                    assert any(
                        numbers[disclosure["node"], disclosure["peer"]] in edge for edge in circles(graph, rows, 1)
                    )
        for name in group:
            by_id, by_vector = infer(name, observers[name].disclosures, numbers, known)
            incident = {edge for edge in everything if edge & set(rows)}
            assert by_id <= incident
            assert by_vector <= allowed
            assert by_vector <= everything  # the inference is right, not only harmless
            inferred_more += len(by_vector - incident)
    # with one hop nothing but the host's own edges is seen; with more, the attack above does see some
    assert (inferred_more > 0) == (len(ratios) > 1)


def test_by_messages_nothing_travels_but_what_neighbours_show():
    graph = draw_graph(9, nodes=60, edges=75)
    hosts, _ = split_over(graph, 3, make_terms(rounds=4, pairs=None))
    observers = {name: [] for name in hosts}
    for name, host in hosts.items():
        host.on_disclosure = lambda name=name, **disclosure: observers[name].append(disclosure)
    learn(hosts)
    for name, disclosures in observers.items():
        near = hosts[name].neighbourhood
        assert {disclosure["kind"] for disclosure in disclosures} == {"edge", "shown", "own"}
        for disclosure in disclosures:
            if disclosure["kind"] == "shown":
                assert {(node, disclosure["peer"]) for node in disclosure["nodes"]} <= set(near.remotes)
                assert len(disclosure["rows"]) == len(disclosure["nodes"])
                assert set(disclosure) == {"kind", "peer", "phase", "number", "level", "nodes", "rows"}


def test_walks_and_random_nodes_come_without_ids():
    graph = draw_graph(9, nodes=60, edges=75)
    hosts, numbers = split_over(graph, 3, make_terms(walks=True, ratios=(0.5, 0.5), pairs=5_000, rounds=3))
    observers = {name: Observer(host, numbers) for name, host in hosts.items()}
    learn(hosts)
    kinds = set()
    for name, observer in observers.items():
        strangers = {f"{node}@{host}" for node, host in hosts[name].neighbourhood.remotes}
        for disclosure in observer.disclosures:
            kinds.add(disclosure["kind"])
            assert set(disclosure) <= {"kind", "peer", "own", "other", "node", "through", "steps", "vector"}
            for key in ("other", "node", "through"):
                assert key not in disclosure or f"{disclosure[key]}@{disclosure['peer']}" in strangers
    assert kinds == {"edge", "neighbour", "walk", "random"}
