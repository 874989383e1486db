"""manela tune: finds the ratios and hops that suit a network."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from manela.cli import options as o
from manela.cli.options import default
from manela.errors import ParameterError
from manela.settings.parameters import check


@o.expand_flags
def tune(
    graph: o.GraphArgument,
    labels: Annotated[
        str | None, typer.Argument(metavar="[LABELS]", help="Labels to score by; by default, hidden edges.")
    ] = None,
    *,
    max_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit; at least one trial is made.")
    ] = 300.0,
    reading: Annotated[o.Values, o.Reading()],
    random_state: o.RandomState = default("random_state"),
    jobs: o.Jobs = default("n_jobs"),
) -> None:
    """Find the ratios and hops that suit GRAPH.

    Also whether context vectors help. Candidates are tried with the whole budget if there is time, and otherwise with a
    part of it; then the better half is tried with more, until time runs out. Scored by labels (micro-F1 of held-back
    nodes), or without labels by hidden edges (MAP). Prints the trials with the largest part of the budget, best first,
    then all others, best first, and the flags for `manela embed`.

    \b
    manela tune wikipedia wikipedia --max-seconds 120
    manela tune friends.csv
    """
    if not max_seconds > 0:
        raise ParameterError.of("max_seconds", "must be above 0", max_seconds)
    check("random_state", random_state)
    check("n_jobs", jobs)
    from manela.formats.loading import load_graph, load_labels
    from manela.system.progress import report_download

    network = load_graph(graph, **reading, progress=report_download(graph))
    truth = None if labels is None else load_labels(labels).of(network.nodes)

    from manela.analysis import tuning

    is_shown = sys.stderr.isatty()

    def tell(trial: tuning.Trial) -> None:
        if is_shown:
            flags = _write_flags(trial.candidate)
            print(f"{trial.score:.4f}  {trial.share:4.0%} of the budget  {flags}", file=sys.stderr, flush=True)

    trials = tuning.tune(network, truth, max_seconds=max_seconds, random_state=random_state, n_jobs=jobs, tell=tell)
    print(f"{'micro-F1' if truth is not None else 'MAP':<10}{'budget':<8}{'seconds':<9}flags")
    for trial in reversed(trials):
        print(f"{trial.score:<10.4f}{trial.share:<8.0%}{trial.seconds:<9.1f}{_write_flags(trial.candidate)}")
    untried = len(tuning.candidates()) - len({trial.candidate for trial in trials})
    if untried:
        print(f"\n{untried} candidates were not tried for lack of time; raise --max-seconds to try more")
    embed_flags = [_write_flags(trials[-1].candidate)]
    embed_flags += o.write_reading(reading)
    embed_flags += [f"--random-state {random_state}"] if random_state else []
    print(f"\nbest of {len(trials)} trials: manela embed {quote(graph)} -o vectors.npz {' '.join(embed_flags)}")


if TYPE_CHECKING:
    from manela.analysis.tuning import Candidate


def _write_flags(candidate: Candidate) -> str:
    ratios = ",".join(f"{ratio:g}" for ratio in candidate.ratios)
    return f"--ratios {ratios}{' --context' if candidate.context else ''}"
