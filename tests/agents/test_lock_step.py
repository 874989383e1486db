"""Hosts in lock-step give the bits of the CPU engine on the whole network."""

import asyncio

import numpy as np
import pytest

from manela import Graph, Manela
from manela.agents.federation import split_graph
from manela.agents.host import Host, Terms
from manela.agents.learning import Learner
from manela.agents.neighbourhood import Neighbourhood
from manela.agents.service import Service
from manela.agents.transport.memory import MemoryTransport
from manela.params import check_all


def connect(hosts):
    services = {}
    for host in hosts:
        services[host.name] = Service(host, MemoryTransport(host.name, services))
    return services


async def learn(hosts, free=False):
    async def kept():
        pass

    services = connect(hosts)
    learners = [
        Learner(service, [name for name in services if name != service.host.name], kept)
        for service in services.values()
    ]
    await asyncio.gather(*(learner.meet_all(5.0) for learner in learners))
    await asyncio.gather(*((one.run_freely() if free else one.run_lock_step()) for one in learners))
    return services


def hosts_of(graph, parts, parameters, lock_step=True):
    settings = check_all({**Manela().get_params(), **parameters})
    terms = Terms(settings, lock_step=lock_step, weighted=graph.is_weighted)
    pieces, numbers = split_graph(graph, parts)
    hosts = []
    for name, edges in pieces.items():
        order = numbers if lock_step else None
        hosts.append(Host(terms, Neighbourhood.build(name, edges, order), order))
    return hosts, numbers


def gather(hosts, numbers, nodes):
    found = np.empty((nodes, *hosts[0].vectors.shape[1:]), np.float32)
    for host in hosts:
        found[[numbers[name, host.name] for name in host.neighbourhood.nodes]] = host.vectors
    return found


def draw_graph(seed, nodes=40, edges=110, weighted=False):
    random = np.random.default_rng(seed)
    sources, targets = random.integers(0, nodes, (2, edges))
    weights = random.lognormal(size=edges) if weighted else None
    return Graph.from_edges(sources, targets, weights, nodes=range(nodes))


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratios", [(1.0,), (0.5, 0.5), (0.4, 0.3, 0.3)])
@pytest.mark.parametrize("parts", [1, 2, 4, 7])
@pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")
def test_any_number_of_hosts_gives_the_bits_of_the_cpu_engine(parts, ratios, weighted, context):
    graph = draw_graph(parts, weighted=weighted)
    parameters = {
        "dimensions": 20, "ratios": ratios, "context": context, "pairs": 40_000, "rounds": 12, "random_state": 5
    }  # fmt: skip
    whole = Manela(**parameters).fit(graph)
    where = [f"h{i}" for i in np.random.default_rng(1).permutation(np.arange(graph.number_of_nodes) % parts)]
    hosts, numbers = hosts_of(graph, where, parameters)
    asyncio.run(learn(hosts))
    found = gather(hosts, numbers, graph.number_of_nodes)
    np.testing.assert_array_equal(found[:, 0], whole.embedding_)
    if context:
        np.testing.assert_array_equal(found[:, 1], whole.context_)
    assert sum(host.pairs for host in hosts) == whole.provenance_["pairs_made"]
