"""What a pair and preparing cost on random networks that grow in nodes and in degree: the paper's Table II, measured.

One thread. Sampling and updating are seconds a million update pairs. The plot goes to build/complexity.png.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kernels import precompute_transitions, sample
from benchmarks.plots import plot_complexity
from benchmarks.table import table
from manela import Graph, ManelaWarning
from manela.analysis.methods import make_embedder
from manela.engines.rounds.neighbours import prepare_arcs
from manela.formats.datasets import draw_random

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
"""Nodes, at a mean degree of 10."""
ROUNDS_ONLY: dict[str, Any] = {"start": "random", "views": "rounds", "smooth": False}
"""What the paper's table is about; the cost of sweeps, smoothing and join does not grow with the pairs."""
DEGREES = (10, 30, 100, 300, 1_000)
"""Mean degrees, at 2,000 nodes."""
PICTURE = Path(__file__).resolve().parents[1] / "build" / "complexity.png"

_BYTES_OF_AN_ENTRY = 8
_MOST_ENTRIES = 100_000_000
"""Precomputed transitions that are still tried, 800 MB; with more of them a small machine is out of memory."""

Costs = dict[str, Any]


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    compile_all()
    costs: dict[str, list[Costs]] = {"nodes": [], "degrees": []}
    shapes = [("nodes", nodes, 10) for nodes in SIZES] + [("degrees", 2_000, degree) for degree in DEGREES]
    heads = ("MANELA sampling, updating", "DeepWalk", "node2vec", "node2vec's tables, precomputed")
    with table("nodes", "edges", *heads) as rows:
        for kind, nodes, degree in shapes:
            cost = measure(draw_random(nodes, nodes * degree // 2))
            costs[kind].append(cost)
            rows.row(*show(cost))
    PICTURE.parent.mkdir(exist_ok=True)
    plot_complexity(costs, PICTURE)
    print(f"\n{PICTURE}")


def show(cost: Costs) -> list[str]:
    """The cells of a row."""
    cells = [f"{cost['nodes']:,}", f"{cost['edges']:,}"]
    for method in ("manela", "deepwalk", "node2vec"):
        one = cost["methods"][method]
        cells.append(", ".join(f"{one[part] / one['pairs'] * 1e6:.2f}" for part in ("sampling", "updating")))
    seconds, size = cost["transitions"]["seconds"], f"{cost['transitions']['bytes'] / 1e6:,.0f} MB"
    return [*cells, f"does not fit: {size}" if seconds is None else f"{seconds:.3f} s, {size}"]


def compile_all() -> None:
    """Run everything once on a small network, so that no compiler is measured."""
    small = draw_random(100, 300)
    for model in (
        make_embedder("manela", {**ROUNDS_ONLY, "pairs": 1000}),
        make_embedder("node2vec", {"walks": 1, "p": 0.5}),
    ):
        model.fit(small)
    count_samples(small, 1000)
    measure_transitions(small)


def measure(graph: Graph) -> Costs:
    """Seconds of preparing, sampling and updating by each method."""
    pairs = 100 * graph.number_of_nodes
    begun = time.perf_counter()
    manela = make_embedder("manela", {**ROUNDS_ONLY, "pairs": pairs, "n_jobs": 1, "rounds": 20}).fit(graph)
    whole = time.perf_counter() - begun
    begun = time.perf_counter()
    prepare_arcs(graph)
    preparing = time.perf_counter() - begun
    begun = time.perf_counter()
    drawn = count_samples(graph, pairs)
    made = manela.provenance_["pairs_made"]
    sampling = (time.perf_counter() - begun) / drawn * made
    methods = {
        "manela": {"preparing": preparing, "sampling": sampling, "updating": whole - sampling, "pairs": made},
    }
    for method, biases in (("deepwalk", {}), ("node2vec", {"p": 0.25, "q": 4.0})):
        model = make_embedder(method, {"walks": 1, "walk_length": 20, "window": 5, **biases}).fit(graph)
        seconds = model.provenance_["seconds"]
        methods[method] = {
            "preparing": seconds["preparing"],
            "sampling": seconds["walking"],
            "updating": seconds["training"] - seconds["walking"],
            "pairs": model.provenance_["pairs_made"],
        }
    sizes = {"nodes": graph.number_of_nodes, "edges": graph.number_of_edges}
    return {**sizes, "methods": methods, "transitions": measure_transitions(graph)}


def count_samples(graph: Graph, pairs: int) -> int:
    """Draw about as many update pairs as a run would, and do nothing with them; returns how many."""
    counts = np.maximum(1, graph.degrees * pairs // (20 * int(graph.degrees.sum())))
    nodes = np.arange(graph.number_of_nodes)
    return int(sample(nodes, counts, prepare_arcs(graph), np.uint64(1), np.array([10, 10]), 5))


def measure_transitions(graph: Graph) -> Costs:
    """Time and memory of node2vec's precomputed transition probabilities, if they fit."""
    entries = int((graph.degrees.astype(np.float64) ** 2).sum())
    found: Costs = {"bytes": _BYTES_OF_AN_ENTRY * entries, "seconds": None}
    if entries <= _MOST_ENTRIES:
        room = np.empty((3, int(graph.degrees.max())))
        thresholds, aliases = np.empty(entries, np.float32), np.empty(entries, np.int32)
        begun = time.perf_counter()
        precompute_transitions(graph.indptr, graph.indices, 0.25, 4.0, thresholds, aliases, room)
        found["seconds"] = time.perf_counter() - begun
    return found
