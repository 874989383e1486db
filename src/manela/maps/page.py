"""The map of vectors as one HTML page that works offline: points, their nearest, their edges and their names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.data.graph import Graph
from manela.data.nearest import VectorIndex, find_nearest
from manela.errors import GraphError, ManelaWarning, ParameterError, import_extra
from manela.kernels.layout import RowNumbers, Vectors
from manela.kernels.randomness import seed_of
from manela.maps.points import NEIGHBOURS, Colouring, choose_method, colour_nodes, lay_out
from manela.system.files import check_writable, replace_file

_SHOWN_NEIGHBOURS = 5
"""Neighbours that the page shows for a node; more make the page larger, by about 4 bytes each."""
_NOBODY = 0xFFFFFFFF
"""Stands for a missing neighbour."""
_RANGE = 65535
"""Coordinates on the page are integers from 0 to this, the largest that fits into 16 bits."""
_WORDS = {"tsne": "t-SNE", "umap": "UMAP", "pca": "principal components"}

Report = Callable[[str], None]


def write_map(
    embedding: Embedding,
    path: str | Path,
    labels: Any = None,
    edges: Any = None,
    method: str = "auto",
    random_state: Any = 0,
    *,
    title: str = "",
    report: Report | None = None,
) -> None:
    """Write a map of vectors as one HTML page, which works offline.

    Parameters
    ----------
    embedding : Embedding
    path : str or Path
        The file of the page; it is complete or does not appear at all.
    labels : Labels, dict by node, or array of shape (n,), optional
        Labels to colour nodes by; by default groups are found from the vectors.
    edges : Graph, or anything that `Graph.of` accepts, optional
        Links to draw between the points; if there are many, a random sample is drawn.
    method : {"auto", "umap", "tsne", "pca"}, default="auto"
        How vectors are placed on the plane: t-SNE for up to 2,000 nodes, UMAP for more if it is installed, and
        principal components if it is not.
    random_state : int, optional
        The seed. The same seed gives the same page, unless an index finds the neighbours, as for more than 20,000
        nodes.
    title : str, optional
        The page's title; by default it gives the number of nodes.
    report : callable, optional
        Called with a short message before each step that may take long.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> embedding = Embedding(np.arange(50), rng.normal(size=(50, 8)).astype(np.float32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_map(embedding, Path(folder) / "map.html", method="pca")
    ...     (Path(folder) / "map.html").read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    path, seed = Path(path), seed_of(random_state) % 2**32
    notify: Report = report or (lambda _: None)
    _check(embedding)
    check_writable(path)
    chosen = choose_method(method, len(embedding))
    links, total = (
        (np.empty((0, 2), dtype=np.uint32), 0) if edges is None else choose_links(embedding.nodes, edges, seed)
    )
    if labels is None:
        notify("finding groups")
    colouring = colour_nodes(embedding, labels, seed)
    notify("finding the nearest of each node")
    rows, cosines = find_all_neighbours(embedding.vectors, NEIGHBOURS - 1)
    notify(f"placing nodes by {_WORDS[chosen]}")
    points = lay_out(embedding.vectors, chosen, seed, (rows, cosines))
    content = MapContent(
        names=[str(node) for node in embedding.nodes.tolist()],
        points=points,
        colouring=colouring,
        neighbours=rows[:, :_SHOWN_NEIGHBOURS],
        cosines=cosines[:, :_SHOWN_NEIGHBOURS],
        links=links,
        edges=total,
        method=chosen,
        title=title or f"Map of {len(embedding):,} nodes",
        file=path.stem or "map",
    )
    notify("writing the page")
    with replace_file(path) as file:
        file.write(build_page(content).encode())


@dataclass(frozen=True, eq=False)
class MapContent:
    """The content of a page."""

    names: list[str]  # names of the nodes
    points: npt.NDArray[np.float32]  # (n, 2): positions of the nodes
    colouring: Colouring  # groups of the nodes
    # (n, k): the nearest nodes of each node, −1 for none, and their cosines
    neighbours: npt.NDArray[np.int64]
    cosines: npt.NDArray[np.float32]
    links: Pairs  # (links, 2): pairs of nodes that are joined by a line
    edges: int  # the number of edges, drawn or not
    method: str  # the layout method
    # the title of the page, and the name of the image files that it saves
    title: str
    file: str


def build_page(content: MapContent) -> str:
    """Return the page: the template filled with data, and a policy that admits only its own script and style.

    Data is zlib-compressed and base64-encoded, so it cannot be read as HTML; title, summary and legend are escaped.
    """
    template = files(__package__).joinpath("map.html").read_text(encoding="utf-8")
    colouring = content.colouring
    links = f", {len(content.links):,} of {content.edges:,} links drawn" if len(content.links) < content.edges else ""
    summary = f"{len(content.names):,} nodes by {_WORDS[content.method]}, {colouring.summary}{links}."
    positions = _quantise(content.points)
    missing = content.neighbours < 0
    neighbours = np.where(missing, _NOBODY, content.neighbours).astype("<u4")
    cosines = np.rint((np.where(missing, 0.0, content.cosines) + 1.0) * 32767.5).clip(0, _RANGE).astype("<u2")
    values = {
        "policy": _write_policy(template),
        "title": escape(content.title),
        "summary": escape(summary),
        "legend": escape(colouring.title),
        "facts": _pack_json(_list_facts(content)),
        "picture": _pack(positions.T.astype("<u2").tobytes() + colouring.groups.tobytes()),
        "links": _pack(content.links.astype("<u4").tobytes()),
        "names": _pack_json(content.names),
        "neighbours": _pack(neighbours.tobytes() + cosines.tobytes()),
    }
    # substitute in one pass, so that a placeholder in the title is not filled in
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)


def _check(embedding: Embedding) -> None:
    if len(embedding) < 2:
        raise ParameterError(f"a map needs at least 2 nodes, got {len(embedding)}")
    if not np.isfinite(embedding.vectors).all():
        raise ParameterError("vectors must be finite numbers, got nan or infinity")


def _list_facts(content: MapContent) -> dict[str, Any]:
    names, grey = content.colouring.names, content.colouring.grey
    sizes = np.bincount(content.colouring.groups, minlength=len(names)).tolist()
    return {
        "nodes": len(content.names),
        "neighbours": content.neighbours.shape[1],
        "groups": [
            {"name": name, "size": size, "grey": position >= len(names) - grey}
            for position, (name, size) in enumerate(zip(names, sizes, strict=True))
        ],
        "links": {"drawn": len(content.links), "total": content.edges},
        "file": content.file,
    }


def _quantise(points: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Return positions as integers, with the same scale on both axes, centred on the page."""
    low, high = points.min(axis=0).astype(np.float64), points.max(axis=0).astype(np.float64)
    span = max(float((high - low).max()), 1e-30)
    positions: npt.NDArray[np.int64] = np.rint((points - (low + high) / 2) / span * _RANGE + _RANGE / 2).astype(
        np.int64
    )
    return positions.clip(0, _RANGE)


def _write_policy(template: str) -> str:
    """Return a content security policy: load nothing, and use only the template's script and style, by their hashes."""
    script = _hash(re.findall(r"<script>(.*?)</script>", template, re.DOTALL)[0])
    style = _hash(re.findall(r"<style>(.*?)</style>", template, re.DOTALL)[0])
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _pack_json(value: Any) -> str:
    return _pack(json.dumps(value, separators=(",", ":")).encode())


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


Pairs = npt.NDArray[np.uint32]

_MOST_LINKS = 30_000
"""Most links that are drawn; more make the page larger and cover the points."""


def choose_links(
    nodes: npt.NDArray[Any], edges: Any, random_state: int = 0, most: int = _MOST_LINKS
) -> tuple[Pairs, int]:
    """Return the links to draw, (links, 2), and the number of edges between the nodes.

    Ids of the map's nodes and of the edges are compared as text. Of more than `most` edges, a random sample is drawn.

    Examples
    --------
    >>> pairs, total = choose_links(np.array([10, 20, 30]), [(10, 20), (20, 30)])
    >>> pairs.tolist(), total
    ([[0, 1], [1, 2]], 2)
    """
    graph = Graph.of(edges, duplicates="first")
    rows = {str(node): row for row, node in enumerate(nodes.tolist())}
    positions = np.array([rows.get(str(node), -1) for node in graph.nodes.tolist()], dtype=np.int64)
    sources = positions[np.repeat(np.arange(len(positions)), np.diff(graph.indptr))]
    pairs = np.column_stack((sources, positions[graph.indices]))
    known = (pairs >= 0).all(axis=1)
    low, high = pairs[known].min(axis=1), pairs[known].max(axis=1)
    codes = np.unique(low * len(nodes) + high)  # a graph has each edge in both directions; draw it once
    pairs = np.column_stack(np.divmod(codes, len(nodes)))
    if not len(pairs):
        raise GraphError("no edge joins two nodes of the map; the edges and the vectors must be of the same network")
    if not known.all():
        left_out = int((positions < 0).sum())
        warnings.warn(
            f"edges of {left_out:,} nodes that have no vector are left out of the map", ManelaWarning, stacklevel=2
        )
    total = len(pairs)
    if total > most:
        chosen = np.random.default_rng(random_state).choice(total, most, replace=False)
        pairs = pairs[np.sort(chosen)]
    return pairs.astype(np.uint32), total


_EXACT = 20_000
"""Most nodes for which the exact search is the default; its time grows with the square of their number."""
_MOST_EXACT = 200_000
"""Most nodes for which the exact search is allowed without an index; with more it would take hours."""


def find_all_neighbours(
    vectors: Vectors, count: int, exact: int = _EXACT, most_exact: int = _MOST_EXACT
) -> tuple[RowNumbers, Vectors]:
    """Return the nearest other nodes of every node, and the cosines, nearest first: at most n − 1 for each.

    Up to `exact` nodes are searched exactly, and up to `most_exact` if there is no index.

    Examples
    --------
    >>> rows, _ = find_all_neighbours(np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32), 1)
    >>> rows[:, 0].tolist()
    [1, 0, 1]
    """
    nodes = len(vectors)
    count = min(count, nodes - 1)
    itself = np.arange(nodes)[:, None]
    if nodes > most_exact:
        import_extra("usearch.index", "index", f"a map of more than {most_exact:,} nodes")
    if nodes <= exact or find_spec("usearch") is None:
        return find_nearest(vectors, vectors, count, exclude=itself)
    rows, cosines = VectorIndex(vectors).find_nearest(vectors, count + 1)
    # a node usually finds itself, which is dropped; if it does not, its last neighbour is dropped instead
    is_itself = rows == itself
    is_itself[~is_itself.any(axis=1), -1] = True
    kept = ~is_itself
    # the neighbours of a node are distinct, so exactly one is dropped from each row
    return rows[kept].reshape(nodes, count), np.clip(cosines[kept].reshape(nodes, count), -1.0, 1.0)
