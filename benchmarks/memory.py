"""Peak memory of a run, above a process that imported what it needs; kernels were compiled before.

Numba puts off the import of 72 of its modules until a first kernel is loaded. The process imports these too before it
is measured, and what they took is said in a column of its own. No kernel has been loaded by then.
"""

import json
import subprocess
import sys

from benchmarks.table import table
from manela.settings.parameters import PAPER

CHILD = """
import json, sys, warnings
from manela import Graph, Manela
import scipy.io.matlab
from numba.core.registry import cpu_target
import manela.formats.loading, manela.formats.datasets, manela.kernels.cpu.walks, manela.kernels.cpu.messages
import manela.engines.rounds.smoothing, manela.engines.rounds.spectral
warnings.simplefilter("ignore")
def status(name):
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith(name))
which, parameters = sys.argv[1], json.loads(sys.argv[2])
imported = status("VmRSS")
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
modules = len(sys.modules)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = status("VmRSS")
if which == "blogcatalog":
    graph = manela.formats.loading.load_graph(which)
else:
    graph = manela.formats.datasets.draw_random(1_000_000, 5_000_000)
built = status("VmHWM")
model = Manela(**parameters).fit(graph)
late = len(sys.modules) - modules
arrays = model.embedding_.nbytes + graph.indptr.nbytes + graph.indices.nbytes
peak = status("VmHWM") - before
print(json.dumps({"peak": peak, "arrays": arrays, "built": built - before, "numba": before - imported, "late": late}))
"""
PAPERS = {**PAPER, "dimensions": 64, "pairs": 7_450_000_000 // 25, "rounds": 40}
RUNS = [
    ("BlogCatalog, m = 128, default settings", "blogcatalog", {}),
    ("random, 1 M nodes, 5 M edges, m = 128, sweeps, 3 rounds and join", "random", {"rounds": 3}),
    ("the same, rounds only", "random", {"rounds": 3, "start": "random", "views": "rounds"}),
    ("sweeps, 3 rounds and join, m = 64", "random", {"dimensions": 64, "rounds": 3}),
    ("the same, m = 64, the paper's settings, the first 1/25 of the budget", "random", PAPERS),
]


def main() -> None:
    with table(
        "run",
        "vectors and CSR, MB",
        "peak, MB",
        "peak / (vectors and CSR)",
        "building the graph, MB",
        "late imports of Numba, not counted, MB",
        "modules imported after that",
    ) as rows:
        for label, which, parameters in RUNS:
            for _ in range(2):
                done = subprocess.run(
                    [sys.executable, "-c", CHILD, which, json.dumps(parameters)],
                    capture_output=True,
                    text=True,
                    check=True,
                )
            sizes = json.loads(done.stdout)
            megabytes = [f"{sizes[name] / 1e6:.1f}" for name in ("arrays", "peak", "built", "numba")]
            ratio = f"{sizes['peak'] / sizes['arrays']:.2f}"
            rows.row(label, *megabytes[:2], ratio, *megabytes[2:], sizes["late"])
