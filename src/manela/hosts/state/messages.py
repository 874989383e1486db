"""Messages that hosts exchange, as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manela.kernels.moments import Moments

PROTOCOL = 3

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
VectorRows = npt.NDArray[np.float32]
"""Vectors, shape (rows, tables, m): Φ, and Ψ where hosts keep context vectors."""

NOTHING, OWN = -1, -2
"""Negative entries in the index of a WalkReply: −1 means none, −2 − e is the asker's own end of its edge e."""

START, AFFINITY, SWEEP, VIEW, PLACE, ROUND, SMOOTH, JOIN = range(8)
"""The phases of a run, in order: sweeps of a start by means; affinities, sweeps, the view that they give, and placing
in the view that peers have; rounds; steps of smoothing, and the join with the view."""
PHASES = ("start", "affinity", "sweep", "view", "place", "round", "smoothing", "join")


def no_integers() -> Integers:
    """Return an empty array of integers."""
    return np.zeros(0, np.int64)


BY_SWEEPS = 2**20
"""The generation before the first start by sweeps; those of starts by means are less, so that sweeps follow means."""


class Frame(NamedTuple):
    """The start that a host's vectors come from: vectors of different frames may be turned against each other.

    Hosts that start together agree on the least of their ids. A later start has a larger generation.

    Examples
    --------
    >>> str(Frame(2, 0xAB)), str(Frame())
    ('00000000000000ab.2', 'none')
    """

    generation: int = 0
    id: int = 0

    def __str__(self) -> str:
        return f"{self.id:016x}.{self.number}" if self.generation else "none"

    @property
    def number(self) -> int:
        """The number of starts of its kind so far, as its hosts know it."""
        return self.generation % BY_SWEEPS


NO_FRAME = Frame()
"""That of a host that has not begun to start, or has one view only."""


@dataclass(frozen=True)
class Totals:
    """Totals of one host, which all hosts of a lock-step run add up."""

    # the number of nodes that have neighbours, and of arcs
    joined: int = 0
    arcs: int = 0
    # floats whose exact sum is that of strength, of strength^frequency, and of the norms after smoothing
    strengths: tuple[float, ...] = ()
    frequencies: tuple[float, ...] = ()
    sizes: tuple[float, ...] = ()


@dataclass(frozen=True)
class Hello:
    """The greeting of a host: its name and its terms; `run`, `numbers` and `totals` are for lock-step only.

    `views` are those that it learns, "rounds" or "both", `frame` is that of its vectors, and `program` the version of
    the program, to be shown to operators.
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
    views: str = "rounds"
    frame: Frame = NO_FRAME


@dataclass(frozen=True)
class Introduction:
    """The asker's edges with nodes of the answerer: askers[i] is `name@host`, others[i] a name."""

    askers: list[str]
    others: list[str]


@dataclass(frozen=True)
class Acceptance:
    """Which of the introduced edges the answerer has too; these are numbered 0, 1, 2, … in this session."""

    session: int
    accepted: npt.NDArray[np.bool_]


# by messages


class Step(NamedTuple):
    """A point in a run: a sweep, round or step of smoothing, and a level within it.

    In a round, level h is the mean over h hops; in a round with walks, level 0 is for the vectors of neighbours, and
    level 1 for the ends of walks. In a sweep, level 0 is for the rows, and level 1 for sums over all of
    them; of affinities, 0 is for strengths, 1 for shares in them, and 2 for the sum of squares. View 0 is
    the last sweep, and later numbers are steps of its filter.

    Examples
    --------
    >>> str(Step(START, 2, 1)), str(Step(ROUND, 7))
    ('start 2.1', 'round 7')
    """

    phase: int
    number: int
    level: int = 0

    def __str__(self) -> str:
        return f"{PHASES[self.phase]} {self.number}" + (f".{self.level}" if self.level else "")


@dataclass(frozen=True)
class Pull:
    """A request for what a host shows to the asker's nodes at a step, if it has changed since a version.

    `frame` is that of the asker.
    """

    session: int
    step: Step
    since: int = 0
    frame: Frame = NO_FRAME


@dataclass(frozen=True, eq=False)
class Sums:
    """The exact number of vectors, their sum in units of `moments.UNIT`, and the sum of their squares."""

    count: int
    total: Integers
    squares: int


@dataclass(frozen=True)
class Sum:
    """The number of nodes that have neighbours, and floats whose exact sum is that of a number of each."""

    count: int
    parts: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Products:
    """The products of the columns of some rows, (k, k) and symmetric, in units of `unit`; `size` rows are not empty."""

    size: int
    sums: Integers
    unit: float


@dataclass(frozen=True)
class Shown:
    """What a host shows to the asker's nodes."""

    step: Step  # the step that is shown: that of the request, or outside lock-step a later one
    version: int  # the version of the answerer's vectors
    changed: Integers  # the numbers of the asker's neighbours to which the rows belong, in order
    rows: npt.NDArray[Any]  # shape (changed, tables, levels, m)
    # shape (changed,): S_w, the sum of the weights of neighbour w, over which its own means are taken; at level 1 of
    # the affinities Σ_u ω_uw/S_u over its neighbours u
    strengths: npt.NDArray[np.float64]
    # moments of all its vectors, for each table; empty if it has too few nodes, or the asker sees nearly all
    moments: list[Moments] = field(default_factory=list)
    sums: Sums | None = None  # sums over all vectors of the answerer
    sum: Sum | None = None  # of shares^¾, or of squares of affinities, over all nodes of the answerer
    products: Products | None = None  # of a sweep, the view or the join, over all nodes of the answerer
    frame: Frame = NO_FRAME  # that of the answerer


# by walks


@dataclass(frozen=True)
class WalkRequest:
    """A request for the vectors of a round by walks; `firsts`, `keys` and `numbers` are for lock-step only."""

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
        """The number of walks and random nodes, which is the length of the reply's index."""
        return len(self.edges) + (self.random if self.numbers is None else len(self.numbers))


@dataclass(frozen=True)
class WalkReply:
    """Vectors of the asker's neighbours that have changed, and those of walk ends and random nodes, without ids."""

    version: int
    changed: Integers
    neighbours: VectorRows
    index: Integers
    vectors: VectorRows
