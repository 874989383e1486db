"""manela embed: learns the vectors of a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

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
    import warnings

    from manela.cli.map import check_page, write_page
    from manela.errors import ManelaWarning
    from manela.formats.embeddings import check_output
    from manela.formats.loading import load_graph
    from manela.settings.settings import check_all
    from manela.system.progress import report_download
    from manela.system.threads import allow_cores

    if output is None and not dry_run:
        raise ParameterError("missing -o/--output, for example -o vectors.npz")
    if resume and checkpoint is None:
        raise ParameterError("--resume needs --checkpoint DIR, the folder of the run to resume")
    if not checkpoint_every >= 0:
        raise ParameterError.of("checkpoint_every", "must be at least 0 seconds", checkpoint_every)
    if quiet:
        warnings.simplefilter("ignore", ManelaWarning)
    settings = check_all({**learning, **running})
    target = None if output is None else check_output(output)
    if page is not None:
        check_page(page)
    if output is not None and output.exists() and Path(graph).exists() and output.samefile(graph):
        raise ParameterError(f"{output}: is the network and would be overwritten; name another output")
    with allow_cores(settings.threads):
        network = load_graph(graph, **reading, progress=report_download(graph))
    if target is not None:
        target.check_ids(network.nodes)

    # slow imports come after the checks
    from manela.cli.display import describe, estimate_facts, facts_of, print_facts, say_written
    from manela.engines.checkpoint import Checkpoint
    from manela.estimators.manela import learn
    from manela.estimators.newcomers import add_placement
    from manela.system.progress import RunBar

    if dry_run or target is None:
        print_facts({"network": graph, **facts_of(network), **estimate_facts(network, settings)})
        return
    run = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_every, resume)
    with RunBar(sys.stderr.isatty() and not quiet, f"{graph}: {describe(network)}") as bar:
        try:
            embedding, _ = learn(network, settings, reporter=bar.report, checkpoint=run)
        except (KeyboardInterrupt, SystemExit):
            if run is not None and (run.file.exists() or run.aside.file.exists()):
                print(f"stopped; continue with --checkpoint {checkpoint} --resume", file=sys.stderr)
            raise
    if target.kind == ".npz":
        embedding = add_placement(embedding, network)
    target.write(embedding)
    if run is not None:
        run.remove()
    if bar.is_shown:
        say_written(embedding, target.path)
    if page is not None:
        name = target.path.name if graph == "-" else Path(graph).name
        write_page(embedding, page, quiet, edges=network, title=f"Map of {name}")
        if bar.is_shown:
            print(f"wrote {page}, which opens in a browser", file=sys.stderr)
