"""Settings: the parameters of a run, checked one by one and together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from manela.errors import ParameterError
from manela.settings.parameters import DEFAULT_RATIOS, LEARNING, PARAMETERS, RUNNING, check, default
from manela.system.threads import count_jobs

_MOST_COMMON = 1 << 23
"""Most numbers in a block of common negatives; there are up to 32 blocks, stored twice, so larger takes more memory."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked parameters of a run; `threads` is the number to use, `requested_threads` what the user asked for."""

    dimensions: int
    window: int
    ratios: tuple[float, ...]
    negatives: int
    learning_rate: float
    exchange: str
    negative_source: str
    frequency: float
    start: str
    views: str
    smooth: bool
    context: bool
    pairs: int | None
    updates: float | None
    max_seconds: float | None
    rounds: int | None
    patience: float
    seed: int
    requested_threads: int | None
    engine: str
    workers: int | None
    address: str | None
    threads: int

    @property
    def targets_by_hop(self) -> tuple[int, ...]:
        """Targets of an iteration 1, 2, … s hops away: 2w·r, rounded to the nearest integer."""
        return tuple(math.floor(2 * self.window * ratio + 0.5) for ratio in self.ratios)

    @property
    def starts_by_sweeps(self) -> bool:
        """Whether the first vectors are those of the spectral view, which cannot start context vectors."""
        return self.start == "spectral" and not self.context

    @property
    def has_view(self) -> bool:
        """Whether the spectral view is a part of the result, which it cannot be with context vectors."""
        return self.views != "rounds" and not self.context

    @property
    def has_rounds(self) -> bool:
        """Whether there are rounds, without which the result is the spectral view alone."""
        return self.views != "spectral" or self.context

    @property
    def learns_aside(self) -> bool:
        """Whether a run with context vectors comes first, whose vectors are joined with those of this one."""
        return self.views == "all" and not self.context

    @property
    def smooths(self) -> bool:
        """Whether vectors are smoothed at the end, which would harm vectors learned with context vectors."""
        return self.smooth and not self.context

    def identity(self) -> dict[str, Any]:
        """Return the parameters on which the vectors depend, with the seed that was drawn."""
        return {
            name: getattr(self, parameter.setting or name)
            for name, parameter in (LEARNING | RUNNING).items()
            if parameter.decides_vectors
        }

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of an estimator that learns the same vectors, as JSON types."""
        return {**self.identity(), "ratios": list(self.ratios)}


@dataclass(frozen=True, kw_only=True)
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
    threads: int


@dataclass(frozen=True, kw_only=True)
class ProNESettings:
    """Checked parameters of a run of ProNE."""

    dimensions: int
    order: int
    theta: float
    mu: float
    seed: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class NetMFSettings:
    """Checked parameters of a run of NetMF."""

    dimensions: int
    window: int
    negatives: int
    rank: int | None
    seed: int
    threads: int


def check_all(values: Mapping[str, Any]) -> Settings:
    """Check the parameters of an estimator, one by one and together; missing ones take their defaults.

    Examples
    --------
    >>> check_all({"ratios": (0.7, 0.3)}).targets_by_hop
    (14, 6)
    """
    resolved = _resolve(values, Settings)
    if resolved["ratios"] is None:
        # averaging over neighbours of neighbours blurs which nodes have similar neighbours
        one_hop_only = resolved["exchange"] == "messages" and resolved["context"]
        resolved["ratios"] = (1.0,) if one_hop_only else DEFAULT_RATIOS
    settings = Settings(**resolved)
    if not math.isclose(sum(settings.ratios), 1.0, abs_tol=1e-6):
        total = sum(settings.ratios)
        raise ParameterError(f"ratios must sum to 1, got {_show(settings.ratios)} which sums to {total:.6g}")
    budgets = {name: values.get(name) for name in ("pairs", "updates", "max_seconds") if values.get(name) is not None}
    if len(budgets) > 1:
        listed = " and ".join(f"{name}={value}" for name, value in budgets.items())
        raise ParameterError(f"give at most one of pairs, updates and max_seconds, got {listed}")
    if not settings.has_rounds:
        given = {name: values[name] for name in ("pairs", "updates", "rounds") if values.get(name) is not None}
        given |= {} if settings.exchange == "messages" else {"exchange": settings.exchange}
        if given:
            name, value = next(iter(given.items()))
            raise ParameterError(f"views='spectral' has no rounds, so {name} cannot be {value!r}: leave it out")
    if sum(settings.targets_by_hop) == 0:
        raise ParameterError(
            f"window and ratios must give at least one target, got window {settings.window}, "
            f"ratios {_show(settings.ratios)}: every share of 2w rounds to 0"
        )
    numbers = settings.negatives * sum(settings.targets_by_hop) * settings.dimensions
    if settings.exchange == "messages" and numbers > _MOST_COMMON:
        raise ParameterError(
            f"negatives, window and dimensions are too large together: by messages, negatives·2w·dimensions must be at "
            f"most {_MOST_COMMON:,}, got {numbers:,}"
        )
    return settings


def check_walks(values: Mapping[str, Any]) -> WalkSettings:
    """Check the parameters of an estimator that walks; missing ones take their defaults."""
    return WalkSettings(**_resolve(values, WalkSettings))


def check_prone(values: Mapping[str, Any]) -> ProNESettings:
    """Check the parameters of ProNE; missing ones take their defaults."""
    return ProNESettings(**_resolve(values, ProNESettings))


def check_netmf(values: Mapping[str, Any]) -> NetMFSettings:
    """Check the parameters of NetMF, which divides by the number of negatives."""
    settings = NetMFSettings(**_resolve(values, NetMFSettings))
    if settings.negatives == 0:
        raise ParameterError("negatives must be at least 1 for NetMF, got 0")
    return settings


def _resolve(values: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Check each parameter, and return the fields of the settings class `kind`, with the number of threads."""
    for name in PARAMETERS:
        if name in values:
            check(name, values[name])
    field_names = {field.name for field in fields(kind)}
    settings = {
        parameter.setting or name: parameter.convert(values.get(name, parameter.default))
        for name, parameter in PARAMETERS.items()
        if (parameter.setting or name) in field_names
    }
    return {**settings, "threads": count_jobs(values.get("n_jobs", default("n_jobs")))}


def _show(ratios: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{r:g}" for r in ratios) + ")"
