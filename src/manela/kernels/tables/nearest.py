"""Keeps the best of many scores, compiled by Numba."""

# mypy: ignore-errors

import numpy as np
from numba import njit

_STEP = 64
"""Scores that are checked together; most groups have none that is good enough, and are skipped."""


@njit(cache=True, nogil=True)
def keep_best(scores, count, first, best, rows):
    """Merge the scores of some candidates into the best scores of each query.

    Parameters
    ----------
    scores : array of float32, shape (queries, candidates)
    count : int
        Number of candidates, which may be fewer than columns.
    first : int
        The row of the first candidate.
    best : array of float32, shape (queries, k)
        The best scores so far, largest first; updated. Of equal scores, that of the smaller row comes first.
    rows : array of int64, shape (queries, k)
        Their rows; updated.
    """
    last = best.shape[1] - 1
    for query in range(len(scores)):
        least = best[query, last]
        for begin in range(0, count, _STEP):
            end = min(begin + _STEP, count)
            good = 0
            for candidate in range(begin, end):
                good += scores[query, candidate] > least
            if good == 0:
                continue
            for candidate in range(begin, end):
                score = scores[query, candidate]
                if score > least:
                    place = last
                    while place > 0 and best[query, place - 1] < score:
                        best[query, place] = best[query, place - 1]
                        rows[query, place] = rows[query, place - 1]
                        place -= 1
                    best[query, place], rows[query, place] = score, first + candidate
                    least = best[query, last]


@njit(cache=True, nogil=True)
def normalise(vectors, out):
    """Write the rows of a table divided by their norms; zero rows stay zero."""
    for row in range(len(vectors)):
        total = np.float32(0.0)
        for column in range(vectors.shape[1]):
            total += vectors[row, column] * vectors[row, column]
        scale = np.float32(1.0) / np.sqrt(total) if total > 0 else np.float32(0.0)
        for column in range(vectors.shape[1]):
            out[row, column] = vectors[row, column] * scale
