"""Rounds with walks on processors, compiled by Numba: `advance` moves some nodes through one round.

The definition is `reference`; read that first. A kernel takes the arcs as one value and unpacks it once, as reading a
field of a tuple in a loop would count references each time. Numba's cache notices changes in this file only: after a
change of `draws` or `simd`, which are compiled into this one, delete the cached files.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.draws import derive, follow_alias
from manela.kernels.simd import AHEAD, BLOCK, absorb_block, prefetch_item, prefetch_row, scale_to


@njit(cache=True, nogil=True)
def advance(
    nodes,
    counts,
    own,
    others,
    moved,
    made,
    arcs,
    key,
    learning_rate,
    walks,
    negatives,
    stop,
):
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
    """target ← source."""
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
