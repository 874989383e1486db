"""Time against size, at mean degree 10 and the same update pairs a node.

The table of vectors outgrows the caches on the way. What that alone costs is measured beside it, by NumPy's `take` of
as many random rows as a pair reads.
"""

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.table import table
from manela import Manela, ManelaWarning
from manela.formats.datasets import draw_random

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
PAIRS, TURNS = 100, 3
ROUNDS_ONLY: dict[str, Any] = {"start": "random", "views": "rounds", "smooth": False}
"""With sweeps, smoothing and join, a run this short would measure little of its pairs."""


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    Manela(**ROUNDS_ONLY, pairs=1000).fit(draw_random(100, 500))
    heads = ("nodes", "vectors, MB", "ns a pair, 2 threads", "against 10 k", "ns to take 6 random rows", "against 10 k")
    with table(*heads, "the first over the second") as rows:
        first: tuple[float, float] | None = None
        for nodes in SIZES:
            graph = draw_random(nodes, 5 * nodes)
            model = Manela(**ROUNDS_ONLY, pairs=PAIRS * nodes, rounds=4, n_jobs=2)
            learning, taking = [], []
            for _ in range(TURNS):
                begun = time.perf_counter()
                model.fit(graph)
                learning.append((time.perf_counter() - begun) / model.provenance_["pairs_made"] * 1e9)
                taking.append(take_six(model.embedding_))
            pair, six = sorted(learning)[TURNS // 2], sorted(taking)[TURNS // 2]
            first = first or (pair, six)
            cells = f"{pair:.0f}", f"{pair / first[0]:.2f} x", f"{six:.0f}", f"{six / first[1]:.2f} x"
            rows.row(f"{nodes:,}", f"{nodes * 512 / 1e6:.0f}", *cells, f"{(pair / first[0]) / (six / first[1]):.2f} x")


def take_six(vectors: np.ndarray) -> float:
    """Nanoseconds for six random rows."""
    chosen = np.random.default_rng(0).integers(len(vectors), size=(500, 240))
    out = np.empty((240, vectors.shape[1]), dtype=np.float32)
    begun = time.perf_counter()
    for some in chosen:
        np.take(vectors, some, axis=0, out=out, mode="clip")
    return (time.perf_counter() - begun) / chosen.size * 6e9
