"""What hosts say to each other, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manela.kernels.moments import Moments

PROTOCOL = 2

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
VectorRows = npt.NDArray[np.float32]
"""Vectors, shape (rows, tables, m): Φ, and Ψ where hosts keep context vectors."""

NOTHING, OWN = -1, -2
"""In an index of walks: no vector; and from here down the asker's own end of its edge 0, 1, 2, …"""

START, ROUND, SMOOTH = range(3)
"""What hosts do one after the other: sweeps of the start, rounds, steps of smoothing."""


def no_integers() -> Integers:
    """An empty array."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Totals:
    """What all hosts of a lock-step run have to add up.

    Attributes
    ----------
    joined, arcs : int
        Nodes that have neighbours, and neighbours of all nodes.
    strengths, frequencies, sizes : tuple of float
        Their exact sums are those of strength, of strength^frequency, and of the norms that smoothing gives.
    """

    joined: int = 0
    arcs: int = 0
    strengths: tuple[float, ...] = ()
    frequencies: tuple[float, ...] = ()
    sizes: tuple[float, ...] = ()


@dataclass(frozen=True)
class Hello:
    """Who speaks, and on what terms; `run`, `numbers` and `totals` in lock-step only.

    `program` is the version of the program, to be shown to operators.
    """

    host: str
    exchange: str
    dimensions: int
    hops: int
    context: bool
    lock_step: bool
    half: bool
    nodes: int
    run: str = ""
    numbers: Integers = field(default_factory=no_integers)
    totals: Totals = Totals()
    protocol: int = PROTOCOL
    program: str = ""


@dataclass(frozen=True)
class Introduction:
    """The asker's edges with nodes of the answerer: askers[i] is `name@host`, others[i] a name."""

    askers: list[str]
    others: list[str]


@dataclass(frozen=True)
class Acceptance:
    """Which of the edges the answerer has too; those are numbered 0, 1, 2, … in this session."""

    session: int
    accepted: npt.NDArray[np.bool_]


# by messages


class Step(NamedTuple):
    """Where a host is: which sweep, round or step of smoothing, and which of the values within it.

    In a round, level h is the mean over h hops. In a sweep, level 0 are the rows, and level 1 is their sum.
    """

    phase: int
    number: int
    level: int = 0


@dataclass(frozen=True)
class Pull:
    """Asks for what a host shows to the asker's nodes: at a step, and only what has changed since a version."""

    session: int
    step: Step
    since: int = 0


@dataclass(frozen=True, eq=False)
class Sums:
    """How many vectors there are, their sum in units of `moments.UNIT`, and that of their squares; exact."""

    count: int
    total: Integers
    squares: int


@dataclass(frozen=True)
class Shown:
    """What a host shows to the asker's nodes.

    Attributes
    ----------
    step : Step
        Of what it shows; that of the request, or a later one where hosts do not go in lock-step.
    version : int
        Of the answerer's vectors.
    changed : array
        Which of the asker's neighbours these rows are of, by number, in order.
    rows : array of float32, or of float16 where they travel as such, shape (changed, tables, levels, m)
    strengths : array of float64, shape (changed,)
        S_w, the sum of a neighbour's weights, of which a mean of its own is made.
    moments : list of Moments
        Of all vectors of the answerer, one for each table; none where it has too few nodes, or was not asked.
    sums : Sums, or None
    """

    step: Step
    version: int
    changed: Integers
    rows: npt.NDArray[Any]
    strengths: npt.NDArray[np.float64]
    moments: list[Moments] = field(default_factory=list)
    sums: Sums | None = None


# by walks


@dataclass(frozen=True)
class WalkRequest:
    """What the asker needs for a round by walks; `firsts`, `keys` and `numbers` in lock-step only."""

    session: int
    round: int
    neighbours: bool
    since: int
    edges: Integers
    steps: Integers
    random: int = 0
    firsts: Integers | None = None
    keys: Words | None = None
    numbers: Integers | None = None

    @property
    def size(self) -> int:
        """Walks and random nodes, in the order of the reply's index."""
        return len(self.edges) + (self.random if self.numbers is None else len(self.numbers))


@dataclass(frozen=True)
class WalkReply:
    """Vectors of the asker's neighbours that changed, and the ends of its walks and random nodes without ids."""

    version: int
    changed: Integers
    neighbours: VectorRows
    index: Integers
    vectors: VectorRows
