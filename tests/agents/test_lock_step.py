"""Hosts in lock-step give the bits of the CPU engine on the whole network."""

import asyncio

import numpy as np
import pytest
from harness import connect, draw_graph, gather, learn, make_terms, split_over

from manela import Manela


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratios", [(1.0,), (0.5, 0.5), (0.4, 0.3, 0.3)])
@pytest.mark.parametrize("parts", [1, 2, 4, 7])
@pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")
def test_any_number_of_hosts_gives_the_bits_of_the_cpu_engine(parts, ratios, weighted, context):
    graph = draw_graph(parts, weighted=weighted)
    parameters = {
        "dimensions": 20, "ratios": ratios, "context": context, "pairs": 20_000, "rounds": 8, "random_state": 5
    }  # fmt: skip
    whole = Manela.paper(**parameters).fit(graph)
    hosts, numbers = split_over(graph, parts, make_terms(True, weighted, **parameters))
    asyncio.run(learn(connect(hosts)))
    found = gather(hosts, numbers)
    np.testing.assert_array_equal(found[:, 0], whole.embedding_)
    if context:
        np.testing.assert_array_equal(found[:, 1], whole.context_)
    assert sum(host.pairs for host in hosts.values()) == whole.provenance_["pairs_made"]
