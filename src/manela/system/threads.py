"""The number of cores to use, threads that share work, and the base class of what a `with` statement closes."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self

import numpy as np
import numpy.typing as npt


class Closable(ABC):
    """Something that holds threads, a file or a connection until it is closed.

    Examples
    --------
    >>> class Door(Closable):
    ...     def close(self) -> None:
    ...         print("closed")
    >>> with Door():
    ...     print("open")
    open
    closed
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release what this object holds."""


_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)
"""What `allow_cores` has set."""


def count_cores() -> int:
    """Return how many threads work may take: the cores that this process may run on, or as many as are allowed."""
    allowed = _allowed.get()
    if allowed is not None:
        return allowed
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: all cores for None and −1, all but one for −2.

    Examples
    --------
    >>> count_jobs(3), count_jobs(-10**9)
    (3, 1)
    """
    if n_jobs is None:
        return count_cores()
    return int(n_jobs) if n_jobs > 0 else max(1, count_cores() + 1 + int(n_jobs))


@contextmanager
def allow_cores(n_jobs: int | None) -> Iterator[None]:
    """Let work inside a `with` statement take as many threads as `n_jobs` says.

    Examples
    --------
    >>> with allow_cores(3):
    ...     count_cores()
    3
    """
    token = _allowed.set(count_jobs(n_jobs))
    try:
        yield
    finally:
        _allowed.reset(token)


Integers = npt.NDArray[np.int64]

_SHORTEST_PIECES = 16
"""A thread's share of the work divided by the shortest piece; larger balances better and costs more calls."""


class Threads(Closable):
    """A pool of `count` threads, including the calling one.

    Examples
    --------
    >>> with Threads(2) as threads:
    ...     parts = []
    ...     threads.share(lambda first, last: parts.append((first, last)), np.array([0, 3, 5]))
    >>> sorted(parts)
    [(0, 3), (3, 5)]
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._helpers = ThreadPoolExecutor(max(1, count - 1), thread_name_prefix="manela")

    def close(self) -> None:
        """End the threads."""
        self._helpers.shutdown()

    def share(self, work: Callable[[int, int], None], borders: Integers) -> None:
        """Call work(first, last) for each pair of adjacent borders; each free thread takes the next piece."""
        positions = itertools.count()

        def take() -> None:
            while (position := next(positions)) < len(borders) - 1:
                work(int(borders[position]), int(borders[position + 1]))

        helpers = [self._helpers.submit(take) for _ in range(min(self.count, len(borders) - 1) - 1)]
        take()
        for helper in helpers:
            helper.result()

    def cut(self, work: Integers) -> Integers:
        """Return the borders of pieces of work for `share`.

        Each piece is a fraction of the remaining work, so that the last ones are short and all threads end together.
        """
        cumulative = np.cumsum(work)
        shares, remaining = [], 1.0
        while self.count > 1 and remaining > 1 / (_SHORTEST_PIECES * self.count):
            remaining -= max(remaining / (2 * self.count), 1 / (_SHORTEST_PIECES * self.count))
            shares.append(1.0 - remaining)
        borders = np.searchsorted(cumulative, np.array(shares) * (cumulative[-1] if len(cumulative) else 0)) + 1
        return np.unique(np.concatenate(([0], np.minimum(borders, len(work)), [len(work)])))
