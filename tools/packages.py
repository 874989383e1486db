"""The picture of the packages: a row for each layer of the import contract, an arrow for each import that is needed.

    python tools/packages.py           # writes docs/images/packages.svg anew
    python tools/packages.py --check   # status 1 if it is not up to date

Layers come from pyproject.toml, arrows from the imports themselves. An arrow is left out where others lead the same
way, as from `cli` by way of `estimators` to `graph`.
"""

from __future__ import annotations

import sys
import textwrap
import tomllib
from html import escape
from pathlib import Path

import grimp
import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "packages.svg"
WIDTH, HEIGHT, GAP, ROW = 116, 30, 14, 64
"""Of a box, between boxes, and from a row to the next."""


def is_package(name: str) -> bool:
    """Whether a name is that of a package, and not of a single module."""
    return (ROOT / "src" / "manela" / name).is_dir()


def read_layers() -> list[list[str]]:
    """The layers of the contract, the highest first; single modules between two packages are one box."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [one["layers"] for one in contracts if one.get("containers") == ["manela"]]
    rows: list[list[str]] = []
    for layer in layers:
        names = sorted(name.strip() for name in layer.split("|"))
        if is_package(names[0]):
            rows.append(names)
        elif rows and not is_package(rows[-1][0]):
            rows[-1] = [" ".join([rows[-1][0], *names])]
        else:
            rows.append([" ".join(names)])
    return rows


def find_imports(boxes: list[str]) -> nx.DiGraph:
    """Which box imports from which, without what follows from others."""
    found = grimp.build_graph("manela")
    box_of = {name: box for box in boxes for name in box.split()}
    graph = nx.DiGraph()
    graph.add_nodes_from(boxes)
    for name, box in box_of.items():
        for module in {f"manela.{name}", *found.find_descendants(f"manela.{name}")}:
            for imported in found.find_modules_directly_imported_by(module):
                other = box_of.get(imported.split(".")[1]) if "." in imported else None
                if other not in (None, box):
                    graph.add_edge(box, other)
    return nx.transitive_reduction(graph)


def wrap(box: str) -> list[str]:
    """The names in a box, in lines."""
    return textwrap.wrap(box.replace(" ", ", "), 88)


def draw(layers: list[list[str]], imports: nx.DiGraph) -> str:
    """The picture as SVG."""
    width, places, sizes = 760, {}, {}
    top = GAP
    for row, layer in enumerate(layers):
        size = (WIDTH, HEIGHT) if is_package(layer[0]) else (640, 18 * len(wrap(layer[0])) + 14)
        # rows of one box stand by turns left and right of the middle, so that long arrows pass beside them
        shift = (-90 if row % 2 else 90) if len(layer) == 1 and is_package(layer[0]) else 0
        left = (width - len(layer) * (size[0] + GAP) + GAP) / 2 + shift
        for column, name in enumerate(layer):
            places[name], sizes[name] = (left + column * (size[0] + 3 * GAP) - (len(layer) - 1) * GAP, top), size
        top += size[1] + ROW - HEIGHT
    height = top
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-label="The packages of manela and what they import" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#7a8694"/></marker></defs>',
    ]
    for name, other in sorted(imports.edges):
        (x1, y1), (x2, y2) = places[name], places[other]
        x1, y1 = x1 + sizes[name][0] / 2, y1 + sizes[name][1]
        x2 = x2 + WIDTH / 2 if is_package(other) else min(max(x1, x2 + GAP), x2 + sizes[other][0] - GAP)
        bend = (y2 - y1) / 2
        lines.append(
            f'<path d="M{x1:g} {y1:g}C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}" fill="none" '
            'stroke="#7a8694" stroke-width="1.2" marker-end="url(#tip)"/>'
        )
    for name, (x, y) in sorted(places.items()):
        fill, line = ("#dbe9f3", "#2a6f97") if is_package(name) else ("#f4f4f0", "#8a8a84")
        across, down = sizes[name]
        lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{across}" height="{down}" rx="5" fill="{fill}" stroke="{line}"/>'
        )
        for number, text in enumerate(wrap(name)):
            middle = f'x="{x + across / 2:g}" y="{y + 20 + 18 * number:g}"'
            lines.append(f'<text {middle} text-anchor="middle" fill="#1c1c1c">{escape(text)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> int:
    """Write the picture, or say whether it is up to date."""
    layers = read_layers()
    picture = draw(layers, find_imports([name for layer in layers for name in layer]))
    if "--check" in sys.argv[1:]:
        is_same = PICTURE.exists() and PICTURE.read_text() == picture
        print(
            "up to date" if is_same else f"{PICTURE.relative_to(ROOT)} is not up to date: run python tools/packages.py"
        )
        return 0 if is_same else 1
    PICTURE.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
