"""Rounds with walks on processors, compiled by Numba: `advance` moves some nodes through one round.

The other kernels do a host's part of such a round: draws, walks over its own nodes, and updates from received vectors.
Their arithmetic is that of `advance`, so a network split over hosts gives the same bits.

The definition is `reference`; read that first. A kernel takes the arcs as one value and unpacks it once, as reading a
field of a tuple in a loop would count references each time. Numba's cache notices changes in this file only: after a
change of `draws` or `simd`, which are compiled into this one, delete the cached files.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.cpu.draws import derive, follow_alias
from manela.kernels.cpu.simd import AHEAD, BLOCK, absorb_block, prefetch_item, prefetch_row, scale_to


@njit(cache=True, nogil=True)
def advance(nodes, counts, own, others, moved, made, arcs, key, learning_rate, walks, negatives, stop):
    """Move each of nodes by its iterations of this round.

    Reads own[nodes] and rows of others, both (n, m) with m a multiple of 16; writes the new vectors to moved,
    (len(nodes), m), and the update pairs of each node to made.
    `counts` are the iterations of each node, at least 1; `walks` are the numbers of targets 1, 2, … s hops away; `key`
    is the key of the round, and `arcs` are the `Arcs` of the network. Stops early, with useless output, once stop[0] is
    not 0.

    The kernel is bound by memory latency. So the rows of the next iteration are drawn while those of this one are
    computed, one memory access at a time: each is prefetched, and used only some blocks of rows later.
    """
    indptr, indices, thresholds, aliases = arcs
    rows, labels, draws, places, chosen = _room(walks, negatives)
    later_rows = np.zeros(len(rows), np.int64)
    x, change = np.empty(own.shape[1], np.float32), np.empty(own.shape[1], np.float32)
    pairs = i = iteration = used = 0
    stages = 2 * len(walks)
    if len(nodes) > 0:
        used = _draw(
            nodes[0], derive(derive(key, nodes[0]), 0),
            walks, negatives, len(others), indptr, indices, thresholds, aliases, draws, places, chosen, rows,
        )  # fmt: skip
        _copy(own[nodes[0]], x)
    while i < len(nodes) and stop[0] == 0:
        later, later_iteration, later_used = i, iteration + 1, 0
        if later_iteration == counts[i]:
            later, later_iteration = i + 1, 0
        if later < len(nodes):
            prefetch_row(own, nodes[later])
            _throw(derive(derive(key, nodes[later]), later_iteration), len(others), draws, later_rows)
            places[:] = nodes[later]
        change[:] = 0.0
        walking = done = 0
        for stage in range(stages + 1):
            hop = stage // 2
            if later == len(nodes):
                pass
            elif stage == stages:
                later_used = _gather(nodes[later], negatives, places, later_rows)
                for j in range(AHEAD + BLOCK):
                    rows[used + j] = later_rows[j]
            elif stage % 2 == 0:
                _choose(hop, walking, negatives, indptr, indices, thresholds, aliases, draws, places, chosen)
            else:
                _step(hop, walking, negatives, indptr, indices, thresholds, aliases, draws, places, chosen)
                walking += walks[hop]
            last = used if stage == stages else used * (stage + 1) // (stages + 1) // BLOCK * BLOCK
            for first in range(done, last, BLOCK):
                absorb_block(x, change, others, rows, labels, learning_rate, first, used)
            done = last
        for k in range(len(x)):
            x[k] += change[k]
        pairs += used // (1 + negatives)
        if later != i:
            made[i] = pairs
            pairs = 0
            _copy(x, moved[i])
            if later < len(nodes):
                _copy(own[nodes[later]], x)
        i, iteration, used = later, later_iteration, later_used
        rows, later_rows = later_rows, rows


@njit(cache=True, nogil=True)
def commit(nodes, moved, table):
    """table[nodes] ← moved."""
    for i in range(len(nodes)):
        _copy(moved[i], table[nodes[i]])


@njit(cache=True, nogil=True)
def build_aliases(indptr, weights, thresholds, aliases):
    """Write the alias tables with which a step goes to neighbour j with probability weights_j / Σ weights.

    One of d neighbours is drawn uniformly; the walk takes it if another draw of 32 bits is below its threshold, and
    otherwise its alias, counted from the node's first neighbour.
    """
    widest = 0
    for node in range(len(indptr) - 1):
        widest = max(widest, indptr[node + 1] - indptr[node])
    shares, small, large = np.empty(widest), np.empty(widest, np.int64), np.empty(widest, np.int64)
    for node in range(len(indptr) - 1):
        first, degree = indptr[node], indptr[node + 1] - indptr[node]
        total = 0.0
        for j in range(degree):
            total += weights[first + j]
        smalls = larges = 0
        for j in range(degree):
            shares[j] = weights[first + j] * degree / total
            if shares[j] < 1.0:
                small[smalls] = j
                smalls += 1
            else:
                large[larges] = j
                larges += 1
        while smalls > 0 and larges > 0:
            smalls -= 1
            poor, rich = small[smalls], large[larges - 1]
            thresholds[first + poor] = np.uint32(shares[poor] * 4294967295.0)
            aliases[first + poor] = rich
            shares[rich] -= 1.0 - shares[poor]
            if shares[rich] < 1.0:
                larges -= 1
                small[smalls] = rich
                smalls += 1
        for left, count in ((small, smalls), (large, larges)):
            for k in range(count):
                thresholds[first + left[k]] = np.uint32(4294967295)
                aliases[first + left[k]] = left[k]


@njit(nogil=True)
def _copy(source, target):
    for i in range(len(source)):
        target[i] = source[i]


@njit(nogil=True)
def _room(walks, negatives):
    """Allocate rows (with room for a last block and prefetched rows), labels, draws, places and arcs."""
    targets = 0
    for hop in range(len(walks)):
        targets += walks[hop]
    size = targets * (1 + negatives) + AHEAD + 2 * BLOCK
    rows = np.zeros(size, np.int64)
    labels = np.zeros(size, np.float32)
    for first in range(0, size, 1 + negatives):
        labels[first] = 1.0
    places, chosen = np.empty(targets, np.int64), np.empty(targets, np.int64)
    return rows, labels, np.empty(targets * (1 + negatives), np.uint64), places, chosen


@njit(nogil=True)
def _draw(node, key, walks, negatives, nodes, indptr, indices, thresholds, aliases, draws, places, chosen, rows):
    """Write the rows of one iteration, each target before its negatives; return their number."""
    _throw(key, nodes, draws, rows)
    places[:] = node
    walking = 0
    for hop in range(len(walks)):
        _choose(hop, walking, negatives, indptr, indices, thresholds, aliases, draws, places, chosen)
        _step(hop, walking, negatives, indptr, indices, thresholds, aliases, draws, places, chosen)
        walking += walks[hop]
    return _gather(node, negatives, places, rows)


@njit(nogil=True)
def _throw(key, nodes, draws, rows):
    """Write all draws of an iteration, and the row that each would select as a negative."""
    for number in range(len(draws)):
        draws[number] = derive(key, number)
        rows[number] = scale_to(draws[number], np.uint64(nodes))


@njit(nogil=True)
def _choose(hop, walking, negatives, indptr, indices, thresholds, aliases, draws, places, chosen):
    """Choose an arc from places[j] uniformly for each walk j ≥ walking, and prefetch its end.

    places[j] becomes −1 if the node has no arcs.
    """
    for j in range(walking, len(places)):
        if places[j] < 0:
            continue
        first = indptr[places[j]]
        degree = indptr[places[j] + 1] - first
        if degree == 0:
            places[j] = -1
            continue
        chosen[j] = first + np.int64(scale_to(derive(draws[j * (1 + negatives)], hop), np.uint64(degree)))
        prefetch_item(indices, chosen[j])
        if thresholds is not None:
            prefetch_item(thresholds, chosen[j])
            prefetch_item(aliases, chosen[j])


@njit(nogil=True)
def _step(hop, walking, negatives, indptr, indices, thresholds, aliases, draws, places, chosen):
    """Follow the chosen arcs, or with weights their aliases, and prefetch where the next arcs begin."""
    for j in range(walking, len(places)):
        if places[j] < 0:
            continue
        first = indptr[places[j]]
        remainder = derive(draws[j * (1 + negatives)], hop) * np.uint64(indptr[places[j] + 1] - first)
        places[j] = indices[follow_alias(thresholds, aliases, chosen[j], first, remainder)]
        prefetch_item(indptr, places[j])


@njit(nogil=True)
def _gather(node, negatives, places, rows):
    """Write the targets before their negatives, without dropped ones; return the number of rows that is left."""
    used = first = 0
    for j in range(len(places)):
        if places[j] != node and places[j] >= 0:
            rows[used] = places[j]
            if used < first:
                for k in range(1, 1 + negatives):
                    rows[used + k] = rows[first + k]
            used += 1 + negatives
        first += 1 + negatives
    return used


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
