"""manela groups: finds groups of nodes from their vectors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manela.cli.display import check_output, write_csv
from manela.cli.options import default
from manela.errors import ParameterError

if TYPE_CHECKING:
    from manela.analysis.groups import Groups

_MOST_SIZES = 10
"""Most group sizes that are printed; more make the line longer."""
_WEAK = 0.5
"""Agreement below which groups are called weak; larger warns more often."""


def groups(
    vectors: Annotated[Path, typer.Argument(metavar="VECTORS", help="What `manela embed` wrote.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file of `node,group` lines, or - for stdout.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-k", help="Number of groups; by default the one that fits best.")
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="kmeans|hdbscan", help="All nodes in groups, or dense regions only.")
    ] = "kmeans",
    labels: Annotated[str | None, typer.Option(metavar="FILE", help="Compare the groups with these labels.")] = None,
    random_state: Annotated[int, typer.Option(help="Seed; the same seed finds the same groups.")] = default(
        "random_state"
    ),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing about the groups.")] = False,
) -> None:
    """Find groups of nodes with similar vectors.

    Writes a node and its group per line. The largest group is 0; for a node without a group the field is empty. The
    scores on stderr are computed on a fifth of the nodes, which is held back while groups are found.

    \b
    manela groups vectors.npz -o groups.csv
    manela groups vectors.npz -o groups.csv --count 12 --labels departments.csv
    """
    from manela.formats.embeddings import read_embedding
    from manela.formats.ids import check_texts
    from manela.formats.loading import load_labels
    from manela.settings.parameters import check

    if output is None:
        raise ParameterError("missing -o/--output, for example -o groups.csv")
    if str(output) != "-" and output.suffix.lower() != ".csv":
        raise ParameterError(f"{output}: the output must be a .csv file, got {output.suffix!r}")
    check_output(output)
    check("random_state", random_state)
    embedding = read_embedding(vectors)
    check_texts(embedding.nodes, output)
    truth = None if labels is None else load_labels(labels).of(embedding.nodes)

    from manela.analysis.groups import compare_with_labels, find_groups

    result = find_groups(embedding.vectors, count, method, random_state)
    groups_of = (group if group >= 0 else "" for group in result.labels.tolist())
    write_csv(output, ("node", "group"), zip(embedding.nodes.tolist(), groups_of, strict=True))
    if quiet:
        return
    for line in _describe(result):
        print(line, file=sys.stderr)
    if truth is not None:
        score, nodes = compare_with_labels(result, truth)
        message = f"{score:.3f} of {nodes:,} nodes with one label" if nodes else "no node has exactly one label"
        print(f"adjusted mutual information with {labels}: {message}", file=sys.stderr)


def _describe(result: Groups) -> list[str]:
    sizes = ", ".join(f"{size:,}" for size in result.sizes[:_MOST_SIZES].tolist())
    ellipsis = ", …" if result.count > _MOST_SIZES else ""
    lines = [f"{result.count:,} {'group' if result.count == 1 else 'groups'} of {sizes or 'nothing'}{ellipsis} nodes"]
    ungrouped = int((result.labels < 0).sum())
    if ungrouped:
        lines[0] += f"; {ungrouped:,} nodes without a group"
    if not result.hidden:
        return [*lines, "no score: too few nodes to hide a part of them"]
    lines.append(f"silhouette of {result.hidden:,} hidden nodes: {result.silhouette:.3f} (-1 to 1)")
    lines.append(
        f"agreement of groups from two halves, on hidden nodes: {result.stability:.3f} (0 is chance, 1 the same)"
    )
    if result.stability < _WEAK:
        lines.append("note: the groups are weak: a different sample of the nodes would give different groups")
    return lines
