"""The values printed in the paper, with reasons why ours differ."""

from __future__ import annotations

from manela.reproduction.sections import NEAR, Comparison

MICRO_F1 = {
    "manela": {"blogcatalog": 0.386, "ppi": 0.229, "wikipedia": 0.492},
    "node2vec": {"blogcatalog": 0.394, "ppi": 0.216, "wikipedia": 0.517},
    "deepwalk": {"blogcatalog": 0.380, "ppi": 0.210, "wikipedia": 0.474},
    "relational-neighbors": {"blogcatalog": 0.037, "ppi": 0.039, "wikipedia": 0.005},
}
"""Micro-F1 with half of the nodes for training."""

MEAN_AVERAGE_PRECISION = {"manela": 0.1360, "node2vec": 0.1059, "deepwalk": 0.0964}
"""MAP of link prediction on PPI."""

SYN_SBM_EDGES = 29_833
"""Number of edges of SYN-SBM in the paper's table of networks."""

_SOFTMAX = (
    "Skip-gram is trained with negative sampling here; the authors' DeepWalk, which the paper ran, uses a hierarchical "
    "softmax."
)
_REASONS = {
    "deepwalk": _SOFTMAX,
    "node2vec": (
        "Trained by our own kernel with the paper's p, q and number of walks, and with edge weights where there are "
        "any; the paper ran its authors' program and does not say whether with weights."
    ),
    "relational-neighbors": (
        "The paper's values are below those of always predicting the most frequent labels (the last rows). Ours "
        "follows its words and, as for the other methods, gives each node as many labels as it has; the paper does not "
        "say how many it gave."
    ),
    "manela": "No reason is known; one embedding is scored for each network, and one for each run of links.",
}


class Reasons:
    """Collects the reasons why values differ from the paper by more than 0.01, each once."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def add(self, method: str, name: str, comparisons: list[Comparison]) -> None:
        """Note the reason for a method if one of the comparisons is not near."""
        if method not in _REASONS or all(comparison.is_near for comparison in comparisons):
            return
        note = f"{name} differs by more than {NEAR:g}: {_REASONS[method]}"
        if note not in self.notes:
            self.notes.append(note)
