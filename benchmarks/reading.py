"""Reading an edge list of 10 million lines, with integer ids and with strings."""

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.table import table
from manela import read_graph

LINES, NODES = 10_000_000, 1_000_000


def main() -> None:
    ends = np.random.default_rng(0).integers(NODES, size=(LINES, 2))
    with tempfile.TemporaryDirectory() as folder, table("10 M lines, 1 M nodes", "MB", "seconds", "M lines/s") as rows:
        for label, form in (
            ("integers", "%d %d\n"),
            ("strings", "user%d@host user%d@host\n"),
            ("weights of 17 digits", "%d %d 1.2345678901234567\n"),
        ):
            path = Path(folder) / "edges.txt"
            path.write_text("1 2\n")
            read_graph(path)
            with path.open("w") as file:
                for first in range(0, LINES, 100_000):
                    file.write("".join([form % (u, v) for u, v in ends[first : first + 100_000].tolist()]))
            begun = time.perf_counter()
            graph = read_graph(path)
            seconds = time.perf_counter() - begun
            rows.row(label, f"{path.stat().st_size / 1e6:.0f}", f"{seconds:.1f}", f"{LINES / seconds / 1e6:.1f}")
            if graph.number_of_nodes != len(np.unique(ends)):
                raise SystemExit("the network that was read is not the one that was written")
