"""Micro-F1 against seconds of the whole fit: every method, and MANELA with budgets from a tenth to ten times.

Two threads; medians of three turns in which the methods alternate. The score is the mean of the turns, each with
another seed and four shuffles. A second table has seconds against nodes, up to `FRONTIER_NODES` if it is set, also of
version 0.2, which is taken from the history of this repository.
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from benchmarks.plots import plot_frontier
from benchmarks.table import spread, table
from manela import DeepWalk, Manela, ManelaWarning, NetMF, Node2Vec, ProNE
from manela.analysis.classification import classify
from manela.data.graph import Graph
from manela.formats.datasets import draw_random, fetch, find
from manela.formats.loading import load_graph
from manela.reproduction.laboratory import BIASES, FIRST_RATIO
from manela.settings.budget import Sizes, resolve
from manela.settings.settings import check_all

TURNS, SHUFFLES = 3, 4
BUDGETS = (0.1, 0.2, 0.5, 2.0, 5.0, 10.0)
PICTURE = Path("build/frontier.png")
SIZES = (10_000, 100_000, 300_000, 1_000_000)
EDGES = 5
"""Random edges a node."""
FORMER = "0eb835b"
"""The last commit of this repository whose default is that of 0.2."""
ONE_TURN = 300_000
"""Nodes from which one turn is enough, as it takes long and varies little."""


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    compare_scores()
    print()
    compare_sizes(int(os.environ.get("FRONTIER_NODES", SIZES[-1])))


def compare_scores() -> None:
    """Micro-F1 against seconds on the paper's networks, as a table and a plot."""
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    with table("network", "method", "seconds, median", "seconds, least to most", "micro-F1 at 50 %") as rows:
        for network in ("blogcatalog", "ppi", "wikipedia"):
            graph = load_graph(network, unweighted=network != "wikipedia")
            labels = scipy.io.loadmat(fetch(find(network)))["group"]
            methods = list_methods(network, graph)
            for _, _, kind, parameters in methods:
                kind(**parameters | {"dimensions": 16}, random_state=0).fit(make_ring(graph.is_weighted))  # compiles
            seconds: dict[str, list[float]] = {label: [] for label, *_ in methods}
            scores: dict[str, list[float]] = {label: [] for label, *_ in methods}
            for turn in range(TURNS):
                for label, _, kind, parameters in methods:
                    model = kind(**parameters, random_state=turn)
                    begun = time.perf_counter()
                    model.fit(graph)
                    seconds[label].append(time.perf_counter() - begun)
                    score = classify(model.embedding_, labels, shuffles=SHUFFLES, jobs=2).micro.mean()
                    scores[label].append(float(score))
            points[network] = {}
            for label, line, *_ in methods:
                middle, score = float(np.median(seconds[label])), float(np.mean(scores[label]))
                points[network].setdefault(line, []).append((middle, score))
                extent = f"{min(seconds[label]):.2f} to {max(seconds[label]):.2f}"
                rows.row(network, label, f"{middle:.2f}", extent, f"{score:.4f}")
    PICTURE.parent.mkdir(exist_ok=True)
    plot_frontier(points, PICTURE)
    print(f"\n{PICTURE}")


def compare_sizes(most_nodes: int) -> None:
    """Seconds on BlogCatalog and on random networks of up to so many nodes, and their ratio to those of ProNE."""
    methods: dict[str, Callable[[Graph], Any]] = {
        "MANELA, default settings": lambda graph: Manela(n_jobs=2).fit(graph),
        "MANELA, spectral view only": lambda graph: Manela(views="spectral", n_jobs=2).fit(graph),
        "ProNE": lambda graph: ProNE(n_jobs=2).fit(graph),
        "FastRP, SciPy, one thread": fast_random_projection,
    }
    for fit in methods.values():
        fit(make_ring(False))  # compiles
    heads = ("network", "method", "seconds, median (least to most)", "over ProNE's")
    with tempfile.TemporaryDirectory() as folder, table(*heads) as rows:
        has_former = unpack_former(Path(folder))
        for nodes in (None, *(size for size in SIZES if size <= most_nodes)):
            name = "BlogCatalog" if nodes is None else f"{nodes:,} nodes, {EDGES} random edges each"
            graph = make_network(nodes)
            seconds: dict[str, list[float]] = {}
            for _ in range(1 if nodes is not None and nodes >= ONE_TURN else TURNS):
                for label, fit in methods.items():
                    begun = time.perf_counter()
                    fit(graph)
                    seconds.setdefault(label, []).append(time.perf_counter() - begun)
                if has_former:
                    seconds.setdefault("MANELA, default of 0.2", []).append(time_former(Path(folder), nodes))
            for label, taken in seconds.items():
                over = [ours / theirs for ours, theirs in zip(taken, seconds["ProNE"], strict=True)]
                rows.row(name, label, spread(taken, ".2f"), f"{float(np.median(over)):.2f}")


def make_network(nodes: int | None) -> Graph:
    """BlogCatalog, or random edges between so many nodes."""
    return load_graph("blogcatalog") if nodes is None else draw_random(nodes, EDGES * nodes)


def unpack_former(folder: Path) -> bool:
    """Unpack the sources of 0.2 into a folder; return False in a clone without its history."""
    archive = subprocess.run(["git", "archive", FORMER, "src"], capture_output=True, check=False)
    if archive.returncode == 0:
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return archive.returncode == 0


def time_former(folder: Path, nodes: int | None) -> float:
    """The seconds of a fit by 0.2 with default settings, in a process of its own."""
    program = (
        "import sys, time; from manela import Manela; from benchmarks.frontier import make_network, make_ring;"
        "Manela(n_jobs=2).fit(make_ring(False)); graph = make_network(eval(sys.argv[1])); begun = time.perf_counter();"
        "Manela(n_jobs=2).fit(graph); print(time.perf_counter() - begun)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "src"), str(Path.cwd())))}
    command = [sys.executable, "-W", "ignore", "-c", program, repr(nodes)]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def fast_random_projection(
    graph: Graph, dimensions: int = 128, weights: tuple[float, ...] = (0.0, 0.0, 1.0, 6.67), beta: float = -0.9
) -> np.ndarray:
    """FastRP, (n, m): the weighted sum of Pᵏ·(D/2|E|)^β·R over steps k, P = D⁻¹·A, with a sparse random R."""
    adjacency = sp.csr_array(graph.to_scipy(), dtype=np.float32)
    degrees = np.maximum(adjacency.sum(axis=1), 1e-12)
    steps = sp.csr_array(sp.diags_array((1.0 / degrees).astype(np.float32)) @ adjacency)
    signs = np.random.default_rng(0).integers(6, size=(len(degrees), dimensions), dtype=np.int8)
    rows = np.sqrt(np.float32(3.0)) * ((signs == 0).astype(np.float32) - (signs == 1))
    rows *= ((degrees / degrees.sum()) ** beta).astype(np.float32)[:, None]
    vectors = np.zeros_like(rows)
    for weight in weights:
        rows = steps @ rows
        vectors += np.float32(weight) * (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
    return vectors


def list_methods(network: str, graph: Graph) -> list[tuple[str, str, Any, dict[str, Any]]]:
    """Each method as its label, the line of the plot that it belongs to, its class and its parameters."""
    usual = resolve(check_all({}), Sizes.of(graph.indptr)).expected_pairs
    first = FIRST_RATIO[network]
    p, q = BIASES[network]
    two: dict[str, Any] = {"n_jobs": 2}
    methods: list[tuple[str, str, Any, dict[str, Any]]] = [
        (f"MANELA, {budget:g} of the usual pairs", "MANELA", Manela, {"pairs": round(budget * usual), **two})
        for budget in BUDGETS
    ]
    methods.insert(3, ("MANELA, default settings", "MANELA", Manela, two))
    paper = {"exchange": "walks", "ratios": (first, round(1 - first, 10))}
    methods += [
        ("MANELA, thorough", "MANELA, thorough", Manela.thorough, two),
        ("MANELA, context vectors", "MANELA, context vectors", Manela, {"context": True, **two}),
        ("MANELA, thorough, context vectors", "MANELA, context vectors", Manela.thorough, {"context": True, **two}),
        ("MANELA, the paper's settings", "MANELA, the paper's", Manela.paper, {**paper, **two}),
        ("DeepWalk", "DeepWalk", DeepWalk, two),
        ("node2vec", "node2vec", Node2Vec, {"p": p, "q": q, **two}),
        ("ProNE", "ProNE", ProNE, two),
        ("NetMF", "NetMF", NetMF, {"window": 1 if network == "wikipedia" else 10, **two}),
    ]
    return methods


def make_ring(weighted: bool) -> Graph:
    """A small network."""
    nodes = np.arange(100)
    weights = np.random.default_rng(0).uniform(1, 2, 100) if weighted else None
    return Graph.from_arcs(nodes, np.roll(nodes, 1), weights, nodes)
