"""Statistics of update counts: a power-law fit, and the correlation with degree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.integer]


@dataclass(frozen=True)
class PowerLaw:
    """P(count) ∝ count^−exponent from `smallest` on; `error` is the standard error, `above` the counts used."""

    exponent: float
    error: float
    smallest: float
    above: int


def fit_power_law(counts: Counts, smallest: float | None = None) -> PowerLaw:
    """Fit a power law by maximum likelihood to the counts from `smallest` on.

    By default `smallest` is the one of 50 candidates, each leaving at least 50 counts, with the smallest
    Kolmogorov-Smirnov distance (Clauset, Shalizi and Newman 2009).

    Examples
    --------
    >>> drawn = np.random.default_rng(0).pareto(1.5, 20000) + 1
    >>> round(fit_power_law(drawn, 1.0).exponent, 1)
    2.5
    """
    values = np.sort(np.asarray(counts, dtype=np.float64))
    values = values[values > 0]
    if smallest is not None:
        candidates = np.array([smallest])
    else:
        tail = values[: max(1, len(values) - 50)]
        candidates = np.unique(np.quantile(tail, np.linspace(0, 1, 50)))
    fits = [_fit_from(values, float(candidate)) for candidate in candidates]
    return min(fits, key=lambda fit: fit[0])[1]


def _fit_from(values: npt.NDArray[np.float64], smallest: float) -> tuple[float, PowerLaw]:
    """Return the power law of the values from `smallest` on, and its Kolmogorov-Smirnov distance from them."""
    tail = values[values >= smallest]
    exponent = 1.0 + len(tail) / max(float(np.log(tail / smallest).sum()), 1e-12)
    expected = 1.0 - (tail / smallest) ** (1.0 - exponent)
    observed = np.arange(1, len(tail) + 1) / len(tail)
    distance = float(np.abs(observed - expected).max())
    return distance, PowerLaw(exponent, (exponent - 1.0) / len(tail) ** 0.5, smallest, len(tail))


def explain(x: npt.NDArray[np.number], y: npt.NDArray[np.number]) -> float:
    """Return r², the share of the variance of y explained by a linear function of x."""
    return float(np.corrcoef(np.asarray(x, np.float64), np.asarray(y, np.float64))[0, 1] ** 2)
