"""Time against size, at mean degree 10 and the same update pairs a node."""

import time

from benchmarks.table import table
from manela import Manela
from manela.datasets.generators import draw_random

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
PAIRS = 100


def main() -> None:
    Manela(pairs=1000).fit(draw_random(100, 500))
    with table("nodes", "vectors, MB", "seconds", "ns a pair", "against 10 k") as rows:
        first = 0.0
        for nodes in SIZES:
            graph = draw_random(nodes, 5 * nodes)
            model = Manela(pairs=PAIRS * nodes, rounds=4)
            times = []
            for _ in range(3):
                begun = time.perf_counter()
                model.fit(graph)
                times.append(time.perf_counter() - begun)
            each = sorted(times)[1] / model.provenance_["pairs_made"] * 1e9
            first = first or each
            rows.row(
                f"{nodes:,}",
                f"{nodes * 512 / 1e6:.0f}",
                f"{sorted(times)[1]:.2f}",
                f"{each:.1f}",
                f"{each / first:.2f} x",
            )
