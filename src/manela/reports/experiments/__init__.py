"""The paper's experiments, one module each, which runs it and describes the results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from manela.errors import ManelaWarning
from manela.reports.experiments import classification, links, relationship, sweep, tuned, visualisation
from manela.reports.laboratory import Laboratory, Results
from manela.reports.plan import Plan
from manela.reports.sections import Section


class Experiment(Protocol):
    """The interface of a module that defines an experiment."""

    def run(self, lab: Laboratory) -> Results:
        """Compute what the ledger does not have yet, and return all results."""
        ...

    def describe(self, results: Mapping[str, Any], folder: Path, plan: Plan) -> Section:
        """Draw the figures to a folder, and return the section of the report."""
        ...


EXPERIMENTS: dict[str, Experiment] = {
    "classification": classification,
    "links": links,
    "visualisation": visualisation,
    "relationship": relationship,
    "sweep": sweep,
    "tuned": tuned,
}


def run_experiment(name: str, lab: Laboratory) -> Results:
    """Compute the missing results of an experiment, and return all of them; warnings of the library are hidden."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManelaWarning)
        return EXPERIMENTS[name].run(lab)
