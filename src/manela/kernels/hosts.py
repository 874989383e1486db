"""A host's part of a round with walks: draws, walks over its own nodes, and updates from received vectors.

The definition is `reference`, and the arithmetic that of `cpu`: a network split over hosts gives the same bits.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.draws import derive, follow_alias
from manela.kernels.simd import AHEAD, BLOCK, absorb_block, prefetch_row, scale_to


@njit(cache=True, nogil=True)
def begin_walks(nodes, numbers, counts, key, hops, negatives, arcs, targets, away):
    """Draw the targets of some nodes as far as the host's own edges lead.

    Node i has row nodes[i] here, number numbers[i] in the network, and counts[i] iterations in the round with this key;
    target j of an iteration is hops[j] steps away. Writes the end of each walk to targets, (iterations, len(hops)): −1
    if there is none, or none yet. Walks that leave for another host with steps left are written to the columns of away:
    place in targets, last arc, steps left, key. Returns the number of these walks.
    """
    indptr, indices, thresholds, aliases = arcs
    iteration = gone = 0
    for i in range(len(nodes)):
        node_key = derive(key, numbers[i])
        for k in range(counts[i]):
            iteration_key = derive(node_key, k)
            for j in range(len(hops)):
                walk_key = derive(iteration_key, j * (1 + negatives))
                end, arc, left = _walk(nodes[i], 0, hops[j], walk_key, indptr, indices, thresholds, aliases)
                if left > 0:
                    away[0, gone] = iteration * len(hops) + j
                    away[1, gone] = arc
                    away[2, gone] = left
                    away[3, gone] = np.int64(walk_key)
                    gone += 1
                    end = np.int64(-1)
                targets[iteration, j] = end
            iteration += 1
    return gone


@njit(cache=True, nogil=True)
def mark_negatives(numbers, counts, key, targets, negatives, marks):
    """Mark all nodes u that are drawn as negatives: marks[u] ← 1."""
    for i in range(len(numbers)):
        node_key = derive(key, numbers[i])
        for k in range(counts[i]):
            iteration_key = derive(node_key, k)
            for j in range(targets):
                for n in range(negatives):
                    drawn = derive(iteration_key, j * (1 + negatives) + 1 + n)
                    marks[scale_to(drawn, np.uint64(len(marks)))] = 1


@njit(cache=True, nogil=True)
def wander(starts, firsts, steps, keys, arcs, ends, taken, left):
    """Walk from starts[i] for steps[i] steps, or until the walk leaves the rows of arcs.indptr.

    Walk i has done firsts[i] steps before. Writes its position, the last arc it took (−1 for none), and the remaining
    steps; at a node without neighbours the walk ends at −1.
    """
    indptr, indices, thresholds, aliases = arcs
    for i in range(len(starts)):
        ends[i], taken[i], left[i] = _walk(
            starts[i], firsts[i], steps[i], keys[i], indptr, indices, thresholds, aliases
        )  # fmt: skip


@njit(nogil=True)
def _walk(start, first_step, steps, key, indptr, indices, thresholds, aliases):
    """Walk until the steps are used up or a node of another host is reached; return place, arc and steps left."""
    place, arc, remaining = np.int64(start), np.int64(-1), np.int64(steps)
    step = np.int64(first_step)
    while remaining > 0 and 0 <= place < len(indptr) - 1:
        first = indptr[place]
        degree = indptr[place + 1] - first
        if degree == 0:
            return np.int64(-1), np.int64(-1), np.int64(0)
        drawn = derive(key, step)
        arc = first + np.int64(scale_to(drawn, np.uint64(degree)))
        arc = follow_alias(thresholds, aliases, arc, first, drawn * np.uint64(degree))
        place = np.int64(indices[arc])
        step += 1
        remaining -= 1
    return place, arc, remaining


@njit(cache=True, nogil=True)
def absorb(nodes, numbers, counts, key, own, others, moved, made, targets, lookup, negatives, learning_rate, stop):
    """Move each of nodes by its iterations over targets that were drawn before, and negatives drawn here.

    Reads own[nodes] and rows of others; writes the new vectors to moved, (len(nodes), m), and the update pairs of each
    node to made. targets is (iterations, targets per iteration); a target that is negative or the node itself is
    dropped with its negatives. A negative u is the row lookup[u]. Stops early, with useless output, once stop[0] is
    not 0.
    """
    width = targets.shape[1]
    size = width * (1 + negatives) + AHEAD + 2 * BLOCK
    rows, labels = np.zeros(size, np.int64), np.zeros(size, np.float32)
    for first in range(0, size, 1 + negatives):
        labels[first] = 1.0
    x, change = np.empty(own.shape[1], np.float32), np.empty(own.shape[1], np.float32)
    iteration = 0
    for i in range(len(nodes)):
        made[i] = 0
        node_key = derive(key, numbers[i])
        for k in range(len(x)):
            x[k] = own[nodes[i], k]
        for k in range(counts[i]):
            if stop[0] != 0:
                return
            iteration_key = derive(node_key, k)
            used = 0
            for target in range(width):
                row = targets[iteration, target]
                if row >= 0 and row != nodes[i]:
                    rows[used] = row
                    for j in range(1, 1 + negatives):
                        drawn = derive(iteration_key, target * (1 + negatives) + j)
                        rows[used + j] = lookup[scale_to(drawn, np.uint64(len(lookup)))]
                    used += 1 + negatives
            for ahead in range(min(AHEAD, used)):
                prefetch_row(others, rows[ahead])
            change[:] = 0.0
            for first in range(0, used, BLOCK):
                absorb_block(x, change, others, rows, labels, learning_rate, first, used)
            for c in range(len(x)):
                x[c] += change[c]
            made[i] += used // (1 + negatives)
            iteration += 1
        for c in range(len(x)):
            moved[i, c] = x[c]
