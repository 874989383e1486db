"""What must hold for every estimator that learns vectors."""

from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from manela import DeepWalk, Embedding, Graph, Manela, NetMF, Node2Vec, ProNE, read_graph
from manela.analysis.classification import measure_separation
from manela.errors import FormatError, ParameterError, UnknownNodeError
from manela.estimators.baselines.skip_gram import SkipGram
from manela.formats.datasets import stochastic_block_model
from manela.formats.embeddings import read_embedding

EMBEDDERS = {
    "manela": Manela(dimensions=20, pairs=200_000, n_jobs=1),
    "manela of the paper": Manela.paper(dimensions=20, pairs=200_000, n_jobs=1),
    "manela without a budget": Manela(dimensions=20, n_jobs=1),
    "deepwalk": DeepWalk(dimensions=20, walk_length=20),
    "node2vec": Node2Vec(dimensions=20, walk_length=20, p=0.5, q=2.0),
    "prone": ProNE(dimensions=20),
    "netmf": NetMF(dimensions=20),
}
LEARNS_FROM_PAIRS = {"manela": True, "deepwalk": True, "node2vec": True, "prone": False, "netmf": False}


@pytest.fixture(params=sorted(EMBEDDERS))
def model(request):
    return clone(EMBEDDERS[request.param])


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=120, inside=0.4, between=0.02, seed=3)


def test_communities_stand_apart(model, blocks):
    graph, communities = blocks
    model.fit(graph)
    assert model.embedding_.shape == (120, 20)
    assert model.embedding_.dtype == np.float32
    assert np.isfinite(model.embedding_).all()
    assert measure_separation(model.embedding_, communities).accuracy > 0.95


def test_a_seed_gives_the_same_bits_and_another_gives_others(model, blocks):
    graph, _ = blocks
    first = clone(model).fit(graph).embedding_
    np.testing.assert_array_equal(clone(model).fit(graph).embedding_, first)
    assert not np.array_equal(clone(model).set_params(random_state=1).fit(graph).embedding_, first)


def test_ids_come_back_with_their_type(model):
    graph = Graph.from_edges(["a", "b", "c", "d"], ["b", "c", "d", "a"])
    model.fit(graph)
    assert model.nodes_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(model["b"], model.embedding_[1])
    assert "a" in model
    assert "e" not in model
    with pytest.raises(UnknownNodeError, match="'e'"):
        model["e"]
    assert len(model.most_similar("a", k=2)) == 2


def test_weights_count(model):
    graph = Graph.from_edges(
        [0, 1, 2, 3, 0, 2], [1, 2, 3, 0, 2, 1], [1.0, 50.0, 1.0, 50.0, 0.5, 2.0], duplicates="first"
    )
    weighted = clone(model).fit(graph).embedding_
    assert not np.array_equal(weighted, clone(model).fit(graph.without_weights()).embedding_)


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
def test_nodes_without_neighbours_have_vectors_too(model):
    graph = Graph.from_edges([0, 1], [1, 2], nodes=range(5))
    assert np.isfinite(model.fit(graph).embedding_).all()


def test_what_is_saved_comes_back(model, blocks, tmp_path):
    graph, _ = blocks
    model.fit(graph).save(tmp_path / "out.npz")
    again = type(model).load(tmp_path / "out.npz")
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    # what was left open is said as what it came to be
    resolved = {name: again.get_params()[name] for name, value in model.get_params().items() if value is None}
    assert again.get_params() | {"n_jobs": 1} == model.get_params() | resolved | {"n_jobs": 1}
    np.testing.assert_array_equal(clone(again).set_params(n_jobs=1).fit(graph).embedding_, model.embedding_)
    assert again.provenance_ == model.provenance_
    assert (model.updates_ is None) == isinstance(model, ProNE | NetMF)
    assert again.updates_ is None
    assert isinstance(read_embedding(tmp_path / "out.npz"), Embedding)
    for other in EMBEDDERS.values():
        if type(other) is not type(model):
            with pytest.raises(FormatError, match=type(other).__name__):
                type(other).load(tmp_path / "out.npz")


def test_parameters_may_be_numbers_of_numpy(model, tmp_path):
    numbers = {
        "dimensions": np.int64(8),
        "learning_rate": np.float32(0.02),
        "theta": np.float32(0.5),
        "negatives": np.int32(2),
    }
    model.set_params(**{name: value for name, value in numbers.items() if name in model.get_params()})
    model.fit(Graph.from_edges([0, 1], [1, 2])).save(tmp_path / "out.npz")
    assert type(model).load(tmp_path / "out.npz").dimensions == 8


def test_a_pipeline_takes_it(model, blocks):
    graph, communities = blocks
    pipeline = make_pipeline(model, LogisticRegression())
    assert pipeline.fit(graph, communities).score(graph, communities) > 0.9


def test_a_path_will_do(model, tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("1 2\n2 3\n3 1\n3 4\n")
    np.testing.assert_array_equal(clone(model).fit(path).embedding_, clone(model).fit(read_graph(path)).embedding_)


BROKEN = {
    "dimensions": 0, "window": 0, "negatives": -1, "learning_rate": float("nan"), "random_state": -1, "n_jobs": 0,
    "order": 1, "theta": 0.0, "mu": 2.5, "rank": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method, model in EMBEDDERS.items() for name in BROKEN if name in model.get_params()],
)
def test_parameters_are_checked_in_fit(blocks, method, name):
    broken = clone(EMBEDDERS[method]).set_params(**{name: BROKEN[name]})
    with pytest.raises(ParameterError, match=f"{name} must be"):
        broken.fit(blocks[0])


def test_every_method_has_the_parameters_that_all_have(model):
    assert {"dimensions", "random_state", "n_jobs"} <= set(model.get_params())
    if LEARNS_FROM_PAIRS[model.method]:
        assert {"window", "negatives", "learning_rate"} <= set(model.get_params())


@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
@pytest.mark.parametrize(("parameter", "value"), [("walks", 0), ("walk_length", 1)])
def test_walks_are_checked_in_fit(blocks, name, parameter, value):
    with pytest.raises(ParameterError, match=f"{parameter} must be"):
        clone(EMBEDDERS[name]).set_params(**{parameter: value}).fit(blocks[0])


@pytest.mark.parametrize("parameter", ["p", "q"])
def test_biases_are_checked_in_fit(blocks, parameter):
    with pytest.raises(ParameterError, match=f"{parameter} must be"):
        Node2Vec(**{parameter: 0.0}).fit(blocks[0])


@pytest.mark.parametrize(("p", "q"), [(1000.0, 0.001), (0.001, 1000.0), (1000.0, 1000.0)])
def test_the_strongest_biases_come_to_an_end(p, q):
    star = Graph.from_edges([0] * 5, range(1, 6))
    assert np.isfinite(Node2Vec(dimensions=4, walks=1, walk_length=10, p=p, q=q).fit(star).embedding_).all()


def test_progress_is_told(model, blocks):
    seen = []
    model.fit(blocks[0], progress=seen.append)
    seen = [progress for progress in seen if progress.phase == "rounds"]
    assert seen[-1].round == seen[-1].rounds
    if LEARNS_FROM_PAIRS[model.method]:
        assert seen[-1].pairs == model.provenance_["pairs_made"] > 0
    else:
        assert seen[-1].pairs == 0
        assert len(seen) == len(model.provenance_["seconds"]) > 1


def test_a_network_of_fewer_nodes_than_dimensions_has_vectors_of_full_length(model):
    vectors = model.fit(Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])).embedding_
    assert vectors.shape == (4, 20)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
def test_a_directed_network_has_finite_vectors(model):
    graph = Graph.from_edges([0, 1, 2, 3, 0], [1, 2, 0, 0, 4], [1.0, 2.0, 1.0, 1.0, 3.0], directed=True)
    assert np.isfinite(model.fit(graph).embedding_).all()


@pytest.mark.filterwarnings("ignore::manela.ManelaWarning")
def test_weights_of_any_size_give_finite_vectors(model):
    graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [1e-100, 1e100, 1.0, 1e-30, 1e30], nodes=range(6))
    assert np.isfinite(model.fit(graph).embedding_).all()


def test_methods_over_walks_take_the_same_parameters_first_and_the_seed_last():
    shared = [*signature(SkipGram).parameters]
    assert [*signature(DeepWalk).parameters] == [*shared, "random_state", "n_jobs"]
    assert [*signature(Node2Vec).parameters] == [*shared, "p", "q", "random_state", "n_jobs"]


def test_two_estimators_with_the_same_parameters_are_not_the_same(model):
    other = clone(model)
    assert repr(other) == repr(model)
    assert other != model
    assert len({model, other}) == 2
