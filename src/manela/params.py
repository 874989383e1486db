"""The rules for parameters, in one table: estimators check by it, the command line takes its flags from it.

NumPy is imported late here: `manela --help` needs the table and not NumPy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

from manela.errors import ParameterError

MOST_PAIRS = 10**15
"""The largest budget: years of work, and few enough that the iterations of a node are counted exactly."""

LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100
WEIGHT_RULE = "finite and above 0 (from 1e-100 to 1e100)"
"""Of an edge: sums and quotients of such weights are finite too."""

PAIRS_PER_NODE = 7450
"""Update pairs a node when no budget is given: about those of DeepWalk with 10 walks of length 80 and window 10."""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its default, its rule in words and as a function, and what it is for."""

    default: Any
    rule: str
    holds: Callable[[Any], bool]
    help: str


def _whole(low: int, high: float = math.inf) -> Callable[[Any], bool]:
    return lambda x: isinstance(x, Integral) and not isinstance(x, bool) and low <= int(x) <= high


def _positive(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x) and float(x) > 0


def _is_bias(x: Any) -> bool:
    return _positive(x) and 0.001 <= x <= 1000


def _optional(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda x: x is None or rule(x)


def _is_ratios(x: Any) -> bool:
    if isinstance(x, str):
        return False
    try:
        values = [float(r) for r in x]
    except (TypeError, ValueError):
        return False
    return 1 <= len(values) <= 64 and all(math.isfinite(r) and r >= 0 for r in values)


def _is_seed(x: Any) -> bool:
    return x is None or type(x).__name__ in ("Generator", "RandomState") or _whole(0, 2**64 - 1)(x)


APPLY = ("iteration", "single")
ENGINES = ("auto", "cpu", "gpu", "ray")
MOST_GPU_DIMENSIONS = 4096
SNAPSHOTS = ("float32", "float16", "bfloat16")

PARAMETERS: dict[str, Parameter] = {
    "dimensions": Parameter(128, "a whole number from 1 to 65536", _whole(1, 65536), "Length of a vector (m)."),
    "window": Parameter(
        10, "a whole number from 1 to 10000", _whole(1, 10000), "Half the targets of an iteration (w)."
    ),
    "ratios": Parameter(
        (0.5, 0.5),
        "a sequence of 1 to 64 numbers that are not negative",
        _is_ratios,
        "Share of targets 1, 2, … s hops away (r); they sum to 1.",
    ),
    "negatives": Parameter(5, "a whole number from 0 to 1000", _whole(0, 1000), "Random nodes for each target (κ)."),
    "learning_rate": Parameter(
        0.025,
        "a number above 0 and at most 1e38",
        lambda x: _positive(x) and x <= 1e38,
        "Learning rate of the first round (α); falls linearly to 1e-4 of it.",
    ),
    "context": Parameter(
        False,
        "True or False",
        lambda x: isinstance(x, bool) or type(x).__name__ == "bool",
        "Keep a second vector for each node: nodes become alike by having alike neighbours.",
    ),
    "pairs": Parameter(
        None,
        "a whole number from 1 to 10^15, or None",
        _optional(_whole(1, MOST_PAIRS)),
        f"Update pairs in all, with those dropped because the target is the node; {PAIRS_PER_NODE} a node unless told.",
    ),
    "updates": Parameter(
        None,
        "a finite number above 0, or None",
        _optional(_positive),
        "Budget in units of d(v)/w iterations for every node v.",
    ),
    "max_seconds": Parameter(
        None, "a finite number above 0, or None", _optional(_positive), "Budget as running time (the paper's T)."
    ),
    "rounds": Parameter(
        None,
        "a whole number from 1 to 10000000, or None",
        _optional(_whole(1, 10_000_000)),
        "Rounds in all; 300 unless told, 1000 from 100,000 nodes on.",
    ),
    "apply": Parameter(
        "iteration",
        f"one of {', '.join(APPLY)}",
        lambda x: x in APPLY,
        "When updates count: after each iteration, or singly in the paper's strict order.",
    ),
    "random_state": Parameter(
        0,
        "a whole number from 0 to 2^64 - 1, None, or a NumPy generator",
        _is_seed,
        "Seed; the same seed gives the same vectors for any number of threads.",
    ),
    "n_jobs": Parameter(
        None,
        "a whole number other than 0, or None",
        _optional(lambda x: isinstance(x, Integral) and not isinstance(x, bool) and x != 0),
        "Threads; all cores unless told, -1 for all, -2 for all but one.",
    ),
    "walks": Parameter(10, "a whole number from 1 to 10^6", _whole(1, 10**6), "Walks from each node (γ)."),
    "walk_length": Parameter(80, "a whole number from 2 to 10^6", _whole(2, 10**6), "Nodes of a walk (ℓ)."),
    "p": Parameter(1.0, "a number from 0.001 to 1000", _is_bias, "How unlikely a walk is to go straight back."),
    "q": Parameter(1.0, "a number from 0.001 to 1000", _is_bias, "How unlikely a walk is to leave what lies around."),
    "snapshot": Parameter(
        "float32",
        f"one of {', '.join(SNAPSHOTS)}",
        lambda x: x in SNAPSHOTS,
        "How nodes read each other's vectors: bfloat16 on a GPU, or float16 from other machines, halve what is moved.",
    ),
    "workers": Parameter(
        None,
        "a whole number from 1 to 100000, or None",
        _optional(_whole(1, 100_000)),
        "Workers of a Ray cluster; one a machine unless told.",
    ),
    "address": Parameter(
        None,
        "the address of a Ray cluster, or None",
        _optional(lambda x: isinstance(x, str) and len(x) > 0),
        "A Ray cluster: auto, HOST:PORT or ray://HOST:PORT; Ray on this machine unless told.",
    ),
    "engine": Parameter(
        "auto",
        f"one of {', '.join(ENGINES)}",
        lambda x: x in ENGINES,
        "Who runs the rounds; auto takes a GPU if one is there and worth it.",
    ),
    "order": Parameter(10, "a whole number from 2 to 1000", _whole(2, 1000), "Terms of ProNE's filter."),
    "theta": Parameter(
        0.5, "a number above 0 and at most 50", lambda x: _positive(x) and x <= 50, "How narrow ProNE's filter is (θ)."
    ),
    "mu": Parameter(
        0.2,
        "a number from 0 to 2",
        lambda x: isinstance(x, Real) and not isinstance(x, bool) and 0 <= float(x) <= 2,
        "The eigenvalue of the Laplacian in the middle of ProNE's filter (μ).",
    ),
    "rank": Parameter(
        256,
        "a whole number from 1 to 32768, or None",
        _optional(_whole(1, 32768)),
        "Eigenpairs by which NetMF approximates the network (h); None for the exact product.",
    ),
}


@dataclass(frozen=True)
class Settings:
    """Checked parameters of a run."""

    dimensions: int
    window: int
    ratios: tuple[float, ...]
    negatives: int
    learning_rate: float
    context: bool
    pairs: int | None
    updates: float | None
    max_seconds: float | None
    rounds: int | None
    apply: str
    seed: int
    jobs: int
    engine: str
    snapshot: str = "float32"
    workers: int | None = None
    address: str | None = None
    threads: int | None = None

    @property
    def walks(self) -> tuple[int, ...]:
        """Targets of an iteration 1, 2, … s hops away: 2w·r, rounded to the nearest."""
        return tuple(math.floor(2 * self.window * ratio + 0.5) for ratio in self.ratios)

    def identity(self) -> dict[str, Any]:
        """The settings on which the vectors depend: all but who runs the rounds."""
        others = ("jobs", "threads", "engine", "workers", "address", "seed")
        values = {name: value for name, value in asdict(self).items() if name not in others}
        return {**values, "random_state": self.seed}

    def parameters(self) -> dict[str, Any]:
        """The parameters of the estimator that learns the same vectors, as JSON has them."""
        return {**self.identity(), "ratios": list(self.ratios)}


@dataclass(frozen=True)
class WalkSettings:
    """Checked parameters of a run of skip-gram over walks."""

    dimensions: int
    walks: int
    walk_length: int
    window: int
    negatives: int
    learning_rate: float
    p: float
    q: float
    seed: int
    jobs: int


def default(name: str) -> Any:
    """The default of a parameter."""
    return PARAMETERS[name].default


def check(name: str, value: Any) -> None:
    """Raise ParameterError unless the parameter's rule holds for value."""
    parameter = PARAMETERS[name]
    if not parameter.holds(value):
        raise ParameterError(f"{name} must be {parameter.rule}, got {value!r}.")


def check_all(values: Mapping[str, Any]) -> Settings:
    """Check the parameters of an estimator, one by one and together.

    Examples
    --------
    >>> check_all({name: parameter.default for name, parameter in PARAMETERS.items()}).walks
    (10, 10)
    """
    from manela.randomness import seed_of

    for name in PARAMETERS:
        if name in values:
            check(name, values[name])
    ratios = tuple(float(r) for r in values["ratios"])
    if not math.isclose(sum(ratios), 1.0, abs_tol=1e-6):
        raise ParameterError(f"ratios must sum to 1, got {_show(ratios)} which sums to {sum(ratios):.6g}.")
    budgets = {name: values[name] for name in ("pairs", "updates", "max_seconds") if values[name] is not None}
    if len(budgets) > 1:
        given = " and ".join(f"{name}={value}" for name, value in budgets.items())
        raise ParameterError(f"give at most one of pairs, updates and max_seconds, got {given}.")
    settings = Settings(
        dimensions=int(values["dimensions"]),
        window=int(values["window"]),
        ratios=ratios,
        negatives=int(values["negatives"]),
        learning_rate=float(values["learning_rate"]),
        context=bool(values["context"]),
        pairs=None if values["pairs"] is None else int(values["pairs"]),
        updates=None if values["updates"] is None else float(values["updates"]),
        max_seconds=None if values["max_seconds"] is None else float(values["max_seconds"]),
        rounds=None if values["rounds"] is None else int(values["rounds"]),
        apply=values["apply"],
        seed=seed_of(values["random_state"]),
        jobs=count_jobs(values["n_jobs"]),
        engine=values["engine"],
        snapshot=values.get("snapshot", "float32"),
        workers=None if values.get("workers") is None else int(values["workers"]),
        address=values.get("address"),
        threads=None if values["n_jobs"] is None else count_jobs(values["n_jobs"]),
    )
    if sum(settings.walks) == 0:
        raise ParameterError(
            f"window and ratios must give at least one target, got window {settings.window}, ratios {_show(ratios)}, "
            "of which every share of 2w rounds to 0."
        )
    return settings


def check_walks(values: Mapping[str, Any]) -> WalkSettings:
    """Check the parameters of an estimator that walks; without p and q they are 1."""
    from manela.randomness import seed_of

    for name, value in values.items():
        check(name, value)
    return WalkSettings(
        dimensions=int(values["dimensions"]),
        walks=int(values["walks"]),
        walk_length=int(values["walk_length"]),
        window=int(values["window"]),
        negatives=int(values["negatives"]),
        learning_rate=float(values["learning_rate"]),
        p=float(values.get("p", 1.0)),
        q=float(values.get("q", 1.0)),
        seed=seed_of(values["random_state"]),
        jobs=count_jobs(values["n_jobs"]),
    )


def count_jobs(n_jobs: int | None) -> int:
    """The number of threads that `n_jobs` stands for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def _show(ratios: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{r:g}" for r in ratios) + ")"


@dataclass(frozen=True)
class ProNESettings:
    """Checked parameters of a run of ProNE."""

    dimensions: int
    order: int
    theta: float
    mu: float
    seed: int
    jobs: int


@dataclass(frozen=True)
class NetMFSettings:
    """Checked parameters of a run of NetMF."""

    dimensions: int
    window: int
    negatives: int
    rank: int | None
    seed: int
    jobs: int


def check_prone(values: Mapping[str, Any]) -> ProNESettings:
    """Check the parameters of ProNE."""
    from manela.randomness import seed_of

    for name, value in values.items():
        check(name, value)
    return ProNESettings(
        dimensions=int(values["dimensions"]),
        order=int(values["order"]),
        theta=float(values["theta"]),
        mu=float(values["mu"]),
        seed=seed_of(values["random_state"]),
        jobs=count_jobs(values["n_jobs"]),
    )


def check_netmf(values: Mapping[str, Any]) -> NetMFSettings:
    """Check the parameters of NetMF, which divides by the number of negatives."""
    from manela.randomness import seed_of

    for name, value in values.items():
        check(name, value)
    if values["negatives"] == 0:
        raise ParameterError("negatives must be at least 1 for NetMF, got 0.")
    return NetMFSettings(
        dimensions=int(values["dimensions"]),
        window=int(values["window"]),
        negatives=int(values["negatives"]),
        rank=None if values["rank"] is None else int(values["rank"]),
        seed=seed_of(values["random_state"]),
        jobs=count_jobs(values["n_jobs"]),
    )
