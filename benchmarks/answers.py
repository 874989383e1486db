"""python -m benchmarks answers: how long one question takes, of a host with 100,000 nodes and of a file."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from manela import Embedding
from manela.formats.embeddings import check_output

NODES, DIMENSIONS, DEGREE, QUESTIONS = 100_000, 128, 20, 500


def main() -> None:
    """Serve vectors in a process of its own, ask for one node after the other, print a table."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(NODES, DIMENSIONS)).astype(np.float32)
    vectors += 2 * random.normal(size=(1000, DIMENSIONS)).astype(np.float32)[random.integers(1000, size=NODES)]
    ends = random.integers(NODES, size=(NODES * DEGREE // 2, 2))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_output(folder / "vectors.npz").write(Embedding(np.arange(NODES), vectors))
        np.savetxt(folder / "edges.csv", ends[ends[:, 0] != ends[:, 1]], fmt="%d", delimiter=",")
        command = [sys.executable, "-W", "ignore", "-m", "manela", "serve", str(folder / "vectors.npz")]
        command += ["--edges", str(folder / "edges.csv"), "--address", "127.0.0.1:0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            assert found is not None, line
            port = int(found[1])
            rows = {path: _ask(port, path, random) for path in ("recommend", "near")}
        finally:
            process.terminate()
            process.wait(30)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    products = []
    for row in random.integers(NODES, size=100):
        begun = time.perf_counter()
        directions @ directions[row]
        products.append(time.perf_counter() - begun)
    print(f"{NODES:,} nodes, {DIMENSIONS} dimensions, {QUESTIONS} questions one after the other, over HTTP")
    print()
    print("| | median, ms | 99th percentile, ms |")
    print("|---|---|---|")
    for path, seconds in {**rows, "the product of matrix and vector alone": products}.items():
        middle, late = np.percentile(seconds, (50, 99)) * 1000
        print(f"| {path} | {middle:.1f} | {late:.1f} |")


def _ask(port: int, path: str, random: np.random.Generator) -> list[float]:
    """Seconds of each question, with a connection of its own, after one that is not counted."""
    seconds = []
    for number, node in enumerate(random.integers(NODES, size=QUESTIONS + 1)):
        begun = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", f"/api/{path}?node={node}")
        answer = json.loads(connection.getresponse().read())
        connection.close()
        assert "error" not in answer, answer
        if number > 0:
            seconds.append(time.perf_counter() - begun)
    return seconds
