"""manela reproduce: runs the experiments of the paper and writes a report."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from manela.cli import options as o
from manela.cli.options import default
from manela.errors import OutputError, ParameterError


def reproduce(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for all results.")],
    only: Annotated[
        str | None,
        typer.Option(
            metavar="PART,…", help="Some of classification, links, visualisation, relationship, sweep, tuned."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a small version, in a few minutes.")] = False,
    jobs: o.Jobs = default("n_jobs"),
) -> None:
    """Run the experiments of the paper and write a report.

    DIR gets report.html (a self-contained file), each figure as .png and .svg, results.json, and results.jsonl, which
    keeps every finished piece of work with its parameters and seed: stop at any time, and run the same command again to
    continue.

    \b
    manela reproduce -o report
    manela reproduce -o report --only links,visualisation   # the report also has earlier results
    """
    from manela.reproduction.laboratory import Ledger
    from manela.system.files import check_writable, replace_file

    parts = _parts(only)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{output}: cannot be created: {error.strerror or error}") from error
    check_writable(output / "results.jsonl")
    ledger = Ledger(output / "results.jsonl")

    from manela import __version__
    from manela.errors import import_extra
    from manela.system.progress import format_seconds
    from manela.system.threads import count_jobs

    for module in ("matplotlib", "jinja2"):
        import_extra(module, "report", "the report")
    from manela.reproduction.laboratory import FULL, QUICK, Laboratory
    from manela.reproduction.report import EXPERIMENTS, run_experiment, write_report

    started = time.perf_counter()

    def tell(text: str) -> None:
        print(f"{format_seconds(time.perf_counter() - started):>6}  {text}", file=sys.stderr, flush=True)

    plan = QUICK if quick else FULL
    lab = Laboratory(plan, ledger, count_jobs(jobs), tell)
    try:
        results = {part: run_experiment(part, lab) for part in parts}
    except KeyboardInterrupt:
        print(f"stopped; run the same command again to continue from {ledger.path}", file=sys.stderr)
        raise
    done_before = Laboratory(plan, Ledger(ledger.path, frozen=True), 1, lambda _: None)
    # an experiment without records would fetch its network only to find that nothing was done
    for part in {record["part"] for record in done_before.ledger.records} - set(results):
        with suppress(LookupError):
            results[part] = run_experiment(part, done_before)
    results = {part: results[part] for part in EXPERIMENTS if part in results}
    machine = ", and ".join(sorted({record["machine"] for record in done_before.ledger.records}))
    import json

    with replace_file(output / "results.json") as file:
        content = {"version": __version__, "machine": machine, "quick": quick, "results": results}
        file.write(json.dumps(content).encode())
    tell("drawing")
    print(write_report(results, output, machine, plan))


def _parts(only: str | None) -> list[str]:
    from manela.reproduction.report import EXPERIMENTS

    if only is None:
        return list(EXPERIMENTS)
    chosen = only.split(",")
    for part in chosen:
        if part not in EXPERIMENTS:
            raise ParameterError.of("only", f"must be some of {', '.join(EXPERIMENTS)}", part)
    return [part for part in EXPERIMENTS if part in chosen]
