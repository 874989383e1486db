"""manela anomalies and manela recommend: the odd and the missing edges of a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manela.cli import options as o
from manela.cli.display import check_output, counting, write_csv
from manela.cli.options import default

if TYPE_CHECKING:
    from manela.data.graph import Graph

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="CSV file to write; - for stdout.")]
Dimensions = Annotated[int, o.flag("dimensions")]


@o.expand_flags
def anomalies(
    graph: o.GraphArgument,
    *,
    output: Output,
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="Number of edges, the oddest first.")] = 100,
    folds: Annotated[
        int,
        typer.Option(
            min=2, metavar="N", help="Parts that are hidden in turn; more are slower and learn from more edges."
        ),
    ] = 5,
    dimensions: Dimensions = default("dimensions"),
    random_state: o.RandomState = default("random_state"),
    jobs: o.Jobs = default("n_jobs"),
    reading: Annotated[dict[str, Any], o.Reading()],
) -> None:
    """Find odd edges, which the other edges do not suggest.

    Every edge is scored by vectors that were learned without it. Its oddness is the share of random pairs without an
    edge that are at least as similar. How well this separates edges from random pairs is printed to stderr.

    \b
    manela anomalies transfers.csv -o odd.csv
    """
    from manela.analysis.edges import find_odd_edges
    from manela.formats.loading import load_graph
    from manela.system.progress import report_download

    check_output(output)
    network = load_graph(graph, **reading, progress=report_download(graph))
    with counting("part", folds) as done:
        odd = find_odd_edges(network, _learn(dimensions, random_state, jobs), folds, random_state, done)
    nodes = network.nodes
    rows = (
        (nodes[source], nodes[target], f"{oddness:.5f}", f"{similarity:.4f}")
        for source, target, oddness, similarity in zip(
            odd.sources[:count], odd.targets[:count], odd.oddness[:count], odd.similarity[:count], strict=True
        )
    )
    write_csv(output, ("source", "target", "oddness", "similarity"), rows)
    not_judged = network.number_of_edges - odd.judged
    message = f"{output}: {min(count, odd.judged):,} of {odd.judged:,} judged edges"
    message += f" ({not_judged:,} have an end without other edges)" if not_judged else ""
    print(f"{message}; AUC of hidden edges against random pairs {odd.auc:.3f}", file=sys.stderr)


@o.expand_flags
def recommend(
    graph: o.GraphArgument,
    *,
    output: Output,
    node: Annotated[
        list[str] | None, typer.Option("--node", metavar="ID", help="Only for this node; may be repeated.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-k", min=1, max=1000, help="Edges for each node.")] = 10,
    vectors: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Use these vectors instead of learning new ones.")
    ] = None,
    score: Annotated[
        bool, typer.Option("--score/--no-score", help="Hide some of the edges and measure how many are found.")
    ] = True,
    dimensions: Dimensions = default("dimensions"),
    random_state: o.RandomState = default("random_state"),
    jobs: o.Jobs = default("n_jobs"),
    reading: Annotated[dict[str, Any], o.Reading()],
) -> None:
    """Recommend edges that are missing.

    For each node, the nodes with the best matching vectors that are not its neighbours yet. The share of hidden edges
    that are found in a trial is printed to stderr, compared with common neighbours.

    \b
    manela recommend friends.csv -o recommended.csv --count 5
    manela recommend friends.csv -o - --node alice
    """
    import numpy as np

    from manela.analysis import edges as missing_edges
    from manela.analysis.links import score_vectors
    from manela.errors import GraphError, UnknownNodeError
    from manela.formats.loading import load_graph
    from manela.system.progress import report_download

    check_output(output)
    network = load_graph(graph, **reading, progress=report_download(graph))
    learn = _learn(dimensions, random_state, jobs)
    rows = np.arange(network.number_of_nodes)
    if node:
        rows_by_text = {str(known): row for row, known in enumerate(network.nodes.tolist())}
        for name in node:
            if name not in rows_by_text:
                raise UnknownNodeError(f"{graph}: no node has the id {name!r}; the first is {network.nodes[0]}")
        rows = np.array([rows_by_text[name] for name in node])
    table = learn(network) if vectors is None else _read_vectors(vectors, network)
    recommended = missing_edges.recommend(network, score_vectors(table), rows, count)
    nodes = network.nodes
    lines = (
        (nodes[row], nodes[column], f"{value:.4f}")
        for row, (columns, values) in zip(rows.tolist(), recommended, strict=True)
        for column, value in zip(columns.tolist(), values.tolist(), strict=True)
    )
    write_csv(output, ("source", "target", "score"), lines)
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
            # warnings about nodes without edges: theirs are hidden on purpose
            return Manela(dimensions=dimensions, random_state=random_state, n_jobs=jobs).fit(graph).embedding_

    return learn


def _read_vectors(path: Path, graph: Graph) -> Any:
    from manela.formats.embeddings import read_embedding

    embedding = read_embedding(path)
    return embedding.vectors[embedding.rows(graph.nodes)]
