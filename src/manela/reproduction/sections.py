"""The elements of a report: sections with tables, figures and comparisons with the paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from manela.analysis.classification import summarise
from manela.errors import FormatError
from manela.reproduction.drawing import INK

NAMES = {
    "manela": "MANELA", "deepwalk": "DeepWalk", "node2vec": "node2vec", "relational-neighbors": "Relational Neighbors",
    "most-frequent": "most frequent labels", "common-neighbours": "common neighbours", "adamic-adar": "Adamic-Adar",
    "preferential-attachment": "preferential attachment", "prone": "ProNE", "netmf": "NetMF",
    "blogcatalog": "BlogCatalog", "ppi": "PPI", "wikipedia": "Wikipedia",
}  # fmt: skip
NEAR = 0.01
"""Largest difference from the paper's value that counts as reproduced."""


@dataclass(frozen=True)
class Table:
    """A table of text, with notes below it."""

    caption: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """An SVG picture in the text colour of the page."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Comparison:
    """A value of ours and the paper's."""

    what: str
    paper: float
    ours: float

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.ours - self.paper

    @property
    def is_near(self) -> bool:
        """Whether they differ by at most `NEAR`."""
        return abs(self.difference) <= NEAR


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    name: str
    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    remark: str = ""
    """Text for the summary if the paper has no value to compare with."""


def format_scores(scores: Sequence[float], digits: int = 3) -> str:
    """Format the mean and the standard deviation, which is left out if it is 0 and never rounded to 0."""
    mean, deviation = summarise(scores)
    text, rounded = f"{mean:.{digits}f}", f"{deviation:.{digits}f}"
    if deviation == 0:
        return text
    return f"{text} ± {rounded}" if float(rounded) > 0 else f"{text} ± <{10.0**-digits:.{digits}f}"


def count(number: int, noun: str) -> str:
    """Format a number of things: "1 run", "10 runs"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def compare(what: str, scores: Sequence[float], printed: float | None) -> tuple[list[str], list[Comparison]]:
    """Return three cells (the paper's value, ours, the difference), and a list with the comparison, if any."""
    ours = format_scores(scores)
    if printed is None:
        return ["", ours, ""], []
    comparison = Comparison(what, printed, summarise(scores)[0])
    return [f"{printed:.3f}", ours, f"{comparison.difference:+.3f}"], [comparison]


def summarise_sections(sections: Sequence[Section]) -> Table:
    """Return a table with a row for each section: what was reproduced, and the largest differences."""
    rows = []
    for section in sections:
        comparisons = section.comparisons
        if not comparisons:
            rows.append([section.title, "", "", "", section.remark])
            continue
        rows.append(
            [
                section.title,
                str(len(comparisons)),
                str(sum(comparison.is_near for comparison in comparisons)),
                str(sum(not comparison.is_near for comparison in comparisons)),
                _describe_differences(comparisons),
            ]
        )
    header = ["experiment", "values compared", f"within {NEAR:g}", "further away", "differences"]
    return Table("Ours beside what the paper prints", header, rows)


def _describe_differences(comparisons: Sequence[Comparison]) -> str:
    far = [comparison for comparison in comparisons if not comparison.is_near]
    if not far:
        return f"none is larger than {NEAR:g}"
    parts = []
    for word, sign in (("higher", 1), ("lower", -1)):
        group = [comparison for comparison in far if comparison.difference * sign > 0]
        if group:
            largest = max(group, key=lambda comparison: abs(comparison.difference))
            parts.append(f"{len(group)} {word}, most {largest.what} ({largest.difference:+.3f})")
    return "; ".join(parts)


def draw(name: str, caption: str, folder: Path, plot: Callable[[Path], None]) -> Figure:
    """Draw a figure as .png and .svg, and return the SVG for the page."""
    plot(folder / f"{name}.png")
    plot(folder / f"{name}.svg")
    text = (folder / f"{name}.svg").read_text(encoding="utf-8")
    tag, body = text[text.index("<svg") :].split(">", 1)
    width = re.search(r'width="([\d.]+)pt"', tag)
    shape = re.search(r'viewBox="[^"]*"', tag)
    if width is None or shape is None:
        raise FormatError(f"{folder / name}.svg: has no size")
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{escape(caption)}" {shape.group()} style="max-width: {1.33 * float(width.group(1)):.0f}px">'
    )
    return Figure(name, caption, opening + body.replace(INK, "currentColor"))


def name_parameters(parameters: Mapping[str, object]) -> str:
    """Format the parameters of a method that the paper tunes."""
    if isinstance(ratios := parameters.get("ratios"), list):
        return f"r₁ = {ratios[0]:g}"
    return f"p = {parameters['p']:g}, q = {parameters['q']:g}" if "p" in parameters else ""
