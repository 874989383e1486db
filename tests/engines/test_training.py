"""An estimate of the objective on a fixed sample."""

import math
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from manela.data.graph import Graph
from manela.engines.checkpoint import Checkpoint
from manela.engines.cpu import CpuEngine
from manela.engines.estimate import estimate
from manela.engines.rounds.neighbours import prepare_arcs
from manela.engines.state import begin
from manela.engines.training import Objective, adapt, train
from manela.errors import DivergenceError, ManelaWarning
from manela.formats.datasets import stochastic_block_model
from manela.kernels import reference
from manela.settings.parameters import PAPER, PARAMETERS
from manela.settings.settings import check_all


def settings(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, "dimensions": 16, "n_jobs": 2, **parameters})


@pytest.fixture(params=["messages", "walks"])
def edition(request):
    """The parameters of each edition of the rounds."""
    return PAPER if request.param == "walks" else {}


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(nodes=200, seed=2)[0]


def test_a_run_makes_the_pairs_that_were_asked_for_less_the_targets_that_were_dropped(graph, edition):
    sources = np.repeat(np.arange(200), graph.degrees)
    with_leaves = Graph.from_edges(
        np.append(sources, range(200, 220)), np.append(graph.indices, range(20)), duplicates="first"
    )
    run = train(with_leaves, settings(**edition, pairs=100_000, rounds=20))
    assert run.state.round == 20
    planned = 20 * sum(int(run.schedule.counts(number).sum()) for number in range(20))
    assert planned == pytest.approx(100_000, rel=0.01)
    assert 0.9 * planned < run.state.pairs == run.updates.sum() < planned
    none_dropped = train(graph, settings(**edition, pairs=100_000, rounds=20, ratios=(1.0,)))
    assert none_dropped.state.pairs == pytest.approx(100_000, rel=0.01)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(graph, edition):
    one, two, other = (train(graph, settings(**edition, pairs=20_000, random_state=s)).state.vectors for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_progress_is_told_and_the_objective_grows(graph, edition):
    told = []
    train(graph, settings(**edition, pairs=3_000_000, rounds=200), reporter=told.append)
    last = [progress for progress in told if progress.phase == "rounds"][-1]
    assert (last.round, last.rounds) == (200, 200)
    assert last.seconds_left == 0
    assert last.learning_rate == pytest.approx(0.025e-4)
    assert last.pairs_per_second > 0
    assert last.objective > -6 * np.log(2) + 0.1


def test_isolated_nodes_are_counted_in_a_warning(edition):
    graph = Graph.from_edges([0, 1], [1, 2], nodes=range(5))
    with pytest.warns(ManelaWarning, match="2 of 5 nodes have no neighbour"):
        train(graph, settings(**edition, pairs=100))


def test_vectors_that_stop_being_finite_end_the_run(graph, edition):
    with pytest.raises(DivergenceError, match=r"stopped being finite by round .* learning_rate must be smaller, got"):
        train(graph, settings(**edition, learning_rate=1e38, rounds=3))


@pytest.mark.filterwarnings("ignore:stopped by max_seconds")  # as it can be on a busy machine
def test_a_running_time_is_kept_and_says_how_many_pairs_fitted(graph, edition):
    begun = time.perf_counter()
    run = train(graph, settings(**edition, max_seconds=1.0))
    assert time.perf_counter() - begun < 60
    assert run.pairs > 10_000
    again = train(graph, settings(**edition, pairs=run.pairs))
    if run.state.round == run.schedule.rounds:
        np.testing.assert_array_equal(run.state.vectors, again.state.vectors)


@pytest.mark.parametrize("directed", [False, True])
def test_directed_networks_are_learned_too(directed, edition):
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0], directed=directed)
    vectors = train(graph, settings(**edition, pairs=2_000)).state.vectors
    assert np.isfinite(vectors).all()


@pytest.mark.filterwarnings("ignore:stopped by max_seconds")  # as loading the kernels alone can take so long
def test_speed_is_measured_also_where_every_target_is_dropped(edition):
    graph = Graph.from_edges([0], [1])
    run = train(graph, settings(**edition, max_seconds=0.2, ratios=(0.0, 1.0)))
    assert run.state.pairs == 0
    assert estimate(graph, settings(**edition, pairs=1, ratios=(0.0, 1.0))).seconds >= 0


def test_no_thread_outlives_its_run(graph, edition):
    before = threading.active_count()
    train(graph, settings(**edition, pairs=10_000, n_jobs=3))
    with pytest.raises(DivergenceError):
        train(graph, settings(**edition, learning_rate=1e38, rounds=3))
    assert threading.active_count() == before


def test_an_error_in_the_reporter_ends_the_run(graph, edition):
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(graph, settings(**edition, pairs=10_000), reporter=fail)


def test_the_estimate_is_of_this_run(graph, edition):
    wanted = settings(**edition, pairs=500_000)
    reckoned = estimate(graph, wanted)
    assert reckoned.pairs == 500_000
    assert reckoned.seconds > 0
    tables = 2 * 4 * 16 * graph.number_of_nodes
    assert tables < reckoned.bytes < 20 * tables
    assert estimate(graph, replace(wanted, context=True)).bytes > reckoned.bytes


def test_without_a_budget_the_rate_stays_until_vectors_have_grown_and_then_falls(graph):
    told = []
    run = train(graph, settings(start="random"), reporter=told.append)
    falls_at = run.state.falls_at
    assert 0 < falls_at < run.state.round == run.schedule.rounds == falls_at + run.schedule.falling
    assert run.schedule.falls_at == falls_at
    assert [run.schedule.rate(number) for number in (0, falls_at)] == [0.025] * 2
    assert run.schedule.rate(run.schedule.rounds - 1) == pytest.approx(0.025e-4)
    assert {(last.round, last.rounds) for last in told[-2:]} == {(run.schedule.rounds, run.schedule.rounds)}
    # the budget is what was planned of the rounds that came to be
    planned = sum(wanted * 20 for wanted in run.schedule.iterations) * run.schedule.rounds
    assert run.pairs == pytest.approx(planned)
    assert run.state.pairs == pytest.approx(run.pairs, rel=0.05)


def test_a_start_with_vectors_that_have_grown_lets_the_rate_fall_at_once(graph):
    grown = train(graph, settings(start="random", views="rounds", smooth=False)).state
    grown.tables[0] *= 2
    grown.round, grown.falls_at = 0, None
    run = train(graph, settings(start="random", views="rounds", smooth=False), start=grown)
    assert run.state.falls_at == 0
    assert run.state.round == run.schedule.falling


def test_with_a_budget_the_rate_falls_by_the_middle_at_the_latest(graph):
    slow = train(graph, settings(start="random", rounds=10, learning_rate=1e-6))
    assert (slow.state.falls_at, slow.state.round) == (5, 10)
    fast = train(graph, settings(start="random", rounds=200))
    assert fast.state.falls_at < 100
    assert fast.state.round == 200


def test_twice_the_default_learning_rate_does_not_diverge(graph, edition):
    vectors = train(graph, settings(**{**edition, "smooth": False}, rounds=60, learning_rate=0.05)).state.vectors
    assert np.linalg.norm(vectors, axis=1).mean() < 5


def test_vectors_that_never_grow_come_to_an_end(graph):
    run = train(graph, settings(start="random", learning_rate=1e-9))
    assert run.state.round == run.schedule.rounds == run.state.falls_at + run.schedule.falling


def test_every_number_of_threads_gives_the_same_bits_from_start_to_smoothing(graph, edition):
    runs = [train(graph, settings(**edition, rounds=6, n_jobs=jobs)) for jobs in (1, 2, 3)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.state.vectors, runs[0].state.vectors)
        assert run.state.pairs == runs[0].state.pairs


def test_vectors_are_smoothed_unless_they_are_not_to_be(graph):
    raw, smoothed = (
        train(graph, settings(start="random", views="rounds", smooth=smooth)).state.vectors.copy()
        for smooth in (False, True)
    )
    arcs = prepare_arcs(graph)
    np.testing.assert_allclose(smoothed, reference.smooth(raw.astype(np.float64), arcs, graph.weights), atol=1e-4)
    norms = [np.linalg.norm(vectors, axis=1) / graph.degrees**reference.POWER for vectors in (raw, smoothed)]
    assert np.ptp(norms[1]) < 1e-4 * norms[1].mean()
    assert np.ptp(norms[0]) > 0.1 * norms[0].mean()


def test_vectors_with_contexts_are_not_smoothed_and_start_at_random(graph):
    one, other = (
        train(graph, settings(context=True, rounds=5, smooth=smooth, start=start)).state
        for smooth, start in ((True, "spectral"), (False, "random"))
    )
    for table, same in zip(one.tables, other.tables, strict=True):
        np.testing.assert_array_equal(table, same)


def test_the_start_is_where_a_run_begins(graph):
    begun = {"rounds": 1, "pairs": 1, "learning_rate": 1e-30, "smooth": False, "views": "rounds"}
    random = train(graph, settings(**begun, start="random"))
    np.testing.assert_allclose(random.state.vectors, begin(200, 16, False, 0).vectors, rtol=1e-6)
    spectral = train(graph, settings(**begun)).state.vectors
    expected = reference.find_view(prepare_arcs(graph), graph.weights, 0, 16, filtered=False) * reference.VIEW_SIZE
    np.testing.assert_allclose(spectral @ spectral.T, expected @ expected.T, atol=0.02)


def test_the_views_are_those_of_rounds_the_spectral_one_and_both_joined(graph):
    rounds, spectral, both = (
        train(graph, settings(views=views)).state.vectors for views in ("rounds", "spectral", "both")
    )
    arcs = prepare_arcs(graph)
    view = reference.find_view(arcs, graph.weights, 0, 16)
    joined = reference.join(rounds.astype(np.float64), [(view, reference.VIEW_WEIGHT)], arcs)
    # which directions a join keeps may depend on the last bits, and the last one gets what all nodes have in common
    assert np.corrcoef((both @ both.T).ravel(), (joined @ joined.T).ravel())[0, 1] > 0.98
    sizes = reference.find_sizes(graph.degrees)[:, None]
    np.testing.assert_allclose(spectral @ spectral.T, (sizes * view) @ (sizes * view).T, atol=0.05)
    for vectors in (rounds, spectral, both):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), sizes[:, 0], rtol=1e-3)


def test_sweeps_rounds_and_the_join_are_told(graph):
    told = []
    train(graph, settings(), reporter=told.append)
    phases = [progress.phase for progress in told]
    assert phases[0] == "sweeps"
    assert phases[-1] == "joining"
    assert set(phases) == {"sweeps", "rounds", "joining"}
    assert [progress.phase for progress in told[:-1]] == sorted(phases[:-1], key=["sweeps", "rounds"].index)


@pytest.mark.filterwarnings("ignore:.*have no neighbour")
def test_nodes_without_neighbours_have_their_random_vectors_at_the_end(edition):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], nodes=range(5))
    vectors = train(graph, settings(**edition)).state.vectors
    np.testing.assert_array_equal(vectors[3:], begin(5, 16, False, 0).vectors[3:])


def test_a_running_time_that_is_over_ends_a_run_with_a_warning(graph, edition, monkeypatch):
    monkeypatch.setattr("manela.engines.training._measure_budget", lambda *_: 10**10)
    with pytest.warns(ManelaWarning, match=r"stopped by max_seconds after \d+ of 100 rounds"):
        run = train(graph, settings(**edition, max_seconds=0.2, rounds=100))
    assert 0 < run.state.round < 100
    assert np.isfinite(run.state.vectors).all()


def test_a_save_that_takes_longer_than_a_stop_may_is_not_given_up(graph, tmp_path, monkeypatch):
    """Ctrl-C waits for some seconds for a round to end; what is fetched and written after it takes its time."""
    begun, stopped = threading.Event(), threading.Event()
    monkeypatch.setattr("manela.engines.training._LONGEST_STOP", 0.05)

    def collect_slowly(_):
        begun.set()
        assert stopped.wait(60)
        time.sleep(0.3)  # longer than the wait for the round

    def interrupt():
        assert begun.wait(60)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    stop = CpuEngine.stop
    monkeypatch.setattr(CpuEngine, "collect", collect_slowly)
    monkeypatch.setattr(CpuEngine, "stop", lambda self, **options: (stop(self, **options), stopped.set()))
    checkpoint = Checkpoint(tmp_path, every=1e9)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    interrupter = threading.Thread(target=interrupt)
    try:
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            train(graph, settings(pairs=10_000, rounds=3), checkpoint=checkpoint)
    finally:
        signal.signal(signal.SIGINT, before)
        interrupter.join()
    assert checkpoint.file.exists()


@pytest.fixture(scope="module")
def blocks():
    return stochastic_block_model(nodes=100, seed=2)[0]


def objective_of(blocks, **parameters):
    settings = check_all({"dimensions": 8, "random_state": 1, "exchange": "walks", **parameters})
    return Objective(blocks, settings, prepare_arcs(blocks))


def test_vectors_of_nothing_have_the_objective_of_a_coin(blocks):
    state = begin(100, 8, False, seed=1)
    state.tables[0][:] = 0
    for negatives in (0, 1, 5):
        assert objective_of(blocks, negatives=negatives).of(state) == pytest.approx(-(1 + negatives) * math.log(2))


def test_it_is_the_mean_over_pairs_of_the_logarithms_of_equation_1(blocks):
    objective, state = objective_of(blocks, negatives=2), begin(100, 8, False, seed=1)
    state.tables[0][:] *= 50
    total = pairs = 0
    for node, row, sign in zip(objective.nodes, objective.rows, objective.signs, strict=True):
        product = float(state.vectors[node].astype(float) @ state.vectors[row].astype(float))
        total += math.log(1 / (1 + math.exp(-sign * product)))
        pairs += sign > 0
    assert pairs * 3 == len(objective.signs)
    assert objective.of(state) == pytest.approx(total / pairs, rel=1e-5)


def test_targets_are_read_from_context_vectors_where_there_are_any(blocks):
    objective, state = objective_of(blocks, negatives=0), begin(100, 8, True, seed=1)
    state.tables[0][:, :8], state.tables[1][:, :8] = 1.0, -1.0
    assert objective.of(state) == pytest.approx(-8.0, rel=1e-3)
    state.tables[1][:, :8] = 1.0
    assert objective.of(state) == pytest.approx(-math.log(1 + math.exp(-8)), rel=1e-3)


def test_large_products_do_not_overflow(blocks):
    objective, state = objective_of(blocks), begin(100, 8, False, seed=1)
    state.tables[0][:, :8] = 1e6
    assert objective.of(state) < -1e12
    assert math.isfinite(objective.of(state))


def test_the_sample_goes_by_the_seed_alone(blocks):
    state = begin(100, 8, False, seed=1)
    state.tables[0][:] *= 50
    values = [objective_of(blocks, random_state=seed).of(state) for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


def test_nodes_without_edges_are_not_drawn():
    blocks = Graph.from_edges([3], [7], nodes=range(50))
    assert set(objective_of(blocks, ratios=(1.0,)).nodes.tolist()) == {3, 7}


def test_with_no_pairs_there_is_no_number():
    # two steps along the only edge lead back to where they began, which is no target
    blocks = Graph.from_edges([0], [1])
    assert np.isnan(objective_of(blocks, ratios=(0.0, 1.0)).of(begin(2, 8, False, seed=1)))


def test_context_vectors_are_a_third_view(graph):
    told = []
    joined = train(graph, settings(views="all"), reporter=told.append)
    phases = list(dict.fromkeys(progress.phase for progress in told))
    assert phases == ["context", "sweeps", "rounds", "joining"]
    rounds = train(graph, settings(views="rounds")).state.vectors
    context = train(graph, settings(context=True, ratios=(1.0,))).state.vectors
    arcs = prepare_arcs(graph)
    views = (reference.find_view(arcs, graph.weights, 0, 16), context.astype(np.float64))
    weighted = list(zip(views, reference.VIEW_WEIGHTS, strict=True))
    expected = reference.join(rounds.astype(np.float64), weighted, arcs)
    products = [(vectors @ vectors.T).ravel() for vectors in (joined.state.vectors, expected)]
    assert np.corrcoef(*products)[0, 1] > 0.99


def test_three_views_have_the_same_bits_with_any_number_of_threads(graph):
    runs = [train(graph, settings(views="all", patience=0.3, n_jobs=jobs)).state.vectors for jobs in (1, 3)]
    np.testing.assert_array_equal(*runs)


@pytest.mark.filterwarnings("ignore:stopped by max_seconds")  # as it can be on a busy machine
def test_a_running_time_is_that_of_all_views(graph):
    begun = time.perf_counter()
    train(graph, settings(views="all", max_seconds=1.0))
    assert time.perf_counter() - begun < 60


def test_a_directed_network_has_one_view(graph):
    directed = Graph.from_edges([0, 1, 2, 3], [1, 2, 0, 0], directed=True)
    wanted = settings(pairs=2_000)
    run = train(directed, wanted)
    assert (run.settings.views, run.settings.start) == ("rounds", "random")
    assert adapt(wanted, graph) is wanted
