"""SkipGram: the base class of the methods that learn by skip-gram over random walks."""

from __future__ import annotations

from dataclasses import dataclass

from manela.data.graph import Graph
from manela.engines.walks import train_walks
from manela.estimators.baseline import Baseline, Learned
from manela.settings.parameters import default
from manela.settings.settings import WalkSettings, check_walks
from manela.system.progress import Reporter


@dataclass(eq=False, repr=False)
class SkipGram(Baseline):
    """A method that learns by skip-gram over random walks; subclasses add the parameters that follow these."""

    dimensions: int = default("dimensions")
    walks: int = default("walks")
    walk_length: int = default("walk_length")
    window: int = default("window")
    negatives: int = default("negatives")
    learning_rate: float = default("learning_rate")

    def _check(self) -> WalkSettings:
        """Return the parameters as validated settings."""
        return check_walks(self.get_params())

    def _learn(self, graph: Graph, settings: WalkSettings, progress: Reporter | None) -> Learned:
        """Learn vectors from random walks."""
        run = train_walks(graph, settings, progress)
        facts = {"pairs_made": run.pairs, "threads": settings.threads, "seconds": run.seconds}
        return Learned(run.vectors, facts, run.context, run.updates)
