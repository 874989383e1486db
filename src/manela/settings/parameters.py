"""The table of parameters, from which estimators take their checks and the command line its flags.

NumPy is imported lazily here, as `manela --help` needs only the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from manela.errors import ParameterError

MOST_PAIRS = 10**15
"""The largest budget: years of work; beyond it a float could not count the iterations of a node exactly."""

PAIRS_PER_NODE = 7450
"""Update pairs per node with walks and without a budget; more cost time, and overfit a sparse network.

It is the number of pairs of positions at most 10 apart in 10 walks of 80 nodes, 10·(10·80 − 10·11/2). DeepWalk with
such walks uses each pair both ways, 14,900; as it draws the window from 1 to 10, about 8,360 of them.
"""


@dataclass(frozen=True)
class Parameter:
    """One parameter."""

    kind: type  # the type that a value is converted to: int, float, bool, str, or tuple of float
    default: Any
    rule: str  # what a value must be, as text for error messages
    holds: Callable[[Any], bool]  # returns whether a value satisfies the rule
    help: str  # one sentence on its purpose
    # converts a value to a setting; by default `kind`, with None unchanged
    conversion: Callable[[Any], Any] | None = None
    setting: str | None = None  # the name of the setting, if it differs from that of the parameter
    choices: tuple[str, ...] = ()  # the allowed values, if they can be listed
    decides_vectors: bool = True  # whether the vectors depend on it

    def convert(self, value: Any) -> Any:
        """Return the setting for a value."""
        if self.conversion is not None:
            return self.conversion(value)
        return None if value is None else self.kind(value)


def _whole(low: int, high: float = math.inf) -> Callable[[Any], bool]:
    return lambda x: isinstance(x, Integral) and not isinstance(x, bool) and low <= int(x) <= high


def _is_flag(x: Any) -> bool:
    return isinstance(x, bool) or type(x).__name__ == "bool"


def _between(low: float, high: float) -> Callable[[Any], bool]:
    return lambda x: isinstance(x, Real) and not isinstance(x, bool) and low <= float(x) <= high


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


def _as_seed(random_state: Any) -> int:
    from manela.kernels.randomness import seed_of

    return seed_of(random_state)


def _as_threads(n_jobs: int | None) -> int | None:
    from manela.system.threads import count_jobs

    return None if n_jobs is None else count_jobs(n_jobs)


def _one_of(choices: tuple[str, ...], purpose: str, **options: Any) -> Parameter:
    rule = f"one of {', '.join(choices)}"
    return Parameter(str, choices[0], rule, lambda x: x in choices, purpose, choices=choices, **options)


DEFAULT_RATIOS = (0.5, 0.5)
MOST_GPU_DIMENSIONS = 4096

LEARNING: dict[str, Parameter] = {
    "dimensions": Parameter(int, 128, "a whole number from 1 to 65536", _whole(1, 65536), "Length of a vector (m)."),
    "window": Parameter(
        int, 10, "a whole number from 1 to 10000", _whole(1, 10000), "Half the number of targets in an iteration (w)."
    ),
    "ratios": Parameter(
        tuple,
        None,
        "a sequence of 1 to 64 numbers that are not negative, or None",
        _optional(_is_ratios),
        "Shares of the targets that are 1, 2, … s hops away (r). They sum to 1; by default 0.5,0.5, or 1 by messages "
        "with context vectors.",
        conversion=lambda x: None if x is None else tuple(float(ratio) for ratio in x),
    ),
    "negatives": Parameter(
        int, 5, "a whole number from 0 to 1000", _whole(0, 1000), "Random nodes for each target (κ)."
    ),
    "learning_rate": Parameter(
        float,
        0.025,
        "a number above 0 and at most 1e38",
        lambda x: _positive(x) and x <= 1e38,
        "Initial learning rate (α). It falls linearly to 1e-4 of this, once vectors have grown.",
    ),
    "exchange": _one_of(
        ("messages", "walks"),
        "How nodes learn: by messages of their neighbours, or by walks as in the paper.",
    ),
    "negative_source": _one_of(
        ("nodes", "moments"),
        "Negatives by messages: vectors of random nodes, or draws from the mean and covariance of all.",
    ),
    "frequency": Parameter(
        float,
        0.25,
        "a number from 0 to 2",
        _between(0.0, 2.0),
        "Iterations of a node are proportional to its strength to this power.",
    ),
    "start": _one_of(
        ("spectral", "random"),
        "First vectors: from the spectral view, or random; always random with context vectors.",
    ),
    "views": _one_of(
        ("both", "all", "rounds", "spectral"),
        "What vectors are made of: rounds and the spectral view, these and context vectors, or one of the two.",
    ),
    "smooth": Parameter(
        bool,
        True,
        "True or False",
        _is_flag,
        "Smooth the vectors over the network at the end; ignored with context vectors.",
    ),
    "context": Parameter(
        bool,
        False,
        "True or False",
        _is_flag,
        "Learn a second vector for each node, so that nodes with similar neighbours become similar.",
    ),
    "pairs": Parameter(
        int,
        None,
        "a whole number from 1 to 10^15, or None",
        _optional(_whole(1, MOST_PAIRS)),
        "Budget: update pairs in all, including dropped ones; by default chosen for the network.",
    ),
    "updates": Parameter(
        float,
        None,
        "a finite number above 0, or None",
        _optional(_positive),
        "Budget: units of d(v)/w iterations for every node v.",
    ),
    "max_seconds": Parameter(
        float, None, "a finite number above 0, or None", _optional(_positive), "Budget: running time (the paper's T)."
    ),
    "rounds": Parameter(
        int,
        None,
        "a whole number from 1 to 10000000, or None",
        _optional(_whole(1, 10_000_000)),
        "Number of rounds; by default chosen for the network.",
    ),
    "patience": Parameter(
        float,
        1.0,
        "a number from 0.01 to 1000",
        _between(0.01, 1000.0),
        "Multiplies the number of rounds; ignored if a budget is given, and by walks.",
    ),
}
"""Parameters that define what is learned, and the budget."""

RUNNING: dict[str, Parameter] = {
    "random_state": Parameter(
        int,
        0,
        "a whole number from 0 to 2^64 - 1, None, or a NumPy generator",
        _is_seed,
        "Seed; the same seed gives the same vectors for any number of threads.",
        conversion=_as_seed,
        setting="seed",
    ),
    "n_jobs": Parameter(
        int,
        None,
        "a whole number other than 0, or None",
        _optional(lambda x: isinstance(x, Integral) and not isinstance(x, bool) and x != 0),
        "Threads; all cores by default, -1 for all, -2 for all but one.",
        conversion=_as_threads,
        setting="requested_threads",
        decides_vectors=False,
    ),
    "engine": _one_of(
        ("auto", "cpu", "gpu", "ray"),
        "What runs the rounds; auto uses a GPU if there is one and the run is long enough.",
        decides_vectors=False,
    ),
    "workers": Parameter(
        int,
        None,
        "a whole number from 1 to 100000, or None",
        _optional(_whole(1, 100_000)),
        "Workers on a Ray cluster; by default one per machine.",
        decides_vectors=False,
    ),
    "address": Parameter(
        str,
        None,
        "the address of a Ray cluster, or None",
        _optional(lambda x: isinstance(x, str) and len(x) > 0),
        "Ray cluster: auto, HOST:PORT or ray://HOST:PORT; by default Ray is started here.",
        decides_vectors=False,
    ),
}
"""Parameters of a run that are not about learning: the seed, and the engine with its resources."""

WALKING: dict[str, Parameter] = {
    "walks": Parameter(int, 10, "a whole number from 1 to 10^6", _whole(1, 10**6), "Walks from each node (γ)."),
    "walk_length": Parameter(int, 80, "a whole number from 2 to 10^6", _whole(2, 10**6), "Nodes in a walk (ℓ)."),
    "p": Parameter(
        float,
        1.0,
        "a number from 0.001 to 1000",
        _is_bias,
        "Return parameter of node2vec: larger makes walks go straight back less often.",
    ),
    "q": Parameter(
        float,
        1.0,
        "a number from 0.001 to 1000",
        _is_bias,
        "In-out parameter of node2vec: larger keeps walks closer to where they came from.",
    ),
}
"""Parameters of DeepWalk and node2vec only."""

FACTORISING: dict[str, Parameter] = {
    "order": Parameter(int, 10, "a whole number from 2 to 1000", _whole(2, 1000), "Number of terms of ProNE's filter."),
    "theta": Parameter(
        float,
        0.5,
        "a number above 0 and at most 50",
        lambda x: _positive(x) and x <= 50,
        "Width of ProNE's filter: larger is narrower (θ).",
    ),
    "mu": Parameter(
        float,
        0.2,
        "a number from 0 to 2",
        _between(0.0, 2.0),
        "Centre of ProNE's filter, an eigenvalue of the Laplacian (μ).",
    ),
    "rank": Parameter(
        int,
        256,
        "a whole number from 1 to 32768, or None",
        _optional(_whole(1, 32768)),
        "Eigenpairs by which NetMF approximates the network (h); None computes it exactly.",
    ),
}
"""Parameters of ProNE and NetMF only."""

PAPER: dict[str, Any] = {"exchange": "walks", "frequency": 1.0, "start": "random", "views": "rounds", "smooth": False}
"""The settings of the paper that differ from the defaults."""

THOROUGH: dict[str, Any] = {
    "learning_rate": 0.018,
    "frequency": 0.0,
    "patience": 8.0,
    "start": "random",
    "views": "all",
}
"""Settings for the best vectors at the price of a longer run."""
PRESETS: dict[str, dict[str, Any]] = {"paper": PAPER, "thorough": THOROUGH}
"""Named settings: each is a flag of the command and a method of the estimator."""

READING: dict[str, Parameter] = {
    "directed": Parameter(bool, False, "True or False", _is_flag, "Follow arcs as given, rather than both ways."),
}
"""Parameters of estimators that decide how a network is read."""

PARAMETERS: dict[str, Parameter] = {**LEARNING, **RUNNING, **WALKING, **FACTORISING, **READING}

FORMER = {"snapshot": "float32"}
"""Parameters of earlier versions that files may still hold, with the only value that has the meaning of today."""


def drop_former(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a file without those of earlier versions that change nothing.

    Examples
    --------
    >>> drop_former({"window": 5, "snapshot": "float32"}), drop_former({"snapshot": "float16"})
    ({'window': 5}, {'snapshot': 'float16'})
    """
    return {name: value for name, value in parameters.items() if name not in FORMER or value != FORMER[name]}


def default(name: str) -> Any:
    """Return the default of a parameter."""
    return PARAMETERS[name].default


def check(name: str, value: Any) -> None:
    """Raise ParameterError unless the parameter's rule holds for value."""
    parameter = PARAMETERS[name]
    if not parameter.holds(value):
        raise ParameterError.of(name, f"must be {parameter.rule}", value)
