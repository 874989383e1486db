"""manela info: prints facts about a network, and estimates what learning would take."""

from __future__ import annotations

from typing import Annotated

import typer

from manela.cli import options as o


@o.expand_flags
def info(
    graph: o.GraphArgument,
    *,
    paper: o.Paper = False,  # noqa: ARG001
    thorough: o.Thorough = False,  # noqa: ARG001
    learning: Annotated[
        o.Values,
        o.Flags(
            "dimensions",
            "window",
            "ratios",
            "negatives",
            "learning_rate",
            "exchange",
            "frequency",
            "start",
            "views",
            "smooth",
            "context",
            "pairs",
            "rounds",
            "patience",
        ),
    ],
    reading: Annotated[o.Values, o.Reading(directed=True)],
    running: Annotated[o.Values, o.Flags("n_jobs")],
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show facts about GRAPH, and what learning would take.

    Size, components and degrees, and the time and memory that `manela embed` would take.
    """
    import json

    from manela.cli.display import estimate_facts, facts_of, print_facts
    from manela.formats.loading import load_graph
    from manela.settings.settings import check_all
    from manela.system.progress import report_download

    settings = check_all({**learning, **running})
    network = load_graph(graph, **reading, progress=report_download(graph))
    facts = {"network": graph, **facts_of(network), **estimate_facts(network, settings)}
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        print_facts(facts)
