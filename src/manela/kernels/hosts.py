"""What a host computes of a round: draws, walks as far as its own nodes reach, the update over received vectors.

The definition is `reference`, and the arithmetic that of `cpu`: a network split over hosts gives the same bits.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.draws import derive
from manela.kernels.simd import AHEAD, BLOCK, absorb_block, prefetch_row, scale_to


@njit(cache=True, nogil=True)
def draw(numbers, counts, key, negatives, size, keys, others):
    """Write the key of each target's walk into keys, and its negatives, 0 … size - 1, into others.

    Nodes have these numbers in the network and these many iterations in the round, whose key this is. keys has the
    shape (iterations, targets), others (iterations, targets · negatives).
    """
    iteration = 0
    for i in range(len(numbers)):
        node_key = derive(key, numbers[i])
        for k in range(counts[i]):
            iteration_key = derive(node_key, k)
            for target in range(keys.shape[1]):
                number = target * (1 + negatives)
                keys[iteration, target] = derive(iteration_key, number)
                for j in range(negatives):
                    drawn = derive(iteration_key, number + 1 + j)
                    others[iteration, target * negatives + j] = scale_to(drawn, np.uint64(size))
            iteration += 1


@njit(cache=True, nogil=True)
def wander(starts, firsts, steps, keys, indptr, indices, thresholds, aliases, ends, arcs, left):
    """Walk from starts for as many steps as are told, or until a walk leaves the rows that indptr knows.

    Walk i has done firsts[i] steps before. Writes where it is, the last arc it took (−1 for none), and the steps that
    are left; where a node has no neighbours the walk ends at −1.
    """
    own = len(indptr) - 1
    for i in range(len(starts)):
        place, step, arc = np.int64(starts[i]), np.int64(firsts[i]), np.int64(-1)
        remaining = np.int64(steps[i])
        while remaining > 0 and 0 <= place < own:
            first = indptr[place]
            degree = indptr[place + 1] - first
            if degree == 0:
                place, remaining = np.int64(-1), np.int64(0)
                break
            drawn = derive(keys[i], step)
            arc = first + np.int64(scale_to(drawn, np.uint64(degree)))
            if thresholds is not None:
                rest = drawn * np.uint64(degree)
                if np.uint32(rest >> np.uint64(32)) >= thresholds[arc]:
                    arc = first + np.int64(aliases[arc])
            place = np.int64(indices[arc])
            step += 1
            remaining -= 1
        ends[i], arcs[i], left[i] = place, arc, remaining


@njit(cache=True, nogil=True)
def absorb(nodes, counts, own, others, moved, made, targets, negatives, learning_rate, stop):
    """Move each of nodes by its iterations over rows that were drawn before.

    Reads own[nodes] and rows of others, and writes moved, (len(nodes), m), and into made the update pairs of each node.
    targets is (iterations, targets of one), negatives (iterations, targets of one, κ); a target that is negative or the
    node itself is dropped with its negatives. Ends early, with nothing of use written, once stop[0] is not 0.
    """
    width, each = targets.shape[1], negatives.shape[2]
    size = width * (1 + each) + AHEAD + 2 * BLOCK
    rows, labels = np.zeros(size, np.int64), np.zeros(size, np.float32)
    for first in range(0, size, 1 + each):
        labels[first] = 1.0
    x, change = np.empty(own.shape[1], np.float32), np.empty(own.shape[1], np.float32)
    iteration = 0
    for i in range(len(nodes)):
        made[i] = 0
        for k in range(len(x)):
            x[k] = own[nodes[i], k]
        for _ in range(counts[i]):
            if stop[0] != 0:
                return
            used = 0
            for target in range(width):
                row = targets[iteration, target]
                if row >= 0 and row != nodes[i]:
                    rows[used] = row
                    for j in range(each):
                        rows[used + 1 + j] = negatives[iteration, target, j]
                    used += 1 + each
            for ahead in range(min(AHEAD, used)):
                prefetch_row(others, rows[ahead])
            change[:] = 0.0
            for first in range(0, used, BLOCK):
                absorb_block(x, change, others, rows, labels, learning_rate, first, used)
            for k in range(len(x)):
                x[k] += change[k]
            made[i] += used // (1 + each)
            iteration += 1
        for k in range(len(x)):
            moved[i, k] = x[k]
