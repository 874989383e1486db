"""Reading an edge list of 10 million lines, beside pyarrow's reader of tables, which makes no network of it."""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow.csv as csv

from benchmarks.table import table
from manela import ManelaWarning, read_graph

LINES, NODES = 10_000_000, 1_000_000
_RUNS = 5
"""Runs of each, of which the middle one counts."""


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)  # of edges that are drawn twice
    drawn = np.random.default_rng(0).integers(NODES, size=(LINES, 2))
    with (
        tempfile.TemporaryDirectory() as folder,
        table("10 M lines, 1 M nodes", "MB", "seconds", "pyarrow's reader alone", "ratio", "M lines/s") as rows,
    ):
        for label, form, factor in (
            ("whole numbers below 1 M", "%d,%d\n", 1),
            ("whole numbers far apart", "%d,%d\n", 1_000_003),
            ("strings", "user%d@host,user%d@host\n", 1),
            ("weights of 17 digits", "%d,%d,1.2345678901234567\n", 1),
        ):
            ends = drawn * factor
            path = Path(folder) / "edges.csv"
            path.write_text("1,2\n2,300000000000\n")
            read_graph(path)  # compiles
            with path.open("w") as file:
                for first in range(0, LINES, 100_000):
                    file.write("".join([form % (u, v) for u, v in ends[first : first + 100_000].tolist()]))
            bare, seconds = [], []
            for _ in range(_RUNS):
                begun = time.perf_counter()
                csv.read_csv(path, csv.ReadOptions(autogenerate_column_names=True))
                bare.append(time.perf_counter() - begun)
                begun = time.perf_counter()
                graph = read_graph(path)
                seconds.append(time.perf_counter() - begun)
            one, other = sorted(seconds)[_RUNS // 2], sorted(bare)[_RUNS // 2]
            rows.row(
                label, f"{path.stat().st_size / 1e6:.0f}", f"{one:.2f}", f"{other:.2f}", f"{one / other:.1f}",
                f"{LINES / one / 1e6:.1f}",
            )  # fmt: skip
            if graph.number_of_nodes != len(np.unique(ends)):
                raise SystemExit("the network that was read is not the one that was written")
