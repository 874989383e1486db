"""Hosts in lock-step give the bits of the CPU engine on the whole network."""

from dataclasses import replace

import numpy as np
import pytest
from harness import draw_graph, gather, learn, make_terms, split_over

from manela import Manela
from manela.hosts.folder.config import OF_MESSAGES, TWO_VIEWS
from manela.settings.settings import check_all

ONE, TWO, THREE = (1.0,), (0.5, 0.5), (0.4, 0.3, 0.3)
SPLITS = [(1, TWO), (2, ONE), (2, THREE), (4, TWO), (7, ONE), (7, THREE)]
"""How many hosts, and how many hops they look."""


@pytest.mark.parametrize(("weighted", "context"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize(("parts", "ratios"), SPLITS)
@pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")
def test_hosts_by_walks_give_the_bits_of_one_process(parts, ratios, weighted, context):
    graph = draw_graph(parts, weighted=weighted)
    parameters = {
        "dimensions": 20, "ratios": ratios, "context": context, "pairs": 20_000, "rounds": 8, "random_state": 5
    }  # fmt: skip
    whole = Manela.paper(**parameters).fit(graph)
    hosts, numbers = split_over(graph, parts, make_terms(True, weighted, walks=True, **parameters))
    learn(hosts)
    check_bits(hosts, numbers, whole)


@pytest.mark.parametrize(("weighted", "context"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize(("parts", "ratios"), SPLITS)
@pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")
def test_hosts_by_messages_give_the_bits_of_one_process(parts, ratios, weighted, context):
    """Rounds until vectors have grown and while the rate falls, and smoothing."""
    graph = draw_graph(parts, weighted=weighted)
    parameters = {
        "dimensions": 20, "ratios": ratios, "context": context, **OF_MESSAGES, "random_state": 5, "pairs": None,
        "rounds": None, "patience": 0.1,
    }  # fmt: skip
    whole = Manela(**parameters).fit(graph)
    hosts, numbers = split_over(graph, parts, make_terms(True, weighted, **parameters))
    learn(hosts)
    check_bits(hosts, numbers, whole)
    assert {host.round for host in hosts.values()} == {whole.provenance_["rounds_done"]}


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("parts", "ratios"), SPLITS)
@pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")
def test_two_views_between_hosts_have_the_bits_of_one_process(parts, ratios, weighted, smooth):
    """Affinities, sweeps, the view, rounds from it, smoothing and the join."""
    graph = draw_graph(parts, weighted=weighted)
    parameters = {
        "dimensions": 20, "ratios": ratios, **OF_MESSAGES, **TWO_VIEWS, "smooth": smooth, "random_state": 5,
        "pairs": None, "rounds": None, "patience": 0.1,
    }  # fmt: skip
    whole = Manela(**parameters).fit(graph)
    hosts, numbers = split_over(graph, parts, make_terms(True, weighted, **parameters))
    learn(hosts)
    check_bits(hosts, numbers, whole)


@pytest.mark.parametrize(("start", "views"), [("spectral", "rounds"), ("random", "both")])
@pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")
def test_a_view_may_be_the_start_alone_or_a_part_of_the_result_alone(start, views):
    graph = draw_graph(3)
    parameters = {**OF_MESSAGES, "start": start, "views": views, "dimensions": 8, "pairs": None, "rounds": 5}
    whole = Manela(**parameters).fit(graph)
    terms = make_terms(True, **parameters)
    terms = replace(terms, settings=check_all({**parameters, "n_jobs": 1}))
    hosts, numbers = split_over(graph, 3, terms)
    learn(hosts)
    check_bits(hosts, numbers, whole)


@pytest.mark.parametrize("budget", [{"pairs": 30_000}, {"rounds": 7, "pairs": None}])
@pytest.mark.filterwarnings("ignore::manela.errors.ManelaWarning")
def test_a_budget_is_that_of_the_whole_network(budget):
    graph = draw_graph(3)
    parameters = {**OF_MESSAGES, "dimensions": 8, "rounds": None, **budget}
    whole = Manela(**parameters).fit(graph)
    hosts, numbers = split_over(graph, 3, make_terms(True, **parameters))
    learn(hosts)
    check_bits(hosts, numbers, whole)


def check_bits(hosts, numbers, whole):
    found = gather(hosts, numbers)
    np.testing.assert_array_equal(found[:, 0], whole.embedding_)
    if whole.context_ is not None:
        np.testing.assert_array_equal(found[:, 1], whole.context_)
    assert sum(host.pairs for host in hosts.values()) == whole.provenance_["pairs_made"]
