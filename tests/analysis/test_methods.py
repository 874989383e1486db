import numpy as np
import pytest

from manela import Graph
from manela.analysis.methods import METHODS, choose_methods
from manela.errors import GraphError, ManelaWarning, ParameterError


@pytest.fixture(scope="module")
def small():
    return Graph.from_edges([0, 1], [1, 2])


@pytest.fixture(scope="module")
def large():
    return Graph.from_edges(np.arange(40_000), np.arange(1, 40_001))


def test_methods_are_chosen_by_name_or_all(small):
    assert choose_methods("prone,manela,prone", small, 10) == ("prone", "manela")
    assert choose_methods("all", small, 10) == METHODS
    with pytest.raises(ParameterError, match="method must be one of manela, .*, or all, got 'magic'"):
        choose_methods("manela,magic", small, 10)


def test_a_network_too_large_for_netmf_is_refused_at_once_or_all_others_are_chosen(large):
    with pytest.raises(GraphError, match="at most 32,768 nodes"):
        choose_methods("manela,netmf", large, 10)
    assert choose_methods("netmf", large, 1) == ("netmf",)
    with pytest.warns(ManelaWarning, match="netmf is left out: .* at most 32,768 nodes"):
        assert set(choose_methods("all", large, 10)) == set(METHODS) - {"netmf"}
