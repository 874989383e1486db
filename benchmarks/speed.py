"""Update pairs a second on BlogCatalog, beside gensim's Word2Vec and with one thread and two, taken in turns.

What this machine's two cores can give is measured too, as two processes of one thread each that share nothing.
"""

import subprocess
import sys
import time

import numpy as np
import numpy.typing as npt
from gensim.models import Word2Vec

from benchmarks.table import spread, table
from manela import Graph, Manela
from manela.formats.loading import load_graph

TURNS = 9
WALK, WINDOW = 80, 10


def main() -> None:
    graph = load_graph("blogcatalog")
    walks = walk(graph)
    word2vec = Word2Vec(vector_size=128, window=WINDOW, min_count=0, sg=1, hs=0, negative=5, workers=2, sample=0)
    word2vec.build_vocab(walks)
    ours(graph, 2, 1_000_000)
    speeds: dict[str, list[float]] = {"gensim": [], "two": [], "one": [], "apart": []}
    for _ in range(TURNS):
        speeds["gensim"].append(gensim(word2vec, walks))
        speeds["two"].append(ours(graph, 2, 40_000_000))
        speeds["one"].append(ours(graph, 1, 20_000_000))
        speeds["apart"].append(apart())
    over = [two / theirs for two, theirs in zip(speeds["two"], speeds["gensim"], strict=True)]
    scale = [two / one for two, one in zip(speeds["two"], speeds["one"], strict=True)]
    ceiling = [two / one for two, one in zip(speeds["apart"], speeds["one"], strict=True)]
    with table("BlogCatalog, 128-D, 5 negatives; median of turns (least to most)", "M pairs/s") as rows:
        for name, label in (
            ("gensim", "gensim Word2Vec, skip-gram, 2 workers"),
            ("one", "manela, 1 thread"),
            ("two", "manela, 2 threads"),
            ("apart", "manela, 2 processes of 1 thread that share nothing, together"),
        ):
            rows.row(label, spread([speed / 1e6 for speed in speeds[name]], ".2f"))
        rows.row("manela, 2 threads, against gensim, 2 workers", spread(over, ".2f") + " x")
        rows.row("manela, 2 threads, against 1", spread(scale, ".2f") + " x")
        rows.row("manela, 2 processes that share nothing, against 1", spread(ceiling, ".2f") + " x")


def ours(graph: Graph, jobs: int, pairs: int) -> float:
    """Pairs really made a second, the whole of `fit` counted."""
    begun = time.perf_counter()
    model = Manela.paper(ratios=(0.7, 0.3), pairs=pairs, rounds=max(1, pairs // 256_000), n_jobs=jobs).fit(graph)
    return float(model.provenance_["pairs_made"] / (time.perf_counter() - begun))


CHILD = """
from benchmarks.speed import ours
from manela.formats.loading import load_graph
graph = load_graph("blogcatalog")
ours(graph, 1, 1_000_000)
print("ready", flush=True)
input()
print(ours(graph, 1, 20_000_000), flush=True)
"""


def apart() -> float:
    """Pairs a second of two processes together, begun at the same moment."""
    pipe = subprocess.PIPE
    children = [subprocess.Popen([sys.executable, "-c", CHILD], stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for child in children:
        child.stdout.readline()  # type: ignore[union-attr]
    for child in children:
        child.stdin.write("\n")  # type: ignore[union-attr]
        child.stdin.flush()  # type: ignore[union-attr]
    return sum(float(child.communicate()[0]) for child in children)


def gensim(model: Word2Vec, walks: list[list[str]]) -> float:
    """Pairs a second in one pass over the walks, counted as they are made: windows shrunk uniformly to 1 … 10."""
    begun = time.perf_counter()
    model.train(walks, total_examples=len(walks), epochs=1)
    seconds = time.perf_counter() - begun
    pairs = np.mean([sum(min(i, b) + min(WALK - 1 - i, b) for i in range(WALK)) for b in range(1, WINDOW + 1)])
    return float(pairs) * len(walks) / seconds


def walk(graph: Graph) -> list[list[str]]:
    """One walk of length 80 from each node."""
    random = np.random.default_rng(0)
    at: npt.NDArray[np.int64] = np.arange(graph.number_of_nodes)
    steps = [at]
    for _ in range(WALK - 1):
        at = graph.indices[graph.indptr[at] + (random.random(len(at)) * graph.degrees[at]).astype(np.int64)]
        steps.append(at)
    return [[str(node) for node in walk] for walk in np.array(steps).T.tolist()]
