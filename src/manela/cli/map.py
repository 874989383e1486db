"""manela map: writes a map of vectors as an HTML page."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manela.cli.options import default
from manela.errors import ParameterError

if TYPE_CHECKING:
    from manela.data.embedding import Embedding

_MANY = 20_000
"""Nodes above which progress is printed; larger prints it less often."""


def map_vectors(
    vectors: Annotated[Path, typer.Argument(metavar="VECTORS", help="What `manela embed` wrote.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File for the page: .html.")] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Colour nodes by these labels rather than by found groups.")
    ] = None,
    edges: Annotated[
        str | None, typer.Option(metavar="GRAPH", help="Draw the edges of this network, a file or a data set.")
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="auto|umap|tsne|pca", help="How vectors are placed on the plane.")
    ] = "auto",
    title: Annotated[str, typer.Option(help="Title of the page; by default the name of the file.")] = "",
    random_state: Annotated[
        int, typer.Option(help="Seed; the same seed draws the same map of up to 20,000 nodes.")
    ] = default("random_state"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no notes.")] = False,
) -> None:
    """Draw a map of vectors as an HTML page.

    The page is a single file, works offline and sends no data.

    \b
    manela map vectors.npz -o map.html
    manela map vectors.npz -o map.html --labels departments.csv --edges friends.csv
    """
    import warnings

    from manela.errors import ManelaWarning
    from manela.formats.embeddings import read_embedding
    from manela.formats.loading import load_graph, load_labels
    from manela.settings.parameters import check

    if output is None:
        raise ParameterError("missing -o/--output, for example -o map.html")
    if quiet:
        warnings.simplefilter("ignore", ManelaWarning)
    check_page(output)
    check("random_state", random_state)
    embedding = read_embedding(vectors)
    known_labels = None if labels is None else load_labels(labels)
    graph = None if edges is None else load_graph(edges)
    write_page(
        embedding, output, quiet, labels=known_labels, edges=graph, method=method, random_state=random_state,
        title=title or f"Map of {vectors.name}",
    )  # fmt: skip


def check_page(path: Path) -> None:
    """Raise unless a page can be written there."""
    from manela.system.files import check_writable

    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"{path}: the file name of a map must end in .html")
    check_writable(path)


def write_page(embedding: Embedding, path: Path, quiet: bool, **options: Any) -> None:
    """Write a map, and print its steps if there are many nodes; the options are those of `write_map`."""
    from manela.maps.page import write_map

    started = time.monotonic()

    def report(step: str) -> None:
        if len(embedding) > _MANY and not quiet:
            print(f"{time.monotonic() - started:6.1f} s  {step}", file=sys.stderr, flush=True)

    write_map(embedding, path, report=report, **options)
    report(f"wrote {path}, {path.stat().st_size / 1e6:.1f} MB")
