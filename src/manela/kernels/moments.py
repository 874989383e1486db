"""Moments: the number of vectors, their sum and the sum of their outer products, with the same bits in any order.

Vectors are rounded to fixed point, so that every sum is a sum of integers and exact: the order and the number of parts
do not matter. The Cholesky factor and the draws are computed one IEEE 754 operation at a time, in an order that no
library decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manela.kernels.randomness import derive

Sums = npt.NDArray[np.int64]

UNIT = 2.0**-16
"""The fixed-point unit; a larger one blurs the small vectors at the start of a run."""
LARGEST = 8.0
"""Coordinates are clipped to ±LARGEST; with a larger one, sums over many nodes would not fit into 64 bits."""
_EXACT = 2**53
"""Integers up to this are exact in double precision."""
STEP = int(_EXACT / (LARGEST / UNIT) ** 2)
"""Most vectors whose products can be added exactly in double precision."""
LEAST_VARIANCE = 1e-12
"""A direction with a smaller variance counts as one without variance; larger ignores more directions."""


class Moments(NamedTuple):
    """Sums over vectors in fixed point: `total` in units of UNIT, `products` in units of UNIT².

    Examples
    --------
    >>> vectors = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> add([measure(vectors[:1]), measure(vectors[1:])]).size
    2
    """

    size: int
    total: Sums
    products: Sums


def measure(vectors: npt.NDArray[np.floating]) -> Moments:
    """Return the moments of vectors, shape (n, m)."""
    m = vectors.shape[1]
    total, products = np.zeros(m, np.int64), np.zeros((m, m), np.int64)
    for first in range(0, len(vectors), STEP):
        part = np.rint(np.clip(vectors[first : first + STEP].astype(np.float64), -LARGEST, LARGEST) / UNIT)
        total += part.sum(axis=0).astype(np.int64)
        # every partial sum is an integer below 2^53, so the order in which BLAS adds does not matter
        products += (part.T @ part).astype(np.int64)
    return Moments(len(vectors), total, products)


def multiply(
    left: npt.NDArray[np.floating], right: npt.NDArray[np.floating], unit: float, largest: float
) -> npt.NDArray[np.float64]:
    """Return leftᵀ·right, where numbers are clipped to ±largest and rounded to multiples of `unit`; exact in any order.

    Examples
    --------
    >>> multiply(np.array([[0.5], [3.0]]), np.array([[1.0], [1.0]]), unit=0.25, largest=2.0)
    array([[2.5]])
    """
    total = np.zeros((left.shape[1], right.shape[1]), np.int64)
    step = int(_EXACT / (largest / unit) ** 2)
    for first in range(0, len(left), step):
        parts = [
            np.rint(np.clip(rows[first : first + step].astype(np.float64), -largest, largest) / unit)
            for rows in (left, right)
        ]
        total += (parts[0].T @ parts[1]).astype(np.int64)
    return total.astype(np.float64) * unit**2


def orthogonalise(second: npt.NDArray[np.float64], least: float) -> npt.NDArray[np.float64]:
    """Return the inverse of Lᵀ, L·Lᵀ being a second moment: rows times this are orthogonal, with mean square 1.

    A direction with less than `least` of the mean of all is left out: its row and its column are 0.

    Examples
    --------
    >>> orthogonalise(np.array([[4.0, 0.0], [0.0, 0.0]]), 1e-9)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    left, lower = second.copy(), np.zeros_like(second)
    smallest = least * np.trace(second) / len(second)
    for k in range(len(left)):
        if left[k, k] > smallest:
            lower[k:, k] = left[k:, k] / np.sqrt(left[k, k])
            left[k:, k:] -= lower[k:, k, None] * lower[None, k:, k]
    used = np.flatnonzero(np.diag(lower))
    inverse = np.zeros_like(second)
    inverse[np.ix_(used, used)] = np.linalg.inv(lower[np.ix_(used, used)]).T
    return inverse


def estimate(vectors: npt.NDArray[np.float32]) -> Moments:
    """Estimate the moments in single precision: several times faster, but the bits depend on the machine."""
    held = np.clip(vectors, -LARGEST, LARGEST)
    products = (held.T @ held).astype(np.float64)
    total = held.sum(axis=0, dtype=np.float64)
    return Moments(len(held), np.rint(total / UNIT).astype(np.int64), np.rint(products / UNIT**2).astype(np.int64))


def add(parts: list[Moments]) -> Moments:
    """Return the moments of all vectors, from those of parts."""
    return Moments(
        sum(part.size for part in parts),
        np.sum([part.total for part in parts], axis=0),
        np.sum([part.products for part in parts], axis=0),
    )


def center(moments: Moments) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean, in units of UNIT, and the covariance, in units of UNIT²."""
    mean = moments.total.astype(np.float64) / moments.size
    return mean, moments.products.astype(np.float64) / moments.size - mean[:, None] * mean[None, :]


def factor(moments: Moments) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean μ, and the Cholesky factor L of the covariance L·Lᵀ; directions without variance are 0."""
    mean, left = center(moments)
    lower = np.zeros_like(left)
    for k in range(len(left)):
        if left[k, k] > LEAST_VARIANCE / UNIT**2:
            lower[k:, k] = left[k:, k] / np.sqrt(left[k, k])
            left[k:, k:] -= lower[k:, k, None] * lower[None, k:, k]
    return mean * UNIT, lower * UNIT


def draw(moments: Moments, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    """Draw a vector for each key from the normal distribution with these moments, shape (len(keys), m).

    A standard normal number is (the number of ones in 64 random bits − 32)/4. Sums of such numbers are close enough to
    normal, and integers are the same on every machine.
    """
    mean, lower = factor(moments)
    vectors = np.tile(mean, (len(keys), 1))
    for k in range(len(mean)):
        ones = np.bitwise_count(derive(keys, k)).astype(np.float64)
        vectors += ((ones - 32.0) / 4.0)[:, None] * lower[None, :, k]
    return vectors.astype(np.float32)
