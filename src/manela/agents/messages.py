"""What hosts say to each other, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

PROTOCOL = 1

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]
"""Vectors, shape (rows, tables, m): Φ, and Ψ where hosts keep context vectors."""

NOTHING, OWN = -1, -2
"""In an index: no vector; and from here down the asker's own end of its edge 0, 1, 2, …"""


class Reason(StrEnum):
    """Why something was refused."""

    UNKNOWN_PEER = "unknown peer"
    CLAIM = "claims what is another host's"
    NOT_ADJACENT = "not adjacent"
    TOO_FAR = "more hops than agreed"
    TERMS = "other terms"
    SESSION = "unknown session"
    MALFORMED = "malformed"
    TOO_LARGE = "too large"
    OUT_OF_ORDER = "replayed or out of order"
    BAD_VECTOR = "bad vector"
    TOO_OFTEN = "too often"
    TOO_SLOW = "too slow"


@dataclass(frozen=True)
class Hello:
    """Who speaks, and on what terms."""

    host: str
    dimensions: int
    hops: int
    context: bool
    lock_step: bool
    half: bool
    nodes: int
    strengths: tuple[float, ...]
    run: str = ""
    numbers: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    protocol: int = PROTOCOL


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


@dataclass(frozen=True)
class Request:
    """What the asker needs for a round; `firsts`, `keys` and `numbers` in lock-step only."""

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
class Reply:
    """Vectors of the asker's neighbours that changed, and the ends of its walks and random nodes without ids."""

    version: int
    changed: Integers
    neighbours: Rows
    index: Integers
    vectors: Rows
