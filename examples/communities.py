"""Learn SYN-SBM, the paper's network with three communities; say how well they separate and draw them."""

import time
from pathlib import Path

from manela import Manela
from manela.datasets.generators import draw_blocks
from manela.evaluation.separation import measure_separation
from manela.reports.plots import plot_communities

FOLDER = Path("demo")


def main() -> None:
    """Learn, score, draw."""
    graph, communities = draw_blocks()
    print(f"SYN-SBM: {graph.number_of_nodes:,} nodes, {graph.number_of_edges:,} edges, 3 communities")
    begun = time.perf_counter()
    model = Manela(dimensions=128, ratios=(0.5, 0.5), random_state=0).fit(graph)
    seconds = time.perf_counter() - begun
    pairs = model.provenance_["pairs_made"]
    print(f"learned 128-D vectors by {pairs:,} update pairs in {seconds:.1f} s (with compiling, where it was needed)")
    separation = measure_separation(model.embedding_, communities)
    print(f"silhouette {separation.silhouette:.3f}, nearest centre is the node's own: {separation.accuracy:.1%}")
    FOLDER.mkdir(exist_ok=True)
    model.save(FOLDER / "sbm.npz")
    plot_communities(model.embedding_, communities, "SYN-SBM, r₁ = 0.5", FOLDER / "sbm.png")
    print(f"wrote {FOLDER / 'sbm.npz'} and {FOLDER / 'sbm.png'}")


if __name__ == "__main__":
    main()
