"""Writes the report of a reproduction: the tables and figures of the paper beside ours, as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from manela import __version__
from manela.errors import import_extra
from manela.reports.experiments import EXPERIMENTS
from manela.reports.plan import Plan
from manela.reports.sections import summarise_sections
from manela.system.files import replace_file


def write_report(results: Mapping[str, Any], folder: Path, machine: str, plan: Plan) -> Path:
    """Write report.html and the figures as .png and .svg to a folder, and return the path of the report.

    `results` are keyed by the name of the experiment; `machine` describes the machine that ran them.
    """
    jinja2: Any = import_extra("jinja2", "report", "the report")
    sections = [EXPERIMENTS[name].describe(result, folder, plan) for name, result in results.items()]
    comparisons = [comparison for section in sections for comparison in section.comparisons]
    template = files("manela.reports").joinpath("report.html.j2").read_text(encoding="utf-8")
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
