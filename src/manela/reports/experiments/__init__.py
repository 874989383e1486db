"""The paper's experiments: one module each, with how it is run, its tables and its plot."""

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
    """What a module of an experiment has."""

    def run(self, lab: Laboratory) -> Results:
        """Do what the ledger does not have yet, and return all results."""
        ...

    def describe(self, found: Mapping[str, Any], folder: Path, plan: Plan) -> Section:
        """Draw the figures into the folder, and return the section of the page."""
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
    """Do what is not done yet of an experiment, and return all its results; notes of the library are not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManelaWarning)
        return EXPERIMENTS[name].run(lab)
