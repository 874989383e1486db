"""Entry point of the command, with its exit status: 0 done, 2 for an error the user can fix, 130 on Ctrl-C."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Annotated, Any

import typer

from manela import __version__
from manela.cli.agent import agent
from manela.cli.datasets import datasets
from manela.cli.embed import embed
from manela.cli.evaluate import evaluate
from manela.cli.federate import federate
from manela.cli.groups import groups
from manela.cli.import_ import imports
from manela.cli.info import info
from manela.cli.map import map_vectors
from manela.cli.odd_and_missing import anomalies, recommend
from manela.cli.options import as_flag
from manela.cli.panels import Commands
from manela.cli.reproduce import reproduce
from manela.cli.serve import serve
from manela.cli.similar import similar
from manela.cli.tune import tune
from manela.errors import ManelaWarning, write_message
from manela.system.signals import fail, interrupted, run_to_status, safe_interrupts, terminate

app = Commands(
    "Learn a vector for every node of a network.",
    name="manela",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command()(embed)
app.command()(info)
app.command()(similar)
app.command()(groups)
app.command("map")(map_vectors)
app.command()(anomalies)
app.command()(recommend)
app.command()(serve)
app.add_typer(evaluate, name="evaluate")
app.command()(tune)
app.command()(reproduce)
app.add_typer(imports, name="import")
app.add_typer(datasets, name="datasets")
app.add_typer(agent, name="agent")
app.command()(federate)

# the base class of usage errors: ClickException, of which newer releases of Typer have their own copy
_USAGE_ERROR: Any = next(kind for kind in reversed(typer.BadParameter.__mro__) if hasattr(kind, "format_message"))


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"manela {__version__}")
        raise typer.Exit


def run_from_shell() -> None:
    """Run the command with the arguments of the shell, with notes and signals as a user expects them, and exit."""
    warnings.showwarning = show_warning  # type: ignore[assignment]
    warnings.simplefilter("always", ManelaWarning)
    signal.signal(signal.SIGTERM, terminate)
    with safe_interrupts():
        sys.exit(run(sys.argv[1:] or ["--help"]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments, and return the exit status."""

    def command() -> int | None:
        try:
            status: int | None = app(arguments, standalone_mode=False)
            return status
        except _USAGE_ERROR as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.format_message(), file=sys.stderr)
                return 2
            return fail(_one_line(error))
        except typer.Abort:
            return interrupted()

    return run_to_status(
        command, lambda error: write_message(error, as_flag), "; `manela info GRAPH` says how much a run needs"
    )


def _one_line(error: Any) -> str:
    message = " ".join(error.format_message().split())
    cause = error.__cause__
    if hasattr(cause, "errors"):
        message += f", got {cause.errors()[0]['input']!r}"
    context = getattr(error, "ctx", None)
    return f"{message} (see `{context.command_path} --help`)" if context is not None else message


def show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Print a warning of this library as a note, and others as usual."""
    if isinstance(message, ManelaWarning):
        print(f"note: {write_message(message, as_flag)}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, filename, lineno), end="", file=sys.stderr)
