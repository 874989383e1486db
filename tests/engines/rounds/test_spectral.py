"""The spectral view and the join, against the reference."""

import numpy as np
import pytest

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import Neighbours, prepare_arcs, read_shown, write_shown
from manela.engines.rounds.smoothing import give_final_norms
from manela.engines.rounds.spectral import Sweeps, Views, find_affinities, find_turn, join, weigh_views
from manela.engines.state import Sweeping, begin
from manela.kernels import reference
from manela.kernels.layout import normalise_rows
from manela.settings.settings import check_all
from manela.system.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore:[0-9,]+ repeated edge")

HALF = 2.0**-11


def draw_network(kind):
    random = np.random.default_rng(6)
    if kind == "star":
        return Graph.from_edges(np.zeros(9, int), np.arange(1, 10), nodes=range(10))
    if kind == "two parts":  # without an edge inside a part, so that every eigenvalue has an opposite
        ends = np.stack((random.integers(0, 20, 120), random.integers(20, 50, 120)))
    elif kind == "two components":
        ends = random.integers(30, size=(2, 150)) + 30 * (np.arange(150) % 2)
    else:
        ends = random.integers(60, size=(2, 400))
    weights = 1e3 * random.uniform(0.1, 9, 400) if kind == "weighted" else None
    isolated = range(63) if kind == "isolated nodes" else None
    return Graph.from_edges(*ends, weights, nodes=isolated, duplicates="first" if weights is None else "sum")


KINDS = ("plain", "weighted", "isolated nodes", "two components", "two parts", "star")


@pytest.fixture(params=KINDS)
def graph(request):
    return draw_network(request.param)


class Stage:
    """The neighbours of a graph, and its view as the engine finds it."""

    def __init__(self, graph, dimensions=20, threads=2, **parameters):
        self.graph, self.pool = graph, Threads(threads)
        self.arcs = prepare_arcs(graph)
        self.neighbours = Neighbours.of(graph, self.arcs, 2, self.pool)
        self.settings = check_all({"dimensions": dimensions, "random_state": 5, **parameters})
        self.state = begin(graph.number_of_nodes, dimensions, False, 5)
        self.state.sweeping = Sweeping()
        self.views = Views(self.state, self.settings, lambda: self.neighbours)

    def sweep(self):
        while self.views.is_due:
            self.views.sweep()
        return read_shown(self.state.view, slice(None))[:, : self.state.dimensions].astype(float)


def test_affinities_are_those_of_the_reference_and_the_same_both_ways(graph):
    stage = Stage(graph)
    affinities, squares = find_affinities(stage.neighbours)
    np.testing.assert_array_equal(affinities, reference.find_affinities(stage.arcs, graph.weights))
    np.testing.assert_allclose(squares, (affinities.astype(float) ** 2).sum(), rtol=1e-6)
    dense = np.zeros((graph.number_of_nodes,) * 2)
    dense[np.repeat(np.arange(graph.number_of_nodes), graph.degrees), graph.indices] = affinities
    np.testing.assert_array_equal(dense, dense.T)


def test_an_affinity_compares_steps_with_chance_in_both_directions():
    graph = Graph.from_edges([0, 0, 1], [1, 2, 2], [1.0, 3.0, 2.0])
    steps = graph.to_scipy().toarray() / graph.strengths[:, None]
    chance = steps.sum(axis=0) ** reference.AFFINITY_POWER
    chance /= chance.sum()
    with np.errstate(divide="ignore"):
        logs = np.log(steps / chance)
    expected = (logs + logs.T) / 2
    affinities, _ = find_affinities(Stage(graph).neighbours)
    np.testing.assert_allclose(affinities, expected[np.repeat(np.arange(3), 2), graph.indices], rtol=1e-6)


def test_the_view_is_that_of_the_reference(graph):
    found = Stage(graph).sweep()
    expected = reference.find_view(prepare_arcs(graph), graph.weights, 5, 20)
    # eigenvectors of a repeated eigenvalue are not unique: compared are the products of rows
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=40 * HALF)
    joined = graph.degrees > 0
    np.testing.assert_allclose(np.linalg.norm(found[joined], axis=1), 1.0, rtol=4 * HALF)
    assert not found[~joined].any()


def test_the_view_has_the_eigenvectors_of_the_affinities():
    graph = draw_network("plain")
    stage = Stage(graph, dimensions=60, smooth=False)
    found = stage.sweep()
    kept = reference.count_directions(60, 60)
    dense = np.zeros((60, 60))
    affinities, _ = find_affinities(stage.neighbours)
    dense[np.repeat(np.arange(60), graph.degrees), graph.indices] = affinities
    values, vectors = np.linalg.eigh(dense)
    largest = np.argsort(-np.abs(values))[:kept]
    rows = (vectors * np.sqrt(np.abs(values)))[:, largest]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ found.T, rows @ rows.T, atol=20 * HALF)


def test_every_number_of_threads_gives_the_same_bits(graph):
    first, *others = (Stage(graph, threads=threads).sweep() for threads in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_sweeps_that_were_interrupted_go_on_with_the_same_bits(graph):
    whole, part = Stage(graph), Stage(graph)
    for _ in range(3):
        part.views.sweep()
    resumed = Stage(graph)
    resumed.state.tables[0][:] = part.state.tables[0]
    resumed.state.sweeping = part.state.sweeping
    np.testing.assert_array_equal(resumed.sweep(), whole.sweep())
    np.testing.assert_array_equal(resumed.state.tables[0], whole.state.tables[0])


def test_rounds_start_from_the_view_and_isolated_nodes_from_random_vectors():
    graph = draw_network("isolated nodes")
    stage = Stage(graph)
    random = stage.state.vectors.copy()
    view = stage.sweep()
    joined = graph.degrees > 0
    np.testing.assert_allclose(stage.state.vectors[joined], reference.VIEW_SIZE * view[joined], atol=2 * HALF)
    np.testing.assert_array_equal(stage.state.vectors[~joined], random[~joined])
    assert stage.state.swept
    assert stage.state.sweeping is None


def test_vectors_with_another_start_stay_while_the_view_is_found():
    graph = draw_network("plain")
    stage, other = Stage(graph), Stage(graph)
    stage.state.sweeping = None
    stage.state.tables[0][:] = 0.25
    np.testing.assert_array_equal(stage.sweep(), other.sweep())
    assert (stage.state.tables[0] == 0.25).all()


@pytest.mark.parametrize("with_context", [False, True])
def test_joined_vectors_are_those_of_the_reference(graph, with_context):
    stage = Stage(graph)
    view = stage.sweep()
    rows = np.random.default_rng(0).normal(size=(graph.number_of_nodes, 20))
    table = stage.state.tables[0]
    table[:, :20] = rows
    other = normalise_rows(np.random.default_rng(1).normal(size=rows.shape)) * (graph.degrees > 0)[:, None]
    aside = np.zeros_like(stage.state.view)
    write_shown(aside[:, :20], slice(None), other.astype(np.float16))
    views = weigh_views(stage.state.view, aside if with_context else None)
    join(table, views, stage.neighbours, 20)
    give_final_norms(table, stage.neighbours)
    shown = (view, other) if with_context else (view,)
    weights = reference.VIEW_WEIGHTS if with_context else (reference.VIEW_WEIGHT,)
    expected = reference.join(rows, list(zip(shown, weights, strict=True)), stage.arcs)
    joined, kept = graph.degrees > 0, graph.degrees == 0
    found = table[joined, :20]
    np.testing.assert_allclose(found, expected[joined], atol=2e-3)
    np.testing.assert_array_equal(table[kept, :20], rows[kept].astype(np.float32))
    assert not table[:, 20:].any()


def test_a_small_change_of_vectors_changes_joined_coordinates_little():
    """Whatever eigenvectors of the same size, and of any sign, are found."""
    stage = Stage(draw_network("plain"))
    stage.sweep()
    random, found = np.random.default_rng(0), []
    rows = random.normal(size=(60, 20)).astype(np.float32)
    for change in (0.0, 1e-5):
        table = np.zeros_like(stage.state.tables[0])
        table[:, :20] = rows + change * random.normal(size=rows.shape)
        join(table, weigh_views(stage.state.view, None), stage.neighbours, 20)
        found.append(table[:, :20])
    np.testing.assert_allclose(found[1], found[0], atol=2e-3)


def test_joined_vectors_are_turned_to_the_views():
    stage = Stage(draw_network("plain"))
    view = stage.sweep()
    table = np.zeros_like(stage.state.tables[0])
    table[:, :20] = view  # both views tell the same, so that nothing turns
    join(table, weigh_views(stage.state.view, None), stage.neighbours, 20)
    found = table[:, :20] - table[:, :20].mean(axis=0)  # what all nodes have in common is added in any direction
    assert np.corrcoef(found.ravel(), (view - view.mean(axis=0)).ravel())[0, 1] > 0.95


def test_coordinates_are_scaled_to_a_power_of_their_deviation_and_empty_ones_are_left_out():
    deviations = np.array([2.0, 1.0, 0.5, 1e-6])
    scaled = deviations * reference.find_factors(deviations**2)
    np.testing.assert_allclose(scaled, [2.0**reference.JOIN_POWER, 1.0, 0.5**reference.JOIN_POWER, 0.0])


def test_what_nodes_have_in_common_lies_where_they_differ_least():
    values = np.array([4.0, 1.0, 1e-4])
    calm = reference.find_calm(values, np.ones(3), np.full(3, 0.5))
    assert np.linalg.norm(calm) == pytest.approx(1.0)
    assert np.abs(calm).argmax() == 2
    assert np.abs(calm[2]) > 0.999


@pytest.mark.parametrize("size", [1, 5, 128])
def test_a_turn_is_the_nearest_orthogonal_matrix(size):
    overlap = np.random.default_rng(size).normal(size=(size, size)) * np.logspace(0, -4, size)[:, None]
    left, _, right = np.linalg.svd(overlap)
    np.testing.assert_allclose(find_turn(overlap), left @ right, atol=1e-9)


def test_energy_decides_how_many_sweeps_there_are():
    least, most = reference.FEWEST_SWEEPS, reference.MOST_SWEEPS
    assert not reference.has_settled(least - 1, 1.0, 1.0)
    assert reference.has_settled(least, 1.0, 1.0 + 0.5 * reference.SETTLED)
    assert not reference.has_settled(least, 1.0, 1.0 + 2.0 * reference.SETTLED)
    assert reference.has_settled(most, 1.0, 2.0)


def test_a_sweep_gathers_energy_until_it_settles():
    stage = Stage(draw_network("plain"))
    sweeps = Sweeps(stage.state.tables[0], stage.neighbours, 20, Sweeping())
    energies = [sweeps.sweeping.energy]
    while not sweeps.sweeping.ended:
        sweeps.advance()
        energies.append(sweeps.sweeping.energy)
    assert np.all(np.diff(energies) > -1e-3 * energies[-1])
    assert reference.FEWEST_SWEEPS <= len(energies) - 1 <= reference.MOST_SWEEPS


def test_the_sums_of_a_very_large_hub_are_clipped(monkeypatch):
    graph = Graph.from_edges(np.zeros(4000, int), np.arange(1, 4001))
    for module in ("manela.kernels.reference", "manela.engines.rounds.spectral"):
        monkeypatch.setattr(f"{module}.SWEEP_LARGEST", 8.0)
    stage = Stage(graph, 16)
    found, expected = stage.sweep(), reference.find_view(stage.arcs, None, 5, 16)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found @ found[:20].T, expected @ expected[:20].T, atol=0.02)
