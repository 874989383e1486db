"""Counter-based random numbers: a draw is a hash of a key and a number, so there is no state and no order.

Every kernel draws by the same three functions, `mix`, `derive` and `scale_to`; these are their NumPy definitions.
All arithmetic is on unsigned 64-bit integers and wraps around.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
FIRST_FACTOR = 0xBF58476D1CE4E5B9
SECOND_FACTOR = 0x94D049BB133111EB

ROUNDS, PHASES, VECTORS, CONTEXTS, OBJECTIVE, WALKS, ORDERS, NEGATIVES = range(8)
"""The purposes of draws; each has its own key."""


@np.errstate(over="ignore")
def mix(words: Any) -> Words:
    """Scatter the bits of 64-bit words, one to one (the finaliser of SplitMix64)."""
    z = np.asarray(words, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
    return z ^ (z >> np.uint64(31))


@np.errstate(over="ignore")
def derive(keys: Any, numbers: Any) -> Words:
    """Return the draw with this number under this key; a draw may itself serve as a key.

    Examples
    --------
    >>> int(derive(0, 0)) == int(mix(GOLDEN))
    True
    """
    keys, numbers = np.asarray(keys, dtype=np.uint64), np.asarray(numbers, dtype=np.uint64)
    return mix(keys + np.uint64(GOLDEN) * (numbers + np.uint64(1)))


def derive_key(seed: int, purpose: int) -> int:
    """Return the key under which a run with this seed draws for this purpose."""
    return int(derive(derive(seed, 0), purpose))


@np.errstate(over="ignore")
def scale_to(draws: Any, size: Any) -> Words:
    """Draws scaled to 0 … size - 1: the high half of the 128-bit product."""
    draws, size = np.asarray(draws, dtype=np.uint64), np.asarray(size, dtype=np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    draws_high, draws_low = draws >> half, draws & low
    size_high, size_low = size >> half, size & low
    middle = draws_high * size_low + ((draws_low * size_low) >> half)
    cross = draws_low * size_high + (middle & low)
    high: Words = draws_high * size_high + (middle >> half) + (cross >> half)
    return high


def scale_to_unit(draws: Words) -> npt.NDArray[np.float64]:
    """Draws scaled to [0, 1), on a grid of 2^-53."""
    return (draws >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_phases(seed: int, nodes: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Return one number in [0, 1) for each node: the phase of its iterations."""
    return scale_to_unit(derive(derive_key(seed, PHASES), nodes))


def draw_vectors(seed: int, nodes: npt.NDArray[np.integer], out: npt.NDArray[np.float32], purpose: int) -> None:
    """Write Φ₀, uniform in ±0.5/m, into the rows of out, shape (len(nodes), m)."""
    m = out.shape[1]
    key, columns = derive_key(seed, purpose), np.arange(m)
    step = max(1, 2**16 // m)
    for first in range(0, len(nodes), step):
        drawn = derive(derive(key, nodes[first : first + step])[:, None], columns)
        out[first : first + step] = (scale_to_unit(drawn) - 0.5) / m


def seed_of(random_state: Any) -> int:
    """Return the seed for a `random_state`: an integer, None for a new seed, or a NumPy generator to draw it from."""
    if random_state is None:
        return secrets.randbits(63)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**63, dtype=np.uint64))
    return int(random_state)
