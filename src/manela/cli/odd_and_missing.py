"""manela anomalies and manela recommend: the odd and the missing edges of a network."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manela.cli import options as o
from manela.cli.options import default

if TYPE_CHECKING:
    from manela.graph import Graph

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where lines of CSV go; - for stdout.")]
Dimensions = Annotated[int, o.flag("dimensions")]


@o.expand_flags
def anomalies(
    graph: o.GraphArgument,
    *,
    output: Output,
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="How many edges, the oddest first.")] = 100,
    folds: Annotated[
        int, typer.Option(min=2, metavar="N", help="Parts that are hidden in turn; more take longer and learn more.")
    ] = 5,
    dimensions: Dimensions = default("dimensions"),
    random_state: o.RandomState = default("random_state"),
    jobs: o.Jobs = default("n_jobs"),
    reading: Annotated[dict[str, Any], o.Reading()],
) -> None:
    """Find odd edges: those that the rest of the network does not lead one to expect.

    Every edge is judged by vectors that were learned without it. Its oddness is the share of random pairs without an
    edge that are at least as similar. How well this tells edges from random pairs is said on stderr.

    \b
    manela anomalies transfers.csv -o odd.csv
    """
    from manela.bar import report_download
    from manela.datasets.loading import load_graph
    from manela.evaluation.odd_edges import find_odd_edges

    write = _check_output(output)
    network = load_graph(graph, **reading, progress=report_download(graph))
    shown = [0]

    def done() -> None:
        shown[0] += 1
        if sys.stderr.isatty():
            print(f"\rpart {shown[0]} of {folds}", end="" if shown[0] < folds else "\n", file=sys.stderr, flush=True)

    found = find_odd_edges(network, _learn(dimensions, random_state, jobs), folds, random_state, done)
    nodes = network.nodes
    rows = (
        (nodes[source], nodes[target], f"{oddness:.5f}", f"{similarity:.4f}")
        for source, target, oddness, similarity in zip(
            found.sources[:count], found.targets[:count], found.oddness[:count], found.similarity[:count], strict=True
        )
    )
    write(("source", "target", "oddness", "similarity"), rows)
    left = network.number_of_edges - found.judged
    words = f"{output}: {min(count, found.judged):,} of {found.judged:,} edges that were judged"
    words += f" ({left:,} have an end without other edges)" if left else ""
    print(f"{words}; AUC of hidden edges against random pairs {found.auc:.3f}", file=sys.stderr)


@o.expand_flags
def recommend(
    graph: o.GraphArgument,
    *,
    output: Output,
    node: Annotated[
        list[str] | None, typer.Option("--node", metavar="ID", help="Only for this node; may be repeated.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-k", min=1, max=1000, help="How many for each node.")] = 10,
    vectors: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Use these vectors of the network, rather than learn some.")
    ] = None,
    score: Annotated[
        bool, typer.Option("--score/--no-score", help="Hide a part of the edges and see how many are found.")
    ] = True,
    dimensions: Dimensions = default("dimensions"),
    random_state: o.RandomState = default("random_state"),
    jobs: o.Jobs = default("n_jobs"),
    reading: Annotated[dict[str, Any], o.Reading()],
) -> None:
    """Recommend edges: for each node, those that it is not joined with and whose vectors go best with its own.

    How many of the edges that were hidden for a trial are found is said on stderr, beside common neighbours.

    \b
    manela recommend friends.csv -o recommended.csv --count 5
    manela recommend friends.csv -o - --node alice
    """
    import numpy as np

    from manela.bar import report_download
    from manela.datasets.loading import load_graph
    from manela.errors import GraphError, UnknownNodeError
    from manela.evaluation import missing_edges
    from manela.evaluation.links import score_vectors

    write = _check_output(output)
    network = load_graph(graph, **reading, progress=report_download(graph))
    learn = _learn(dimensions, random_state, jobs)
    rows = np.arange(network.number_of_nodes)
    if node:
        written = {str(known): row for row, known in enumerate(network.nodes.tolist())}
        for name in node:
            if name not in written:
                raise UnknownNodeError(f"{graph}: no node has the id {name!r}; the first is {network.nodes[0]}")
        rows = np.array([written[name] for name in node])
    table = learn(network) if vectors is None else _read_vectors(vectors, network)
    found = missing_edges.recommend(network, score_vectors(table), rows, count)
    nodes = network.nodes
    lines = (
        (nodes[row], nodes[place], f"{value:.4f}")
        for row, (places, values) in zip(rows.tolist(), found, strict=True)
        for place, value in zip(places.tolist(), values.tolist(), strict=True)
    )
    write(("source", "target", "score"), lines)
    print(f"{output}: up to {count} for each of {len(rows):,} nodes", file=sys.stderr)
    if score:
        try:
            recall = missing_edges.measure_recall(network, learn, count, random_state)
        except GraphError as error:
            print(f"no score: {error}", file=sys.stderr)
            return
        print(
            f"of {recall.hidden:,} edges hidden for a trial, {recall.by_vectors:.1%} are among {count} recommended by "
            f"vectors, {recall.by_neighbours:.1%} among {count} by common neighbours",
            file=sys.stderr,
        )


def _learn(dimensions: int, random_state: int, jobs: int | None) -> Any:
    from manela.estimators.manela import Manela

    def learn(graph: Graph) -> Any:
        import warnings

        from manela.errors import ManelaWarning

        with warnings.catch_warnings(action="ignore", category=ManelaWarning):
            # of nodes whose edges are hidden, which is as it should be
            return Manela(dimensions=dimensions, random_state=random_state, n_jobs=jobs).fit(graph).embedding_

    return learn


def _read_vectors(path: Path, graph: Graph) -> Any:
    """The vectors of a network's nodes, in their order."""
    from manela.formats.embeddings import read_embedding

    read = read_embedding(path)
    return read.vectors[read.rows(graph.nodes)]


def _check_output(output: Path) -> Any:
    """What writes a header and rows there; refused now if it could not be written later."""
    from manela.files import check_writable, replace_file

    if str(output) != "-":
        check_writable(output)

    def write(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
        if str(output) == "-":
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
            return
        with replace_file(output) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
            text.detach()

    return write
