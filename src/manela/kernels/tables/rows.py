"""Builds compressed sparse rows from edges, and keeps the best of many scores, compiled by Numba."""

# mypy: ignore-errors

import numpy as np
from numba import njit

_SHORT = 48
"""Most neighbours for which a row is sorted by insertion; larger makes long rows slow."""


@njit(cache=True, nogil=True)
def count_arcs(sources, targets, both, first, last, counts):
    """counts[v] += the arcs of node v = first … last − 1; with `both`, also those that lead to it."""
    for edge in range(len(sources)):
        source, target = sources[edge], targets[edge]
        if source == target:
            continue
        if first <= source < last:
            counts[source] += 1
        if both and first <= target < last:
            counts[target] += 1


@njit(cache=True, nogil=True)
def fill_rows(sources, targets, both, first, last, ends, indices):
    """Write the neighbours of the nodes first … last − 1, in the order of the edges.

    `ends` is the position of the next neighbour of each node, and is advanced.
    """
    for edge in range(len(sources)):
        source, target = sources[edge], targets[edge]
        if source == target:
            continue
        if first <= source < last:
            indices[ends[source]] = target
            ends[source] += 1
        if both and first <= target < last:
            indices[ends[target]] = source
            ends[target] += 1


@njit(cache=True, nogil=True)
def fill_weighted_rows(sources, targets, weights, both, first, last, ends, indices, data):
    """Write the neighbours like `fill_rows`, with the weight of each edge."""
    for edge in range(len(sources)):
        source, target = sources[edge], targets[edge]
        if source == target:
            continue
        if first <= source < last:
            indices[ends[source]], data[ends[source]] = target, weights[edge]
            ends[source] += 1
        if both and first <= target < last:
            indices[ends[target]], data[ends[target]] = source, weights[edge]
            ends[target] += 1


@njit(cache=True, nogil=True)
def sort_rows(indptr, indices, first, last):
    """Sort the neighbours of the nodes first … last − 1; return the number of repeated ones."""
    again = 0
    for node in range(first, last):
        begin, end = indptr[node], indptr[node + 1]
        if end - begin > _SHORT:
            indices[begin:end].sort()
        else:
            for at in range(begin + 1, end):
                value = indices[at]
                place = at
                while place > begin and indices[place - 1] > value:
                    indices[place] = indices[place - 1]
                    place -= 1
                indices[place] = value
        for at in range(begin + 1, end):
            again += indices[at] == indices[at - 1]
    return again


@njit(cache=True, nogil=True)
def sort_weighted_rows(indptr, indices, data, first, last):
    """Sort like `sort_rows`, with weights; the sort is stable."""
    again = 0
    for node in range(first, last):
        begin, end = indptr[node], indptr[node + 1]
        if end - begin > _SHORT:
            order = np.argsort(indices[begin:end], kind="mergesort")
            indices[begin:end] = indices[begin:end][order]
            data[begin:end] = data[begin:end][order]
        else:
            for at in range(begin + 1, end):
                value, weight = indices[at], data[at]
                place = at
                while place > begin and indices[place - 1] > value:
                    indices[place], data[place] = indices[place - 1], data[place - 1]
                    place -= 1
                indices[place], data[place] = value, weight
        for at in range(begin + 1, end):
            again += indices[at] == indices[at - 1]
    return again


@njit(cache=True, nogil=True)
def merge_rows(indptr, indices, first, last, at, merged, kept):
    """Write the rows of the nodes first … last − 1 without repeated neighbours, from position `at` on.

    `merged` receives the beginning of each new row, and `kept` the neighbours.
    """
    for node in range(first, last):
        merged[node] = at
        for arc in range(indptr[node], indptr[node + 1]):
            if arc == indptr[node] or indices[arc] != indices[arc - 1]:
                kept[at] = indices[arc]
                at += 1


@njit(cache=True, nogil=True)
def count_repeated(indptr, indices, first, last, at, counts):
    """Write how often each neighbour of the nodes first … last − 1 is listed."""
    for node in range(first, last):
        for arc in range(indptr[node], indptr[node + 1]):
            if arc == indptr[node] or indices[arc] != indices[arc - 1]:
                counts[at] = 1.0
                at += 1
            else:
                counts[at - 1] += 1.0


@njit(cache=True, nogil=True)
def merge_weights(indptr, indices, data, adds, first, last, at, weights):
    """Write for each neighbour the sum of its weights if `adds`, and otherwise the first one."""
    for node in range(first, last):
        for arc in range(indptr[node], indptr[node + 1]):
            if arc == indptr[node] or indices[arc] != indices[arc - 1]:
                weights[at] = data[arc]
                at += 1
            elif adds:
                weights[at - 1] += data[arc]


_STEP = 64
"""Scores that are checked together; most groups have none that is good enough, and are skipped."""


@njit(cache=True, nogil=True)
def keep_best(scores, count, first, best, rows):
    """Merge the scores of `count` candidates, whose rows begin with `first`, into the best scores of each query.

    `scores` has a row for each query, and at least `count` columns. Updates the best scores so far, (queries, k), and
    their rows, largest first. Of equal scores, that of the smaller row comes first.
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
