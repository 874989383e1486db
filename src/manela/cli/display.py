"""What commands print and write: facts about networks and runs, progress, and tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manela.data.embedding import Embedding
    from manela.data.graph import Graph
    from manela.settings.settings import Settings


def say_written(embedding: Embedding, output: Path) -> None:
    """Print a summary of what was written."""
    provenance = embedding.provenance
    message = f"{len(embedding):,} vectors after {provenance['pairs_made']:,} update pairs on {provenance['engine']}"
    print(f"{output}: {message}", file=sys.stderr)


def describe(graph: Graph) -> str:
    """Return the size of a network, and what was dropped from it, in one line."""
    text = repr(graph)[len("Graph(") : -1]
    counts = ((graph.self_loops, "self-loops dropped"), (graph.duplicates, "repeated edges"))
    dropped = [f"{number:,} {what}" for number, what in counts if number]
    return f"{text} ({', '.join(dropped)})" if dropped else text


def facts_of(graph: Graph) -> dict[str, Any]:
    """Return size, components and degrees."""
    import numpy as np
    from scipy.sparse.csgraph import connected_components

    degrees = graph.degrees
    components, membership = connected_components(graph.to_scipy(), directed=graph.directed, connection="weak")
    return {
        "nodes": graph.number_of_nodes,
        "edges": graph.number_of_edges,
        "directed": graph.directed,
        "weighted": graph.is_weighted,
        "self-loops dropped": graph.self_loops,
        "repeated edges": graph.duplicates,
        "components": int(components),
        "largest component": int(np.bincount(membership).max()),
        "isolated nodes": int(np.count_nonzero(degrees == 0)),
        "degree, mean": round(float(degrees.mean()), 2),
        "degree, median": float(np.median(degrees)),
        "degree, largest": int(degrees.max()),
    }


def estimate_facts(graph: Graph, settings: Settings) -> dict[str, Any]:
    """Return the estimated update pairs, time and memory of a run."""
    from manela.engines.estimate import estimate

    estimated = estimate(graph, settings)
    others = {"… of a GPU, MB": estimated.gpu_bytes, "… of Ray's object store, MB": estimated.store_bytes}
    return {
        "update pairs": estimated.pairs,
        "rounds": estimated.rounds,
        "threads": settings.threads,
        "estimated seconds": round(estimated.seconds, 2),
        "estimated peak memory, MB": round(estimated.bytes / 1e6, 2),
        **{name: round(size / 1e6, 2) for name, size in others.items() if size},  # walks run on the CPU only
    }


def print_facts(facts: dict[str, Any]) -> None:
    """Print one name and value per line."""
    width = max(27, *(len(name) + 2 for name in facts))
    for name, value in facts.items():
        if isinstance(value, bool):
            shown = "yes" if value else "no"
        elif isinstance(value, int | float):
            shown = f"{value:,}"
        else:
            shown = str(value)
        print(f"{name:<{width}}{shown}")


def check_output(path: Path) -> None:
    """Raise OutputError if a file could not be written, before the work; - is stdout."""
    from manela.system.files import check_writable

    if str(path) != "-":
        check_writable(path)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table to stdout or to a file, which appears complete or not at all."""
    import csv
    import io
    from itertools import chain

    from manela.system.files import replace_file

    if str(path) == "-":
        csv.writer(sys.stdout, lineterminator="\n").writerows(chain([header], rows))
        return
    with replace_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="surrogatepass", newline="")
        csv.writer(text, lineterminator="\n").writerows(chain([header], rows))
        text.detach()


@contextmanager
def counting(what: str, total: int) -> Iterator[Any]:
    """Yield a function to call after each piece of work; it shows the progress if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), MofNCompleteColumn(), BarColumn(bar_width=None), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
