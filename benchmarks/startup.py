"""How long things take that have nothing to do with the network: compiling, loading kernels, showing help."""

import os
import subprocess
import sys
import tempfile
import time

from benchmarks.table import spread, table

FIT = """
import time
import manela.kernels.cpu.walks, manela.estimators.manela
from manela import Graph, Manela
graph = Graph.from_edges([0, 1], [1, 2])
begun = time.perf_counter()
Manela(pairs=100, rounds=1).fit(graph)
print(time.perf_counter() - begun)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, table("what", "seconds") as rows:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        rows.row("first fit of a new installation, compiling", f"{fit(environment):.2f}")
        rows.row("first fit of a later process, no compiling", spread([fit(environment) for _ in range(5)], ".2f"))
        rows.row("`manela --help`", spread([help_time() for _ in range(9)], ".2f"))


def fit(environment: dict[str, str]) -> float:
    done = subprocess.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def help_time() -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "manela", "--help"], capture_output=True, check=True)
    return time.perf_counter() - begun
