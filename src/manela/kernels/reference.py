"""The rounds in plain NumPy: the definition that every engine is tested against.

A round t reads the vectors Φ_t as they stood when it began, and each node v moves by its own iterations:

    x ← Φ_t(v)
    for each of its iterations:
        draw targets by walks of 1, 2, … s steps, without those that end at v; κ uniform negatives for each
        x ← x + α_t · ( Σ targets (1 − σ(x·Φ_t(u)))·Φ_t(u) − Σ negatives σ(x·Φ_t(u))·Φ_t(u) )
    Φ_{t+1}(v) ← x

Keys: round → node → iteration. Target j of an iteration has draw number j·(1 + κ), which is the key of its walk, and
its negatives have the κ numbers behind; step h of a walk is draw h under the walk's key.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from manela.kernels.arcs import Arcs, Integers
from manela.randomness import derive, scale_to

Floats = npt.NDArray[np.floating]


def advance(
    tables: Sequence[Floats],
    arcs: Arcs,
    counts: Integers,
    key: int,
    learning_rate: float,
    walks: Sequence[int],
    negatives: int,
    singly: bool = False,
) -> list[Floats]:
    """The tables after one round, each (n, m): (Φ,), or with context vectors (Φ, Ψ).

    `counts` are the iterations of each node in the round, `key` the round's. With two tables, each moves against the
    other and by the same draws. `singly` is the paper's strict order: each single update is applied before the next is
    computed. No engine has it; on BlogCatalog both orders learn vectors that are as good.
    """
    moved = [table.copy() for table in tables]
    for node in np.flatnonzero(counts):
        node_key = derive(key, node)
        for own, new in enumerate(moved):
            others = tables[len(tables) - 1 - own]
            x = new[node]
            for iteration in range(counts[node]):
                rows, labels = draw(int(node), int(derive(node_key, iteration)), arcs, walks, negatives)
                if singly:
                    for row, label in zip(rows, labels, strict=True):
                        x += learning_rate * (label - sigmoid(x @ others[row])) * others[row]
                else:
                    x += learning_rate * ((labels - sigmoid(others[rows] @ x)) @ others[rows])
    return moved


def draw(node: int, key: int, arcs: Arcs, walks: Sequence[int], negatives: int) -> tuple[Integers, Floats]:
    """The rows of one iteration, each target before its negatives, and their labels: 1 for a target, else 0."""
    rows: list[int] = []
    steps_of_targets = [hop + 1 for hop, count in enumerate(walks) for _ in range(count)]
    for target, steps in enumerate(steps_of_targets):
        number = target * (1 + negatives)
        end = walk(node, int(derive(key, number)), steps, arcs)
        if end not in (node, NOWHERE):
            drawn = derive(key, number + 1 + np.arange(negatives))
            rows += [end, *scale_to(drawn, len(arcs.indptr) - 1).astype(np.int64).tolist()]
    labels = np.zeros(len(rows), dtype=np.float32)
    labels[:: 1 + negatives] = 1.0
    return np.array(rows, dtype=np.int64), labels


NOWHERE = -1


def walk(node: int, key: int, steps: int, arcs: Arcs) -> int:
    """Where a walk ends, NOWHERE if it met a node without neighbours."""
    for step in range(steps):
        first, last = int(arcs.indptr[node]), int(arcs.indptr[node + 1])
        if first == last:
            return NOWHERE
        drawn = int(derive(key, step))
        place, rest = divmod(drawn * (last - first), 2**64)
        if arcs.thresholds is not None and arcs.aliases is not None and rest >> 32 >= arcs.thresholds[first + place]:
            place = int(arcs.aliases[first + place])
        node = int(arcs.indices[first + place])
    return node


def build_aliases(indptr: Integers, weights: Floats) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
    """Thresholds and aliases by which a step takes an arc with probability proportional to its weight.

    Walker's method: of d arcs one is drawn uniformly and kept if a draw of 32 bits is below its threshold; otherwise
    its alias is taken, counted from the node's first arc.
    """
    thresholds, aliases = np.empty(len(weights), np.uint32), np.empty(len(weights), np.int32)
    for first, last in pairwise(indptr):
        total = 0.0
        for weight in weights[first:last]:
            total += weight
        shares = [weight * (last - first) / total for weight in weights[first:last]]
        small = [j for j, share in enumerate(shares) if share < 1.0]
        large = [j for j, share in enumerate(shares) if not share < 1.0]
        while small and large:
            poor, rich = small.pop(), large[-1]
            thresholds[first + poor] = int(shares[poor] * (2**32 - 1))
            aliases[first + poor] = rich
            shares[rich] -= 1.0 - shares[poor]
            if shares[rich] < 1.0:
                small.append(large.pop())
        for j in small + large:
            thresholds[first + j] = 2**32 - 1
            aliases[first + j] = j
    return thresholds, aliases


def sigmoid(z: Floats) -> Floats:
    """σ(z) = 1/(1 + e^−z), z held within ±30."""
    return 1.0 / (1.0 + np.exp(-np.clip(z, -30.0, 30.0)))
