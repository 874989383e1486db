"""Nodes that come later: micro-F1 of a hidden tenth of the nodes, placed, learned on, or learned all again."""

import time
import warnings

import numpy as np
import scipy.sparse as sp

from benchmarks.table import table
from manela import Graph, Manela, ManelaWarning
from manela.analysis.classification import classify
from manela.formats.datasets import planted_partition
from manela.formats.loading import load_graph, load_labels

_SEEDS = (0, 1, 2, 3)


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    with table(
        "network", "hidden", "learned all again", "`partial_fit`", "`transform`, one by one",
        "`partial_fit(freeze=True)`, together", "… microseconds a node",
    ) as rows:  # fmt: skip
        for name in ("blogcatalog", "ppi", "wikipedia", "planted partition, 20,000 nodes"):
            graph, labels = _load(name)
            found = np.array([_measure(graph, labels, seed) for seed in _SEEDS]).mean(axis=0)
            again = found[1]
            rows.row(
                name, f"{found[0]:,.0f}", f"{again:.4f}",
                *(f"{score:.4f} ({score - again:+.4f})" for score in found[2:5]), f"{found[5]:.0f}",
            )  # fmt: skip


def _load(name):
    if name.startswith("planted"):
        graph, communities = planted_partition(20_000, 32, 12, 6, 0)
        return graph, sp.csr_array(np.eye(communities.max() + 1)[communities])
    graph = load_graph(name)
    return graph, load_labels(name).of(graph.nodes)


def _measure(graph: Graph, labels, seed: int):
    """How many were hidden, their F1 in four ways, and how long one takes to be placed among others."""
    is_new = np.random.default_rng(seed).random(graph.number_of_nodes) < 0.1
    known, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
    matrix = graph.to_scipy()
    early = Graph.from_scipy(matrix[known][:, known], nodes=known.tolist())
    to_known = sp.csr_array(matrix @ sp.diags_array((~is_new).astype(float)))
    links = sp.coo_array(to_known[new])
    lonely = new[np.diff(sp.csr_array(links).indptr) == 0]
    alone = Graph.from_edges(new[links.coords[0]], links.coords[1], links.data)
    entries = sp.coo_array(matrix[new])
    sources, targets = new[entries.coords[0]], entries.coords[1]
    once = ~is_new[targets] | (sources < targets)
    reached = ~np.isin(sources, lonely) & ~np.isin(targets, lonely) & once
    batch = Graph.from_edges(sources[reached], targets[reached], entries.data[reached])

    scores = []
    again = Manela(random_state=seed).fit(graph)
    scores.append(again.embedding_)
    model = Manela(random_state=seed).fit(early)
    one_by_one = np.zeros_like(again.embedding_)
    one_by_one[known] = model.embedding_
    model.transform(alone)  # compiles, and learns how nodes are placed
    one_by_one[alone.nodes] = model.transform(alone)
    begun = time.perf_counter()
    model.partial_fit(batch, freeze=True)
    seconds = time.perf_counter() - begun
    together = np.zeros_like(again.embedding_)
    together[model.nodes_.astype(np.int64)] = model.embedding_
    grown = Manela(random_state=seed).fit(early).partial_fit(graph, replace=True)
    scores += [grown.embedding_, one_by_one, together]
    return (
        len(new),
        *(classify(vectors, labels, test=is_new, jobs=2).micro.mean() for vectors in scores),
        1e6 * seconds / len(new),
    )
