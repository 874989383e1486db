"""Edges to the neighbours of each node, compiled by Numba; each call does the rows of some nodes only."""

# mypy: ignore-errors

import numpy as np
from numba import njit

_SHORT = 48
"""Neighbours up to which a row is sorted by insertion, which is slow for long ones."""


@njit(cache=True, nogil=True)
def count_arcs(sources, targets, both, first, last, counts):
    """counts[v] += the arcs of each node v from first to last; with `both`, those that lead to it too."""
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
    """Write the neighbours of each node from first to last, in the order of the edges.

    `ends` is where the next neighbour of each node goes; moved on.
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
    """The same, with the weight of each edge."""
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
    """Put the neighbours of each node from first to last in order; returns how many stand there again."""
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
    """The same, with weights; of equal neighbours the one that came first stays first."""
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
    """Write the rows of the nodes from first to last so that each neighbour stands once; the first goes to `at`.

    `merged` gets where the rows begin then, and `kept` the neighbours.
    """
    for node in range(first, last):
        merged[node] = at
        for arc in range(indptr[node], indptr[node + 1]):
            if arc == indptr[node] or indices[arc] != indices[arc - 1]:
                kept[at] = indices[arc]
                at += 1


@njit(cache=True, nogil=True)
def count_repeated(indptr, indices, first, last, at, counts):
    """Write how often each neighbour of the nodes from first to last stands there."""
    for node in range(first, last):
        for arc in range(indptr[node], indptr[node + 1]):
            if arc == indptr[node] or indices[arc] != indices[arc - 1]:
                counts[at] = 1.0
                at += 1
            else:
                counts[at - 1] += 1.0


@njit(cache=True, nogil=True)
def merge_weights(indptr, indices, data, adds, first, last, at, weights):
    """Write the sum of each neighbour's weights, or the first of them."""
    for node in range(first, last):
        for arc in range(indptr[node], indptr[node + 1]):
            if arc == indptr[node] or indices[arc] != indices[arc - 1]:
                weights[at] = data[arc]
                at += 1
            elif adds:
                weights[at - 1] += data[arc]
