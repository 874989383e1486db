"""The pieces of a report's page: sections of tables and figures, and values beside those of the paper."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from manela.errors import FormatError
from manela.evaluation.classification import summarise
from manela.reports.drawing import INK

NAMES = {
    "manela": "MANELA", "deepwalk": "DeepWalk", "node2vec": "node2vec", "relational-neighbors": "Relational Neighbors",
    "most-frequent": "most frequent labels", "blogcatalog": "BlogCatalog", "ppi": "PPI", "wikipedia": "Wikipedia",
}  # fmt: skip
NEAR = 0.01
"""A value that is no further than this from the paper's is called reproduced."""


@dataclass(frozen=True)
class Table:
    """A table of text, and notes below it."""

    caption: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """A picture as SVG that takes the colour of the page's text."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Comparison:
    """A value of ours beside the paper's."""

    what: str
    paper: float
    ours: float

    @property
    def difference(self) -> float:
        """Ours less the paper's."""
        return self.ours - self.paper

    @property
    def is_near(self) -> bool:
        """Whether they are the same but for a hundredth."""
        return abs(self.difference) <= NEAR


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    remark: str = ""
    """What to say in the summary where there is no value of the paper to compare with."""


def format_scores(scores: Sequence[float], digits: int = 3) -> str:
    """The mean with its deviation; a single value has none, and one that is very small is not shown as 0."""
    mean, deviation = summarise(scores)
    text, beside = f"{mean:.{digits}f}", f"{deviation:.{digits}f}"
    if deviation == 0:
        return text
    return f"{text} ± {beside}" if float(beside) > 0 else f"{text} ± {deviation:.0e}"


def count(number: int, thing: str) -> str:
    """A number of things: "1 run", "10 runs"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def compare(what: str, scores: Sequence[float], printed: float | None) -> tuple[list[str], list[Comparison]]:
    """Three cells, the paper's value, ours and the difference, and the comparison if there is one."""
    ours = format_scores(scores)
    if printed is None:
        return ["", ours, ""], []
    one = Comparison(what, printed, summarise(scores)[0])
    return [f"{printed:.3f}", ours, f"{one.difference:+.3f}"], [one]


def summarise_sections(sections: Sequence[Section]) -> Table:
    """What was reproduced, what differs and by how much: a row for each section."""
    rows = []
    for section in sections:
        found = section.comparisons
        if not found:
            rows.append([section.title, "", "", "", section.remark])
            continue
        rows.append(
            [
                section.title,
                str(len(found)),
                str(sum(one.is_near for one in found)),
                str(sum(not one.is_near for one in found)),
                _describe_differences(found),
            ]
        )
    heads = ["experiment", "values compared", f"within {NEAR:g}", "further away", "differences"]
    return Table("Ours beside what the paper prints", heads, rows)


def _describe_differences(comparisons: Sequence[Comparison]) -> str:
    """The largest differences above and below the paper's values, in words."""
    far = [one for one in comparisons if not one.is_near]
    if not far:
        return f"none is larger than {NEAR:g}"
    parts = []
    for word, sign in (("higher", 1), ("lower", -1)):
        those = [one for one in far if one.difference * sign > 0]
        if those:
            largest = max(those, key=lambda one: abs(one.difference))
            parts.append(f"{len(those)} {word}, most {largest.what} ({largest.difference:+.3f})")
    return "; ".join(parts)


def draw(name: str, caption: str, folder: Path, plot: Callable[[Path], None]) -> Figure:
    """Draw a figure as .png and .svg, and take the second into the page."""
    plot(folder / f"{name}.png")
    plot(folder / f"{name}.svg")
    text = (folder / f"{name}.svg").read_text(encoding="utf-8")
    head, body = text[text.index("<svg") :].split(">", 1)
    width = re.search(r'width="([\d.]+)pt"', head)
    shape = re.search(r'viewBox="[^"]*"', head)
    if width is None or shape is None:
        raise FormatError(f"{folder / name}.svg: has no size")
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{escape(caption)}" {shape.group()} style="max-width: {1.33 * float(width.group(1)):.0f}px">'
    )
    return Figure(name, caption, opening + body.replace(INK, "currentColor"))


def name_parameters(parameters: Mapping[str, object]) -> str:
    """The paper's own parameters of a method, as text."""
    if isinstance(ratios := parameters.get("ratios"), list):
        return f"r₁ = {ratios[0]:g}"
    return f"p = {parameters['p']:g}, q = {parameters['q']:g}" if "p" in parameters else ""
