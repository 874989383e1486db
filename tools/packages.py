"""The picture of the rooms: a row for each layer of the import contract, an arrow for each import that is needed.

    python tools/packages.py           # writes docs/images/packages.svg
    python tools/packages.py --check   # status 1 if it is not up to date

Layers come from pyproject.toml, arrows from the imports themselves: those of all rooms, and those inside `hosts`. An
arrow is left out where others lead the same way, as from `cli` to `data` by way of `estimators`.
"""

from __future__ import annotations

import sys
import tomllib
from itertools import combinations, permutations, product
from pathlib import Path

import grimp
import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "packages.svg"
WIDTH, HEIGHT, COLUMN, ROW, TOP = 112, 30, 130, 68, 60
"""Of a box; from a column to the next, and from a row to the next; and above the first row."""
COLUMNS = (-1.25, -1.0, -0.5, 0.0, 0.5, 1.0, 1.25)
"""Where the only box of a row may stand, in columns from the middle."""
PANEL = 480

Layers = list[list[str]]
Places = dict[str, tuple[float, int]]
"""The middle of each box, in columns from the middle of the panel, and its row."""


def read_layers(container: str) -> Layers:
    """The layers of a container's contract, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract.get("containers") == [container]]
    return [[name.strip() for name in layer.split("|")] for layer in layers]


def find_imports(container: str, names: list[str]) -> nx.DiGraph:
    """Which box imports from which, without what follows from others."""
    modules = grimp.build_graph("manela")
    box_of = {module: name for name in names for module in
              {f"{container}.{name}", *modules.find_descendants(f"{container}.{name}")}}  # fmt: skip
    imports = nx.DiGraph()
    imports.add_nodes_from(names)
    for module, box in box_of.items():
        for imported in modules.find_modules_directly_imported_by(module):
            if box_of.get(imported, box) != box:
                imports.add_edge(box, box_of[imported])
    return nx.transitive_reduction(imports)


def arrange(layers: Layers, imports: nx.DiGraph) -> Places:
    """Place the boxes so that arrows pass behind no box, cross seldom, and are short."""
    choices = []
    for layer in layers:
        orders = permutations(layer)
        middle = (len(layer) - 1) / 2
        spots = [[at] for at in COLUMNS] if len(layer) == 1 else [[at - middle for at in range(len(layer))]]
        choices.append([dict(zip(order, spot, strict=True)) for order in orders for spot in spots])
    row_of = {name: row for row, layer in enumerate(layers) for name in layer}
    arrows = sorted(imports.edges, key=lambda arrow: (row_of[arrow[0]], row_of[arrow[1]], arrow))

    def judge(rows: tuple[dict[str, float], ...]) -> float:
        at = {name: spot for row in rows for name, spot in row.items()}
        behind = crossing = length = 0.0
        for first, last in arrows:
            begin, end = row_of[first], row_of[last]
            length += abs(at[last] - at[first])
            for row in range(begin + 1, end):
                here = at[first] + (at[last] - at[first]) * (row - begin) / (end - begin)
                behind += sum(abs(here - spot) < 0.62 for spot in rows[row].values())
        for (a, b), (c, d) in combinations(arrows, 2):
            if row_of[a] == row_of[c] and row_of[b] == row_of[d]:
                crossing += (at[a] - at[c]) * (at[b] - at[d]) < 0
        return 100 * behind + 10 * crossing + length

    # the best of each row in turn, several times over, as there are too many combinations of all
    rows = [choice[0] for choice in choices]
    for _ in range(4):
        for pair in combinations(range(len(rows)), 3):
            options = product(*(choices[row] for row in pair))
            best = min(options, key=lambda chosen: judge(tuple(replace_rows(rows, pair, chosen))))
            rows = replace_rows(rows, pair, best)
    return {name: (spot, row) for row, spots in enumerate(rows) for name, spot in spots.items()}


def replace_rows(rows: list[dict[str, float]], where: tuple[int, ...], new: tuple[dict[str, float], ...]) -> list:
    """The rows with some of them replaced."""
    changed = dict(zip(where, new, strict=True))
    return [changed.get(row, spots) for row, spots in enumerate(rows)]


def draw_panel(title: str, left: float, container: str) -> tuple[list[str], int]:
    """The boxes and arrows of a container as SVG, and how many rows they take."""
    layers = read_layers(container)
    imports = find_imports(container, [name for layer in layers for name in layer])
    places = {name: (left + PANEL / 2 + COLUMN * spot, TOP + ROW * row)
              for name, (spot, row) in arrange(layers, imports).items()}  # fmt: skip
    parts = [f'<text x="{left + PANEL / 2:g}" y="34" text-anchor="middle" font-weight="bold">{title}</text>']
    for name, other in sorted(imports.edges):
        (x1, y1), (x2, y2) = places[name], places[other]
        parts.append(
            f'<path d="M{x1:g} {y1 + HEIGHT:g}L{x2:g} {y2:g}" stroke="#7a8694" stroke-width="1.2" '
            'marker-end="url(#tip)"/>'
        )
    for name, (x, y) in sorted(places.items()):
        is_package = (ROOT / "src" / container.replace(".", "/") / name).is_dir()
        fill, line = ("#dbe9f3", "#2a6f97") if is_package else ("#f4f4f0", "#8a8a84")
        parts.append(
            f'<rect x="{x - WIDTH / 2:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{fill}" '
            f'stroke="{line}"/>\n<text x="{x:g}" y="{y + 20:g}" text-anchor="middle" fill="#1c1c1c">{name}</text>'
        )
    return parts, len(layers)


def draw() -> str:
    """The picture as SVG: all rooms, and the rooms inside hosts beside them."""
    rooms, rows = draw_panel("manela", 0, "manela")
    inside, rows_inside = draw_panel("inside hosts", PANEL, "manela.hosts")
    width, height = 2 * PANEL, TOP + ROW * max(rows, rows_inside) - ROW + HEIGHT + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-label="The rooms of manela and what they import" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#7a8694"/></marker></defs>',
        f'<path d="M{PANEL} 20V{height - 20}" stroke="#d6dade"/>',
    ]
    return "\n".join([*lines, *rooms, *inside, "</svg>"]) + "\n"


def main() -> int:
    """Write the picture, or say whether it is up to date."""
    picture = draw()
    if "--check" in sys.argv[1:]:
        is_same = PICTURE.exists() and PICTURE.read_text() == picture
        message = f"{PICTURE.relative_to(ROOT)} is not up to date: run python tools/packages.py"
        print("up to date" if is_same else message)
        return 0 if is_same else 1
    PICTURE.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
