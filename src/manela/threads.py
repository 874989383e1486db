"""Threads of this process that share out a piece of work."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_SHORTEST_PIECES = 16
"""How many of the shortest pieces would make a thread's part of the work; more cost more calls."""


class Threads:
    """As many threads as are asked for, this one among them.

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

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads."""
        self._helpers.shutdown()

    def share(self, work: Callable[[int, int], None], borders: Integers) -> None:
        """Do work(first, last) between all borders, each thread taking the next piece as it comes free."""
        ahead = itertools.count()

        def take() -> None:
            while (place := next(ahead)) < len(borders) - 1:
                work(int(borders[place]), int(borders[place + 1]))

        helpers = [self._helpers.submit(take) for _ in range(min(self.count, len(borders) - 1) - 1)]
        take()
        for helper in helpers:
            helper.result()

    def cut(self, work: Integers) -> Integers:
        """Borders of pieces of work for the threads to take one by one.

        Each piece is a share of what is left, so that the last ones are short and the threads end together.
        """
        done = np.cumsum(work)
        shares, left = [], 1.0
        while self.count > 1 and left > 1 / (_SHORTEST_PIECES * self.count):
            left -= max(left / (2 * self.count), 1 / (_SHORTEST_PIECES * self.count))
            shares.append(1.0 - left)
        borders = np.searchsorted(done, np.array(shares) * (done[-1] if len(done) else 0)) + 1
        return np.unique(np.concatenate(([0], np.minimum(borders, len(work)), [len(work)])))
