"""The loop over rounds, for all engines: runs, reports, saves and stops."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manela.data.graph import Graph
from manela.engines.checkpoint import Checkpoint
from manela.engines.engine import Engine, open_engine
from manela.engines.rounds.neighbours import allocate_shown, write_shown
from manela.engines.state import State, begin
from manela.errors import DivergenceError, ManelaWarning
from manela.kernels.layout import Arcs, Shown, normalise_rows
from manela.kernels.randomness import OBJECTIVE, derive, derive_key, scale_to
from manela.kernels.reference import FEWEST_SWEEPS, draw
from manela.settings.budget import Sizes, resolve
from manela.settings.schedule import Schedule, plan, weigh
from manela.settings.settings import Settings
from manela.system.progress import Progress, Reporter

USUAL_SWEEPS = 16
"""Sweeps that a network of many kinds takes."""
_REPORT_EVERY = 0.5
"""Seconds between two reports."""
_CALIBRATION = 0.05
"""Share of a running time that is spent on measuring speed, and kept in reserve; larger leaves less for learning."""
_LONGEST_CALIBRATION = 2.0
"""Most seconds for measuring speed."""
_LONGEST_STOP = 5.0
"""Seconds that a stopped run may take to finish its round; larger makes Ctrl-C slower."""
_SMOOTHING = 0.1
"""Share of a running time that is reserved for smoothing; with less, a run may end late."""
_JOINING = 0.1
"""Share of a running time that is reserved for joining views; with less, a run may end late."""


@dataclass(frozen=True)
class Run:
    """The result of a run, with its settings and final schedule; `pairs` is its budget.

    The vectors of the state are smoothed if the settings require it. `updates` are the update pairs of each node, None
    for a resumed run. `engine` is the name of the engine.
    """

    state: State
    settings: Settings
    schedule: Schedule
    pairs: int
    updates: npt.NDArray[np.int64] | None
    engine: str


def train(
    graph: Graph,
    settings: Settings,
    *,
    start: State | None = None,
    pairs: int | None = None,
    share: npt.NDArray[np.float64] | None = None,
    reporter: Reporter | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Learn vectors for the nodes of a graph.

    The run begins with the state `start`, or as the settings require. Ctrl-C stops it between two rounds and saves the
    state, if there is a checkpoint. `pairs` are those that were measured for a running time; by default they are
    measured here. `share` scales the iterations of each node.
    """
    settings = adapt(settings, graph)
    if checkpoint is not None:
        checkpoint.prepare()
    started = time.perf_counter()
    identity = {**settings.identity(), "graph": graph.digest} if checkpoint is not None else {}
    saved = checkpoint.load(identity, graph.number_of_nodes) if checkpoint is not None else None
    _warn_about_isolated(graph)
    aside = None
    pairs = saved[1] if saved else pairs
    if settings.learns_aside and saved is None:
        if settings.max_seconds is not None:
            pairs = _measure_both(graph, settings, share, started)  # one number, which gives both runs again
        aside = _learn_aside(graph, settings, pairs, reporter, checkpoint)
        pairs = pairs and aside.pairs  # a resumed run has its own
    with open_engine(graph, settings, saved[0] if saved else start) as engine:
        if aside is not None:
            engine.state.aside = _show_aside(graph, aside)
        loop = _Loop(engine, plan_run(graph, settings, pairs, share), settings, reporter, checkpoint, identity)
        loop.run(loop.sweep)
        if settings.max_seconds is not None and settings.has_rounds:
            if pairs is None:
                pairs = round(_measure_budget(graph, settings, engine, started) / _mean_share(graph, settings, share))
                loop.schedule = plan_run(graph, settings, pairs, share)
            # the plan leaves all of the reserve, but a slow round is no reason yet to end before the rate has decayed
            loop.deadline = started + settings.max_seconds * (1 - count_reserve(settings) / 2)
        if reporter is not None:
            loop.objective = Objective(graph, settings, engine.arcs)
        loop.run(loop.advance)
        made = engine.updates if saved is None else None
        loop.report_end()
        engine.finish()
        engine.collect()
    if loop.schedule.pairs is None:
        budget = count_scheduled(loop.schedule, settings)
    else:
        budget = round(loop.schedule.pairs * _mean_share(graph, settings, share))
    return Run(engine.state, settings, loop.schedule, budget, made, engine.name)


def adapt(settings: Settings, graph: Graph) -> Settings:
    """Return the settings of a run on this graph: a directed one has one view, that of rounds, and no spectral start.

    The spectral view tells out vectors from out vectors, but hardly where an arc leads.
    """
    if not graph.directed:
        return settings
    return replace(settings, views="rounds", start="random")


def turn_aside(settings: Settings) -> Settings:
    """Return the settings of the run with context vectors whose vectors are a view of their own."""
    return replace(settings, context=True, views="rounds", ratios=(1.0,))


def _learn_aside(
    graph: Graph, settings: Settings, pairs: int | None, reporter: Reporter | None, checkpoint: Checkpoint | None
) -> Run:
    """Learn rounds with context vectors before those of the settings."""

    def report(progress: Progress) -> None:
        if reporter is not None:
            reporter(replace(progress, phase="context"))

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*have no neighbour", ManelaWarning)  # the run that follows says so, too
        return train(
            graph,
            turn_aside(settings),
            pairs=pairs,
            reporter=reporter and report,
            checkpoint=None if checkpoint is None else checkpoint.aside,
        )


def _show_aside(graph: Graph, run: Run) -> Shown:
    """Return the vectors of a run with norm 1 and in half precision."""
    shown = allocate_shown(graph.number_of_nodes, run.state.dimensions)
    rows = normalise_rows(run.state.vectors)
    rows[graph.degrees == 0] = 0.0
    write_shown(shown[:, : run.state.dimensions], slice(None), rows.astype(np.float16))
    return shown


def plan_run(
    graph: Graph, settings: Settings, pairs: int | None = None, share: npt.NDArray[np.float64] | None = None
) -> Schedule:
    """Return the schedule of a run.

    `pairs` are those that were measured or saved; by default the settings say. `share` scales the iterations of nodes.
    """
    budget = resolve(settings, Sizes.of(graph.indptr), pairs)
    schedule = plan(budget, settings, weigh(graph.strengths, settings))
    if share is not None:
        schedule.iterations[:] *= share
    return schedule


def count_scheduled(schedule: Schedule, settings: Settings) -> int:
    """Return the number of update pairs of all rounds of a schedule."""
    rounds = schedule.rounds / (schedule.spread_over or schedule.rounds or 1)
    return round(float(schedule.iterations.sum()) * sum(settings.targets_by_hop) * rounds)


class _Loop:
    """Runs rounds in a separate thread, as Python delivers Ctrl-C to the main thread and would interrupt a round."""

    def __init__(
        self,
        engine: Engine,
        schedule: Schedule,
        settings: Settings,
        reporter: Reporter | None,
        checkpoint: Checkpoint | None,
        identity: dict[str, Any],
    ) -> None:
        self.engine, self.schedule, self.settings = engine, schedule, settings
        self.reporter, self.checkpoint, self.identity = reporter, checkpoint, identity
        self.objective: Objective | None = None
        self.deadline = float("inf")
        self._is_saving = False
        self.saved = 0.0

    def run(self, work: Callable[[], None]) -> None:
        """Run all sweeps or rounds in a thread, so that Ctrl-C is noticed in the middle of one."""
        with ThreadPoolExecutor(1, thread_name_prefix="manela-rounds") as thread:
            running = thread.submit(work)
            try:
                running.result()
            except BaseException:
                failure = self._wait_for_stop(running)
                if failure is not None:
                    raise failure from None
                raise

    def _wait_for_stop(self, running: Future[None]) -> BaseException | None:
        """Stop after the current round, so that it can be saved, and return its error, if any.

        Stops at once if there is no checkpoint, if the round takes too long, or on a second Ctrl-C; then the last saved
        state counts.
        """
        self.engine.stop(keep=self.checkpoint is not None)
        try:
            return running.exception(timeout=_LONGEST_STOP)
        except TimeoutError:
            if not self._is_saving:
                self._abandon()
            return running.exception()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        self.checkpoint = None
        self.engine.stop(keep=False)

    def _let_rate_fall(self) -> None:
        """Let the learning rate fall from now on, if vectors have grown or the latest round for it is reached."""
        state = self.engine.state
        if state.falls_at is None and (state.round >= self.schedule.falls_at or self.engine.has_grown()):
            state.falls_at = state.round
            self.schedule = self.schedule.fall(state.round)

    def sweep(self) -> None:
        """Run the sweeps that come before the rounds."""
        begun = self.saved = time.perf_counter()
        reported = 0.0
        while self.engine.is_sweeping:
            done = self.engine.sweep()
            now = time.perf_counter()
            if done is None:
                self._save_if_wanted()
                return
            if self.reporter is not None and now - reported >= _REPORT_EVERY:
                most = max(FEWEST_SWEEPS, done + self.engine.is_sweeping)
                self.reporter(Progress(done, most, seconds=now - begun, phase="sweeps"))
                reported = now
            if now - self.saved >= self._every:
                self._save_if_wanted()

    def report_end(self) -> None:
        """Report that the rounds are done, and what follows."""
        if self.reporter is not None and (self.settings.smooths or self.settings.has_view):
            round = self.engine.state.round
            self.reporter(Progress(round, round, phase="joining" if self.settings.has_view else "smoothing"))

    def advance(self) -> None:
        """Run rounds until none or no time is left, and save what they gave."""
        state = self.engine.state
        if state.falls_at is not None:
            self.schedule = self.schedule.fall(state.falls_at)
        self.begun, self.first_round, self.first_pairs = time.perf_counter(), state.round, state.pairs
        self.reported = self.begun
        self.saved = max(self.saved, self.begun)
        ended = False
        while not ended:
            while not ended and state.round < self.schedule.rounds:
                self._let_rate_fall()
                ended = not self.engine.advance(self.schedule) or self._finish_round()
            self._check()
            self._is_saving = True
            self.engine.settle()
            self._is_saving = False
            ended = ended or state.round >= self.schedule.rounds
        self._save_if_wanted()

    def _finish_round(self) -> bool:
        """Report and save after a round, if due; return whether the time limit is over."""
        now, state, rounds = time.perf_counter(), self.engine.state, self._expect_rounds()
        if now - self.reported >= _REPORT_EVERY or state.round == rounds:
            self._check()
            self._report(now)
            self.reported = now
        if now - self.saved >= self._every:
            self._save_if_wanted()
        if now >= self.deadline and state.round < rounds:
            warnings.warn(
                f"stopped by max_seconds after {state.round} of {rounds} rounds, before the learning rate had decayed",
                ManelaWarning,
                stacklevel=2,
            )
            return True
        return False

    @property
    def _every(self) -> float:
        return float("inf") if self.checkpoint is None else self.checkpoint.every

    def _save_if_wanted(self) -> None:
        self._check()
        checkpoint = self.checkpoint
        if checkpoint is not None:
            # the rounds are done: fetching and writing them is not interrupted, however long it takes
            self._is_saving = True
            self.engine.collect()
            checkpoint.save(self.engine.state, self.identity, self.schedule.pairs)
            self._is_saving = False
            self.saved = time.perf_counter()

    def _report(self, now: float) -> None:
        if self.reporter is None or self.objective is None:
            return
        state, rounds = self.engine.state, self._expect_rounds()
        seconds = now - self.begun
        rounds_done = state.round - self.first_round
        self.reporter(
            Progress(
                round=state.round,
                rounds=rounds,
                pairs=self.engine.pairs - self.first_pairs,
                seconds=seconds,
                seconds_left=seconds / rounds_done * (rounds - state.round) if rounds_done else float("inf"),
                learning_rate=self.schedule.rate(state.round - 1),
                objective=self.objective.of(self.engine),
            )
        )

    def _expect_rounds(self) -> int:
        """Return the total number of rounds, which is an estimate until the learning rate falls."""
        state = self.engine.state
        return self.schedule.rounds if state.falls_at is not None else self.schedule.expect_rounds(state.round)

    def _check(self) -> None:
        if not self.engine.is_finite():
            raise DivergenceError(
                f"vectors stopped being finite by round {self.engine.state.round} of {self._expect_rounds()}: "
                f"learning_rate must be smaller, got {self.settings.learning_rate:g}"
            )


class Speed(NamedTuple):
    """How fast this machine is on a network."""

    pairs: float  # update pairs per second; infinite without rounds
    sweep: float  # seconds of a sweep; 0 if there are none


def measure_speed(graph: Graph, settings: Settings, seconds: float) -> Speed:
    """Measure two sweeps, and rounds for about `seconds`, on this graph and machine."""
    settings = adapt(settings, graph)
    state = begin(graph.number_of_nodes, settings.dimensions, settings.context, settings.seed, settings.threads)
    sweep = 0.0
    with open_engine(graph, settings, state) as engine:
        if engine.is_sweeping:
            engine.sweep()  # compiles
            begun = time.perf_counter()
            engine.sweep()
            sweep = time.perf_counter() - begun
        if not settings.has_rounds:
            return Speed(float("inf"), sweep)
        return Speed(engine.measure(_default_schedule(graph, settings), seconds), sweep)


def _default_schedule(graph: Graph, settings: Settings) -> Schedule:
    return plan_run(graph, replace(settings, pairs=None, updates=None, max_seconds=None, rounds=None))


def _measure_budget(graph: Graph, settings: Settings, engine: Engine, started: float) -> int:
    """Return the update pairs for which time is left."""
    speed = engine.measure(_default_schedule(graph, settings), _count_calibration(settings))
    return max(1, int(speed * _count_left(settings, started)))


def _measure_both(graph: Graph, settings: Settings, share: npt.NDArray[np.float64] | None, started: float) -> int:
    """Return the update pairs for which time is left when the run with context vectors makes as many."""
    seconds = _count_calibration(settings) / 2
    aside = measure_speed(graph, turn_aside(settings), seconds)
    own = measure_speed(graph, settings, seconds)
    left = _count_left(settings, started) - (aside.sweep + own.sweep) * USUAL_SWEEPS
    return max(1, split_time(left, aside, own, _mean_share(graph, settings, share)))


def split_time(seconds: float, aside: Speed, own: Speed, share: float = 1.0) -> int:
    """Return the update pairs that a run with context vectors makes, and after it another one, in some seconds."""
    return int(max(0.0, seconds) / (1 / aside.pairs + share / own.pairs))


def _count_calibration(settings: Settings) -> float:
    return min(_CALIBRATION * (settings.max_seconds or 0.0), _LONGEST_CALIBRATION)


def _count_left(settings: Settings, started: float) -> float:
    """Return the seconds that are left for rounds; warn if there are none."""
    limit = (settings.max_seconds or 0.0) * (1 - count_reserve(settings))
    left = started + limit - time.perf_counter()
    if left <= 0:
        warnings.warn(
            f"max_seconds is too short for this network: {settings.max_seconds:g} s were over before the first round",
            ManelaWarning,
            stacklevel=2,
        )
    return max(0.0, left) * (1 - _CALIBRATION)


def count_reserve(settings: Settings) -> float:
    """Return the share of a running time that is kept for what follows the rounds."""
    return _SMOOTHING * settings.smooths + _JOINING * settings.has_view


def _mean_share(graph: Graph, settings: Settings, share: npt.NDArray[np.float64] | None) -> float:
    """Return the fraction of all iterations that is left after scaling each node by its share."""
    if share is None:
        return 1.0
    weights = weigh(graph.strengths, settings)
    return float(share @ weights / weights.sum())


def _warn_about_isolated(graph: Graph) -> None:
    isolated = int(np.count_nonzero(graph.degrees == 0))
    if isolated:
        warnings.warn(
            f"{isolated:,} of {graph.number_of_nodes:,} nodes have no neighbour to learn from and keep the random "
            "vectors they began with",
            ManelaWarning,
            stacklevel=3,
        )


_SAMPLE = 64
"""Sampled nodes; more are more precise and slower."""


class Objective:
    """The objective on one iteration of each of 64 nodes, drawn once with repetition; a mean over update pairs."""

    def __init__(self, graph: Graph, settings: Settings, arcs: Arcs) -> None:
        key = derive_key(settings.seed, OBJECTIVE)
        candidates = np.flatnonzero(graph.degrees)
        nodes = candidates[scale_to(derive(key, np.arange(_SAMPLE)), len(candidates)).astype(np.int64)]
        drawn = [
            draw(int(node), int(derive(derive(key, node), position)), arcs, settings.targets_by_hop, settings.negatives)
            for position, node in enumerate(nodes)
        ]
        self.nodes = np.repeat(nodes, [len(rows) for rows, _ in drawn])
        self.rows = np.concatenate([rows for rows, _ in drawn])
        self.signs = 2 * np.concatenate([labels for _, labels in drawn]) - 1

    def of(self, engine: Engine) -> float:
        """Return (Σ log σ(x·u) over targets + Σ log σ(−x·u) over negatives) per update pair; NaN without pairs."""
        pairs = np.count_nonzero(self.signs > 0)
        if pairs == 0:
            return float("nan")
        x, others = engine.rows(0, self.nodes), engine.rows(-1, self.rows)
        logits: npt.NDArray[np.float64] = self.signs * np.einsum("ij,ij->i", x, others).astype(np.float64)
        return float(-np.logaddexp(0.0, -logits).sum() / pairs)
