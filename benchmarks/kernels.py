"""Kernels that only measure: what `manela` does, or does not do, without the rest."""

import numpy as np
from numba import njit

from manela.kernels.cpu.draws import derive, find_arc
from manela.kernels.cpu.walks import _draw, _room


@njit(nogil=True)
def sample(nodes, counts, arcs, key, walks, negatives):
    """Draw what `advance` would draw and do nothing with it; returns the update pairs."""
    indptr, indices, thresholds, aliases = arcs
    rows, _, draws, places, chosen = _room(walks, negatives)
    pairs = 0
    for i in range(len(nodes)):
        for iteration in range(counts[i]):
            used = _draw(
                nodes[i], derive(derive(key, nodes[i]), iteration),
                walks, negatives, len(indptr) - 1, indptr, indices, thresholds, aliases, draws, places, chosen, rows,
            )  # fmt: skip
            pairs += used // (1 + negatives)
    return pairs


@njit(nogil=True)
def precompute_transitions(indptr, indices, p, q, thresholds, aliases, room):
    """Write alias tables for the steps after every arc, as node2vec's authors did; returns how many entries.

    For each arc t → v there is an entry for each neighbour of v, so there are Σ d(v)² of them. Ends when the room,
    len(thresholds), is used up. `room` holds work space for the largest degree: (3, largest).
    """
    used = 0
    for before in range(len(indptr) - 1):
        for arc in range(indptr[before], indptr[before + 1]):
            here = indices[arc]
            first, last = indptr[here], indptr[here + 1]
            degree = last - first
            if used + degree > len(thresholds):
                return used
            total = 0.0
            for j in range(degree):
                there = indices[first + j]
                if there == before:
                    room[0, j] = 1.0 / p
                else:
                    room[0, j] = 1.0 if find_arc(indptr, indices, before, there) >= 0 else 1.0 / q
                total += room[0, j]
            smalls = larges = 0
            for j in range(degree):
                room[0, j] *= degree / total
                if room[0, j] < 1.0:
                    room[1, smalls] = j
                    smalls += 1
                else:
                    room[2, larges] = j
                    larges += 1
            while smalls > 0 and larges > 0:
                smalls -= 1
                poor, rich = np.int64(room[1, smalls]), np.int64(room[2, larges - 1])
                thresholds[used + poor] = room[0, poor]
                aliases[used + poor] = rich
                room[0, rich] -= 1.0 - room[0, poor]
                if room[0, rich] < 1.0:
                    larges -= 1
                    room[1, smalls] = rich
                    smalls += 1
            for j in range(smalls):
                thresholds[used + np.int64(room[1, j])] = 1.0
            for j in range(larges):
                thresholds[used + np.int64(room[2, j])] = 1.0
            used += degree
    return used
