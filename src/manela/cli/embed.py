"""manela embed: learns the vectors of a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from manela.cli import options as o
from manela.errors import ParameterError
from manela.settings.parameters import LEARNING, RUNNING


@o.expand_flags
def embed(
    graph: o.GraphArgument,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the vectors: .npz .npy .csv .parquet …; - for stdout."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Also write a map of the vectors: a .html page.")
    ] = None,
    paper: o.Paper = False,  # noqa: ARG001
    thorough: o.Thorough = False,  # noqa: ARG001
    learning: Annotated[o.Values, o.Flags(*LEARNING)],
    reading: Annotated[o.Values, o.Reading(directed=True)],
    running: Annotated[o.Values, o.Flags(*RUNNING)],
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save the run here, so that it can be resumed.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(metavar="SECONDS", help="How often to save.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint, if there is one.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the time and memory that the run would take.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no notes.")] = False,
) -> None:
    """Learn a vector for each node of GRAPH.

    \b
    manela embed friends.csv -o vectors.npz
    manela embed friends.csv -o vectors.npz --map map.html
    manela embed blogcatalog -o vectors.npz --ratios 0.7,0.3 --checkpoint run/
    """
    if output is None and not dry_run:
        raise ParameterError("missing -o/--output, for example -o vectors.npz")
    if resume and checkpoint is None:
        raise ParameterError("--resume needs --checkpoint DIR, the folder of the run to resume")
    if not checkpoint_every >= 0:
        raise ParameterError.of("checkpoint_every", "must be at least 0 seconds", checkpoint_every)
    _embed(
        graph, output, page, {**learning, **running}, reading, checkpoint, checkpoint_every, resume, dry_run, quiet
    )  # fmt: skip


def _embed(
    source: str,
    output: Path | None,
    page: Path | None,
    parameters: o.Values,
    reading: dict[str, Any],
    folder: Path | None,
    every: float,
    resume: bool,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Load the network, learn or only estimate, and write the vectors and a map of them."""
    import warnings

    from manela.cli.map import check_page, write_page
    from manela.errors import ManelaWarning
    from manela.formats.embeddings import check_output
    from manela.formats.loading import load_graph
    from manela.settings.settings import check_all
    from manela.system.progress import report_download
    from manela.system.threads import allow_cores

    if quiet:
        warnings.simplefilter("ignore", ManelaWarning)
    settings = check_all(parameters)
    target = None if output is None else check_output(output)
    if page is not None:
        check_page(page)
    if output is not None and output.exists() and Path(source).exists() and output.samefile(source):
        raise ParameterError(f"{output}: is the network and would be overwritten; name another output")
    with allow_cores(settings.threads):
        graph = load_graph(source, **reading, progress=report_download(source))
    if target is not None:
        target.check_ids(graph.nodes)

    # slow imports come after the checks
    from manela.cli.display import describe, estimate_facts, facts_of, print_facts, say_written
    from manela.engines.checkpoint import Checkpoint
    from manela.estimators.manela import learn
    from manela.estimators.newcomers import add_placement
    from manela.system.progress import RunBar

    if dry_run or target is None:
        print_facts({"network": source, **facts_of(graph), **estimate_facts(graph, settings)})
        return
    checkpoint = None if folder is None else Checkpoint(folder, every, resume)
    with RunBar(sys.stderr.isatty() and not quiet, f"{source}: {describe(graph)}") as bar:
        try:
            embedding, _ = learn(graph, settings, reporter=bar.report, checkpoint=checkpoint)
        except (KeyboardInterrupt, SystemExit):
            if checkpoint is not None and checkpoint.file.exists():
                print(f"stopped; continue with --checkpoint {folder} --resume", file=sys.stderr)
            raise
    if target.kind == ".npz":
        embedding = add_placement(embedding, graph)
    target.write(embedding)
    if checkpoint is not None:
        checkpoint.remove()
    if bar.is_shown:
        say_written(embedding, target.path)
    if page is not None:
        name = target.path.name if source == "-" else Path(source).name
        write_page(embedding, page, quiet, edges=graph, title=f"Map of {name}")
        if bar.is_shown:
            print(f"wrote {page}, which opens in a browser", file=sys.stderr)
