"""manela federate: learns a network split over real daemons on this machine."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from manela.cli import options as o
from manela.cli.options import default
from manela.errors import ParameterError
from manela.hosts.folder.config import PARAMETERS_OF_HOSTS


@o.expand_flags
def federate(
    graph: o.GraphArgument,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="File for the vectors.")],
    hosts: Annotated[int, typer.Option(metavar="N", help="Number of daemons.")] = 4,
    by: Annotated[
        str, typer.Option(metavar="HOW", help="random, community, or a file of lines `node host`.")
    ] = "random",
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the hosts' folders here, with keys, stores and logs.")
    ] = None,
    lock_step: Annotated[
        bool,
        typer.Option(
            "--lock-step",
            help="Keep all hosts in the same round; equals `manela embed --negative-source moments`, bit for bit.",
        ),
    ] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Log what is disclosed to each host.")] = False,
    float32: Annotated[bool, typer.Option("--float32", help="Send vectors as float32.")] = False,
    noise: Annotated[
        float | None,
        typer.Option(metavar="SIZE", help="Factor on the noise of what hosts show beyond vectors; 0 for none."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="WAY",
            help="First vectors: spectral, which is also joined with what rounds learn; neighbours, means over them; "
            "or random. The default is spectral, and random with --paper.",
        ),
    ] = None,
    paper: o.Paper = False,  # noqa: ARG001
    parameters: Annotated[o.Values, o.Flags(*PARAMETERS_OF_HOSTS)],
    reading: Annotated[o.Values, o.Reading()],
    random_state: o.RandomState = default("random_state"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Learn GRAPH split over daemons on this machine.

    The daemons learn together, and their vectors are written to OUT. Each daemon is a process with its own key, store
    and part of the network; they communicate over mutual TLS. All processes are stopped at the end, also after an
    error.

    \b
    manela federate sbm --hosts 4 -o vectors.npz
    manela federate friends.csv --by servers.txt -o vectors.npz --folder hosts
    """
    from manela.formats.embeddings import check_output
    from manela.formats.loading import load_graph
    from manela.hosts.federation import Federation, assign
    from manela.hosts.folder.config import check_start
    from manela.settings import parameters as params

    params.check("random_state", random_state)
    check_start(start, {"exchange": "walks"} if parameters["exchange"] == "walks" else {}, lock_step)
    target = check_output(output)
    loaded = load_graph(graph, **reading)
    target.check_ids(loaded.nodes)
    host_of = assign(loaded, hosts, by, random_state)
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise ParameterError.of("folder", "must be new or empty", str(folder))
    with ExitStack() as stack:
        homes = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="manela-")))
        # what is not given is the default of a host, which is not always that of one process
        chosen = {name: value for name, value in parameters.items() if value != default(name)}
        peers = {"half": not float32} | ({} if noise is None else {"noise": noise})
        federation = Federation(
            loaded,
            host_of,
            homes,
            chosen,
            lock_step=lock_step,
            seed=random_state,
            trace=trace,
            first_vectors=start,
            **peers,
        )
        started = time.monotonic()
        with federation.running(), _Table(quiet) as table:
            for statuses in federation.wait():
                table.show(statuses, time.monotonic() - started)
        target.write(federation.gather())
    pairs_made, sent = (sum(status[name] for status in statuses) for name in ("pairs", "sent"))
    refused = sum(times for status in statuses for reasons in status["refusals"].values() for times in reasons.values())
    print(
        f"{output}: {loaded.number_of_nodes:,} vectors of {len(federation.members)} hosts after {pairs_made:,} update "
        f"pairs, {sent / 1e6:,.1f} MB sent, {sent / max(1, pairs_made):.1f} bytes a pair, {refused} refusals",
        file=sys.stderr,
    )


class _Table:
    """A live table of all hosts on a terminal; elsewhere, a line every few seconds."""

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._shown = quiet, 0.0
        self._live: Any = None

    def __enter__(self) -> _Table:
        if sys.stderr.isatty() and not self._quiet:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, statuses: list[dict[str, Any]], seconds: float) -> None:
        """Show the statuses of the hosts."""
        if self._live is not None:
            self._live.update(self._draw(statuses), refresh=True)
        elif not self._quiet and seconds - self._shown >= 5.0:
            self._shown = seconds
            rounds = ", ".join(
                f"{status['name']} {status.get('round', 0)}/{status.get('rounds', '?')}" for status in statuses
            )
            print(f"{seconds:5.0f} s  {rounds}", file=sys.stderr, flush=True)

    @staticmethod
    def _draw(statuses: list[dict[str, Any]]) -> Any:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for title in ("host", "state", "round", "pairs/s", "sent", "received", "refused", "peers"):
            table.add_column(title, justify="left" if title in ("host", "state") else "right")
        for status in statuses:
            refused = sum(times for reasons in status.get("refusals", {}).values() for times in reasons.values())
            peers = status.get("peers", {})
            table.add_row(
                status["name"],
                status.get("state", "starting"),
                f"{status.get('round', 0)}/{status.get('rounds', '?')}",
                f"{status.get('pairs_per_second', 0) / 1e6:.2f} M",
                f"{status.get('sent', 0) / 1e6:.1f} MB",
                f"{status.get('received', 0) / 1e6:.1f} MB",
                str(refused),
                f"{sum(peer['state'] == 'here' for peer in peers.values())}/{len(peers)}",
            )
        return table
