"""The ten most similar of a million nodes: exact, beside the bare product of the matrices, and by an index."""

import time

import numpy as np

from benchmarks.table import table
from manela import Manela
from manela.data.nearest import find_nearest
from manela.formats.datasets import planted_partition

NODES, QUERIES, K = 1_000_000, 1000, 10
_RUNS = 3


def main() -> None:
    graph, _ = planted_partition(NODES, 2000, 12, 3, 0)
    begun = time.perf_counter()
    model = Manela(rounds=30).fit(graph)
    learning = time.perf_counter() - begun
    embedding = model._kept
    vectors = embedding.vectors
    chosen = np.random.default_rng(0).integers(NODES, size=QUERIES)
    queries = np.ascontiguousarray(vectors[chosen])
    product = np.zeros((QUERIES, NODES), dtype=np.float32)
    bare = min(_time(lambda: np.matmul(queries, vectors.T, out=product)) for _ in range(_RUNS))
    find_nearest(vectors[:2000], queries[:10], K)  # compiles
    exact = min(_time(lambda: embedding.most_similar(chosen, k=K)) for _ in range(_RUNS))
    one = min(_time(lambda: embedding.most_similar(int(chosen[0]), k=K)) for _ in range(_RUNS))
    wanted = embedding.most_similar(chosen, k=K)
    begun = time.perf_counter()
    index = embedding.index()
    building = time.perf_counter() - begun
    seconds = min(_time(lambda: index.most_similar(chosen, k=K)) for _ in range(_RUNS))
    found = index.most_similar(chosen, k=K)
    pairs = zip(found, wanted, strict=True)
    recall = np.mean([len({node for node, _ in near} & {node for node, _ in true}) / K for near, true in pairs])
    with table(
        f"{NODES:,} vectors of {vectors.shape[1]} numbers, {QUERIES:,} queries", "seconds", "against", "recall@10"
    ) as rows:
        rows.row("learning them (30 rounds)", f"{learning:.0f}", "", "")
        rows.row("the bare product", f"{bare:.2f}", "", "")
        rows.row("`most_similar`, exact", f"{exact:.2f}", f"{exact / bare:.2f} of the product", "1")
        rows.row("… for one node", f"{one:.3f}", "", "1")
        rows.row("`index()`", f"{building:.0f}", "", "")
        rows.row("`index().most_similar`", f"{seconds:.3f}", f"{seconds / exact:.3f} of exact", f"{recall:.3f}")


def _time(work) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
