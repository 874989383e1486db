"""Ten million rows of a PostgreSQL of our own to a network, beside psql's \\copy of the same rows to nowhere."""

import json
import subprocess
import sys
import time

from benchmarks.postgres import find_programs, start_postgres
from benchmarks.table import table

ROWS, NODES = 10_000_000, 1_000_000
CHILD = """
import json, sys, time, warnings
import psycopg, sqlalchemy.dialects.postgresql.psycopg
import manela.kernels.tables.rows, manela.kernels.tables.text
from manela.sources.gathering import gather_graph
from manela.sources.sql import SqlSource
warnings.simplefilter("ignore")
def status(name):
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith(name))
url, query, columns = sys.argv[1:]
gather_graph(SqlSource(url, f"SELECT * FROM ({query}) AS rows LIMIT 1000"))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before, begun = status("VmRSS"), time.perf_counter()
graph = gather_graph(SqlSource(url, query))
seconds, peak = time.perf_counter() - begun, status("VmHWM") - before
arrays = int(columns) + graph.indptr.nbytes + graph.indices.nbytes + graph.nodes.nbytes
arrays += 0 if graph.weights is None else graph.weights.nbytes
if graph.nodes.dtype == object:
    arrays += sum(map(sys.getsizeof, graph.nodes.tolist()))
print(json.dumps({"seconds": seconds, "peak": peak, "arrays": arrays, "nodes": graph.number_of_nodes}))
"""
QUERIES = [
    ("whole numbers", "SELECT own, other FROM ties", 16),
    ("whole numbers and a weight", "SELECT own, other, weight FROM ties", 24),
    ("names", "SELECT 'user' || own || '@host', 'user' || other || '@host' FROM ties", 8),
]
"""What is asked for, and the bytes of a row of the columns as arrays; names are numbers of 32 bits there."""


def main() -> None:
    programs = find_programs()
    if programs is None:
        print("left out: PostgreSQL is not installed (apt install postgresql)")
        return
    with (
        start_postgres(programs) as server,
        table(
            f"{ROWS // 10**6} M rows, {NODES // 10**6} M nodes",
            "seconds",
            r"psql \copy",
            "ratio",
            "M rows/s",
            "columns and graph, MB",
            "peak, MB",
            "peak / (columns and graph)",
        ) as rows,
    ):
        server.execute(
            "SELECT setseed(0.5); CREATE UNLOGGED TABLE ties AS SELECT floor(random() * "
            f"{NODES})::int8 AS own, floor(random() * {NODES})::int8 AS other, 1 + 4 * random() AS weight "
            f"FROM generate_series(1, {ROWS}); ANALYZE ties;"
        )
        for label, query, width in QUERIES:
            begun = time.perf_counter()
            subprocess.run([*server.psql, "-c", rf"\copy ({query}) TO /dev/null"], check=True)
            bare = time.perf_counter() - begun
            done = subprocess.run(
                [sys.executable, "-c", CHILD, server.url, query, str(width * ROWS)],
                capture_output=True,
                text=True,
                check=True,
            )
            run = json.loads(done.stdout)
            rows.row(
                label,
                f"{run['seconds']:.1f}",
                f"{bare:.1f}",
                f"{run['seconds'] / bare:.1f}",
                f"{ROWS / run['seconds'] / 1e6:.2f}",
                f"{run['arrays'] / 1e6:.0f}",
                f"{run['peak'] / 1e6:.0f}",
                f"{run['peak'] / run['arrays']:.2f}",
            )
