"""Nodes that come later: micro-F1 of a held-back tenth of BlogCatalog after `partial_fit`, beside a full run."""

import warnings

import numpy as np
import scipy.io

from benchmarks.table import table
from manela import Graph, Manela, ManelaWarning
from manela.datasets.catalogue import fetch, find
from manela.datasets.loading import load_graph
from manela.evaluation.classification import classify


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    graph = load_graph("blogcatalog")
    labels = scipy.io.loadmat(fetch(find("blogcatalog")))["group"]
    with table("held back", "run", "pairs made", "micro-F1 of the held-back nodes", "micro-F1 of all at 50 %") as rows:
        for seed in (0, 1, 2):
            late = np.random.default_rng(seed).random(graph.number_of_nodes) < 0.1
            kept = np.flatnonzero(~late)
            early = Graph.from_scipy(graph.to_scipy()[kept][:, kept], nodes=kept.tolist())
            full = Manela(random_state=seed).fit(graph)
            grown = Manela(random_state=seed).fit(early)
            for label, model in (("full", full), ("partial_fit", grown.partial_fit(graph, replace=True))):
                rows.row(
                    f"{late.sum():,} (seed {seed})",
                    label,
                    f"{model.provenance_['pairs_made']:,}",
                    f"{classify(model.embedding_, labels, test=late).micro.mean():.4f}",
                    f"{classify(model.embedding_, labels).micro.mean():.4f}",
                )
