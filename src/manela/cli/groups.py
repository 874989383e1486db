"""manela groups: which nodes belong together, from their vectors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manela.cli import options as o
from manela.cli.options import default
from manela.errors import ParameterError

if TYPE_CHECKING:
    from manela.answers.groups import Groups

_MOST_SIZES = 10
"""Sizes of groups that are told; more make the line long."""
_WEAK = 0.5
"""Agreement below which groups are called weak."""


def groups(
    vectors: Annotated[Path, typer.Argument(metavar="VECTORS", help="What `manela embed` wrote.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where `node,group` lines go, or - for stdout.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-k", help="How many groups; by default the number that fits best.")
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="kmeans|hdbscan", help="All nodes in groups, or dense regions only.")
    ] = "kmeans",
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Say how well groups agree with these labels.")
    ] = None,
    random_state: o.RandomState = default("random_state"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not tell of the groups.")] = False,
) -> None:
    """Find groups of nodes whose vectors point the same way, and write a node and its group a line.

    The largest group is 0; a node in no group has an empty one. The scores on stderr are of a fifth of the nodes, which
    is hidden while groups are found.

    \b
    manela groups vectors.npz -o groups.csv
    manela groups vectors.npz -o groups.csv --count 12 --labels departments.csv
    """
    from manela.datasets.loading import load_labels
    from manela.files import check_writable
    from manela.formats.embeddings import read_embedding
    from manela.formats.ids import check_texts
    from manela.params import check

    if output is None:
        raise ParameterError("say where the groups go, as in -o groups.csv")
    if str(output) != "-":
        if output.suffix.lower() != ".csv":
            raise ParameterError(f"{output}: groups are written as .csv, got {output.suffix!r}")
        check_writable(output)
    check("random_state", random_state)
    embedding = read_embedding(vectors)
    check_texts(embedding.nodes, output)
    truth = None if labels is None else load_labels(labels).of(embedding.nodes)

    from manela.answers.groups import compare_with_labels, find_groups

    found = find_groups(embedding.vectors, count, method, random_state)
    _write(embedding.nodes.tolist(), found, output)
    if quiet:
        return
    for line in _describe(found):
        print(line, file=sys.stderr)
    if truth is not None:
        score, nodes = compare_with_labels(found, truth)
        words = f"{score:.3f} of {nodes:,} nodes with one label" if nodes else "no node has exactly one label"
        print(f"adjusted mutual information with {labels}: {words}", file=sys.stderr)


def _write(nodes: list[Any], found: Groups, output: Path) -> None:
    """A node and its group a line, under a header; all of it or nothing."""
    import csv
    import io

    from manela.files import replace_file

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("node", "group"))
    rows.writerows(
        (node, group if group >= 0 else "") for node, group in zip(nodes, found.labels.tolist(), strict=True)
    )
    if str(output) == "-":
        sys.stdout.write(text.getvalue())
        return
    with replace_file(output) as file:
        file.write(text.getvalue().encode(errors="surrogatepass"))


def _describe(found: Groups) -> list[str]:
    """How many groups, their sizes, and the scores, a line each."""
    sizes = ", ".join(f"{size:,}" for size in found.sizes[:_MOST_SIZES].tolist())
    more = ", …" if found.count > _MOST_SIZES else ""
    lines = [f"{found.count:,} {'group' if found.count == 1 else 'groups'} of {sizes or 'nothing'}{more} nodes"]
    outside = int((found.labels < 0).sum())
    if outside:
        lines[0] += f"; {outside:,} nodes are in none"
    if not found.hidden:
        return [*lines, "no score: there are too few nodes to hide a part of them"]
    lines.append(f"silhouette of {found.hidden:,} hidden nodes: {found.silhouette:.3f} (-1 to 1)")
    lines.append(
        f"agreement of groups from two halves, on hidden nodes: {found.stability:.3f} (0 is chance, 1 the same)"
    )
    if found.stability < _WEAK:
        lines.append("note: the groups are weak: other nodes of the same network would give other ones")
    return lines
