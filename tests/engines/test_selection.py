import sys

import pytest

from manela import Manela
from manela.errors import MissingExtraError, ParameterError
from manela.graph import Graph


@pytest.fixture
def graph():
    return Graph.from_edges([0, 1], [1, 2])


@pytest.mark.parametrize("engine", ["cpu", "gpu"])
@pytest.mark.parametrize("parameters", [{"workers": 2}, {"address": "auto"}])
def test_workers_and_an_address_are_for_a_cluster(graph, engine, parameters):
    with pytest.raises(ParameterError, match=f"workers and address are for engine 'ray', got engine '{engine}'"):
        Manela(engine=engine, **parameters).fit(graph)


def test_auto_goes_where_workers_are_asked_for(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="engine 'ray' needs ray"):
        Manela(workers=2).fit(graph)


def test_auto_leaves_small_work_to_processors(graph):
    assert Manela(pairs=100).fit(graph).provenance_["engine"] == "cpu"
