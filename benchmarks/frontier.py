"""Micro-F1 against seconds of the whole fit: every method, and MANELA with budgets from a tenth to ten times.

Two threads; medians of three turns in which the methods alternate. The score is the mean of the turns, each with a
seed of its own and four shuffles.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from benchmarks.plots import plot_frontier
from benchmarks.table import table
from manela import DeepWalk, Manela, ManelaWarning, NetMF, Node2Vec, ProNE
from manela.analysis.classification import classify
from manela.data.graph import Graph
from manela.formats.datasets import fetch, find
from manela.formats.loading import load_graph
from manela.reproduction.laboratory import BIASES, FIRST_RATIO
from manela.settings.budget import Sizes, resolve
from manela.settings.settings import check_all

TURNS, SHUFFLES = 3, 4
BUDGETS = (0.1, 0.2, 0.5, 2.0, 5.0, 10.0)
PICTURE = Path("build/frontier.png")


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
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
