"""DeepWalk and node2vec: update pairs a second on BlogCatalog beside gensim's Word2Vec, taken in turns."""

from gensim.models import Word2Vec

from benchmarks.speed import WINDOW, gensim, walk
from benchmarks.table import spread, table
from manela import DeepWalk, Node2Vec
from manela.formats.loading import load_graph

TURNS = 5
METHODS = {
    "DeepWalk, 1 thread": DeepWalk(walks=1, n_jobs=1),
    "DeepWalk, 2 threads": DeepWalk(walks=1, n_jobs=2),
    "node2vec (p = q = 0.25), 2 threads": Node2Vec(walks=1, p=0.25, q=0.25, n_jobs=2),
}


def main() -> None:
    graph = load_graph("blogcatalog")
    walks = walk(graph)
    word2vec = Word2Vec(vector_size=128, window=WINDOW, min_count=0, sg=1, hs=0, negative=5, workers=2, sample=0)
    word2vec.build_vocab(walks)
    speeds: dict[str, list[float]] = {"gensim": [], **{name: [] for name in METHODS}}
    for model in METHODS.values():
        model.fit(graph)
    for _ in range(TURNS):
        speeds["gensim"].append(gensim(word2vec, walks))
        for name, model in METHODS.items():
            done = model.fit(graph).provenance_
            speeds[name].append(done["pairs_made"] / sum(done["seconds"].values()))
    with table("BlogCatalog, 128-D, 5 negatives, one pass; median of turns", "M pairs/s", "against gensim") as rows:
        rows.row("gensim Word2Vec, 2 workers, walks given", spread([s / 1e6 for s in speeds["gensim"]], ".2f"), "")
        for name in METHODS:
            ratios = [ours / theirs for ours, theirs in zip(speeds[name], speeds["gensim"], strict=True)]
            rows.row(
                f"{name}, walking too", spread([s / 1e6 for s in speeds[name]], ".2f"), spread(ratios, ".2f") + " x"
            )
