import sys

import pytest

from manela import Manela
from manela.data.graph import Graph
from manela.engines.engine import open_engine
from manela.errors import MissingExtraError, ParameterError
from manela.settings.settings import check_all


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


@pytest.mark.parametrize("parameters", [{"engine": "gpu"}, {"engine": "ray"}, {"workers": 2}, {"address": "auto"}])
def test_walks_run_on_the_cpu_only(graph, parameters):
    engine = parameters.get("engine", "ray")
    with pytest.raises(ParameterError, match=f"walks run on the CPU: .* got engine '{engine}'; give engine='cpu', or"):
        Manela.paper(**parameters).fit(graph)


def test_long_walks_do_not_ask_for_a_gpu(graph, monkeypatch):
    monkeypatch.setattr("manela.engines.engine.has_gpu", lambda: pytest.fail("was asked"))
    open_engine(graph, check_all({"exchange": "walks", "pairs": 10**12})).close()


@pytest.mark.parametrize("engine", ["auto", "cpu"])
@pytest.mark.parametrize("exchange", ["messages", "walks"])
def test_processors_run_both_editions(graph, engine, exchange):
    model = Manela(exchange=exchange, engine=engine, pairs=100).fit(graph)
    assert model.provenance_["engine"] == "cpu"
    assert model.provenance_["parameters"]["exchange"] == exchange
