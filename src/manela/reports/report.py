"""The page of a reproduction: every table and figure of the paper beside ours, in one file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from manela import __version__
from manela.errors import FormatError, import_extra
from manela.evaluation.classification import summarise
from manela.evaluation.experiments import LINK_BIASES, LINK_RATIO
from manela.files import replace_file
from manela.reports import plots
from manela.reports.paper import MEAN_AVERAGE_PRECISION, MICRO_F1, SYN_SBM_EDGES, explain_difference

_NAMES = {
    "manela": "MANELA", "deepwalk": "DeepWalk", "node2vec": "node2vec", "relational-neighbors": "Relational Neighbors",
    "most-frequent": "most frequent labels", "blogcatalog": "BlogCatalog", "ppi": "PPI", "wikipedia": "Wikipedia",
}  # fmt: skip


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
class Section:
    """A part of the page."""

    name: str
    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def write_page(results: Mapping[str, Any], folder: Path, machine: str, quick: bool) -> Path:
    """Write report.html and the figures as .png and .svg into the folder; returns the page's path.

    `machine` is what measured.
    """
    jinja2: Any = import_extra("jinja2", "report", "the report")
    sections = [_SECTIONS[part](found, folder, quick) for part, found in results.items()]
    template = files("manela.reports").joinpath("report.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    page = environment.from_string(template).render(
        sections=sections, version=__version__, machine=machine, quick=quick
    )
    path = folder / "report.html"
    with replace_file(path) as file:
        file.write(page.encode())
    return path


def _classification(found: Mapping[str, Any], folder: Path, quick: bool) -> Section:
    rows, reasons = [], _Reasons(quick)
    for method in ("manela", "node2vec", "deepwalk", "relational-neighbors", "most-frequent"):
        for network, methods in found.items():
            half = next(row for row in methods[method]["rows"] if row["train_ratio"] == 0.5)
            mean, spread = summarise(half["micro"])
            printed = MICRO_F1.get(method, {}).get(network)
            openly = "{:.3f} ± {:.3f}".format(*summarise(half["open_micro"])) if "open_micro" in half else ""
            about = [_NAMES[method], _NAMES[network], _name_parameters(methods[method].get("parameters", {}))]
            rows.append([*about, *_compare(mean, spread, printed), openly, _pairs(methods[method])])
            reasons.add(method, mean, printed)
    table = Table(
        "Micro-F1 with half of the nodes trained on (the paper's Table IV)",
        ["method", "network", "parameters", "paper", "ours", "difference", "labels not counted", "update pairs"],
        rows,
        reasons.notes,
    )
    named = {
        _NAMES[network]: {_NAMES[m]: one for m, one in methods.items() if m != "most-frequent"}
        for network, methods in found.items()
    }
    return Section(
        "classification", "Node classification",
        [
            "One-versus-rest logistic regression on the vectors; mean and deviation over shuffles that are the same "
            "for every method. How many labels a test node has is known, as in the literature; “labels not counted” is "
            "the score when it is not, and labels above a threshold chosen on the training part are predicted. "
            "node2vec uses edge weights, the others do not."
        ],
        [table],
        [_draw("classification", "F1 against the part of the nodes trained on; shades are deviations.", folder,
               lambda path: plots.plot_classification(named, path))],
    )  # fmt: skip


def _links(found: Mapping[str, Any], folder: Path, quick: bool) -> Section:
    rows, reasons = [], _Reasons(quick)
    for method, runs in found.items():
        mean, spread = summarise([run["sampled"]["mean_average_precision"] for run in runs])
        printed = MEAN_AVERAGE_PRECISION.get(method)
        others = [
            "{:.3f} ± {:.3f}".format(*summarise([run[where][what] for run in runs]))
            for where, what in (
                ("sampled", "over_all"), ("all", "mean_average_precision"), ("all", "over_all"), ("sampled", "auc"),
            )
        ]  # fmt: skip
        rows.append([_NAMES.get(method, method.replace("-", " ")), *_compare(mean, spread, printed), *others])
        reasons.add(method, mean, printed)
    table = Table(
        f"Link prediction on PPI, {len(next(iter(found.values())))} runs (the paper's Table V)",
        ["method", "paper", "MAP", "difference", "MAP, nothing to find as 0", "MAP, all nodes",
         "all nodes, nothing to find as 0", "AUC"],
        rows,
        reasons.notes,
    )  # fmt: skip
    precision = {
        where: {
            _NAMES.get(method, method): [{int(k): v for k, v in run[where]["precision"].items()} for run in runs]
            for method, runs in found.items()
        }
        for where in ("sampled", "all")
    }
    return Section(
        "links", "Link prediction",
        [
            "A fifth of the edges is hidden, the largest component of the rest is learned from, and pairs without an "
            "edge there are ranked by the product of their vectors. MAP is over the pairs among 1,024 random nodes and "
            "over the nodes among them that have a hidden edge. The paper's words are another way, pairs of 1,024 "
            "nodes with any, and nodes with nothing to find counted as 0, but its values come out this way only (see "
            "docs/link-prediction.md).",
            f"MANELA with r₁ = {LINK_RATIO:g}, node2vec with p = {LINK_BIASES[0]:g} and q = {LINK_BIASES[1]:g}. "
            "The last three methods learn nothing: they look at the neighbours of two nodes.",
        ],
        [table],
        [_draw("links", "Precision@k among 1,024 nodes; shades are deviations.", folder,
               lambda path: plots.plot_precision(precision["sampled"], path)),
         _draw("links-all", "Precision@k among all nodes.", folder,
               lambda path: plots.plot_precision(precision["all"], path))],
    )  # fmt: skip


def _visualisation(found: Mapping[str, Any], folder: Path, quick: bool) -> Section:  # noqa: ARG001
    rows = [
        [r1, *(f"{one[where][what]:.3f}" for where in ("vectors", "plane") for what in ("silhouette", "accuracy"))]
        for r1, one in found.items()
    ]
    heads = ["r₁", "silhouette, 128-D", "nearest centre, 128-D", "silhouette, plane", "nearest centre, plane"]
    return Section(
        "visualisation", "Visualisation",
        ["SYN-SBM: 1,024 nodes in three communities, learned without knowing them and laid out by t-SNE. The smaller "
         "r₁, the more a node looks two hops away.",
         f"The network has {next(iter(found.values()))['edges']:,} edges, as the paper's probabilities of 0.1 within "
         f"and 0.01 between communities give; the paper prints {SYN_SBM_EDGES:,}, which they cannot."],
        [Table("How clear the boundaries are", heads, rows)],
        [_draw("visualisation", "SYN-SBM on a plane, a colour for each community.", folder,
               lambda path: plots.plot_planes(found, path))],
    )  # fmt: skip


def _relationship(found: Mapping[str, Any], folder: Path, quick: bool) -> Section:  # noqa: ARG001
    named = {**found, "methods": {_NAMES[method]: one for method, one in found["methods"].items()}}
    rows = [
        [method, f"{one['law']['exponent']:.2f} ± {one['law']['error']:.2f}", f"{one['law']['smallest']:,.0f}",
         f"{one['explained']:.4f}", f"{sum(one['updates']):,}"]
        for method, one in named["methods"].items()
    ]  # fmt: skip
    heads = ["method", "exponent", "from updates", "r² of updates and degree", "updates in all"]
    return Section(
        "relationship", "Relationship to DeepWalk",
        [f"How often each node's vector was really updated in a run on {_NAMES[found['network']]}, the power law that "
         "fits the many updates best, and how well a node's degree explains its updates."],
        [Table("Updates of a node", heads, rows)],
        [_draw("relationship", "Above: how many nodes have so many updates, with the fitted law. Below: degree against "
               "updates, a dot for each node.", folder, lambda path: plots.plot_relationship(named, path))],
    )  # fmt: skip


def _sweep(found: Mapping[str, Any], folder: Path, quick: bool) -> Section:  # noqa: ARG001
    ratios = [row["first_ratio"] for row in next(iter(found.values()))]
    rows = [
        [_NAMES[network], *(f"{summarise(row['micro'])[0]:.3f}" for row in rows)] for network, rows in found.items()
    ]
    named = {_NAMES[network]: rows for network, rows in found.items()}
    return Section(
        "sweep", "The ratio r₁",
        ["How much of what a node looks at lies one hop away, the rest two hops: the paper's knob."],
        [Table("Micro-F1 at 50 %", ["network", *(f"{ratio:g}" for ratio in ratios)], rows)],
        [_draw("sweep", "Micro-F1 at 50 % against r₁.", folder, lambda path: plots.plot_sweep(named, path))],
    )  # fmt: skip


def _tuned(found: Mapping[str, Any], folder: Path, quick: bool) -> Section:  # noqa: ARG001
    rows = []
    for network, one in found.items():
        mean, spread = summarise([score for seed in one["seeds"] for score in seed["micro"]])
        by_seed = ", ".join(f"{summarise(seed['micro'])[0]:.4f}" for seed in one["seeds"])
        ratios = ", ".join(f"{ratio:g}" for ratio in one["ratios"])
        context = "yes" if one["context"] else "no"
        compared = _compare(mean, spread, MICRO_F1["manela"][network])
        rows.append([_NAMES[network], ratios, context, *compared, by_seed, str(len(one["trials"]))])
    heads = ["network", "ratios", "context vectors", "paper's MANELA", "ours", "difference", "each seed", "trials"]
    return Section(
        "tuned", "Tuned",
        ["Ratios, hops and context vectors as `manela tune` finds them, edge weights used; mean over the shuffles of "
         "every seed. They are chosen with the first seed by the labels of the same nodes, on other splits than those "
         "of the score: some of the gain is the choice itself."],
        [Table("Micro-F1 at 50 % with the best of what was tried", heads, rows)],
    )  # fmt: skip


_SECTIONS: dict[str, Callable[[Mapping[str, Any], Path, bool], Section]] = {
    "classification": _classification,
    "links": _links,
    "visualisation": _visualisation,
    "relationship": _relationship,
    "sweep": _sweep,
    "tuned": _tuned,
}


class _Reasons:
    """Why ours differ by more than 0.01, each reason once."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.notes: list[str] = []

    def add(self, method: str, mean: float, printed: float | None) -> None:
        reason = "" if printed is None else explain_difference(method, mean - printed, self.quick)
        note = f"{_NAMES.get(method, method)} differs by more than 0.01: {reason}"
        if reason and note not in self.notes:
            self.notes.append(note)


def _compare(mean: float, spread: float, printed: float | None) -> list[str]:
    """The paper's number, ours with its deviation, and the difference."""
    ours = f"{mean:.3f} ± {spread:.3f}"
    return ["", ours, ""] if printed is None else [f"{printed:.3f}", ours, f"{mean - printed:+.3f}"]


def _name_parameters(parameters: Mapping[str, Any]) -> str:
    """The paper's knobs."""
    if "ratios" in parameters:
        return f"r₁ = {parameters['ratios'][0]:g}"
    return f"p = {parameters['p']:g}, q = {parameters['q']:g}" if "p" in parameters else ""


def _pairs(found: Mapping[str, Any]) -> str:
    return f"{found['pairs'] / 1e6:.1f} M" if "pairs" in found else ""


def _draw(name: str, caption: str, folder: Path, draw: Callable[[Path], None]) -> Figure:
    """Draw a figure as .png and .svg, and take the second into the page."""
    draw(folder / f"{name}.png")
    draw(folder / f"{name}.svg")
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
    return Figure(name, caption, opening + body.replace(plots.INK, "currentColor"))
