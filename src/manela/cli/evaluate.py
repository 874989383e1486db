"""manela evaluate: scores vectors by classification and link prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manela.cli import options as o
from manela.cli.display import counting
from manela.cli.options import default
from manela.cli.panels import Commands
from manela.errors import ParameterError
from manela.settings.parameters import PAPER, THOROUGH, check

evaluate = Commands("Score vectors by classification or link prediction.")

_PARAMETERS = ("dimensions", "window", "ratios", *(PAPER | THOROUGH), "context", "pairs", "rounds", "p", "q")
"""Parameters for the methods of `evaluate links`; each method takes those that it has."""

JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write every score here as JSON.")]
PlotFile = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the scores as .png or .svg.")]


@evaluate.command()
def classify(
    embedding: Annotated[Path, typer.Argument(metavar="OUT", help="What `manela embed` or another program wrote.")],
    labels: Annotated[
        str,
        typer.Argument(metavar="LABELS", help="`node label` lines, .csv, .tsv, .mat (`group`), or a data set's name."),
    ],
    train_ratios: Annotated[
        str, typer.Option(metavar="A,B,…", help="Shares of the nodes to train on.")
    ] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9",
    shuffles: Annotated[int, typer.Option(min=1, help="Number of random splits.")] = 10,
    random_state: o.RandomState = default("random_state"),
    jobs: o.Jobs = default("n_jobs"),
    json: JsonFile = None,
    plot: PlotFile = None,
) -> None:
    """Predict labels from vectors.

    Learns from some of the nodes and predicts the labels of the rest. One-versus-rest logistic regression; micro- and
    macro-F1, mean and standard deviation. "known" is the method of the literature: the number of labels of each node is
    given, and its most probable labels are predicted. "open" is the realistic case: all labels above a threshold, which
    is the best one for the training nodes.

    \b
    manela embed blogcatalog -o vectors.npz --ratios 0.7,0.3
    manela evaluate classify vectors.npz blogcatalog --plot scores.png
    """
    from manela.formats.embeddings import read_embedding
    from manela.formats.labels import sort_by_id
    from manela.formats.loading import load_labels

    ratios = o.parse_numbers("train_ratios", train_ratios)
    if not all(0 < ratio < 1 for ratio in ratios):
        raise ParameterError.of("train_ratios", "must be between 0 and 1", train_ratios)
    _check_outputs(json, plot)
    check("random_state", random_state)
    check("n_jobs", jobs)
    loaded = read_embedding(embedding)
    order = sort_by_id(loaded.nodes)
    vectors = loaded.vectors[order]
    truth = load_labels(labels).of(loaded.nodes[order])

    from manela.analysis import classification
    from manela.system.threads import count_jobs

    names = ("micro", "macro", "open_micro", "open_macro")
    rows: list[dict[str, Any]] = []
    with counting("shuffle", len(ratios) * shuffles) as done:
        for ratio in ratios:
            scores = classification.classify(
                vectors, truth, train_ratio=ratio, shuffles=shuffles, random_state=random_state,
                jobs=count_jobs(jobs), done=done,
            )  # fmt: skip
            rows.append({"train_ratio": ratio, **{name: getattr(scores, name).tolist() for name in names}})
    _print_table(
        ("train", "micro-F1 known", "macro-F1 known", "micro-F1 open", "macro-F1 open"),
        [(f"{row['train_ratio']:.0%}", *(_mean(row[name]) for name in names)) for row in rows],
    )
    _write_json(json, {"embedding": str(embedding), "labels": labels, "random_state": random_state, "scores": rows})
    if plot is not None:
        from manela.reproduction.drawing import plot_scores

        plot_scores({embedding.name: rows}, plot)


@evaluate.command()
@o.expand_flags
def links(
    graph: o.GraphArgument,
    *,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME,…",
            help="manela, deepwalk, node2vec, prone, netmf, common-neighbours, adamic-adar, preferential-attachment, "
            "or all.",
        ),
    ] = "manela",
    share: Annotated[float, typer.Option(help="Share of the edges to hide.")] = 0.2,
    nodes: Annotated[int, typer.Option(min=0, help="Random nodes to predict edges among; 0 for all.")] = 1024,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs, each with different hidden edges.")] = 10,
    paper: o.Paper = False,  # noqa: ARG001
    thorough: o.Thorough = False,  # noqa: ARG001
    parameters: Annotated[o.Values, o.Flags(*_PARAMETERS)],
    reading: Annotated[o.Values, o.Reading()],
    random_state: o.RandomState = default("random_state"),
    json: JsonFile = None,
    plot: PlotFile = None,
) -> None:
    """Hide edges of GRAPH, learn from the rest, predict them.

    Measures how high the hidden edges rank among all pairs without an edge. The score of a pair is the product of its
    vectors. MAP is the mean average precision over the nodes with a hidden edge; "MAP over all" averages over all
    nodes, as in the paper's equation. precision@k refers to a single list of all pairs.

    \b
    manela evaluate links ppi
    manela evaluate links ppi --paper --ratios 0.4,0.6
    manela evaluate links friends.csv --method all --runs 3
    """
    from manela.formats.loading import load_graph
    from manela.system.progress import report_download

    _check_outputs(json, plot)
    check("random_state", random_state)
    network = load_graph(graph, **reading, progress=report_download(graph))

    from manela.analysis.links import hide_edges, rank_links, sample_nodes
    from manela.analysis.methods import choose_methods, make_scorer

    chosen = choose_methods(method, network, parameters["window"])
    scores_by_method: dict[str, list[Any]] = {name: [] for name in chosen}
    with counting("run", runs * len(chosen)) as done:
        for run in range(runs):
            split = hide_edges(network, share, random_state + run)
            sample = sample_nodes(split, nodes or None, random_state + run)
            for name in chosen:
                scorer = make_scorer(name, split.graph, {**parameters, "random_state": random_state + run})
                scores_by_method[name].append(rank_links(scorer, split, sample, random_state=random_state + run))
                done()
    cutoffs = (1, 10, 100, 1000)
    _print_table(
        ("method", "MAP", "MAP over all", *(f"precision@{k}" for k in cutoffs), "AUC"),
        [
            (
                name,
                _mean([score.mean_average_precision for score in scores]),
                _mean([score.over_all for score in scores]),
                *(_mean([score.precision[k] for score in scores if k in score.precision]) for k in cutoffs),
                _mean([score.auc for score in scores]),
            )
            for name, scores in scores_by_method.items()
        ],
    )
    from dataclasses import asdict

    rows = {name: [asdict(score) for score in scores] for name, scores in scores_by_method.items()}
    _write_json(json, {"graph": graph, "share": share, "nodes": nodes, "random_state": random_state, "scores": rows})
    if plot is not None:
        from manela.reproduction.drawing import plot_precision

        plot_precision({name: [score.precision for score in scores] for name, scores in scores_by_method.items()}, plot)


def _mean(values: list[float]) -> str:
    from manela.analysis.classification import summarise

    if len(values) < 2:
        return f"{values[0]:.4f}" if values else "-"
    return "{:.4f} ± {:.4f}".format(*summarise(values))


def _print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        first, *cells = row
        print("  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells, widths[1:], strict=True))]))


def _check_outputs(json: Path | None, plot: Path | None) -> None:
    """Raise an error now for an output that could not be written after the work."""
    from manela.errors import import_extra
    from manela.reproduction.drawing import check_picture
    from manela.system.files import check_writable

    for path in (json, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        check_picture(plot)
        import_extra("matplotlib", "report", "drawing")


def _write_json(path: Path | None, content: dict[str, Any]) -> None:
    import json

    from manela.system.files import replace_file

    if path is not None:
        with replace_file(path) as file:
            file.write(json.dumps(content, indent=1).encode())
