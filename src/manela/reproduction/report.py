"""The experiments of the paper, and the page that shows their tables and figures beside the paper's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from manela import __version__
from manela.errors import ManelaWarning, import_extra
from manela.reproduction import pictures, search, tables
from manela.reproduction.laboratory import Laboratory, Plan, Results
from manela.reproduction.sections import Section, summarise_sections
from manela.system.files import replace_file


class Experiment(NamedTuple):
    """Computes what the ledger does not have yet; draws the figures to a folder, and describes the results."""

    run: Callable[[Laboratory], Results]
    describe: Callable[[Mapping[str, Any], Path, Plan], Section]


EXPERIMENTS = {
    "classification": Experiment(tables.run_classification, tables.describe_classification),
    "links": Experiment(tables.run_links, tables.describe_links),
    "visualisation": Experiment(pictures.run_visualisation, pictures.describe_visualisation),
    "relationship": Experiment(pictures.run_relationship, pictures.describe_relationship),
    "sweep": Experiment(search.run_sweep, search.describe_sweep),
    "tuned": Experiment(search.run_tuned, search.describe_tuned),
}


def run_experiment(name: str, lab: Laboratory) -> Results:
    """Compute the missing results of an experiment, and return all of them; warnings of the library are hidden."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManelaWarning)
        return EXPERIMENTS[name].run(lab)


def write_report(results: Mapping[str, Any], folder: Path, machine: str, plan: Plan) -> Path:
    """Write report.html and the figures as .png and .svg to a folder, and return the path of the report.

    `results` are keyed by the name of the experiment; `machine` describes the machine that ran them.
    """
    jinja2: Any = import_extra("jinja2", "report", "the report")
    sections = [EXPERIMENTS[name].describe(result, folder, plan) for name, result in results.items()]
    comparisons = [comparison for section in sections for comparison in section.comparisons]
    template = files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    page = environment.from_string(template).render(
        sections=sections,
        summary=summarise_sections(sections),
        compared=len(comparisons),
        near=sum(comparison.is_near for comparison in comparisons),
        version=__version__,
        machine=machine,
        quick=plan.quick,
    )
    path = folder / "report.html"
    with replace_file(path) as file:
        file.write(page.encode())
    return path
