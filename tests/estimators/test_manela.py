import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from manela import Graph, Manela
from manela.analysis.classification import classify, measure_separation
from manela.errors import FormatError, ManelaWarning, ParameterError, UnknownNodeError
from manela.estimators.newcomers import start_from_neighbours
from manela.formats.datasets import stochastic_block_model
from manela.formats.loading import load_graph
from manela.kernels.reference import POWER
from manela.settings.parameters import PAPER, PARAMETERS
from manela.system.arrays import read_arrays, write_arrays


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=240, inside=0.25, between=0.02, seed=4)


@pytest.fixture(scope="module")
def model(blocks):
    return Manela(dimensions=24, pairs=500_000).fit(blocks[0])


def test_parameters_and_defaults_are_those_of_the_table():
    given = Manela().get_params()
    assert given == {name: PARAMETERS[name].default for name in given}


def test_the_papers_settings_have_one_word():
    assert Manela.paper(negatives=3).get_params() == {**Manela().get_params(), **PAPER, "negatives": 3}
    assert Manela.paper(smooth=True).smooth is True


def test_init_only_assigns_and_fit_checks():
    broken = Manela(dimensions=0, ratios="nonsense")
    assert broken.get_params()["dimensions"] == 0
    with pytest.raises(ParameterError, match="dimensions must be a whole number from 1 to 65536, got 0"):
        broken.fit(Graph.from_edges([0], [1]))
    assert not hasattr(broken, "embedding_")


def test_fitting_changes_no_parameter(blocks):
    ratios = [0.6, 0.4]
    model = Manela(dimensions=8, pairs=1000, ratios=ratios, random_state=None)
    before = dict(model.get_params())
    model.fit(blocks[0])
    assert model.get_params() == before
    assert model.ratios is ratios


def test_clone_and_set_params(model):
    twin = clone(model).set_params(negatives=2)
    assert twin.get_params() == {**model.get_params(), "negatives": 2}
    assert not hasattr(twin, "embedding_")


def test_unfitted_says_so():
    for call in (
        lambda m: m["a"],
        lambda m: m.most_similar("a"),
        lambda m: m.save("x.npz"),
        lambda m: m.transform(None),
    ):
        with pytest.raises(NotFittedError):
            call(Manela())


def test_works_in_a_pipeline(blocks):
    graph, communities = blocks
    pipeline = make_pipeline(Manela(dimensions=16, pairs=300_000), LogisticRegression(max_iter=1000))
    assert pipeline.fit(graph, communities).score(graph, communities) > 0.95
    assert clone(pipeline).get_params()["manela__dimensions"] == 16


def test_communities_separate(model, blocks):
    assert measure_separation(model.embedding_, blocks[1]).accuracy > 0.95


def test_vectors_are_found_by_id_and_similar_ones_share_the_community(blocks):
    graph, communities = blocks
    names = [f"n{i}" for i in range(graph.number_of_nodes)]
    network = nx.relabel_nodes(nx.from_scipy_sparse_array(graph.to_scipy()), dict(enumerate(names)))
    model = Manela(dimensions=16, pairs=300_000).fit(network)
    assert model.nodes_.tolist() == names
    np.testing.assert_array_equal(model["n7"], model.embedding_[7])
    assert "n7" in model
    assert "n999" not in model
    found = [communities[int(name[1:])] == communities[7] for name, _ in model.most_similar("n7", k=20)]
    assert np.mean(found) > 0.8
    with pytest.raises(UnknownNodeError, match="no node has the id 'n999'"):
        model.most_similar("n999")


def test_transform_gives_the_vectors_of_the_nodes_of_a_part(model, blocks):
    part = Graph.from_edges([5, 9], [9, 200])
    np.testing.assert_array_equal(model.transform(part), model.embedding_[[5, 9, 200]])
    with pytest.raises(UnknownNodeError, match="777"):
        model.transform([5, 777])


@pytest.mark.parametrize("context", [False, True])
def test_save_and_load_give_the_same_model(blocks, tmp_path, context):
    model = Manela(dimensions=8, pairs=20_000, context=context, ratios=(0.7, 0.3)).fit(blocks[0])
    model.save(tmp_path / "m.npz")
    loaded = Manela.load(tmp_path / "m.npz")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    assert loaded.provenance_ == model.provenance_
    assert loaded.provenance_["graph"]["sha256"] == blocks[0].digest
    loaded.partial_fit(blocks[0])
    assert loaded.embedding_.shape == model.embedding_.shape


def test_load_refuses_what_does_not_say_the_parameters(model, tmp_path):
    model.save(tmp_path / "m.txt")
    with pytest.raises(FormatError, match="does not say the parameters"):
        Manela.load(tmp_path / "m.txt")


def test_load_names_the_parameters_that_another_version_had(model, tmp_path):
    model.save(tmp_path / "m.npz")
    arrays, notes = read_arrays(tmp_path / "m.npz", "provenance")
    notes |= {"version": "0.1.0", "parameters": {**notes["parameters"], "apply": "sum"}}
    with (tmp_path / "old.npz").open("wb") as file:
        write_arrays(file, arrays, notes, "provenance")
    with pytest.raises(FormatError, match=r"does not know \(apply='sum'\), as manela 0\.1\.0 wrote it; read it as a"):
        Manela.load(tmp_path / "old.npz")


def save_as_0_2(model, folder, **parameters):
    """Write a file as version 0.2 did, which had the parameter `snapshot`."""
    model.save(folder / "m.npz")
    arrays, notes = read_arrays(folder / "m.npz", "provenance")
    notes |= {"version": "0.2.0", "parameters": {**notes["parameters"], **parameters}}
    with (folder / "old.npz").open("wb") as file:
        write_arrays(file, arrays, notes, "provenance")
    return folder / "old.npz"


def test_a_file_of_version_0_2_is_loaded_and_continued(model, tmp_path):
    loaded = Manela.load(save_as_0_2(model, tmp_path, snapshot="float32"))
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    with pytest.warns(ManelaWarning, match="read from a file, which does not hold its network"):
        loaded.partial_fit(Graph.from_edges(["new"] * 3, [0, 1, 2]))
    assert "new" in loaded
    loaded.save(tmp_path / "again.npz")
    assert Manela.load(tmp_path / "again.npz").get_params() == loaded.get_params()


def test_a_file_of_version_0_2_with_another_snapshot_is_refused(model, tmp_path):
    with pytest.raises(FormatError, match=r"does not know \(snapshot='float16'\), as manela 0\.2\.0 wrote it; read"):
        Manela.load(save_as_0_2(model, tmp_path, snapshot="float16"))


def test_fits_a_file_a_matrix_and_a_name(tmp_path):
    (tmp_path / "g.txt").write_text("a b\nb c\nc a\n")
    model = Manela(dimensions=4, pairs=100)
    assert model.fit(tmp_path / "g.txt").nodes_.tolist() == ["a", "b", "c"]
    assert model.fit(str(tmp_path / "g.txt")).embedding_.shape == (3, 4)
    assert model.fit(sp.csr_array(np.ones((3, 3)) - np.eye(3))).embedding_.shape == (3, 4)
    assert model.fit("sbm").embedding_.shape == (1024, 4)


def test_new_nodes_start_at_the_mean_of_their_neighbours_nearest_first():
    graph = Graph.from_edges([0, 1, 2, 2, 3], [1, 2, 0, 3, 4], nodes=range(6))
    table = np.array([[1.0, 0], [0, 1], [9, 9], [9, 9], [9, 9], [7, 7]], dtype=np.float32)
    start_from_neighbours(graph, table, np.array([False, False, True, True, True, True]))
    np.testing.assert_allclose(table[2:], [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [7, 7]])


def test_partial_fit_keeps_the_places_of_old_nodes_and_gives_new_ones_theirs(blocks):
    graph, communities = blocks
    matrix = graph.to_scipy()
    early = Graph.from_scipy(matrix[:200, :200])
    model = Manela(dimensions=24, pairs=500_000).fit(early)
    before = model.embedding_.copy()
    model.partial_fit(graph, replace=True)
    assert model.embedding_.shape == (240, 24)
    cosines = np.einsum("ij,ij->i", before, model.embedding_[:200])
    cosines /= np.linalg.norm(before, axis=1) * np.linalg.norm(model.embedding_[:200], axis=1)
    assert np.median(cosines) > 0.9
    assert measure_separation(model.embedding_, communities).accuracy > 0.95


@pytest.mark.parametrize("parameters", [{}, {"smooth": False}, {"context": True}])
def test_by_messages_old_nodes_keep_their_places_and_a_new_one_lies_with_its_neighbours(blocks, parameters):
    graph, communities = blocks
    matrix = graph.to_scipy()
    early = Graph.from_scipy(matrix[:239, :239])
    model = Manela(dimensions=24, **parameters).fit(early)
    before = normalise(model.embedding_)
    model.partial_fit(graph, replace=True)
    after = normalise(model.embedding_)
    assert np.median((before * after[:239]).sum(axis=1)) > 0.9
    cosines = after[:239] @ after[239]
    together = communities[:239] == communities[239]
    # a spectral view that is not filtered tells more of single nodes, and less of groups
    assert cosines[together].mean() > cosines[~together].mean() + (0.3 if parameters.get("smooth", True) else 0.2)
    assert model.provenance_["nodes_kept"] == 239
    # the new node does what it would do in a full run, and each other a tenth of it
    assert model.updates_[239] > 5 * np.median(model.updates_[:239])


def normalise(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.filterwarnings("ignore:.*edges were there before")
def test_nothing_new_changes_nothing(blocks):
    model = Manela(dimensions=24).fit(blocks[0])
    before = model.embedding_.copy()
    for replace in (True, False, True):
        model.partial_fit(blocks[0], replace=replace)
    np.testing.assert_array_equal(model.embedding_, before)


def test_a_batch_of_edges_is_added(blocks):
    graph, communities = blocks
    model = Manela(dimensions=24).fit(graph)
    before = normalise(model.embedding_)
    friends = np.flatnonzero(communities == communities[0])[:6].tolist()
    model.partial_fit(Graph.from_edges(["new"] * 6, friends))
    assert model.nodes_.tolist() == [*graph.nodes.tolist(), "new"]
    after = normalise(model.embedding_)
    assert np.median((before * after[:240]).sum(axis=1)) > 0.9
    cosines = after[:240] @ after[240]
    assert cosines[communities == communities[0]].mean() > cosines[communities != communities[0]].mean() + 0.3
    assert model.provenance_["graph"]["edges"] == graph.number_of_edges + 6
    # and a second batch to what is there by now
    model.partial_fit(Graph.from_edges(["newer"] * 2, ["new", friends[0]]))
    assert model.provenance_["graph"]["nodes"] == 242


def test_a_loaded_model_takes_a_batch_too(blocks, tmp_path):
    model = Manela(dimensions=24).fit(blocks[0])
    model.save(tmp_path / "m.npz")
    loaded = Manela.load(tmp_path / "m.npz")
    with pytest.warns(ManelaWarning, match="read from a file, which does not hold its network"):
        loaded.partial_fit(Graph.from_edges(["new"] * 3, [0, 1, 2]))
    assert loaded.nodes_.tolist() == [*blocks[0].nodes.tolist(), "new"]
    np.testing.assert_array_equal(loaded.embedding_[:240], model.embedding_)
    again = loaded.transform([("other", 20), ("other", 21)])
    np.testing.assert_array_equal(again, model.transform([("other", 20), ("other", 21)]))


def test_a_network_that_loses_most_nodes_or_is_given_again_is_told(blocks):
    model = Manela(dimensions=8, pairs=2000).fit(blocks[0])
    part = Graph.from_scipy(blocks[0].to_scipy()[:50, :50])
    with pytest.warns(ManelaWarning, match="190 of 240 nodes are not in this network and lose their vectors"):
        model.partial_fit(part, replace=True)
    with pytest.warns(ManelaWarning, match="replace=True if this is the whole current network"):
        model.partial_fit(Graph.from_scipy(blocks[0].to_scipy()[:52, :52]))


def test_rows_are_scaled_by_degree_unless_they_are_not_smoothed(blocks):
    graph, _ = blocks
    smoothed, raw, context = (
        np.linalg.norm(Manela(dimensions=24, pairs=200_000, **more).fit(graph).embedding_, axis=1)
        / graph.degrees**POWER
        for more in ({}, {"smooth": False, "views": "rounds"}, {"context": True})
    )
    assert np.ptp(smoothed) < 1e-4 * smoothed.mean()
    assert np.ptp(raw) > 0.1 * raw.mean()
    assert np.ptp(context) > 0.1 * context.mean()


def test_provenance_says_how_long_a_run_was_and_when_its_rate_fell(blocks):
    provenance = Manela(dimensions=8).fit(blocks[0]).provenance_
    assert 0 <= provenance["rate_fell_at"] < provenance["rounds"] == provenance["rounds_done"]
    assert provenance["parameters"]["exchange"] == "messages"
    again = Manela(dimensions=8, random_state=0).fit(blocks[0]).provenance_
    assert again == provenance


def test_partial_fit_says_what_it_went_on_from(blocks):
    model = Manela(dimensions=8, pairs=20_000).fit(blocks[0])
    model.partial_fit(Graph.from_edges([0], [blocks[0].nodes[np.setdiff1d(range(240), blocks[0].neighbours(0))[1]]]))
    provenance = model.provenance_
    assert provenance["continued_from"] == blocks[0].digest
    assert provenance["nodes_kept"] == 240
    assert provenance["budget"] == 2_000
    assert 1_000 < provenance["pairs_made"] <= 2_400


def test_partial_fit_without_fit_is_fit(blocks):
    one, two = Manela(dimensions=8, pairs=2000), Manela(dimensions=8, pairs=2000)
    np.testing.assert_array_equal(one.fit(blocks[0]).embedding_, two.partial_fit(blocks[0]).embedding_)


def test_partial_fit_refuses_other_dimensions(model, blocks):
    other = clone(model)
    other.set_params(pairs=1000).fit(blocks[0])
    with pytest.raises(ParameterError, match="dimensions and context must be those of the first fit"):
        other.set_params(dimensions=5).partial_fit(blocks[0])


def test_isolated_nodes_are_told(blocks):
    with pytest.warns(ManelaWarning, match="1 of 4 nodes"):
        Manela(dimensions=4, pairs=100).fit(Graph.from_edges([0, 1], [1, 2], nodes=range(4)))


@pytest.mark.filterwarnings("ignore:.*have no neighbour")
def test_nodes_that_come_later_to_ppi_are_nearly_as_good_as_in_a_full_run(real):
    labels = scipy.io.loadmat(real("ppi"))["group"]
    graph = load_graph("ppi")
    n = graph.number_of_nodes
    late = np.random.default_rng(0).random(n) < 0.1
    kept = np.flatnonzero(~late)
    early = Graph.from_scipy(graph.to_scipy()[kept][:, kept], nodes=kept.tolist())
    full = Manela(ratios=(0.7, 0.3)).fit(graph)
    grown = Manela(ratios=(0.7, 0.3)).fit(early)
    grown.partial_fit(graph, replace=True)
    assert grown.provenance_["pairs_made"] < 0.25 * full.provenance_["pairs_made"]
    scores = [score_of_some(model.embedding_, labels, late) for model in (full, grown)]
    assert scores[1] > scores[0] - 0.03


def score_of_some(vectors, labels, test):
    """Micro-F1 on these nodes of a classifier trained on the others."""
    return classify(vectors, labels, test=test).micro.mean()


def test_vectors_are_had_by_lists_of_ids():
    graph = Graph.from_edges(["a", "b", "c"], ["b", "c", "a"])
    model = Manela(dimensions=4, pairs=1000).fit(graph)
    np.testing.assert_array_equal(model[["c", "a"]], model.embedding_[[2, 0]])
    np.testing.assert_array_equal(model.transform(["c", "a"]), model.embedding_[[2, 0]])
    np.testing.assert_array_equal(model.transform(np.array(["c", "a"], dtype=object)), model.embedding_[[2, 0]])
    np.testing.assert_array_equal(model.transform(graph), model.embedding_)
